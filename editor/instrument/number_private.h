// SPDX-License-Identifier: Apache-2.0
/*
 * number_private - types and functions that the files of number share; no other file includes
 * this. They handle one function after the other:
 *
 *	number -> number_paths -> number_choose   which register holds the number, block by block
 *	                     -> number_start      where it is set
 *	       -> number_stub -> number_poll      the stubs between the blocks
 */
#ifndef ME_NUMBER_PRIVATE_H
#define ME_NUMBER_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/evidence/flags/flags.h"
#include "editor/instrument/flow.h"
#include "editor/instrument/number.h"
#include "editor/instrument/register_offset.h"
#include "editor/evidence/free_registers.h"
#include "editor/instrument/stubs.h"
#include "libprof/note/path_table.h"

struct me_number_vertex {
	double weight;
	uint32_t first_in, nr_in;   /* indexes in me_number.in */
	uint32_t first_out, nr_out; /* indexes in flow.edges; not for the vertex outside */
	uint32_t nr_paths;	    /* number of paths to it; 0: not known yet */
	uint32_t offset;	    /* at entry, register minus number */
	uint32_t shift;		    /* inside the block, register minus number */
	uint8_t reg;		    /* MP_NO_REGISTER: none free, or none needed */
	uint8_t colour;
	bool starts;
	bool calls;	     /* ends with a call */
	bool heads;	     /* is the head of a loop */
	bool polls;	     /* polls before it runs */
	bool fully_reported; /* polls report all paths through it, here or later */
	bool needed;	     /* the number at its end is used later */
	/* Cost of later starts if the register holds its number here, or not. */
	double cost_if_set, cost_if_not_set;
};

struct me_number_edge {
	double price; /* cost of an instruction on it: its runs, and jumps to it */
	uint32_t value;
	bool carries;
	bool closes; /* goes back to a head */
};

struct me_number {
	const struct mp_cfg *cfg;
	bool polls;
	uint8_t vector;	       /* for polls: an unnamed vector register, or ME_NO_VECTOR */
	struct me_flags flags; /* for polls */
	struct me_free_registers registers;
	uint8_t *arrives;    /* per block: control may come from old code, with any number */
	struct me_flow flow; /* of the current function */
	struct me_number_vertex *vertices;
	struct me_number_edge *edges; /* per edge of the flow */
	uint32_t *in;		      /* edges sorted by target; first the one that adds 0 */
	uint32_t *order;	      /* vertices; successors come first */
	uint32_t *stack;
	uint32_t *offset;
	struct me_register_offset_edge *passing;
	uint32_t *next; /* per block: the next one in the plan */
	uint32_t cap_vertices, cap_edges;
	struct me_stubs stubs;
	struct mp_path_table table;
	uint32_t cap_blocks, cap_table_edges;
	struct me_number_report *report;
};

static inline const struct mp_block *me_number_block(const struct me_number *n, uint32_t v)
{
	return &n->cfg->blocks[n->flow.first_block + v];
}

/* Can the number at the end of a block reach the edge's target? */
static inline bool me_number_may_carry(const struct me_number *n, const struct me_flow_edge *edge)
{
	const struct me_number_vertex *from = &n->vertices[edge->from];

	if (edge->from == n->flow.nr_blocks || edge->to == n->flow.nr_blocks ||
	    from->reg == MP_NO_REGISTER || n->vertices[edge->to].reg == MP_NO_REGISTER)
		return false;
	return !from->calls || ME_CALLEE_SAVED_REGISTERS >> from->reg & 1;
}

/* Can the number at @from become the one at @to without an instruction? */
static inline bool me_number_passes(const struct me_number *n, const struct me_flow_edge *edge)
{
	return me_number_may_carry(n, edge) &&
	       n->vertices[edge->from].reg == n->vertices[edge->to].reg;
}

/* Is there a place for an instruction that only this edge runs? */
static inline bool me_number_has_place(const struct me_number *n, const struct me_flow_edge *edge)
{
	const struct mp_block *from;

	if (edge->place == ME_FLOW_BEFORE_TARGET || edge->place == ME_FLOW_AT_ENTRY ||
	    edge->place == ME_FLOW_ON_EDGE)
		return true;
	if (edge->place != ME_FLOW_BEFORE_SOURCE)
		return false;
	from = me_number_block(n, edge->from);
	return from->term != MP_TERM_TABLE && from->term != MP_TERM_UNRESOLVED;
}

/* number_paths.c: numbers the paths through the current function. */
void me_number_paths(struct me_number *n);

/* number_choose.c: chooses each block's register for its number, or MP_NO_REGISTER. */
void me_number_choose_registers(struct me_number *n);

/* number_start.c: chooses the blocks that set the number, so that it costs least. @nr: vertices
 * in @n->order. */
void me_number_place_starts(struct me_number *n, uint32_t nr);

/* number_stub.c: adds the stubs between the blocks. Return: false: out of memory. */
bool me_number_add_stubs(struct me_number *n);

/* number_poll.c: makes @stub, on all paths to @v, poll if it should. Return: false: out of
 * memory. */
bool me_number_add_poll(struct me_number *n, uint32_t v, struct me_stub *stub);

#endif
