// SPDX-License-Identifier: Apache-2.0
/* program_runner - makes, samples and audits files; see program_runner.h. */
#include "editor/refine/program_runner.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/refine/audit_tool.h"
#include "editor/refine/interrupt.h"
#include "editor/refine/sample_db.h"
#include "editor/refine/tool.h"
#include "libprof/base/clock.h"
#include "libprof/cfg/cfg.h"
#include "libprof/elf/elf.h"
#include "libprof/store/store.h"
#include "libprof/store/store_copies.h"

struct me_program_runner {
	const struct me_program_runner_options *options;
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

static struct path path_of(const struct me_program_runner *p, const char *name, const char *suffix)
{
	struct path path;

	if (name)
		snprintf(path.text, sizeof(path.text), "%.*s/%s%s", PATH_MAX - 64, p->options->dir,
			 name, suffix);
	else
		snprintf(path.text, sizeof(path.text), "%s", p->options->file);
	return path;
}

static double now_s(void *arg)
{
	(void)arg;
	return mp_now_s();
}

static void say(void *arg, const char *what)
{
	const struct me_program_runner *p = arg;

	if (p->options->say)
		p->options->say(what);
}

static int make(void *arg, const struct me_wishes *wishes, const char *name, struct mp_err *err)
{
	const struct me_program_runner *p = arg;
	struct path path = path_of(p, name, "");
	struct me_optimize_options o = *p->options->optimize;
	struct me_optimize_report report = {0};
	int rc = me_interrupt_check(err);

	if (rc)
		return rc;
	o.input = p->options->file;
	o.output = path.text;
	o.adjust_words = (struct me_words){0};
	o.adjusts = wishes->list;
	o.nr_adjusts = (uint32_t)wishes->nr;
	o.keeps_nothing = true; /* the store need not know of every version */
	o.progress = NULL;
	o.debug_output = p->options->debug_output;
	rc = me_optimize(&o, &report, err);
	me_optimize_report_fini(&report);
	return rc;
}

/* ---- one sampled run ----------------------------------------------------------------------- */

static int run_sampled(const struct me_program_runner *p, const char *version, int *status,
		       struct mp_err *err)
{
	const struct me_program_runner_options *o = p->options;
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
	snprintf(db, sizeof(db), "--db=%s", p->db);
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
static int check_status(struct me_program_runner *p, const char *version, int status,
			struct mp_err *err)
{
	if (p->has_status && status != p->status)
		return mp_err_set(err, EBADE, "%s: ends otherwise", version);
	p->status = status;
	p->has_status = true;
	return 0;
}

static int read_counts(const struct me_program_runner *p, struct mp_store *store,
		       struct me_sampled *out, struct mp_err *err)
{
	struct mp_ip_count *counts;
	size_t nr;
	int rc = me_sample_db_read(store, &p->elf->id, &counts, &nr, err);

	for (size_t i = 0; i < nr && !rc; i++) {
		uint32_t f = mp_cfg_func_at(p->cfg, counts[i].vaddr);

		if (f != MP_NONE)
			out->counts[f] += counts[i].count;
	}
	free(counts);
	return rc;
}

/* Which functions ran in their copies. */
static int read_moved(const struct me_program_runner *p, struct mp_store *store,
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
		uint32_t f = mp_cfg_func_at(p->cfg, copies[i].original);

		if (f != MP_NONE && copies[i].vaddr != copies[i].original)
			moved[f] = true;
	}
	free(copies);
	free(module.path);
	return rc;
}

static int read_samples(const struct me_program_runner *p, const struct mp_id *output,
			struct me_sampled *out, struct mp_err *err)
{
	struct mp_store *store;
	int rc = me_sample_db_open(p->db, &store, err);

	if (rc)
		return rc;
	rc = read_counts(p, store, out, err);
	if (!rc && output && out->moved)
		rc = read_moved(p, store, output, out->moved, err);
	mp_store_close(store);
	return rc;
}

static int sample(void *arg, const char *name, struct me_sampled *out, struct mp_err *err)
{
	struct me_program_runner *p = arg;
	struct path path = path_of(p, name, "");
	struct mp_elf *version = NULL;
	struct mp_id id = {.build_id_len = 0};
	int status = 0, rc = me_interrupt_check(err);

	me_sample_db_remove(p->db);
	if (!rc && name) {
		rc = mp_elf_open(path.text, MP_ELF_ID, &version, err);
		if (!rc) {
			id = version->id;
			mp_elf_close(version);
			rc = me_sample_db_list_output(p->db, &id, &p->elf->id, err);
		}
	}
	if (!rc)
		rc = run_sampled(p, path.text, &status, err);
	if (!rc)
		rc = read_samples(p, name ? &id : NULL, out, err);
	if (!rc)
		rc = check_status(p, path.text, status, err);
	me_sample_db_remove(p->db);
	return rc;
}

static int audit(void *arg, const char *a, const char *b, double alpha, double limit_s,
		 struct me_verdict *out, struct mp_err *err)
{
	const struct me_program_runner *programs = arg;
	struct path path_a = path_of(programs, a, ""), path_b = path_of(programs, b, "");
	struct path json = path_of(programs, "round", ".json"), csv = path_of(programs, b, ".csv");
	struct me_audit_tool tool = {.a = path_a.text,
				     .b = path_b.text,
				     .at = programs->options->file,
				     .command = programs->options->command,
				     .alpha = alpha,
				     .limit_s = limit_s,
				     .filter = programs->options->filter,
				     .json = json.text,
				     .csv = csv.text,
				     .quiet = true};
	int status;

	return me_audit_tool_run(&tool, out, &status, err);
}

/* ---- open, close --------------------------------------------------------------------------- */

int me_program_runner_open(const struct me_program_runner_options *options,
			   struct me_program_runner **out, struct mp_err *err)
{
	struct me_program_runner *p = calloc(1, sizeof(*p));
	int rc;

	*out = NULL;
	if (!p)
		return mp_err_set(err, ENOMEM, "out of memory");
	p->options = options;
	snprintf(p->db, sizeof(p->db), "%.*s/run.db", PATH_MAX - 64, options->dir);
	rc = mp_elf_open(options->file, MP_ELF_ALL, &p->elf, err);
	if (!rc)
		rc = mp_cfg_build(p->elf, NULL, &p->cfg, err);
	if (!rc) {
		p->funcs = calloc((size_t)p->cfg->nr_funcs + 1, sizeof(*p->funcs));
		if (!p->funcs)
			rc = mp_err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t f = 0; !rc && f < p->cfg->nr_funcs; f++)
		p->funcs[f] =
			(struct me_refine_func){p->cfg->funcs[f].name, p->cfg->funcs[f].vaddr};
	if (rc) {
		me_program_runner_close(p);
		return rc;
	}
	*out = p;
	return 0;
}

void me_program_runner_close(struct me_program_runner *programs)
{
	if (!programs)
		return;
	free(programs->funcs);
	mp_cfg_free(programs->cfg);
	mp_elf_close(programs->elf);
	free(programs);
}

struct me_runner me_program_runner_callbacks(struct me_program_runner *programs)
{
	return (struct me_runner){.arg = programs,
				  .now_s = now_s,
				  .make = make,
				  .sample = sample,
				  .audit = audit,
				  .say = say};
}

const struct me_refine_func *me_program_runner_funcs(const struct me_program_runner *programs,
						     size_t *nr)
{
	*nr = programs->cfg->nr_funcs;
	return programs->funcs;
}
