// SPDX-License-Identifier: Apache-2.0
/*
 * number_paths - counts the paths to each block of a function and numbers them: the paths by an
 * edge get numbers behind those of the edges before it. Decides which numbers are worth
 * keeping. Called by number.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/instrument/number_private.h"

/* Cost of an instruction that control jumps to and back from, in instructions. An assumption;
 * test_register_offset shows how additions move off such edges. */
#define JUMP_PRICE 5

/* Least share of the rarer block's runs that is assumed to go from one block to the other. */
#define DOUBT 0.05

/* Limit on paths to a block; with more, paths start again there. */
#define MAX_PATHS ME_REGISTER_OFFSET_MAX

static int compare_in(const void *a, const void *b, void *number)
{
	const struct me_number *n = number;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct me_flow_edge *x = &n->flow.edges[i], *y = &n->flow.edges[k];

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	/* An edge without a place for a stub must come first and add nothing. */
	if (!x->place != !y->place)
		return x->place ? 1 : -1;
	if (n->edges[i].price != n->edges[k].price)
		return n->edges[i].price < n->edges[k].price ? 1 : -1;
	return i < k ? -1 : 1;
}

/*
 * A stub between two blocks costs a jump there and back unless control falls through it. How
 * often this edge runs is uncertain, most of all if its count is 0.
 */
static double price_of(const struct me_number *n, const struct me_flow_edge *edge)
{
	const struct me_number_vertex *from = &n->vertices[edge->from],
				      *to = &n->vertices[edge->to];

	if (edge->place != ME_FLOW_ON_EDGE ||
	    n->next[n->flow.first_block + edge->from] == n->flow.first_block + edge->to)
		return edge->weight;
	return JUMP_PRICE * fmax(edge->weight, DOUBT * fmin(from->weight, to->weight));
}

static void link_edges(struct me_number *n)
{
	const struct me_flow *flow = &n->flow;
	const uint32_t outside = flow->nr_blocks;

	memset(n->vertices, 0, ((size_t)outside + 1) * sizeof(*n->vertices));
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		const struct me_flow_edge *edge = &flow->edges[e];
		struct me_number_vertex *from = &n->vertices[edge->from],
					*to = &n->vertices[edge->to];

		n->in[e] = e;
		if (edge->from != outside && !from->nr_out++)
			from->first_out = e;
		if (edge->to != outside) {
			to->nr_in++;
			to->weight += edge->weight;
		}
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		n->edges[e] = (struct me_number_edge){.price = price_of(n, &flow->edges[e])};
	qsort_r(n->in, flow->nr_edges, sizeof(*n->in), compare_in, n);
	for (uint32_t v = 0, at = 0; v < outside; v++) {
		n->vertices[v].first_in = at;
		at += n->vertices[v].nr_in;
	}
}

enum {
	WHITE,
	GREY,
	BLACK
};

/* Depth first from @root. A block whose edge closes a loop starts paths. *@nr: vertices in
 * @n->order. */
static void visit(struct me_number *n, uint32_t root, uint32_t *nr)
{
	uint32_t *stack = n->stack, depth = 0;

	if (n->vertices[root].colour != WHITE)
		return;
	n->vertices[root].colour = GREY;
	stack[depth++] = root;
	stack[depth++] = 0;
	while (depth) {
		uint32_t v = stack[depth - 2], k = stack[depth - 1]++;
		struct me_number_vertex *at = &n->vertices[v];
		const struct me_flow_edge *edge = &n->flow.edges[at->first_out + k];

		if (k == at->nr_out) {
			at->colour = BLACK;
			n->order[(*nr)++] = v;
			depth -= 2;
			continue;
		}
		if (edge->to == n->flow.nr_blocks)
			continue;
		if (n->vertices[edge->to].colour == GREY) {
			at->starts = true;
			n->vertices[edge->to].heads = true;
			n->edges[at->first_out + k].closes = true;
		} else if (n->vertices[edge->to].colour == WHITE) {
			n->vertices[edge->to].colour = GREY;
			stack[depth++] = edge->to;
			stack[depth++] = 0;
		}
	}
}

/* Can every edge to @v add its value? The first one adds nothing. */
static bool can_meet(const struct me_number *n, uint32_t v)
{
	const struct me_number_vertex *at = &n->vertices[v];

	for (uint32_t k = 0; k < at->nr_in; k++) {
		const struct me_flow_edge *edge = &n->flow.edges[n->in[at->first_in + k]];

		if (!me_number_has_place(n, edge) && (k > 0 || !me_number_passes(n, edge)))
			return false;
	}
	return true;
}

/* A block that ends a loop's turn may be asked before its paths are counted. */
static uint32_t paths_to(const struct me_number_vertex *at)
{
	return at->starts ? 1 : at->nr_paths;
}

/* No number reaches @at: a path starts there. */
static void forget_paths(struct me_number *n, struct me_number_vertex *at)
{
	for (uint32_t k = 0; k < at->nr_in; k++) {
		struct me_number_edge *edge = &n->edges[n->in[at->first_in + k]];

		edge->value = 0;
		edge->carries = false;
	}
	at->starts = true;
}

/* Count the paths to @v. Its predecessors come first, unless a path starts at @v. */
static void count_paths(struct me_number *n, uint32_t v)
{
	struct me_number_vertex *at = &n->vertices[v];
	uint64_t nr_paths = 0;

	if (at->reg == MP_NO_REGISTER || !at->nr_in ||
	    (at->nr_in > 1 && !at->starts && !can_meet(n, v)))
		at->starts = true;
	for (uint32_t k = 0; k < at->nr_in && !at->starts; k++) {
		uint32_t e = n->in[at->first_in + k];

		n->edges[e].value = (uint32_t)nr_paths;
		n->edges[e].carries = me_number_may_carry(n, &n->flow.edges[e]);
		nr_paths += n->edges[e].carries ? paths_to(&n->vertices[n->flow.edges[e].from]) : 1;
		if (nr_paths > MAX_PATHS)
			at->starts = true;
	}
	/* No number reaches this block, so a path starts here. */
	if (at->nr_in == 1 && !n->edges[n->in[at->first_in]].carries)
		at->starts = true;
	if (at->starts) {
		forget_paths(n, at);
		nr_paths = 1;
	}
	at->nr_paths = (uint32_t)nr_paths;
}

/* Is the number at the end of @v used later? @around: also if only in the next turn of a loop. */
static bool is_needed(const struct me_number *n, uint32_t v, bool around)
{
	const struct me_number_vertex *at = &n->vertices[v];

	for (uint32_t e = at->first_out; e < at->first_out + at->nr_out; e++) {
		const struct me_number_vertex *to = &n->vertices[n->flow.edges[e].to];

		if (n->edges[e].carries && (to->nr_in > 1 || to->needed) &&
		    (around || !n->edges[e].closes))
			return true;
	}
	return false;
}

/*
 * Do not keep a number that is used neither here nor later. Nor one that only tells the first
 * turn of a loop from the others: it costs each turn, and samples tell as much.
 */
static void drop_needless(struct me_number *n, uint32_t v, bool around)
{
	struct me_number_vertex *at = &n->vertices[v];

	at->needed = is_needed(n, v, around);
	if (at->needed || (around ? at->nr_paths > 1 && !at->starts : !at->heads))
		return;
	forget_paths(n, at);
	at->reg = MP_NO_REGISTER;
}

void me_number_paths(struct me_number *n)
{
	const struct me_flow *flow = &n->flow;
	uint32_t nr = 0;

	link_edges(n);
	me_number_choose_registers(n);
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (flow->edges[e].from == flow->nr_blocks && flow->edges[e].to != flow->nr_blocks)
			visit(n, flow->edges[e].to, &nr);
	for (uint32_t v = 0; v < flow->nr_blocks; v++)
		visit(n, v, &nr);
	for (int around = 0; around < 2; around++) {
		for (uint32_t i = nr; i-- > 0;)
			count_paths(n, n->order[i]);
		for (uint32_t i = 0; i < nr; i++)
			drop_needless(n, n->order[i], around);
	}
	me_number_place_starts(n, nr);
}
