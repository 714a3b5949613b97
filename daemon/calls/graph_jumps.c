// SPDX-License-Identifier: Apache-2.0
/* graph_jumps - looks for functions that end with jumps beside a node of a tree; see graph_jumps.h. */
#include "daemon/calls/graph_jumps.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/calls/graph_callbacks.h"
#include "daemon/calls/graph_tails.h"
#include "libprof/base/grow.h"
#include "libprof/callgraph/call_arguments.h"

/* Fewer samples do not tell whether two functions were called equally often. */
#define ENOUGH 20

/* A function whose inferred counts say that it jumps less often is taken to jump as often as this. */
#define LEAST_SHARE (1.0 / 16)

/* How well a jump is known, best last: only the best known ones count. */
enum known {
	BY_NOTHING,
	BY_POINTER, /* through a pointer at a fixed address, by as many calls as the function has */
	BY_ARGUMENT, /* through another pointer; only arguments explain both functions */
	BY_CODE,     /* a direct jump to the function */
};

struct search {
	const struct md_call_graph *graph;
	const struct mp_context_tree *tree;
	uint32_t node;
	struct md_graph_site site;
	struct md_graph_function function;
	bool is_asked, is_passed; /* @is_passed: the call passes the function on, if @is_asked */
	bool is_callback; /* the call leads to what was passed on, but the function was not */
	struct md_graph_function around; /* the function around the call */
	enum known best;
};

bool md_graph_is_near(uint64_t a, uint64_t b)
{
	double difference = (double)a - (double)b;

	return difference * difference <= 9 * ((double)a + (double)b);
}

/* Asks, at the first jump through a pointer, what arguments say about the call. */
static void ask(struct search *s)
{
	const struct md_graph_module *m = &s->graph->modules[s->site.module];
	const struct mp_call_site *site = &m->sites.sites[s->site.site];
	const struct md_graph_function any = {MP_NONE, MP_NONE};

	if (s->is_asked)
		return;
	s->is_asked = true;
	if (!md_graph_is_pointer(s->graph, s->site))
		return;
	s->is_passed = md_graph_passes(s->graph, s->site, s->function);
	s->around.module = s->site.module;
	s->around.function = m->code.cfg->blocks[site->block].func;
	s->is_callback = !s->is_passed && mp_call_is_by_register(m->code.cfg, site) &&
			 md_graph_is_passed_to(s->graph, s->around, any) &&
			 !md_graph_is_passed_to(s->graph, s->around, s->function);
}

static bool explains(struct search *s, struct md_graph_function from)
{
	ask(s);
	return s->is_passed || (s->is_callback && md_graph_is_passed_to(s->graph, s->around, from));
}

/* Finds the jump of @from that may lead to the function, which has @self samples. */
static enum known find(struct search *s, struct md_graph_function from, uint64_t self,
		       struct md_graph_site *jump)
{
	*jump = md_graph_tail_to(s->graph, from, s->function);
	if (jump->site != MP_NONE)
		return BY_CODE;
	*jump = md_graph_tail_open(s->graph, from);
	if (jump->site != MP_NONE && explains(s, from))
		return BY_ARGUMENT;
	if (self < ENOUGH || !md_graph_is_near(self, s->tree->nodes[s->node].self))
		return BY_NOTHING;
	/* A pointer at a fixed address mostly leads to one function. */
	*jump = md_graph_tail_by_pointer(s->graph, from);
	return jump->site != MP_NONE ? BY_POINTER : BY_NOTHING;
}

/* Return: the part of the calls of @from that end with the jump. */
static double share_of(const struct md_call_graph *graph, struct md_graph_function from,
		       struct md_graph_site jump)
{
	const struct md_graph_module *m = &graph->modules[jump.module];
	double entries = mp_call_entries(m->code.cfg, &m->counts, from.function);
	double count = mp_call_site_count(m->code.cfg, &m->counts, &m->sites.sites[jump.site]);

	if (!(entries > 0) || count > entries)
		return 1;
	return count > LEAST_SHARE * entries ? count / entries : LEAST_SHARE;
}

static int add(struct md_graph_jumps *out, const struct md_graph_jump *jump, uint64_t self)
{
	if (mp_push(out->jumps, out->nr, out->max, *jump))
		return -ENOMEM;
	out->most += self;
	return 0;
}

int md_graph_jumps_find(const struct md_call_graph *graph, const struct mp_context_tree *tree,
			uint32_t node, struct md_graph_site site, struct md_graph_function function,
			struct md_graph_jumps *out)
{
	struct search s = {
		.graph = graph, .tree = tree, .node = node, .site = site, .function = function};
	int r = 0;

	*out = (struct md_graph_jumps){0};
	for (uint32_t i = tree->nodes[tree->nodes[node].parent].first; i && !r;
	     i = tree->nodes[i].next) {
		const struct mp_context_key key = mp_context_key_of(tree, i);
		struct md_graph_jump jump = {.from = md_call_graph_place(graph, &key)};
		uint64_t self = tree->nodes[i].self;
		enum known known;

		if (i == node || jump.from.function == MP_NONE || !self)
			continue;
		known = find(&s, jump.from, self, &jump.site);
		if (known == BY_NOTHING || known < s.best)
			continue;
		if (known > s.best || known == BY_POINTER) {
			out->nr = 0;
			out->most = 0;
		}
		s.best = known;
		jump.weight = (double)self * share_of(graph, jump.from, jump.site);
		r = add(out, &jump, self);
	}
	return r;
}

struct md_graph_jump md_graph_jump_seen(const struct md_call_graph *graph,
					const struct mp_context_tree *tree, uint32_t node,
					struct md_graph_site site,
					struct md_graph_function function)
{
	struct search s = {
		.graph = graph, .tree = tree, .node = node, .site = site, .function = function};
	const struct mp_context_node *above = &tree->nodes[tree->nodes[node].parent];
	struct md_graph_jump best = {.site.site = MP_NONE};

	ask(&s);
	if (!s.is_passed && !s.is_callback)
		return best;
	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		const struct mp_context_node *n = &tree->nodes[tree->nodes[i].parent];
		const struct mp_context_key key = mp_context_key_of(tree, i);
		struct md_graph_jump jump = {.weight = (double)tree->nodes[i].total};

		if (n->kind != above->kind || n->vaddr != above->vaddr ||
		    n->module != above->module || !tree->nodes[i].parent ||
		    jump.weight <= best.weight)
			continue;
		jump.from = md_call_graph_place(graph, &key);
		if (jump.from.function == MP_NONE || (jump.from.function == function.function &&
						      jump.from.module == function.module))
			continue;
		jump.site = md_graph_tail_open(graph, jump.from);
		if (jump.site.site != MP_NONE && explains(&s, jump.from))
			best = jump;
	}
	return best;
}
