// SPDX-License-Identifier: Apache-2.0
/*
 * stats_graph - the command "calls": shows the call graph of programs, or the part of it that concerns a
 * library. Decides which edges are shown, and wording.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/calls/call_graph.h"
#include "daemon/code/demangle.h"
#include "daemon/stats/defaults.h"
#include "daemon/stats/stats.h"
#include "daemon/stats/stats_calls.h"

#define MP_OPTIONS struct calls

struct calls {
	struct md_cli *cli;
	struct md_stats_filter filter;
	int64_t since_s;
	long limit;	      /* 0: all */
	double percent_limit; /* below 0: not given */
	bool of_library;      /* only edges that begin or end in the module of the filter */
	struct md_call_graph graph;
	json_t *notes;
	double total; /* weight of all edges */
};

static const struct mp_option options[] = {
	MP_VALUE(TEXT, "module", 'm', filter.module, "NAME",
		 "Only the program, or the library, with this path or file name"),
	MP_VALUE(TEXT, "build-id", 0, filter.build_id, "HEX",
		 "Only modules whose build-id begins with HEX"),
	MP_VALUE(TEXT, "binary", 0, filter.binary, "FILE", MD_HELP_BINARY),
	MD_OPTION_SINCE,
	MD_OPTION_LIMIT,
	MP_NUMBER("percent-limit", 'p', percent_limit, 0, 100, "P",
		  "Only rows of at least P percent of all calls (default: 0.1)"),
	MP_OPTIONS_END};

static const struct mp_usage usage = {
	.options = options,
	.doc = "Show the call graph of programs: which call site called which function how often, as "
	       "estimated from samples with stacks.",
	.shared = &md_cli_common_argp};

/* ---- one edge -------------------------------------------------------------------------------- */

static const char *const kinds[] = {"direct", "indirect", "tail", "indirect tail"};

/* Return: the edge's call site; NULL: called from outside of all known code. */
static const struct mp_call_site *site_of(const struct calls *c,
					  const struct mp_callgraph_edge *edge)
{
	const struct md_graph_site *s;

	if (edge->site == MP_CALLGRAPH_OUTSIDE)
		return NULL;
	s = &c->graph.sites[edge->site];
	return &c->graph.modules[s->module].sites.sites[s->site];
}

/* *@function: index in the module's CFG. Return: the module; NULL: outside. */
static const struct md_graph_module *
caller_of(const struct calls *c, const struct mp_callgraph_edge *edge, uint32_t *function)
{
	const struct mp_call_site *site = site_of(c, edge);
	const struct md_graph_module *m;

	if (!site)
		return NULL;
	m = &c->graph.modules[c->graph.sites[edge->site].module];
	*function = m->code.cfg->blocks[site->block].func;
	return m;
}

static const struct md_graph_module *
callee_of(const struct calls *c, const struct mp_callgraph_edge *edge, uint32_t *function)
{
	const struct md_graph_function *f = &c->graph.functions[edge->function];

	*function = f->function;
	return &c->graph.modules[f->module];
}

static double percent_of(const struct calls *c, const struct mp_callgraph_edge *edge)
{
	return c->total > 0 ? 100 * edge->weight / c->total : 0;
}

/* Return: does the filter want the edge? */
static bool is_wanted(const struct calls *c, const struct mp_callgraph_edge *edge)
{
	const struct md_graph_module *m;
	uint32_t f;

	if (!c->of_library)
		return true;
	m = caller_of(c, edge, &f);
	return (m && md_stats_filter_matches(&c->filter, m->module)) ||
	       md_stats_filter_matches(&c->filter, callee_of(c, edge, &f)->module);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_function(const struct md_graph_module *m, uint32_t f)
{
	char buf[32], *brief;
	const char *name = md_code_function_name(&m->code.cfg->funcs[f], buf);

	brief = md_name_brief(name);
	md_cli_put_text(brief ? brief : name);
	free(brief);
	printf("  [");
	md_cli_put_text(basename(m->module->path));
	putchar(']');
}

static void print_row(const struct calls *c, uint32_t e)
{
	const struct mp_callgraph_edge *edge = &c->graph.graph.edges[e];
	const struct mp_call_site *site = site_of(c, edge);
	const struct md_graph_module *m;
	uint32_t f = 0;

	printf("%6.2f%% %12.1f %8" PRIu64 "  %-13s  ", percent_of(c, edge), edge->weight,
	       c->graph.samples[e].self, site ? kinds[site->kind] : "-");
	m = caller_of(c, edge, &f);
	if (m) {
		put_function(m, f);
		printf(" 0x%" PRIx64, site->vaddr);
	} else {
		printf("(outside)");
	}
	printf(" -> ");
	m = callee_of(c, edge, &f);
	put_function(m, f);
	putchar('\n');
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *place_json(const struct md_graph_module *m, uint32_t f)
{
	char buf[32], id[80];

	return json_pack("{s:o, s:s, s:o, s:o}", "module", mp_json_string(m->module->path),
			 "build_id", md_stats_format_id(&m->module->id, id), "function",
			 mp_json_string(md_code_function_name(&m->code.cfg->funcs[f], buf)),
			 "address", mp_json_address(m->code.cfg->funcs[f].vaddr));
}

static json_t *count_json(const struct mp_callgraph_sum *sum)
{
	return sum->known ? json_real(sum->count) : json_null();
}

/* Return: the caller, or null if it is not known. */
static json_t *caller_json(const struct calls *c, const struct mp_callgraph_edge *edge)
{
	const struct mp_call_site *site = site_of(c, edge);
	const struct md_graph_module *m;
	json_t *json;
	uint32_t f = 0;

	m = caller_of(c, edge, &f);
	if (!m)
		return json_null();
	json = place_json(m, f);
	json_object_set_new(json, "site", mp_json_address(site->vaddr));
	json_object_set_new(json, "return_address", mp_json_address(site->next));
	json_object_set_new(json, "count", count_json(&c->graph.graph.sites[edge->site]));
	return json;
}

static json_t *row_json(const struct calls *c, uint32_t e)
{
	const struct mp_callgraph_edge *edge = &c->graph.graph.edges[e];
	const struct mp_call_site *site = site_of(c, edge);
	const struct md_graph_module *m;
	json_t *callee;
	uint32_t f = 0;

	m = callee_of(c, edge, &f);
	callee = place_json(m, f);
	json_object_set_new(callee, "entries",
			    count_json(&c->graph.graph.functions[edge->function]));
	return json_pack("{s:f, s:f, s:I, s:I, s:I, s:s, s:o, s:o}", "percent", percent_of(c, edge),
			 "weight", edge->weight, "samples", (json_int_t)c->graph.samples[e].self,
			 "called", (json_int_t)c->graph.samples[e].called, "certainly_new",
			 (json_int_t)c->graph.samples[e].nr_new, "kind",
			 site ? kinds[site->kind] : "outside", "caller", caller_json(c, edge),
			 "callee", callee);
}

/* ---- all edges ------------------------------------------------------------------------------- */

static int compare_edges(const void *a, const void *b, void *arg)
{
	const struct mp_callgraph_edge *edges = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (edges[x].weight != edges[y].weight)
		return edges[x].weight < edges[y].weight ? 1 : -1;
	return (x > y) - (x < y);
}

static void print_rows(struct calls *c, const uint32_t *order, uint32_t nr, json_t *rows)
{
	double least = c->percent_limit >= 0 ? c->percent_limit
		       : c->limit	     ? 0
					     : MD_STATS_GRAPH_PERCENT;
	long left = c->limit;

	for (uint32_t i = 0; i < nr; i++) {
		const struct mp_callgraph_edge *edge = &c->graph.graph.edges[order[i]];

		if (percent_of(c, edge) < least)
			break;
		if (!(edge->weight > 0) || !is_wanted(c, edge))
			continue;
		if (c->limit && !left--)
			break;
		if (rows)
			json_array_append_new(rows, row_json(c, order[i]));
		else
			print_row(c, order[i]);
	}
}

/* Which clock took the samples that say how often functions were called? */
static void print_clock(const struct md_call_graph *graph)
{
	if (graph->nr_called)
		printf("Clock: calls, %" PRIu64 " samples, one for %" PRIu64
		       " calls; time, %" PRIu64 " samples\n",
		       graph->nr_called, graph->clocked / graph->nr_called, graph->nr_samples);
	else
		printf("Clock: time, %" PRIu64 " samples\n", graph->nr_samples);
}

static int print_graph(struct calls *c)
{
	struct mp_callgraph_edge *edges = c->graph.graph.edges;
	uint32_t nr = c->graph.graph.nr_edges, *order = malloc((nr + (size_t)1) * sizeof(*order));
	json_t *root = NULL, *rows = NULL;

	if (!order)
		return md_cli_fail("out of memory");
	for (uint32_t i = 0; i < nr; i++) {
		order[i] = i;
		c->total += edges[i].weight;
	}
	if (nr)
		qsort_r(order, nr, sizeof(*order), compare_edges, edges);
	if (c->cli->json) {
		root = md_cli_json_new("calls");
		rows = json_array();
	} else {
		print_clock(&c->graph);
		printf("Of all        Weight  Samples  Kind           Caller  [Module] Site -> Callee  "
		       "[Module]\n");
	}
	print_rows(c, order, nr, rows);
	free(order);
	if (!root)
		return md_cli_finish(MP_EXIT_DONE);
	json_object_set_new(root, "total_samples", json_integer((json_int_t)c->graph.nr_samples));
	json_object_set_new(root, "clock", json_string(c->graph.nr_called ? "calls" : "time"));
	json_object_set_new(root, "sampled_calls", json_integer((json_int_t)c->graph.nr_called));
	json_object_set_new(root, "clocked_calls", json_integer((json_int_t)c->graph.clocked));
	json_object_set_new(root, "total_weight", json_real(c->total));
	json_object_set_new(root, "edges", json_integer(nr));
	json_object_set_new(root, "unknown_new", json_integer((json_int_t)c->graph.nr_unknown));
	json_object_set(root, "notes", c->notes);
	json_object_set_new(root, "rows", rows);
	return md_cli_json_print(root);
}

/* A module that is no program is a library: then the graph is that of all programs. */
static int read_graph(struct calls *c, struct mp_store *store, struct mp_err *err)
{
	const struct md_stats_filter all = {0};
	int r = md_call_graph_read(store, &c->filter, c->since_s, md_stats_note_file, c->notes,
				   &c->graph, err);

	if (r || c->graph.nr_programs || !(c->filter.module || c->filter.build_id) ||
	    c->filter.binary)
		return r;
	md_call_graph_fini(&c->graph);
	c->of_library = true;
	return md_call_graph_read(store, &all, c->since_s, md_stats_note_file, c->notes, &c->graph,
				  err);
}

static bool has_library(const struct calls *c)
{
	for (size_t i = 0; i < c->graph.nr_modules; i++)
		if (md_stats_filter_matches(&c->filter, c->graph.modules[i].module))
			return true;
	return false;
}

int md_stats_call_graph(struct md_cli *cli, int argc, char **argv)
{
	struct calls c = {.cli = cli, .percent_limit = -1};
	struct mp_store *store;
	struct mp_err err = {0};
	int status;

	md_cli_parse(&usage, argc, argv, &c, cli);
	status = md_cli_open(cli, MP_STORE_READ, &store);
	if (status)
		return status;
	c.notes = json_array();
	if (read_graph(&c, store, &err)) {
		status = md_cli_fail("%s", err.msg);
	} else if (!c.graph.nr_programs || (c.of_library && !has_library(&c))) {
		md_cli_note("%s: no sample of such a program has a calling context: see morphd(8), "
			    "--stacks",
			    cli->path);
		status = MP_EXIT_NO_PROFILE;
	} else {
		status = print_graph(&c);
	}
	md_call_graph_fini(&c.graph);
	json_decref(c.notes);
	mp_store_close(store);
	return status;
}
