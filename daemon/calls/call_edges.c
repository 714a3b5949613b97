// SPDX-License-Identifier: Apache-2.0
/* call_edges - walks all paths, and counts each edge once in a path; see call_edges.h. */
#include "daemon/calls/call_edges.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/code/demangle.h"
#include "libprof/base/grow.h"

struct search {
	const struct md_calls *calls;
	bool *is_function; /* by node */
	enum md_call_direction direction;
	struct md_call_edges *out;
	uint64_t *seen; /* by edge: number of the path that counted it last */
	uint64_t nr_paths;
};

/* Names are compared once for each node: C++ names are demangled for it. */
static int find_function(struct search *s, const char *function, const struct mp_id *module)
{
	uint32_t nr = s->calls->tree.nr_nodes;
	const char *name;

	s->is_function = calloc(nr, sizeof(*s->is_function));
	for (uint32_t i = 1; i < nr && s->is_function; i++) {
		const struct mp_module *in = md_calls_module(s->calls, i);

		if (md_calls_is_program(s->calls, i) ||
		    (module && !(in && mp_id_equal(&in->id, module))))
			continue;
		name = md_calls_name(s->calls, i);
		s->is_function[i] = name && md_name_match(name, function) != MD_NAME_OTHER;
	}
	return s->is_function ? 0 : -ENOMEM;
}

static bool is_same(const struct search *s, uint32_t a, uint32_t b)
{
	const struct mp_context_key x = mp_context_key_of(&s->calls->tree, a);
	const struct mp_context_key y = mp_context_key_of(&s->calls->tree, b);

	if (!a || !b)
		return a == b;
	return x.module == y.module && x.vaddr == y.vaddr && x.kind == y.kind;
}

/* Return: index of the edge to @node; -ENOMEM. */
static long find_edge(struct search *s, uint32_t node)
{
	struct md_call_edges *out = s->out;
	size_t max = out->max ? 2 * out->max : 16;

	for (size_t i = 0; i < out->nr; i++)
		if (is_same(s, out->edges[i].node, node))
			return (long)i;
	if (out->nr == out->max) {
		if (mp_resize(out->edges, max) || mp_resize(s->seen, max))
			return -ENOMEM;
		out->max = max;
	}
	s->seen[out->nr] = 0;
	out->edges[out->nr] = (struct md_call_edge){.node = node};
	return (long)out->nr++;
}

static int count_edge(struct search *s, uint32_t node, uint64_t samples)
{
	long i = find_edge(s, node);

	if (i < 0)
		return (int)i;
	if (s->seen[i] != s->nr_paths)
		s->out->edges[i].samples += samples;
	s->seen[i] = s->nr_paths;
	return 0;
}

static int add_path(void *arg, const uint32_t *path, size_t nr)
{
	struct search *s = arg;
	const struct mp_context_node *nodes = s->calls->tree.nodes;
	uint64_t samples = nodes[path[nr - 1]].self;
	bool found = false;
	int r = 0;

	s->nr_paths++;
	for (size_t i = 1; i < nr && !r; i++) {
		if (!s->is_function[path[i]])
			continue;
		found = true;
		if (s->direction == MD_CALLERS)
			r = count_edge(s, i > 1 ? path[i - 1] : 0, samples);
		else
			r = count_edge(s, i + 1 < nr ? path[i + 1] : 0, samples);
	}
	s->out->samples += found ? samples : 0;
	return r;
}

/* New activations are counted by node, not by path. */
static int add_new(struct search *s)
{
	const struct mp_context_tree *tree = &s->calls->tree;

	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		uint32_t parent = tree->nodes[i].parent, called_by;
		long edge;

		if (!tree->nodes[i].nr_new || !parent)
			continue;
		called_by = md_calls_is_program(s->calls, parent) ? 0 : parent;
		if (s->direction == MD_CALLERS ? !s->is_function[i]
					       : !called_by || !s->is_function[parent])
			continue;
		edge = find_edge(s, s->direction == MD_CALLERS ? called_by : i);
		if (edge < 0)
			return (int)edge;
		s->out->edges[edge].nr_new += tree->nodes[i].nr_new;
	}
	return 0;
}

static int compare_edges(const void *a, const void *b)
{
	const struct md_call_edge *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

int md_call_edges_find(const struct md_calls *calls, const char *function,
		       const struct mp_id *module, enum md_call_direction direction,
		       struct md_call_edges *out)
{
	struct search s = {.calls = calls, .direction = direction, .out = out};
	int r;

	*out = (struct md_call_edges){0};
	r = find_function(&s, function, module);
	if (!r)
		r = md_calls_each_path(calls, add_path, &s);
	if (!r)
		r = add_new(&s);
	free(s.seen);
	free(s.is_function);
	if (out->nr)
		qsort(out->edges, out->nr, sizeof(*out->edges), compare_edges);
	return r;
}
