// SPDX-License-Identifier: Apache-2.0
/*
 * stats_query - the command "query": shows which modules, functions, blocks and paths got the
 * samples. Decides what is asked for; shows addresses if a file cannot be read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/ksyms.h"
#include "daemon/code/originals.h"
#include "daemon/stats/stats.h"
#include "daemon/stats/stats_calls.h"
#include "daemon/code/stats_rows.h"
#include "libprof/store/store_paths.h"

#define MP_OPTIONS struct query

struct query {
	struct md_cli *cli;
	struct md_stats_filter filter;
	const char *function;
	const char *callers_of, *callees_of; /* a function; NULL: not asked for */
	int64_t since_s;
	enum md_by by;
	enum md_sort sort;
	long limit; /* 0: all */
	double percent_limit;
	/* results */
	struct mp_module *modules;
	size_t nr_modules;
	uint64_t total; /* samples of all modules in the period */
	/* base of the percentages: @total, or the number of paths, which may be larger */
	uint64_t whole;
	size_t nr_matching;
	struct md_rows rows;
	json_t *notes;
};

static const char *const bys[] = {"",	  "module", "function", "block",
				  "path", "copy",   "context",	NULL};
static const char *const sorts[] = {"samples", "weight", "name", "address", NULL};

static const struct mp_option options[] = {
	MP_WORD("by", by, bys, "WHAT",
		"module, function, block, path, copy: the blocks of outputs, each copy apart, or context: who "
		"called, as a tree (default: one step finer than the named module or function, but never "
		"path, copy or context)"),
	MP_VALUE(TEXT, "callers", 0, callers_of, "NAME", "The functions that called this one"),
	MP_VALUE(TEXT, "callees", 0, callees_of, "NAME", "The functions that this one called"),
	MD_OPTIONS_FILTER,
	MP_VALUE(TEXT, "function", 'f', function, "NAME", MD_HELP_FUNCTION),
	MD_OPTION_SINCE,
	MP_WORD("sort", sort, sorts, "KEY", "samples (default), weight (blocks), name or address"),
	MD_OPTION_LIMIT,
	MP_NUMBER("percent-limit", 'p', percent_limit, 0, 100, "P",
		  "Only rows of at least P percent of all samples"),
	MP_OPTIONS_END};

static void check_calls(struct query *q, struct argp_state *state)
{
	if (q->callers_of && q->callees_of)
		argp_error(state, "--callers and --callees exclude each other");
	if (q->by && q->by != MD_BY_CONTEXT)
		argp_error(state, "--callers and --callees do not go with --by=%s", bys[q->by]);
	q->by = MD_BY_CONTEXT;
}

static void check(void *options, struct argp_state *state)
{
	struct query *q = options;

	if (q->callers_of || q->callees_of)
		check_calls(q, state);
	if (q->by == MD_BY_CONTEXT && (q->function || q->sort != MD_SORT_SAMPLES))
		argp_error(state, "--function and --sort do not go with calling contexts");
	if (!q->by)
		q->by = q->function ? MD_BY_BLOCK
			: q->filter.module || q->filter.build_id || q->filter.binary
				? MD_BY_FUNCTION
				: MD_BY_MODULE;
	if (q->function && q->by == MD_BY_MODULE)
		argp_error(state, "--function goes with --by=function, block, path or copy");
	if (q->sort == MD_SORT_WEIGHT && q->by != MD_BY_BLOCK)
		argp_error(state, "--sort=weight goes with --by=block");
}

static const struct mp_usage usage = {
	.options = options,
	.doc = "Say which modules, functions, basic blocks or paths got the samples.\v"
	       "Without a module: modules. With one: its functions. With a function: its blocks.",
	.check = check,
	.shared = &md_cli_fleet_argp};

/* ---- find ---------------------------------------------------------------------------------- */

static void note(struct query *q, const char *what)
{
	md_cli_note("%s: its addresses are shown instead", what);
	json_array_append_new(q->notes, mp_json_string(what));
}

static int add_module_row(struct query *q, const struct mp_module *module)
{
	struct md_row row = {
		.module = module, .samples = module->nr_samples, .size = module->text_size};

	return md_rows_add(&q->rows, &row);
}

/* A file that cannot be used is no failure: it is noted. Return: 0; -errno: a failure of the machine. */
static int open_code(struct query *q, const struct mp_module *module, bool blocks,
		     struct md_code *code, struct mp_err *err)
{
	struct mp_err why = {0};
	int r = md_code_open(module, q->filter.binary, blocks, code, &why);

	if (mp_err_is_failure(r)) {
		*err = why;
		return r;
	}
	if (r && module->kind == MP_MODULE_FILE)
		note(q, why.msg);
	return 0;
}

/* Adds rows for functions or blocks. */
static int add_code_rows(struct query *q, struct mp_store *store, const struct mp_module *module,
			 struct mp_err *err)
{
	bool blocks = q->by == MD_BY_BLOCK;
	struct mp_ip_count *counts = NULL;
	struct md_ksyms ksyms = {0};
	struct md_code code = {0};
	size_t nr = 0;
	int r = mp_store_read_ip_counts(store, module->key, q->since_s, &counts, &nr, err), s;

	if (r)
		return r;
	s = md_ksyms_open(module, &ksyms);
	if (mp_err_is_failure(s))
		r = mp_err_code(err, -s);
	else if (s)
		r = open_code(q, module, blocks, &code, err);
	if (r)
		goto out;
	if (!s)
		r = md_rows_of_kernel(&q->rows, module, &ksyms, blocks, q->function, counts, nr);
	else if (!code.cfg)
		r = q->function ? 0 : md_rows_of_addresses(&q->rows, module, counts, nr);
	else if (blocks)
		r = md_rows_of_blocks(&q->rows, module, &code, q->function, counts, nr);
	else
		r = md_rows_of_functions(&q->rows, module, &code, q->function, counts, nr);
	if (r)
		mp_err_code(err, -r);
out:
	md_code_close(&code);
	md_ksyms_fini(&ksyms);
	free(counts);
	return r;
}

/* Adds rows for the paths that precede samples with registers. */
static int add_path_rows(struct query *q, struct mp_store *store, const struct mp_module *module,
			 struct mp_err *err)
{
	struct mp_path_count *paths = NULL;
	struct md_code code = {0};
	size_t nr = 0;
	int r = mp_store_read_paths(store, module->key, q->since_s, &paths, &nr, err);

	if (r || !nr)
		return r;
	r = open_code(q, module, false, &code, err);
	if (!r && (r = md_rows_of_paths(&q->rows, module, code.cfg ? &code : NULL, q->function,
					paths, nr)))
		mp_err_code(err, -r);
	md_code_close(&code);
	free(paths);
	return r;
}

static const struct mp_module *module_of(const struct query *q, int64_t key)
{
	for (size_t i = 0; i < q->nr_modules; i++)
		if (q->modules[i].key == key)
			return &q->modules[i];
	return NULL;
}

/* Adds rows for the copies in one output; the code is read from its original. */
static int add_output_rows(struct query *q, struct mp_store *store, const struct mp_module *output,
			   const struct mp_module *original, struct mp_err *err)
{
	struct mp_copy_count *copies = NULL;
	struct md_code code = {0};
	size_t nr = 0;
	int r = mp_store_read_copies(store, output->key, q->since_s, &copies, &nr, err);

	if (r || !nr)
		return r;
	r = open_code(q, original, true, &code, err);
	if (!r && (r = md_rows_of_copies(&q->rows, output, code.cfg ? &code : NULL, q->function,
					 copies, nr)))
		mp_err_code(err, -r);
	md_code_close(&code);
	free(copies);
	return r;
}

/* Adds rows for the copies of all outputs that match by themselves or by their original. */
static int add_copy_rows(struct query *q, struct mp_store *store, const struct mp_id *id,
			 struct mp_err *err)
{
	struct mp_copied *copied = NULL;
	size_t nr = 0;
	int r = mp_store_list_copied(store, &copied, &nr, err);

	for (size_t i = 0; i < nr && !r; i++) {
		const struct mp_module *output = module_of(q, copied[i].output);
		const struct mp_module *original = module_of(q, copied[i].original);

		if (!output || !original)
			r = mp_err_set(err, EBADMSG, "%s: damaged: an output without an original",
				       q->cli->path);
		else if ((md_stats_filter_matches(&q->filter, output) ||
			  md_stats_filter_matches(&q->filter, original)) &&
			 (!q->filter.binary || mp_id_equal(id, &original->id)))
			r = add_output_rows(q, store, output, original, err);
	}
	free(copied);
	return r;
}

static int find_rows(struct query *q, struct mp_store *store, struct mp_err *err)
{
	struct mp_id id;
	int r = mp_store_list_modules(store, q->since_s, &q->modules, &q->nr_modules, err);

	if (!r && q->filter.binary)
		r = md_original_id(q->filter.binary, &id, err);
	for (size_t i = 0; i < q->nr_modules; i++)
		q->total += q->modules[i].nr_samples;
	if (!r && q->by == MD_BY_COPY)
		r = add_copy_rows(q, store, &id, err);
	for (size_t i = 0; i < q->nr_modules && !r && q->by != MD_BY_COPY; i++) {
		const struct mp_module *m = &q->modules[i];

		if (!m->nr_samples || !md_stats_filter_matches(&q->filter, m) ||
		    (q->filter.binary && !mp_id_equal(&id, &m->id)))
			continue;
		q->nr_matching++;
		r = q->by == MD_BY_MODULE ? add_module_row(q, m)
		    : q->by == MD_BY_PATH ? add_path_rows(q, store, m, err)
					  : add_code_rows(q, store, m, err);
	}
	q->whole = q->by == MD_BY_PATH ? 0 : q->total;
	for (size_t i = 0; i < q->rows.nr && q->by == MD_BY_PATH; i++)
		q->whole += q->rows.rows[i].samples;
	if (!r)
		md_rows_sort(&q->rows, q->sort);
	return r;
}

/* ---- print --------------------------------------------------------------------------------- */

static double percent_of(const struct query *q, const struct md_row *row)
{
	return q->whole ? 100.0 * (double)row->samples / (double)q->whole : 0.0;
}

static void print_header(const struct query *q)
{
	switch (q->by) {
	case MD_BY_FUNCTION:
		printf(" Of all      Samples      Address    Size  Function  [Module]\n");
		break;
	case MD_BY_BLOCK:
		printf(" Of all      Samples      Address  Bytes  Insns       Weight  Block  [Module]\n");
		break;
	case MD_BY_PATH:
		printf(" Of all      Samples      Address  Blocks  Function: path  [Module]\n");
		break;
	case MD_BY_COPY:
		printf(" Of all      Samples      Address     Original  Block  [Output]\n");
		break;
	default:
		printf(" Of all      Samples         Text  Build-id                                  Module\n");
	}
}

/* Prints a path; the module follows. */
static void print_path(const struct md_row *row)
{
	bool from_outside = !row->path[0];

	printf("%7" PRIu32 "  ", row->nr_path - from_outside);
	if (row->function)
		md_cli_put_text(row->function);
	else
		printf("(no function)");
	printf(":%s", from_outside ? " entered" : "");
	for (uint32_t i = from_outside; i < row->nr_path; i++)
		printf(" 0x%" PRIx64, row->path[i]);
}

static void print_row(const struct query *q, const struct md_row *row)
{
	char buf[80];

	printf("%6.2f%% %12" PRIu64 " ", percent_of(q, row), row->samples);
	if (q->by == MD_BY_MODULE) {
		printf("%12s  %-40s  ", md_cli_format_size(row->size, buf),
		       md_stats_format_id(&row->module->id, (char[80]){0}));
		md_cli_put_text(row->module->path);
		putchar('\n');
		return;
	}
	printf("%12" PRIx64 " ", row->vaddr);
	if (q->by == MD_BY_FUNCTION && row->size)
		printf("%7" PRIu64 "  ", row->size);
	else if (q->by == MD_BY_FUNCTION)
		printf("%7s  ", "-");
	else if (q->by == MD_BY_PATH)
		; /* print_path() prints the number of blocks */
	else if (q->by == MD_BY_COPY)
		printf("%12" PRIx64 "  ", row->original);
	else if (row->nr_insns)
		printf("%6" PRIu64 " %6" PRIu32 " %12.2f  ", row->size, row->nr_insns, row->weight);
	else
		printf("%6s %6s %12s  ", "-", "-", "-");
	if (row->path) {
		print_path(row);
	} else if (row->function) {
		md_cli_put_text(row->function);
		if (q->by == MD_BY_BLOCK || q->by == MD_BY_COPY)
			printf("%s0x%" PRIx64, (int64_t)row->offset < 0 ? "-" : "+",
			       (int64_t)row->offset < 0 ? -row->offset : row->offset);
	} else {
		printf(row->bare ? "0x%" PRIx64 : "(no function)", row->vaddr);
	}
	/* The kernel's name already has brackets. */
	printf(row->module->path[0] == '[' ? "  " : "  [");
	md_cli_put_text(basename(row->module->path));
	printf(row->module->path[0] == '[' ? "\n" : "]\n");
}

static json_t *path_json(const struct md_row *row)
{
	json_t *path = json_array();
	char text[32];

	for (uint32_t i = !row->path[0]; i < row->nr_path; i++) {
		snprintf(text, sizeof(text), "0x%" PRIx64, row->path[i]);
		json_array_append_new(path, json_string(text));
	}
	return path;
}

static json_t *row_json(const struct query *q, const struct md_row *row)
{
	char id[80], text[32];
	json_t *json = json_pack("{s:f, s:I, s:o, s:s}", "percent", percent_of(q, row), "samples",
				 (json_int_t)row->samples, "module",
				 mp_json_string(row->module->path), "build_id",
				 md_stats_format_id(&row->module->id, id));

	if (q->by == MD_BY_MODULE) {
		snprintf(text, sizeof(text), "%016" PRIx64, row->module->id.text_hash);
		json_object_set_new(json, "text_hash", json_string(text));
		json_object_set_new(json, "text_bytes", json_integer((json_int_t)row->size));
		json_object_set_new(json, "first_s", json_integer(row->module->first_s));
		json_object_set_new(json, "last_s", json_integer(row->module->last_s));
		return json;
	}
	/* Write addresses as text: many JSON readers keep only 53 bits of a number. */
	snprintf(text, sizeof(text), "0x%" PRIx64, row->vaddr);
	json_object_set_new(json, "address", json_string(text));
	json_object_set_new(json, "function",
			    row->function ? mp_json_string(row->function) : json_null());
	if (q->by == MD_BY_PATH) {
		json_object_set_new(json, "entered", json_boolean(!row->path[0]));
		json_object_set_new(json, "path", path_json(row));
		return json;
	}
	if (q->by == MD_BY_COPY) {
		snprintf(text, sizeof(text), "0x%" PRIx64, row->original);
		json_object_set_new(json, "original", json_string(text));
	}
	json_object_set_new(json, "bytes",
			    row->size ? json_integer((json_int_t)row->size) : json_null());
	if (q->by == MD_BY_BLOCK) {
		json_object_set_new(json, "instructions",
				    row->nr_insns ? json_integer(row->nr_insns) : json_null());
		json_object_set_new(json, "weight",
				    row->nr_insns ? json_real(row->weight) : json_null());
	}
	return json;
}

static int print(const struct query *q, int64_t start_s)
{
	json_t *root = NULL, *rows = NULL;
	long nr = 0;

	if (q->cli->json) {
		root = md_cli_json_new("query");
		rows = json_array();
	} else {
		print_header(q);
	}
	for (size_t i = 0; i < q->rows.nr; i++) {
		const struct md_row *row = &q->rows.rows[i];

		if (percent_of(q, row) < q->percent_limit)
			continue;
		if (q->limit && nr++ >= q->limit)
			break;
		if (rows)
			json_array_append_new(rows, row_json(q, row));
		else
			print_row(q, row);
	}
	if (!rows)
		return md_cli_finish(MP_EXIT_DONE);
	json_object_set_new(root, "by", json_string(bys[q->by]));
	json_object_set_new(root, "percent_of",
			    json_string(q->by == MD_BY_PATH ? "all paths" : "all samples"));
	json_object_set_new(root, "total_samples", json_integer((json_int_t)q->total));
	json_object_set_new(root, "period_start_s", json_integer(start_s));
	json_object_set(root, "notes", q->notes);
	json_object_set_new(root, "rows", rows);
	return md_cli_json_print(root);
}

static int say_nothing_found(const struct query *q)
{
	if (!q->total)
		md_cli_note("%s: no sample is stored%s", q->cli->path,
			    q->since_s ? " since then" : "");
	else if (q->by == MD_BY_COPY)
		md_cli_note("%s: no sample of such an output", q->cli->path);
	else if (!q->nr_matching)
		md_cli_note("%s: no sample of such a module", q->cli->path);
	else if (q->by == MD_BY_PATH)
		md_cli_note("%s: no sample there has a path", q->cli->path);
	else
		md_cli_note("%s: no sample of such a function", q->cli->path);
	return MP_EXIT_NO_PROFILE;
}

static int query_calls(struct query *q, struct mp_store *store, int64_t start_s)
{
	const struct md_calls_query calls = {
		.what = q->callers_of	? MD_CALLS_CALLERS
			: q->callees_of ? MD_CALLS_CALLEES
					: MD_CALLS_CONTEXTS,
		.function = q->callers_of ? q->callers_of : q->callees_of,
		.filter = &q->filter,
		.since_s = q->since_s,
		.start_s = start_s,
		.limit = q->limit,
		.percent_limit = q->percent_limit,
	};

	return md_stats_calls(q->cli, store, &calls);
}

int md_stats_query(struct md_cli *cli, int argc, char **argv)
{
	struct query q = {.cli = cli, .percent_limit = -1};
	struct mp_store *store;
	struct mp_err err = {0};
	int64_t start_s = 0;
	int r;

	md_cli_parse(&usage, argc, argv, &q, cli);
	cli->fleet_module = q.filter.binary ? q.filter.binary : q.filter.build_id;
	r = md_cli_open(cli, MP_STORE_READ, &store);
	if (r)
		return r;
	q.notes = json_array();
	/* One transaction, because the daemon may be writing. */
	r = mp_store_begin(store, &err);
	if (!r)
		r = mp_store_period_start(store, q.since_s, &start_s, &err);
	if (!r && q.by != MD_BY_CONTEXT)
		r = find_rows(&q, store, &err);
	if (r) {
		r = md_cli_fail("%s", err.msg);
	} else if (q.by == MD_BY_CONTEXT) {
		r = query_calls(&q, store, start_s);
	} else if (!q.rows.nr) {
		r = say_nothing_found(&q);
	} else {
		md_cli_note_period(store, q.since_s);
		r = print(&q, start_s);
	}
	md_rows_free(&q.rows);
	mp_store_free_modules(q.modules, q.nr_modules);
	json_decref(q.notes);
	mp_store_close(store);
	return r;
}
