// SPDX-License-Identifier: Apache-2.0
/*
 * stats_remember - the command "remember": stores fingerprints of modules with samples, for use
 * after an upgrade has replaced their files. Decides which modules get one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/stats/stats.h"
#include "daemon/code/stats_code.h"
#include "libprof/cli/progress.h"
#include "libprof/store/store_fingerprint.h"

#define MP_OPTIONS struct remember

/* The result for one module. */
struct row {
	const struct mp_module *module;
	uint32_t nr_funcs, nr_blocks;
	size_t nr_bytes; /* 0: not stored */
	char why[sizeof(((struct mp_err *)NULL)->msg)];
};

struct remember {
	struct md_cli *cli;
	struct md_stats_filter filter;
	uint64_t min_samples;
	struct mp_module *modules;
	size_t nr_modules;
	struct row *rows;
	size_t nr;
};

static const struct mp_option options[] = {
	MP_VALUE(TEXT, "module", 'm', filter.module, "NAME",
		 "Only modules with this path or file name"),
	MP_VALUE(TEXT, "build-id", 0, filter.build_id, "HEX",
		 "Only the module whose build-id begins with HEX"),
	MP_VALUE(TEXT, "binary", 0, filter.binary, "FILE",
		 "Where the file of that one module is now"),
	MP_VALUE(COUNT, "min-samples", 0, min_samples, "N",
		 "Only modules with at least N samples (default 1000)"),
	MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	const struct remember *r = options;

	if (r->filter.binary && !r->filter.module && !r->filter.build_id)
		argp_error(state, "--binary needs --module or --build-id");
}

static const struct mp_usage usage = {
	.options = options,
	.doc = "Keep fingerprints of the modules' files, so that their samples also serve later builds.",
	.check = check,
	.shared = &md_cli_common_argp};

static bool wanted(const struct remember *r, const struct mp_module *module)
{
	return module->kind == MP_MODULE_FILE &&
	       (module->nr_samples >= r->min_samples || module->nr_transfers >= r->min_samples) &&
	       md_stats_filter_matches(&r->filter, module);
}

static int make_fingerprint(struct mp_store *store, const struct mp_module *module,
			    const struct md_code *code, struct row *row, struct mp_err *err)
{
	struct mp_fingerprint print = {0};
	struct mp_ip_count *counts = NULL;
	struct mp_edge_count *edges = NULL;
	size_t nr = 0, nr_edges = 0;
	int r = mp_store_read_ip_counts(store, module->key, 0, &counts, &nr, err);

	if (!r)
		r = mp_store_read_edges(store, module->key, 0, &edges, &nr_edges, err);
	if (!r)
		r = mp_fingerprint_make(code->cfg, counts, nr, edges, nr_edges, &print, err);
	if (!r)
		r = mp_store_put_fingerprint(store, module->key, time(NULL), &print, &row->nr_bytes,
					     err);
	row->nr_funcs = print.nr_funcs;
	row->nr_blocks = print.nr_blocks;
	mp_fingerprint_fini(&print);
	free(counts);
	free(edges);
	return r;
}

/* Only an error of the store ends the command. A file's error is printed in its row. */
static int remember_one(struct remember *r, struct mp_store *store, const struct mp_module *module,
			struct mp_err *err)
{
	struct row *row = &r->rows[r->nr++];
	struct mp_err why = {0};
	struct md_code code;
	int ret;

	row->module = module;
	mp_progress_say("reading %s", module->path);
	ret = md_code_open(module, r->filter.binary, true, &code, &why);
	if (mp_err_is_failure(ret)) {
		*err = why;
		return ret;
	}
	if (ret) {
		snprintf(row->why, sizeof(row->why), "%s", why.msg);
		return 0;
	}
	ret = make_fingerprint(store, module, &code, row, err);
	md_code_close(&code);
	return ret;
}

static int remember_all(struct remember *r, struct mp_store *store, struct mp_err *err)
{
	int ret = mp_store_list_modules(store, 0, &r->modules, &r->nr_modules, err);

	if (ret)
		return ret;
	r->rows = calloc(r->nr_modules + 1, sizeof(*r->rows));
	if (!r->rows)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < r->nr_modules && !ret; i++)
		if (wanted(r, &r->modules[i]))
			ret = remember_one(r, store, &r->modules[i], err);
	return ret;
}

static json_t *row_json(const struct row *row)
{
	char id[80];

	return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "module",
			 mp_json_string(row->module->path), "build_id",
			 md_stats_format_id(&row->module->id, id), "samples",
			 (json_int_t)row->module->nr_samples, "functions",
			 (json_int_t)row->nr_funcs, "blocks", (json_int_t)row->nr_blocks, "bytes",
			 (json_int_t)row->nr_bytes, "text_bytes",
			 (json_int_t)row->module->text_size, "why_not",
			 row->nr_bytes ? json_null() : mp_json_string(row->why));
}

static int report(const struct remember *r)
{
	bool any = false;

	for (size_t i = 0; i < r->nr; i++)
		any |= r->rows[i].nr_bytes > 0;
	if (r->cli->json) {
		json_t *root = md_cli_json_new("remember"), *rows = json_array();
		int status;

		for (size_t i = 0; i < r->nr; i++)
			json_array_append_new(rows, row_json(&r->rows[i]));
		json_object_set_new(root, "modules", rows);
		status = md_cli_json_print(root);
		return status ? status : any ? MP_EXIT_DONE : MP_EXIT_NO_PROFILE;
	}
	if (any)
		printf("%10s  %9s  %9s  Module\n", "Bytes", "Functions", "Blocks");
	for (size_t i = 0; i < r->nr; i++) {
		const struct row *row = &r->rows[i];

		if (!row->nr_bytes)
			continue;
		printf("%10zu  %9" PRIu32 "  %9" PRIu32 "  ", row->nr_bytes, row->nr_funcs,
		       row->nr_blocks);
		md_cli_put_text(row->module->path);
		putchar('\n');
	}
	for (size_t i = 0; i < r->nr; i++)
		if (!r->rows[i].nr_bytes)
			md_cli_note("%s", r->rows[i].why);
	return md_cli_finish(any ? MP_EXIT_DONE : MP_EXIT_NO_PROFILE);
}

int md_stats_remember(struct md_cli *cli, int argc, char **argv)
{
	struct remember r = {.cli = cli, .min_samples = MP_MIN_SAMPLES};
	struct mp_store *store;
	struct mp_err err = {0};
	int status, ret;

	md_cli_parse(&usage, argc, argv, &r, cli);
	/* Do not create a database: open it for reading first. */
	status = md_cli_open(cli, MP_STORE_READ, &store);
	if (status)
		return status;
	mp_store_close(store);
	status = md_cli_open(cli, MP_STORE_WRITE, &store);
	if (status)
		return status;
	mp_progress_start("morph-stats", true);
	ret = remember_all(&r, store, &err);
	mp_progress_stop();
	if (ret)
		status = md_cli_fail("%s", err.msg);
	else if (!r.nr)
		status = (md_cli_note("no module has so many samples"), MP_EXIT_NO_PROFILE);
	else
		status = report(&r);
	mp_store_close(store);
	mp_store_free_modules(r.modules, r.nr_modules);
	free(r.rows);
	return status;
}
