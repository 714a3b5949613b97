// SPDX-License-Identifier: Apache-2.0
/*
 * export_calls_callgrind - callgrind's format from calling contexts: samples and calls of functions. The
 * inclusive cost of a call is that of the samples whose stacks have it, each counted once, however often a
 * recursive function is called. How often a function was called is what the call graph estimates.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/calls/call_graph.h"
#include "daemon/export/export_calls.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/base/text.h"

/* One call between two functions, by the numbers of functions. */
struct call {
	uint32_t caller, callee;
	uint64_t samples;
	double count; /* 0: the call graph does not have it */
};

struct writer {
	struct md_export *e;
	const struct md_calls *calls;
	uint32_t *function_of; /* by node: its function's number */
	uint32_t *nodes;       /* by function: one of its nodes */
	uint64_t *self;	       /* by function */
	uint32_t nr_functions;
	struct call *list;
	size_t nr, max;
};

/* ---- functions ------------------------------------------------------------------------------- */

static int compare_keys(const struct mp_context_key *x, const struct mp_context_key *y)
{
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct writer *w = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct mp_context_key i = mp_context_key_of(&w->calls->tree, x);
	const struct mp_context_key k = mp_context_key_of(&w->calls->tree, y);

	return compare_keys(&i, &k);
}

/* Numbers the functions of all nodes, those of programs too, by their keys. */
static int number_functions(struct writer *w)
{
	const struct mp_context_tree *tree = &w->calls->tree;
	uint32_t *order = calloc(tree->nr_nodes + (size_t)1, sizeof(*order));

	w->function_of = calloc(tree->nr_nodes + (size_t)1, sizeof(*w->function_of));
	w->nodes = calloc(tree->nr_nodes + (size_t)1, sizeof(*w->nodes));
	w->self = calloc(tree->nr_nodes + (size_t)1, sizeof(*w->self));
	if (!order || !w->function_of || !w->nodes || !w->self) {
		free(order);
		return -ENOMEM;
	}
	for (uint32_t i = 1; i < tree->nr_nodes; i++)
		order[i - 1] = i;
	if (tree->nr_nodes > 1)
		qsort_r(order, tree->nr_nodes - 1, sizeof(*order), compare_nodes, w);
	for (uint32_t i = 0; i + 1 < tree->nr_nodes; i++) {
		if (!i || compare_nodes(&order[i - 1], &order[i], w))
			w->nodes[w->nr_functions++] = order[i];
		w->function_of[order[i]] = w->nr_functions - 1;
		w->self[w->nr_functions - 1] += tree->nodes[order[i]].self;
	}
	free(order);
	return 0;
}

static int compare_function(const struct writer *w, uint32_t i, const struct mp_context_key *key)
{
	const struct mp_context_key at = mp_context_key_of(&w->calls->tree, w->nodes[i]);

	return compare_keys(&at, key);
}

/* Return: the number of a function of the call graph; MP_NONE: no sample has it. */
static uint32_t find_function(const struct writer *w, const struct md_call_graph *graph,
			      uint32_t module, uint32_t function)
{
	const struct md_graph_module *m = &graph->modules[module];
	const struct mp_context_key key = {m->id, m->code.cfg->funcs[function].vaddr,
					   MP_CONTEXT_FUNCTION};
	uint32_t at = mp_search(i, 0, w->nr_functions, compare_function(w, i, &key) < 0);

	return at < w->nr_functions && !compare_function(w, at, &key) ? at : MP_NONE;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int add_call(struct writer *w, const struct call *call)
{
	return mp_push(w->list, w->nr, w->max, *call);
}

/* Return: does the same call stand further out in the stack, whose samples then have it already? */
static bool is_repeated(const struct writer *w, uint32_t node)
{
	const struct mp_context_node *nodes = w->calls->tree.nodes;
	uint32_t callee = w->function_of[node], caller = w->function_of[nodes[node].parent];

	for (uint32_t n = nodes[node].parent; nodes[n].parent; n = nodes[n].parent)
		if (w->function_of[n] == callee && w->function_of[nodes[n].parent] == caller)
			return true;
	return false;
}

static int list_calls(struct writer *w, const struct md_call_graph *graph)
{
	const struct mp_context_tree *tree = &w->calls->tree;
	int r = 0;

	for (uint32_t i = 1; i < tree->nr_nodes && !r; i++)
		if (tree->nodes[i].parent && !is_repeated(w, i))
			r = add_call(w, &(struct call){w->function_of[tree->nodes[i].parent],
						       w->function_of[i], tree->nodes[i].total, 0});
	for (uint32_t e = 0; graph && e < graph->graph.nr_edges && !r; e++) {
		const struct mp_callgraph_edge *edge = &graph->graph.edges[e];
		const struct md_graph_function *to = &graph->functions[edge->function];
		const struct md_graph_module *m;
		const struct md_graph_site *site;
		struct call call = {MP_NONE, find_function(w, graph, to->module, to->function), 0,
				    edge->weight};

		if (edge->site == MP_CALLGRAPH_OUTSIDE)
			continue;
		site = &graph->sites[edge->site];
		m = &graph->modules[site->module];
		call.caller =
			find_function(w, graph, site->module,
				      m->code.cfg->blocks[m->sites.sites[site->site].block].func);
		if (call.caller != MP_NONE && call.callee != MP_NONE && edge->weight > 0)
			r = add_call(w, &call);
	}
	return r;
}

static int compare_calls(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return (x->callee > y->callee) - (x->callee < y->callee);
}

/* Adds calls of the same two functions up. */
static void join_calls(struct writer *w)
{
	size_t nr = 0;

	if (w->nr)
		qsort(w->list, w->nr, sizeof(*w->list), compare_calls);
	for (size_t i = 0; i < w->nr; i++) {
		if (!nr || compare_calls(&w->list[nr - 1], &w->list[i])) {
			w->list[nr++] = w->list[i];
			continue;
		}
		w->list[nr - 1].samples += w->list[i].samples;
		w->list[nr - 1].count += w->list[i].count;
	}
	w->nr = nr;
}

/* ---- the format ------------------------------------------------------------------------------ */

static void put_function(const struct writer *w, const char *object_key, const char *file_key,
			 const char *name_key, uint32_t function)
{
	const struct mp_module *module = md_calls_module(w->calls, w->nodes[function]);

	md_export_put_callgrind(w->e->out, object_key, module ? module->path : "???");
	md_export_put_callgrind(w->e->out, file_key, "???");
	md_export_put_callgrind(w->e->out, name_key,
				md_export_calls_name(w->calls, w->nodes[function]));
}

/* A call that a sample saw happened at least once. */
static uint64_t nr_calls(const struct call *call)
{
	uint64_t nr = md_export_scaled(call->count);

	return nr ? nr : 1;
}

static void put_all(struct writer *w)
{
	FILE *out = w->e->out;
	size_t at = 0;

	fputs("# callgrind format\nversion: 1\ncreator: morph-stats\npositions: line\n"
	      "event: Samples : Samples of the processor's place\nevents: Samples\n",
	      out);
	for (uint32_t f = 0; f < w->nr_functions; f++) {
		putc('\n', out);
		put_function(w, "ob", "fl", "fn", f);
		fprintf(out, "0 %" PRIu64 "\n", w->self[f]);
		w->e->nr_written += w->self[f];
		for (; at < w->nr && w->list[at].caller == f; at++) {
			put_function(w, "cob", "cfi", "cfn", w->list[at].callee);
			fprintf(out, "calls=%" PRIu64 " 0\n0 %" PRIu64 "\n", nr_calls(&w->list[at]),
				w->list[at].samples);
		}
	}
	fprintf(out, "\ntotals: %" PRIu64 "\n", w->e->nr_written);
}

int md_export_calls_callgrind(struct md_export *e, const struct md_calls *calls, struct mp_err *err)
{
	struct writer w = {.e = e, .calls = calls};
	int r = number_functions(&w);

	if (!r)
		r = list_calls(&w, e->graph);
	if (!r) {
		join_calls(&w);
		put_all(&w);
	}
	free(w.list);
	free(w.self);
	free(w.nodes);
	free(w.function_of);
	return r ? mp_err_code(err, -r) : 0;
}

void md_export_put_callgrind(FILE *out, const char *key, const char *name)
{
	fprintf(out, "%s=", key);
	mp_text_put_but(out, name, name[0] == '(' && isdigit((unsigned char)name[1]) ? "(" : "");
	putc('\n', out);
}
