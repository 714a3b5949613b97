// SPDX-License-Identifier: Apache-2.0
/*
 * number_private - what the files of number share among themselves; nobody else includes this. They
 * go over one function after the other:
 *
 *	number -> number_way -> number_register   which register holds the number, block by block
 *	                     -> number_start      where it is set
 *	       -> number_stub -> number_poll      what stands between the blocks
 */
#ifndef ME_NUMBER_PRIVATE_H
#define ME_NUMBER_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/flags.h"
#include "editor/flow.h"
#include "editor/number.h"
#include "editor/potential.h"
#include "editor/registers.h"
#include "editor/stubs.h"
#include "libprof/path_table.h"

struct me_number_vertex {
	double weight;
	uint32_t first_in, nr_in;   /* numbering.in */
	uint32_t first_out, nr_out; /* flow.edges; but for the one from outside */
	uint32_t ways;		    /* to it; 0: not known yet */
	uint32_t potential; /* where control arrives, the register exceeds the number by it */
	uint32_t shift;	    /* and in the block, by this */
	uint8_t reg;	    /* MP_NO_REGISTER: none, or none needed */
	uint8_t colour;
	bool starts;
	bool calls;  /* at its end */
	bool heads;  /* a loop */
	bool polls;  /* before it */
	bool told;   /* all paths through it are said, here or further on */
	bool needed; /* the number at its end tells something further on */
	double with,
		without; /* what its one number costs further on, if the register has it here, or not */
};

struct me_number_edge {
	double price; /* of an instruction on it: how often it runs, and jumps for it */
	uint32_t value;
	bool carries;
	bool closes; /* a loop */
};

struct me_number {
	const struct mp_cfg *cfg;
	bool polls;
	uint8_t vector;	       /* where it polls: a register that nobody names, or ME_NO_VECTOR */
	struct me_flags flags; /* where it polls */
	struct me_registers registers;
	uint8_t *arrives;    /* per block: control may come out of old code, with any number */
	struct me_flow flow; /* of the function at hand */
	struct me_number_vertex *vertices;
	struct me_number_edge *edges; /* of the flow */
	uint32_t *in;	 /* edges by where they lead, the one that adds nothing first */
	uint32_t *order; /* vertices, those behind before those that lead to them */
	uint32_t *stack;
	uint32_t *potential;
	struct me_potential_edge *passing;
	uint32_t *next; /* per block: which one follows it in the plan */
	uint32_t room_vertices, room_edges;
	struct me_stubs stubs;
	struct mp_path_table table;
	uint32_t room_blocks, room_table_edges;
	struct me_number_report *report;
};

static inline const struct mp_block *me_number_block(const struct me_number *n, uint32_t v)
{
	return &n->cfg->blocks[n->flow.first_block + v];
}

/* Does the number at the end of a block reach where the edge leads? */
static inline bool me_number_may_carry(const struct me_number *n, const struct me_flow_edge *edge)
{
	const struct me_number_vertex *from = &n->vertices[edge->from];

	if (edge->from == n->flow.nr_blocks || edge->to == n->flow.nr_blocks ||
	    from->reg == MP_NO_REGISTER || n->vertices[edge->to].reg == MP_NO_REGISTER)
		return false;
	return !from->calls || ME_REGISTERS_CALLEE_SAVED >> from->reg & 1;
}

/* Is the number at @from, whatever it is, the one at @to, with nothing to do? */
static inline bool me_number_passes(const struct me_number *n, const struct me_flow_edge *edge)
{
	return me_number_may_carry(n, edge) &&
	       n->vertices[edge->from].reg == n->vertices[edge->to].reg;
}

/* May an instruction stand on the edge alone? */
static inline bool me_number_has_place(const struct me_number *n, const struct me_flow_edge *edge)
{
	const struct mp_block *from;

	if (edge->place == ME_FLOW_TO || edge->place == ME_FLOW_OUTSIDE ||
	    edge->place == ME_FLOW_BETWEEN)
		return true;
	if (edge->place != ME_FLOW_FROM)
		return false;
	from = me_number_block(n, edge->from);
	return from->term != MP_TERM_TABLE && from->term != MP_TERM_UNRESOLVED;
}

/* number_way.c: numbers the ways through the function at hand. */
void me_number_ways(struct me_number *n);

/* number_register.c: which register each block has for its number, or MP_NO_REGISTER. */
void me_number_choose_registers(struct me_number *n);

/* number_start.c: sets the number where that costs least. @nr vertices are in order. */
void me_number_place_starts(struct me_number *n, uint32_t nr);

/* number_stub.c: what stands between the blocks of the function. Return: false: out of memory. */
bool me_number_add_stubs(struct me_number *n);

/* number_poll.c: make @stub, on all ways to @v, poll, if it should. Return: false: out of memory. */
bool me_number_add_poll(struct me_number *n, uint32_t v, struct me_stub *stub);

#endif
