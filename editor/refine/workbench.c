// SPDX-License-Identifier: Apache-2.0
/* workbench - makes, samples and audits files; see workbench.h. */
#include "editor/refine/workbench.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "editor/refine/audit_tool.h"
#include "editor/refine/interrupt.h"
#include "editor/refine/sample_db.h"
#include "editor/refine/tool.h"
#include "libprof/cfg/cfg.h"
#include "libprof/elf/elf.h"
#include "libprof/store/store.h"
#include "libprof/store/store_copies.h"

struct me_workbench {
	const struct me_workbench_options *options;
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct me_refine_func *funcs;
	char db[PATH_MAX]; /* of one run */
	int status;	   /* with which the original ends */
	bool has_status;
};

struct path {
	char text[PATH_MAX];
};

static struct path path_of(const struct me_workbench *b, const char *name, const char *suffix)
{
	struct path path;

	if (name)
		snprintf(path.text, sizeof(path.text), "%.*s/%s%s", PATH_MAX - 64, b->options->dir,
			 name, suffix);
	else
		snprintf(path.text, sizeof(path.text), "%s", b->options->file);
	return path;
}

static double now_s(void *arg)
{
	struct timespec now;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void say(void *arg, const char *what)
{
	const struct me_workbench *b = arg;

	if (b->options->say)
		b->options->say(what);
}

static void drop(void *arg, const char *name)
{
	struct path path = path_of(arg, name, "");

	unlink(path.text);
}

static int make(void *arg, const struct me_wishes *wishes, bool may_be_kept, const char *name,
		struct mp_err *err)
{
	const struct me_workbench *b = arg;
	struct path path = path_of(b, name, "");
	struct me_optimize_options o = *b->options->optimize;
	struct me_optimize_report report = {0};
	int rc = me_interrupt_check(err);

	if (rc)
		return rc;
	o.input = b->options->file;
	o.output = path.text;
	o.adjust_words = (struct me_words){0};
	o.adjusts = wishes->list;
	o.nr_adjusts = (uint32_t)wishes->nr;
	o.keeps_nothing = true; /* the store need not know of every version */
	o.progress = NULL;
	o.debug_output = b->options->debug_output;
	if (!may_be_kept)
		o.debug_file = NULL;
	rc = me_optimize(&o, &report, err);
	me_optimize_report_fini(&report);
	return rc;
}

/* ---- one sampled run ----------------------------------------------------------------------- */

static int run_sampled(const struct me_workbench *b, const char *version, int *status,
		       struct mp_err *err)
{
	const struct me_workbench_options *o = b->options;
	char db[PATH_MAX + 8];
	struct me_tool morphd;
	char *first[] = {morphd.path, (char *)"run", (char *)"--no-kernel", db, (char *)"--", NULL};
	struct me_in_place run = {
		.dir = o->dir, .at = o->file, .version = version, .program = morphd.path};
	struct me_in_place_result result;
	char **argv;
	int rc = me_tool_find("morphd", &morphd, err);

	if (rc)
		return rc == -ENOENT ? -ENOTSUP : rc;
	snprintf(db, sizeof(db), "--db=%s", b->db);
	argv = me_tool_with_command(first, o->command);
	if (!argv)
		return mp_err_set(err, ENOMEM, "out of memory");
	run.argv = argv;
	rc = me_in_place_run(&run, &result, err);
	free(argv);
	if (me_interrupted())
		return me_interrupt_check(err);
	*status = result.status;
	return rc;
}

/* All versions end in the same way. */
static int check_status(struct me_workbench *b, const char *version, int status, struct mp_err *err)
{
	if (b->has_status && status != b->status)
		return mp_err_set(err, EBADE, "%s: ends otherwise", version);
	b->status = status;
	b->has_status = true;
	return 0;
}

static int read_counts(const struct me_workbench *b, struct mp_store *store, struct me_sampled *out,
		       struct mp_err *err)
{
	struct mp_ip_count *counts;
	size_t nr;
	int rc = me_sample_db_read(store, &b->elf->id, &counts, &nr, err);

	for (size_t i = 0; i < nr && !rc; i++) {
		uint32_t f = mp_cfg_func_at(b->cfg, counts[i].vaddr);

		if (f != MP_NONE)
			out->counts[f] += counts[i].count;
	}
	free(counts);
	return rc;
}

/* Which functions ran in their copies. */
static int read_moved(const struct me_workbench *b, struct mp_store *store,
		      const struct mp_id *output, bool *moved, struct mp_err *err)
{
	struct mp_module module = {.path = NULL};
	struct mp_copy_count *copies = NULL;
	size_t nr = 0;
	int rc = mp_store_find_module(store, output, &module, err);

	if (rc == -ENOENT)
		return 0;
	if (!rc)
		rc = mp_store_read_copies(store, module.key, 0, &copies, &nr, err);
	for (size_t i = 0; i < nr && !rc; i++) {
		uint32_t f = mp_cfg_func_at(b->cfg, copies[i].original);

		if (f != MP_NONE && copies[i].vaddr != copies[i].original)
			moved[f] = true;
	}
	free(copies);
	free(module.path);
	return rc;
}

static int read_samples(const struct me_workbench *b, const struct mp_id *output,
			struct me_sampled *out, struct mp_err *err)
{
	struct mp_store *store;
	int rc = me_sample_db_open(b->db, &store, err);

	if (rc)
		return rc;
	rc = read_counts(b, store, out, err);
	if (!rc)
		rc = me_sample_db_whole(store, &out->whole, err);
	if (!rc && output && out->moved)
		rc = read_moved(b, store, output, out->moved, err);
	mp_store_close(store);
	return rc;
}

static int sample(void *arg, const char *name, struct me_sampled *out, struct mp_err *err)
{
	struct me_workbench *b = arg;
	struct path path = path_of(b, name, "");
	struct mp_elf *version = NULL;
	struct mp_id id = {.build_id_len = 0};
	int status = 0, rc = me_interrupt_check(err);

	me_sample_db_remove(b->db);
	if (!rc && name) {
		rc = mp_elf_open(path.text, MP_ELF_ID, &version, err);
		if (!rc) {
			id = version->id;
			mp_elf_close(version);
			rc = me_sample_db_list_output(b->db, &id, &b->elf->id, err);
		}
	}
	if (!rc)
		rc = run_sampled(b, path.text, &status, err);
	if (!rc)
		rc = read_samples(b, name ? &id : NULL, out, err);
	if (!rc)
		rc = check_status(b, path.text, status, err);
	me_sample_db_remove(b->db);
	return rc;
}

static int audit(void *arg, const char *a, const char *b, double alpha, double limit_s,
		 struct me_verdict *out, struct mp_err *err)
{
	const struct me_workbench *bench = arg;
	struct path path_a = path_of(bench, a, ""), path_b = path_of(bench, b, "");
	struct path json = path_of(bench, "round", ".json"), csv = path_of(bench, b, ".csv");
	struct me_audit_tool tool = {.a = path_a.text,
				     .b = path_b.text,
				     .at = bench->options->file,
				     .command = bench->options->command,
				     .alpha = alpha,
				     .limit_s = limit_s,
				     .json = json.text,
				     .csv = csv.text,
				     .quiet = true};
	int status;

	return me_audit_tool_run(&tool, out, &status, err);
}

/* ---- open, close --------------------------------------------------------------------------- */

int me_workbench_open(const struct me_workbench_options *options, struct me_workbench **out,
		      struct mp_err *err)
{
	struct me_workbench *b = calloc(1, sizeof(*b));
	int rc;

	*out = NULL;
	if (!b)
		return mp_err_set(err, ENOMEM, "out of memory");
	b->options = options;
	snprintf(b->db, sizeof(b->db), "%.*s/run.db", PATH_MAX - 64, options->dir);
	rc = mp_elf_open(options->file, MP_ELF_ALL, &b->elf, err);
	if (!rc)
		rc = mp_cfg_build(b->elf, NULL, &b->cfg, err);
	if (!rc) {
		b->funcs = calloc((size_t)b->cfg->nr_funcs + 1, sizeof(*b->funcs));
		if (!b->funcs)
			rc = mp_err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t f = 0; !rc && f < b->cfg->nr_funcs; f++)
		b->funcs[f] =
			(struct me_refine_func){b->cfg->funcs[f].name, b->cfg->funcs[f].vaddr};
	if (rc) {
		me_workbench_close(b);
		return rc;
	}
	*out = b;
	return 0;
}

void me_workbench_close(struct me_workbench *bench)
{
	if (!bench)
		return;
	free(bench->funcs);
	mp_cfg_free(bench->cfg);
	mp_elf_close(bench->elf);
	free(bench);
}

struct me_runner me_workbench_runner(struct me_workbench *bench)
{
	return (struct me_runner){.arg = bench,
				  .now_s = now_s,
				  .make = make,
				  .sample = sample,
				  .audit = audit,
				  .drop = drop,
				  .say = say};
}

const struct me_refine_func *me_workbench_funcs(const struct me_workbench *bench, size_t *nr)
{
	*nr = bench->cfg->nr_funcs;
	return bench->funcs;
}
