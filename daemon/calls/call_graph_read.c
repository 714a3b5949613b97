// SPDX-License-Identifier: Apache-2.0
/*
 * call_graph_read - fills a call graph: reads the trees and counts of programs, and adds the
 * edges that each part finds.
 */
#include "daemon/calls/call_graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/calls/graph_callbacks.h"
#include "daemon/calls/graph_edges.h"
#include "daemon/calls/graph_imports.h"
#include "daemon/code/originals.h"
#include "libprof/store/contexts/store_contexts.h"

/* One program's tree. */
struct program {
	int64_t module; /* its key in the store */
	struct mp_context_tree tree, calls;
	bool wanted;
};

struct reading {
	struct md_call_graph *graph;
	struct mp_store *store;
	const struct md_stats_filter *filter;
	int64_t since_s;
	struct program *programs;
	size_t nr_programs;
	void (*note)(void *arg, const char *message);
	void *arg;
	struct mp_err *err;
};

static const struct mp_module *find_stored(const struct md_call_graph *graph, int64_t key)
{
	for (size_t i = 0; i < graph->nr_stored; i++)
		if (graph->stored[i].key == key)
			return &graph->stored[i];
	return NULL;
}

static int read_program(struct reading *in, const struct mp_id *id, int64_t module)
{
	struct program *p = &in->programs[in->nr_programs];
	const struct mp_module *m = find_stored(in->graph, module);
	int r = mp_context_tree_init(&p->tree);

	if (!r)
		r = mp_context_tree_init(&p->calls);
	in->nr_programs++;
	if (r)
		return mp_err_code(in->err, -r);
	p->module = module;
	r = mp_store_read_contexts(in->store, MP_CONTEXTS, module, in->since_s, &p->tree, in->err);
	if (!r)
		r = mp_store_read_contexts(in->store, MP_CALLS, module, in->since_s, &p->calls,
					   in->err);
	p->wanted = m && md_stats_filter_matches(in->filter, m) && (!id || mp_id_equal(id, &m->id));
	if (p->wanted && !r) {
		in->graph->nr_programs++;
		in->graph->nr_samples += p->tree.nodes[0].total;
		in->graph->nr_called += p->calls.nodes[0].total;
		in->graph->clocked += p->calls.nodes[0].total_ns;
	}
	return r;
}

static bool has_program(const struct reading *in, int64_t module)
{
	for (size_t i = 0; i < in->nr_programs; i++)
		if (in->programs[i].module == module)
			return true;
	return false;
}

/* Reads the trees of all programs: those of others say which part of a library's counts is theirs. */
static int read_trees(struct reading *in, const struct mp_id *id)
{
	struct mp_context_program *listed[2] = {NULL};
	size_t nr[2] = {0};
	int r = mp_store_list_contexts(in->store, MP_CONTEXTS, in->since_s, &listed[0], &nr[0],
				       in->err);

	if (!r)
		r = mp_store_list_contexts(in->store, MP_CALLS, in->since_s, &listed[1], &nr[1],
					   in->err);
	if (!r) {
		in->programs = calloc(nr[0] + nr[1] + 1, sizeof(*in->programs));
		r = in->programs ? 0 : mp_err_set(in->err, ENOMEM, "out of memory");
	}
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < nr[k] && !r; i++)
			if (!has_program(in, listed[k][i].module))
				r = read_program(in, id, listed[k][i].module);
	free(listed[0]);
	free(listed[1]);
	return r;
}

static bool names_module(const struct mp_context_tree *tree, uint64_t id)
{
	for (uint32_t k = 1; k < tree->nr_modules; k++)
		if (tree->modules[k] == id)
			return true;
	return false;
}

static bool has_module(const struct reading *in, uint64_t id)
{
	for (size_t i = 0; i < in->nr_programs; i++) {
		const struct program *p = &in->programs[i];

		if (p->wanted && (names_module(&p->tree, id) || names_module(&p->calls, id)))
			return true;
	}
	return false;
}

/* Opens the modules that the wanted trees name. */
static int open_modules(struct reading *in)
{
	struct md_call_graph *graph = in->graph;
	int r = 0;

	graph->modules = calloc(graph->nr_stored + 1, sizeof(*graph->modules));
	if (!graph->modules)
		return mp_err_set(in->err, ENOMEM, "out of memory");
	for (size_t i = 0; i < graph->nr_stored && !r; i++) {
		struct md_graph_module *m = &graph->modules[graph->nr_modules];
		uint64_t id = mp_context_module_of(&graph->stored[i].id);

		if (!has_module(in, id))
			continue;
		m->module = &graph->stored[i];
		m->id = id;
		graph->nr_modules++;
		r = md_graph_module_open(m, in->filter->binary, in->note, in->arg, in->err);
	}
	return r;
}

/* Counts the samples of functions in all trees. */
static void add_samples(struct reading *in)
{
	for (size_t i = 0; i < in->nr_programs; i++) {
		const struct program *p = &in->programs[i];

		for (uint32_t k = 1; k < p->tree.nr_nodes; k++) {
			const struct mp_context_node *n = &p->tree.nodes[k];
			uint64_t id = p->tree.modules[n->module];
			uint32_t module, f;

			if (n->kind != MP_CONTEXT_FUNCTION)
				continue;
			module = md_call_graph_module(in->graph, id);
			if (module == MP_NONE)
				continue;
			f = md_graph_function_at(&in->graph->modules[module], n->vaddr);
			if (f == MP_NONE)
				continue;
			in->graph->modules[module].self_of_all[f] += (double)n->self;
			if (p->wanted)
				in->graph->modules[module].self[f] += (double)n->self;
		}
	}
}

/*
 * Counts of samples are samples for each instruction of a block, counts of executions are not. The
 * samples that trees have of modules with counts of executions say how many an instruction draws.
 */
static void scale_modules(struct md_call_graph *graph)
{
	double samples = 0, insns = 0;

	for (size_t i = 0; i < graph->nr_modules; i++)
		if (md_graph_module_is_executed(&graph->modules[i]))
			md_graph_module_add_executed(&graph->modules[i], &samples, &insns);
	for (size_t i = 0; i < graph->nr_modules; i++) {
		struct md_graph_module *m = &graph->modules[i];
		bool executed = md_graph_module_is_executed(m);

		if (m->is_open)
			md_graph_module_scale(m, !executed ? 1 : insns > 0 ? samples / insns : 0);
	}
}

static int add_edges(struct reading *in)
{
	struct md_graph_tails *tails = NULL;
	int r = 0;

	for (size_t i = 0; i < in->graph->nr_modules && !r; i++)
		if (in->graph->modules[i].is_open)
			r = md_graph_module_count(&in->graph->modules[i], in->store, in->since_s,
						  in->err);
	if (r)
		return r;
	scale_modules(in->graph);
	r = md_graph_resolve(in->graph);
	if (!r)
		r = md_graph_find_passed(in->graph);
	if (!r)
		r = md_graph_tails_new(in->graph, &tails);
	for (size_t i = 0; i < in->nr_programs && !r; i++)
		if (in->programs[i].wanted) {
			r = md_graph_add_tree(in->graph, tails, &in->programs[i].tree, false);
			if (!r)
				r = md_graph_add_tree(in->graph, tails, &in->programs[i].calls,
						      true);
		}
	md_graph_tails_free(tails);
	if (!r)
		r = md_graph_share_targets(in->graph);
	if (!r)
		r = md_graph_add_direct(in->graph);
	if (!r)
		r = md_graph_add_callbacks(in->graph);
	return r ? mp_err_code(in->err, -r) : 0;
}

/*
 * What is known of a count in function @f. A function without samples ran seldom, the more instructions
 * it runs the more seldom.
 */
static struct mp_callgraph_sum sum_of(const struct md_graph_module *m, uint32_t f, double count)
{
	bool sampled = m->has_samples[f];

	return (struct mp_callgraph_sum){
		.count = m->scale[f] * count,
		.known = m->has_counts,
		.exact = m->counts.exact,
		.nr_insns = sampled || m->counts.exact ? 0 : mp_call_first_insns(m->code.cfg, f),
	};
}

static int fill_sums(struct md_call_graph *graph)
{
	for (uint32_t i = 0; i < graph->graph.nr_sites; i++) {
		const struct md_graph_module *m = &graph->modules[graph->sites[i].module];
		const struct mp_call_site *site = &m->sites.sites[graph->sites[i].site];
		uint32_t f = m->code.cfg->blocks[site->block].func;

		graph->graph.sites[i] =
			sum_of(m, f, mp_call_site_count(m->code.cfg, &m->counts, site));
		f = md_call_graph_function(graph, graph->sites[i].module, f);
		if (f == MP_NONE)
			return -ENOMEM;
		graph->graph.sites[i].within = f;
	}
	for (uint32_t i = 0; i < graph->graph.nr_functions; i++) {
		const struct md_graph_module *m = &graph->modules[graph->functions[i].module];
		uint32_t f = graph->functions[i].function;

		graph->graph.functions[i] =
			sum_of(m, f, mp_call_entries(m->code.cfg, &m->counts, f));
		graph->graph.functions[i].in_clocked = m->is_clocked;
	}
	return 0;
}

int md_call_graph_read(struct mp_store *store, const struct md_stats_filter *filter,
		       int64_t since_s, void (*note)(void *arg, const char *message), void *arg,
		       struct md_call_graph *out, struct mp_err *err)
{
	struct reading in = {out, store, filter, since_s, NULL, 0, note, arg, err};
	struct mp_id id = {0};
	int r;

	*out = (struct md_call_graph){0};
	r = mp_store_list_modules(store, 0, &out->stored, &out->nr_stored, err);
	if (!r && filter->binary)
		r = md_original_id(filter->binary, &id, err);
	if (!r)
		r = read_trees(&in, filter->binary ? &id : NULL);
	if (!r)
		r = open_modules(&in);
	if (!r) {
		add_samples(&in);
		r = add_edges(&in);
	}
	if (!r) {
		r = fill_sums(out);
		if (!r)
			r = mp_callgraph_solve(&out->graph, NULL);
		if (r)
			mp_err_set(err, -r, "the call graph: %s", strerror(-r));
	}
	for (size_t i = 0; i < in.nr_programs; i++) {
		mp_context_tree_fini(&in.programs[i].tree);
		mp_context_tree_fini(&in.programs[i].calls);
	}
	free(in.programs);
	if (r)
		md_call_graph_fini(out);
	return r;
}
