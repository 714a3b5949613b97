// SPDX-License-Identifier: Apache-2.0
/*
 * number_stub - adds the stubs between the blocks of a function that give the register its
 * number. Called by number.
 */
#include <math.h>

#include "editor/instrument/number_private.h"

/* The increment is free where a path starts and has only one way to continue: the start
 * includes it. */
static double price_of_adding(const struct me_number *n, uint32_t e)
{
	const struct me_flow_edge *edge = &n->flow.edges[e];

	if (!me_number_has_place(n, edge))
		return HUGE_VAL;
	if (edge->place == ME_FLOW_BEFORE_SOURCE && n->vertices[edge->from].starts)
		return 0;
	return n->edges[e].price;
}

static bool find_offsets(struct me_number *n)
{
	uint32_t nr = 0;

	for (uint32_t e = 0; e < n->flow.nr_edges; e++) {
		const struct me_flow_edge *edge = &n->flow.edges[e];

		if (n->edges[e].carries && me_number_passes(n, edge))
			n->passing[nr++] =
				(struct me_register_offset_edge){.from = edge->from,
								 .to = edge->to,
								 .value = n->edges[e].value,
								 .price = price_of_adding(n, e)};
	}
	if (me_register_offsets_find(n->passing, nr, n->flow.nr_blocks, n->offset))
		return false;
	for (uint32_t v = 0; v < n->flow.nr_blocks; v++)
		if (n->vertices[v].reg != MP_NO_REGISTER)
			n->vertices[v].offset = n->vertices[v].shift = n->offset[v];
	return true;
}

/* The stub that brings the number over edge @e. Return: false: none is needed. */
static bool edge_stub_of(const struct me_number *n, uint32_t e, struct me_stub *stub)
{
	const struct me_flow_edge *edge = &n->flow.edges[e];
	const struct me_number_vertex *from = &n->vertices[edge->from],
				      *to = &n->vertices[edge->to];
	int64_t value = (int64_t)n->edges[e].value + to->offset;

	*stub = (struct me_stub){.does = ME_STUB_SETS, .reg = to->reg};
	if (n->edges[e].carries) {
		stub->does = ME_STUB_ADDS;
		stub->reg_from = from->reg;
		value -= from->offset;
	}
	stub->value = (int32_t)value;
	return !n->edges[e].carries || from->reg != to->reg || value;
}

static bool add_stub(struct me_number *n, uint32_t block, const struct me_stub *stub, double runs)
{
	n->report->nr_stubs++;
	n->report->stubs += runs * ((stub->does != ME_STUB_PASSES) + 2 * stub->polls);
	return me_stubs_add(&n->stubs, (struct me_stub_to){block, *stub});
}

/* The only edge from @v, if it leads to a merge and keeps the register; else MP_NONE. */
static uint32_t only_edge_of(const struct me_number *n, uint32_t v)
{
	const struct me_number_vertex *at = &n->vertices[v];
	uint32_t e = at->first_out;

	if (at->nr_out != 1 || !n->edges[e].carries ||
	    n->flow.edges[e].place != ME_FLOW_BEFORE_SOURCE ||
	    n->vertices[n->flow.edges[e].to].nr_in < 2 || !me_number_passes(n, &n->flow.edges[e]))
		return MP_NONE;
	return e;
}

/* Add the stub before @v. It starts a path, changes the register on @v's only incoming edge, or
 * adds in advance the increment of @v's only outgoing edge. */
static bool add_before(struct me_number *n, uint32_t v)
{
	struct me_number_vertex *at = &n->vertices[v];
	uint32_t on_edge = only_edge_of(n, v);
	struct me_stub stub = {.does = ME_STUB_ADDS, .reg = at->reg, .reg_from = at->reg}, on;
	bool any = false;

	if (at->reg == MP_NO_REGISTER)
		return true;
	if (at->starts) {
		stub = (struct me_stub){
			.does = ME_STUB_SETS, .value = (int32_t)at->offset, .reg = at->reg};
		any = true;
	} else if (at->nr_in == 1) {
		any = edge_stub_of(n, n->in[at->first_in], &stub);
	}
	if (on_edge != MP_NONE && edge_stub_of(n, on_edge, &on)) {
		at->shift += (uint32_t)on.value;
		stub.value += on.value;
		any = true;
	}
	if (stub.does == ME_STUB_ADDS && stub.reg_from == stub.reg && !stub.value)
		any = false;
	if (!any)
		stub.does = ME_STUB_PASSES;
	stub.arrivals = ME_STUB_ALL;
	if (!me_number_add_poll(n, v, &stub))
		return false;
	return (!any && !stub.polls) || add_stub(n, n->flow.first_block + v, &stub, at->weight);
}

/* Add a stub on each edge to a merge. */
static bool add_between(struct me_number *n, uint32_t v)
{
	const struct me_number_vertex *at = &n->vertices[v];

	for (uint32_t k = 0; k < at->nr_in && !at->starts && at->nr_in > 1; k++) {
		uint32_t e = n->in[at->first_in + k];
		const struct me_flow_edge *edge = &n->flow.edges[e];
		struct me_stub stub;

		if (!edge_stub_of(n, e, &stub) ||
		    (edge->from != n->flow.nr_blocks && only_edge_of(n, edge->from) == e))
			continue;
		stub.arrivals = edge->place == ME_FLOW_AT_ENTRY ? ME_STUB_OUTSIDE : ME_STUB_EDGE;
		stub.from = n->flow.first_block + edge->from;
		if (!add_stub(n, n->flow.first_block + v, &stub, edge->weight))
			return false;
	}
	return true;
}

bool me_number_add_stubs(struct me_number *n)
{
	if (!find_offsets(n))
		return false;
	for (uint32_t v = 0; v < n->flow.nr_blocks; v++)
		if (!add_before(n, v) || !add_between(n, v))
			return false;
	return true;
}
