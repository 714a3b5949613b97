// SPDX-License-Identifier: Apache-2.0
/*
 * stats_export - the command "export": writes stored data in the format of another tool.
 * Decides which modules are exported and what a format is given; export_<format>.c writes a
 * format.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/calls/call_graph.h"
#include "daemon/code/way_evidence.h"
#include "daemon/export/export.h"
#include "daemon/code/originals.h"
#include "daemon/stats/stats.h"
#include "daemon/stats/stats_calls.h"
#include "libprof/cli/stdio.h"

#define MP_OPTIONS struct export

static const struct md_export_format *const formats[] = {
	&md_export_folded,	&md_export_fdata,      &md_export_callgrind, &md_export_pprof,
	&md_export_llvm_sample, &md_export_gcc_afdo,   &md_export_propeller, &md_export_order,
	&md_export_json,	&md_export_speedscope,
};

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* In the order of enum md_linker and enum md_branches. */
static const char *const linkers[] = {"lld", "gold", "ld", NULL};
static const char *const branches[] = {"auto", "none", "seen", "inferred", NULL};

struct export
{
	struct md_cli *cli;
	struct md_stats_filter filter;
	const struct md_export_format *format;
	bool calls; /* calling contexts instead of modules */
	struct md_export out;
};

static void set_format(const struct mp_option *o, void *options, char *arg,
		       struct argp_state *state)
{
	struct export *e = options;

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(arg, formats[i]->name))
			e->format = formats[i];
	if (!e->format)
		argp_error(state, "--%s=%s: no such format", o->name, arg);
}

static void set_order(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	enum mp_order *order = &((struct export *)options)->out.order;

	if (mp_order_parse(arg, order) || *order == MP_ORDER_ORIGINAL)
		argp_error(state, "--%s=%s: no such order", o->name, arg);
}

static const struct mp_option options[] = {
	MP_SET("format", 0, set_format, "FORMAT",
	       "folded: lines for flamegraph.pl; callgrind: for callgrind_annotate and KCachegrind; "
	       "pprof: for go tool pprof; speedscope: who called; json: everything; llvm-sample: for clang "
	       "-fprofile-sample-use; gcc-afdo: for gcc 12 -fauto-profile; for one module only, fdata: for llvm-bolt; "
	       "propeller: for clang -fbasic-block-sections=list; order: of functions, for a linker"),
	MD_OPTIONS_FILTER,
	MP_VALUE(TIME, "since", 's', out.since_s, "WHEN", MD_HELP_SINCE),
	MP_FLAG("calls", calls,
		"callgrind, folded, pprof: who called, from calling contexts; --module, --build-id and --binary name "
		"programs"),
	MP_WORD("branches", out.branches, branches, "WHICH",
		"fdata: none (samples alone), seen, inferred (from samples), or auto (default): seen "
		"where there are any, else inferred"),
	MP_WORD("linker", out.linker, linkers, "LINKER",
		"order: lld (default), gold, or ld for a linker script of GNU ld"),
	MP_SET("function-order", 0, set_order, "ORDER", "order: ph (default) or cds"),
	MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	struct export *e = options;

	if (!e->format && e->cli->json)
		e->format = &md_export_json;
	if (!e->format)
		argp_error(state, "give a --format");
	if (e->cli->json && e->format != &md_export_json)
		argp_error(state, "--json is --format=json, not %s", e->format->name);
	if (e->calls && !e->format->calls)
		argp_error(state, "--calls does not go with --format=%s", e->format->name);
	e->calls = e->calls || !e->format->module;
}

static const struct mp_usage usage = {.options = options,
				      .doc = "Write samples for other tools, to standard output.",
				      .check = check,
				      .shared = &md_cli_fleet_argp};

/* ---- modules ------------------------------------------------------------------------------- */

/*
 * Sets the key of modules that were not selected to 0. Return: number of modules left, or
 * -errno.
 */
static long choose(const struct export *e, struct mp_module *modules, size_t nr, struct mp_err *err)
{
	struct mp_id id = {0};
	long nr_left = 0;
	int r = e->filter.binary ? md_original_id(e->filter.binary, &id, err) : 0;

	if (r)
		return r;
	for (size_t i = 0; i < nr; i++) {
		bool any = modules[i].nr_samples ||
			   (modules[i].nr_transfers && (e->format->needs & MD_EXPORT_EDGES));

		if (!any || !md_stats_filter_matches(&e->filter, &modules[i]) ||
		    (e->filter.binary && !mp_id_equal(&id, &modules[i].id)))
			modules[i].key = 0;
		nr_left += modules[i].key != 0;
	}
	return nr_left;
}

static int infer(const struct export *e, struct mp_store *store, struct md_export_module *m,
		 struct mp_profile **out_profile, struct mp_counts *out, struct mp_err *err)
{
	int r = mp_profile_build(m->code->cfg, m->counts, m->nr_counts, out_profile, err);
	struct mp_profile *profile = *out_profile;

	if (!r && m->nr_edges)
		r = mp_profile_add_edges(profile, m->code->cfg, m->edges, m->nr_edges, err);
	if (!r)
		r = md_way_evidence_add(store, m->module->key, e->out.since_s, m->code->cfg,
					profile, err);
	if (!r)
		profile->exact = m->exact;
	if (!r)
		r = mp_counts_build(m->code->cfg, profile, NULL, out, NULL, err);
	m->profile = profile;
	m->inferred = out;
	return r;
}

static int export_code(struct export *e, struct mp_store *store, struct md_export_module *m,
		       struct mp_err *err)
{
	unsigned int needs = e->format->needs;
	struct md_code code;
	struct mp_counts inferred = {0};
	struct mp_profile *profile = NULL;
	struct mp_err why = {0};
	int r;

	if (e->format->wants_counts && !e->format->wants_counts(&e->out, m->nr_edges))
		needs &= ~MD_EXPORT_COUNTS;
	r = md_code_open(m->module, e->filter.binary, needs & MD_EXPORT_COUNTS, &code, &why);
	if (r) {
		if (needs & MD_EXPORT_ONE || mp_err_is_failure(r)) {
			*err = why;
			return mp_err_is_failure(r) ? r : -ENOENT;
		}
		if (m->module->kind == MP_MODULE_FILE)
			md_cli_note("%s: its functions are not known", why.msg);
		m->why = why.msg;
		return e->format->module(&e->out, m, err);
	}
	m->code = &code;
	r = needs & MD_EXPORT_COUNTS ? infer(e, store, m, &profile, &inferred, err) : 0;
	if (!r)
		r = e->format->module(&e->out, m, err);
	mp_counts_fini(&inferred);
	mp_profile_free(profile);
	md_code_close(&code);
	return r;
}

static int export_module(struct export *e, struct mp_store *store, const struct mp_module *module,
			 struct mp_err *err)
{
	struct md_export_module m = {.module = module};
	struct mp_ip_count *counts = NULL;
	struct mp_edge_count *edges = NULL;
	int r;

	r = mp_store_read_ip_counts(store, module->key, e->out.since_s, &counts, &m.nr_counts, err);
	if (!r && (e->format->needs & MD_EXPORT_EDGES))
		r = mp_store_read_edges(store, module->key, e->out.since_s, &edges, &m.nr_edges,
					err);
	if (!r)
		r = mp_store_is_exact(store, module->key, e->out.since_s, &m.exact, err);
	m.counts = counts;
	m.edges = edges;
	if (!r)
		r = export_code(e, store, &m, err);
	free(counts);
	free(edges);
	return r;
}

static int export_modules(struct export *e, struct mp_store *store, const struct mp_module *modules,
			  size_t nr, struct mp_err *err)
{
	int r = e->format->begin ? e->format->begin(&e->out, err) : 0;

	/* Stop after a failed write. */
	for (size_t i = 0; i < nr && !r && !ferror(stdout); i++)
		if (modules[i].key)
			r = export_module(e, store, &modules[i], err);
	if (!r && e->format->end)
		r = e->format->end(&e->out, err);
	if (e->format->drop)
		e->format->drop(&e->out);
	return r;
}

/* ---- the command --------------------------------------------------------------------------- */

/*
 * Finds the time that a sample stands for. It exists only if a clock triggered the samples, and
 * all sessions had the same rate, since counts do not tell their session.
 */
static int find_period(struct mp_store *store, struct export *e, struct mp_err *err)
{
	struct mp_session *sessions = NULL;
	uint32_t rate_hz = 0;
	size_t nr = 0;
	bool known = true;
	int r = mp_store_list_sessions(store, &sessions, &nr, err);

	for (size_t i = 0; i < nr && !r; i++) {
		const struct mp_session *s = &sessions[i];

		if (s->last_s < e->out.since_s || !s->ledger.attributed)
			continue;
		if ((strcmp(s->event, "cpu-clock") && strcmp(s->event, "task-clock")) ||
		    !s->rate_hz || (rate_hz && rate_hz != s->rate_hz))
			known = false;
		rate_hz = s->rate_hz;
	}
	free(sessions);
	e->out.period_ns = known && rate_hz ? (1000000000 + rate_hz / 2) / rate_hz : 0;
	return r;
}

static void say_what_is_missing(const struct export *e)
{
	if (e->out.nr_skipped)
		md_cli_note("%" PRIu64 " samples in no function are left out", e->out.nr_skipped);
	if (e->out.nr_unnamed)
		md_cli_note("%" PRIu64 " functions have no name that the format can hold",
			    e->out.nr_unnamed);
	if (e->out.nr_shared_names)
		md_cli_note("%" PRIu64 " functions share a name: linkers move all of that name",
			    e->out.nr_shared_names);
	if (e->out.nr_lineless)
		md_cli_note("%" PRIu64
			    " functions that ran are left out: no debug information says "
			    "where their source begins",
			    e->out.nr_lineless);
}

static int run(struct export *e, struct mp_store *store)
{
	struct mp_module *modules = NULL;
	struct mp_err err = {0};
	size_t nr = 0;
	long nr_left = 0;
	int r = mp_store_list_modules(store, e->out.since_s, &modules, &nr, &err);

	if (!r) {
		nr_left = choose(e, modules, nr, &err);
		r = nr_left < 0 ? (int)nr_left : find_period(store, e, &err);
	}
	if (r) {
		r = md_cli_fail("%s", err.msg);
	} else if (!nr_left) {
		md_cli_note("%s: no such sample", e->cli->path);
		r = MP_EXIT_NO_PROFILE;
	} else if ((e->format->needs & MD_EXPORT_ONE) && nr_left > 1) {
		r = md_cli_fail("%s takes one module, but there are %ld: use --binary=FILE",
				e->format->name, nr_left);
	} else {
		md_cli_note_period(store, e->out.since_s);
		r = export_modules(e, store, modules, nr, &err);
		r = r ? md_cli_fail("%s", err.msg) : md_cli_finish(MP_EXIT_DONE);
		if (!r)
			say_what_is_missing(e);
	}
	mp_store_free_modules(modules, nr);
	return r;
}

static void say_nothing(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

/* Writes calling contexts. */
static int run_calls(struct export *e, struct mp_store *store)
{
	struct md_call_graph graph = {0};
	json_t *notes = json_array(); /* not used: the messages are printed as well */
	struct md_calls calls;
	struct mp_err err = {0};
	int r = md_calls_read(store, &e->filter, e->out.since_s, md_stats_note_file, notes, &calls,
			      &err);

	json_decref(notes);
	if (r)
		return md_cli_fail("%s", err.msg);
	if (!calls.nr_programs) {
		md_cli_note("%s: no sample of such a program has a calling context", e->cli->path);
		md_calls_fini(&calls);
		return MP_EXIT_NO_PROFILE;
	}
	md_cli_note_period(store, e->out.since_s);
	/* Files that cannot be read were named above. */
	if (e->format->wants_graph) {
		r = md_call_graph_read(store, &e->filter, e->out.since_s, say_nothing, NULL, &graph,
				       &err);
		e->out.graph = &graph;
	}
	if (!r)
		r = e->format->calls(&e->out, &calls, &err);
	md_call_graph_fini(&graph);
	md_calls_fini(&calls);
	return r ? md_cli_fail("%s", err.msg) : md_cli_finish(MP_EXIT_DONE);
}

int md_stats_export(struct md_cli *cli, int argc, char **argv)
{
	struct export e = {
		.cli = cli,
		.out = {.out = stdout, .now_s = time(NULL), .order = MP_ORDER_PH},
	};
	struct mp_store *store;
	struct mp_err err = {0};
	int r;

	md_cli_parse(&usage, argc, argv, &e, cli);
	cli->fleet_module = e.filter.binary ? e.filter.binary : e.filter.build_id;
	if ((e.format->needs & MD_EXPORT_BINARY) && isatty(STDOUT_FILENO))
		return md_cli_fail("%s is binary: redirect standard output to a file",
				   e.format->name),
		       MP_EXIT_USAGE;
	r = md_cli_open(cli, MP_STORE_READ, &store);
	if (r)
		return r;
	/* A program that reads the format wants the names as they are. */
	mp_stdio_raw(!isatty(STDOUT_FILENO) && strcmp(e.format->name, "json") != 0);
	r = mp_store_begin(store, &err) ? md_cli_fail("%s", err.msg)
	    : e.calls			? run_calls(&e, store)
					: run(&e, store);
	mp_store_close(store);
	return r;
}
