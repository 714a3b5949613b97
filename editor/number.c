// SPDX-License-Identifier: Apache-2.0
/*
 * number - numbers the ways through one function after the other. Where its stubs stand, stubs
 * knows; what is free, registers. Called by optimize.
 */
#include "editor/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/eligible.h"
#include "editor/flags.h"
#include "editor/flow.h"
#include "editor/grow.h"
#include "editor/linger.h"
#include "editor/poll_code.h"
#include "editor/potential.h"
#include "editor/registers.h"
#include "editor/stubs.h"
#include "editor/vectors.h"
#include "libprof/insn.h"
#include "libprof/path_table.h"

/* Of an instruction that control jumps to and back from, in instructions. */
#define JUMP_PRICE 5
/* Of what runs in both of two blocks at least so much is taken to go from the one to the other. */
#define DOUBT 0.05

/* Of the paths that come to a block, so many end there: it polls. */
#define MOSTLY 0.6

/* More ways to a block are not told apart: paths start anew there. */
#define MAX_WAYS ME_POTENTIAL_MAX

struct vertex {
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
	bool needed; /* the number at its end tells something further on */
	double with,
		without; /* what its one number costs further on, if the register has it here, or not */
};

struct edge {
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
	struct vertex *vertices;
	struct edge *edges; /* of the flow */
	uint32_t *in;	    /* edges by where they lead, the one that adds nothing first */
	uint32_t *order;    /* vertices, those behind before those that lead to them */
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

static void bar(struct me_number *n, const uint16_t *barred)
{
	for (uint32_t b = 0; b < n->cfg->nr_blocks; b++) {
		uint32_t func = n->cfg->blocks[b].func;

		if (func == MP_NONE)
			continue;
		n->registers.free[b] &= (uint16_t)~barred[func];
		n->registers.dead[b] &= (uint16_t)~barred[func];
	}
}

int me_number_new(const struct mp_cfg *cfg, bool polls, const uint8_t *movable,
		  const uint16_t *barred, struct me_number **out, struct mp_err *err)
{
	struct me_number *n = calloc(1, sizeof(*n));
	int rc;

	*out = n;
	if (!n)
		return mp_err_set(err, ENOMEM, "out of memory");
	n->cfg = cfg;
	n->polls = polls;
	n->arrives = calloc((size_t)cfg->nr_blocks + 1, 1);
	if (!n->arrives) {
		me_number_free(n);
		*out = NULL;
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	for (uint32_t f = 0; f < cfg->nr_funcs; f++)
		if (movable[f])
			me_linger_arrivals(cfg, f, n->arrives);
	rc = me_registers_find(cfg, movable, &n->registers, err);
	if (!rc && barred)
		bar(n, barred);
	if (!rc && polls) {
		n->vector = me_vectors_unnamed(cfg->elf);
		rc = me_flags_find(cfg, movable, true, &n->flags, err);
	}
	if (rc) {
		me_number_free(n);
		*out = NULL;
	}
	return rc;
}

void me_number_free(struct me_number *n)
{
	if (!n)
		return;
	me_registers_fini(&n->registers);
	free(n->arrives);
	me_flags_fini(&n->flags);
	me_flow_fini(&n->flow);
	me_stubs_fini(&n->stubs);
	free(n->vertices);
	free(n->edges);
	free(n->in);
	free(n->order);
	free(n->stack);
	free(n->potential);
	free(n->passing);
	free(n->next);
	free(n->table.funcs);
	free(n->table.blocks);
	free(n->table.edges);
	free(n);
}

/* ---- the function at hand ------------------------------------------------------------------ */

static const struct mp_block *block_of(const struct me_number *n, uint32_t v)
{
	return &n->cfg->blocks[n->flow.first_block + v];
}

static bool ends_with_call(const struct mp_cfg *cfg, const struct mp_block *block)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	struct mp_insn insn = {0};

	if (block->term != MP_TERM_FALL && block->term != MP_TERM_NORETURN)
		return false;
	for (uint32_t off = 0; bytes && off < block->size; off += insn.len)
		if (mp_insn_decode(bytes + off, block->size - off, block->vaddr + off, &insn))
			return true;
	return !bytes || insn.kind == MP_INSN_CALL || insn.kind == MP_INSN_ICALL;
}

static bool reserve(struct me_number *n)
{
	uint32_t vertices = n->flow.nr_blocks + 1, edges = n->flow.nr_edges + 1;

	if (vertices > n->room_vertices) {
		struct vertex *more = reallocarray(n->vertices, vertices, sizeof(*more));
		uint32_t *order, *stack, *potential;

		n->vertices = more ? more : n->vertices;
		order = reallocarray(n->order, vertices, sizeof(*order));
		n->order = order ? order : n->order;
		stack = reallocarray(n->stack, 2 * (size_t)vertices, sizeof(*stack));
		n->stack = stack ? stack : n->stack;
		potential = reallocarray(n->potential, vertices, sizeof(*potential));
		n->potential = potential ? potential : n->potential;
		if (!more || !order || !stack || !potential)
			return false;
		n->room_vertices = vertices;
	}
	if (edges > n->room_edges) {
		struct edge *more = reallocarray(n->edges, edges, sizeof(*more));
		uint32_t *in = reallocarray(n->in, edges, sizeof(*in));
		struct me_potential_edge *passing =
			reallocarray(n->passing, edges, sizeof(*passing));

		n->edges = more ? more : n->edges;
		n->in = in ? in : n->in;
		n->passing = passing ? passing : n->passing;
		if (!more || !in || !passing)
			return false;
		n->room_edges = edges;
	}
	return true;
}

static int compare_in(const void *a, const void *b, void *number)
{
	const struct me_number *n = number;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct me_flow_edge *x = &n->flow.edges[i], *y = &n->flow.edges[k];

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	/* An edge on which nothing can stand must add nothing. */
	if (!x->place != !y->place)
		return x->place ? 1 : -1;
	if (n->edges[i].price != n->edges[k].price)
		return n->edges[i].price < n->edges[k].price ? 1 : -1;
	return i < k ? -1 : 1;
}

/*
 * Where control does not fall through a stub between two blocks, it jumps there and back. How often it
 * goes that way is guessed, most of all where it is said never to.
 */
static double price_of(const struct me_number *n, const struct me_flow_edge *edge)
{
	const struct vertex *from = &n->vertices[edge->from], *to = &n->vertices[edge->to];

	if (edge->place != ME_FLOW_BETWEEN ||
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
		struct vertex *from = &n->vertices[edge->from], *to = &n->vertices[edge->to];

		n->in[e] = e;
		if (edge->from != outside && !from->nr_out++)
			from->first_out = e;
		if (edge->to != outside) {
			to->nr_in++;
			to->weight += edge->weight;
		}
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		n->edges[e] = (struct edge){.price = price_of(n, &flow->edges[e])};
	qsort_r(n->in, flow->nr_edges, sizeof(*n->in), compare_in, n);
	for (uint32_t v = 0, at = 0; v < outside; v++) {
		n->vertices[v].first_in = at;
		at += n->vertices[v].nr_in;
	}
}

/* The register that is free in most of what runs first; then, for the rest, the next. */
static void choose_registers(struct me_number *n)
{
	double weight[MP_NR_REGISTERS] = {0};
	const uint16_t *is_free = &n->registers.free[n->flow.first_block];
	uint32_t nr = n->flow.nr_blocks;

	for (uint32_t v = 0; v < nr; v++) {
		n->vertices[v].reg = MP_NO_REGISTER;
		n->vertices[v].calls = ends_with_call(n->cfg, block_of(n, v));
		n->vertices[v].starts = n->arrives[n->flow.first_block + v];
		for (uint8_t r = 0; r < MP_NR_REGISTERS; r++)
			if (is_free[v] >> r & 1)
				weight[r] += n->vertices[v].weight + 1e-3;
	}
	for (;;) {
		uint8_t best = 0;

		for (uint8_t r = 1; r < MP_NR_REGISTERS; r++)
			if (weight[r] > weight[best])
				best = r;
		if (weight[best] == 0)
			return;
		weight[best] = 0;
		for (uint32_t v = 0; v < nr; v++)
			if (n->vertices[v].reg == MP_NO_REGISTER && is_free[v] >> best & 1 &&
			    !me_block_stays(block_of(n, v)))
				n->vertices[v].reg = best;
	}
}

/* Does the number at the end of a block reach where the edge leads? */
static bool may_carry(const struct me_number *n, const struct me_flow_edge *edge)
{
	const struct vertex *from = &n->vertices[edge->from];

	if (edge->from == n->flow.nr_blocks || edge->to == n->flow.nr_blocks ||
	    from->reg == MP_NO_REGISTER || n->vertices[edge->to].reg == MP_NO_REGISTER)
		return false;
	return !from->calls || ME_REGISTERS_CALLEE_SAVED >> from->reg & 1;
}

/* Is the number at @from, whatever it is, the one at @to, with nothing to do? */
static bool passes(const struct me_number *n, const struct me_flow_edge *edge)
{
	return may_carry(n, edge) && n->vertices[edge->from].reg == n->vertices[edge->to].reg;
}

/* Of the edges over which the register would change if it were @reg at @v; not of the one that joins it
 * to @but. */
static double price_of_changes(const struct me_number *n, uint32_t v, uint8_t reg, uint32_t but)
{
	const struct vertex *at = &n->vertices[v];
	double price = 0;

	for (uint32_t k = 0; k < at->nr_in + at->nr_out; k++) {
		bool in = k < at->nr_in;
		uint32_t e = in ? n->in[at->first_in + k] : at->first_out + k - at->nr_in;
		const struct me_flow_edge *edge = &n->flow.edges[e];
		uint32_t other = in ? edge->from : edge->to;

		if (other == n->flow.nr_blocks || other == v || other == but ||
		    n->vertices[edge->from].calls)
			continue;
		if (n->vertices[other].reg != MP_NO_REGISTER && n->vertices[other].reg != reg)
			price += n->edges[e].price;
	}
	return price;
}

/* The register at @v, and at the block that @edge joins it to, becomes what changes least often. */
static bool settle_register(struct me_number *n, const struct me_flow_edge *edge)
{
	const uint16_t *is_free = &n->registers.free[n->flow.first_block];
	struct vertex *from = &n->vertices[edge->from], *to = &n->vertices[edge->to];
	uint16_t both = is_free[edge->from] & is_free[edge->to];
	uint8_t best = MP_NO_REGISTER;
	double least = price_of_changes(n, edge->from, from->reg, MP_NONE) +
		       price_of_changes(n, edge->to, to->reg, edge->from);

	for (uint8_t r = 0; r < MP_NR_REGISTERS; r++) {
		double price;

		if (!(both >> r & 1))
			continue;
		price = price_of_changes(n, edge->from, r, edge->to) +
			price_of_changes(n, edge->to, r, edge->from);
		if (price < least) {
			least = price;
			best = r;
		}
	}
	if (best == MP_NO_REGISTER)
		return false;
	from->reg = to->reg = best;
	return true;
}

/* Rounds over a function's edges; each makes changes of the register rarer. */
#define MAX_ROUNDS 4

static void settle_registers(struct me_number *n)
{
	bool changed = true;

	for (int i = 0; i < MAX_ROUNDS && changed; i++) {
		changed = false;
		for (uint32_t e = 0; e < n->flow.nr_edges; e++) {
			const struct me_flow_edge *edge = &n->flow.edges[e];

			if (may_carry(n, edge) && !passes(n, edge))
				changed |= settle_register(n, edge);
		}
	}
}

enum {
	WHITE,
	GREY,
	BLACK
};

/* Depth first from @root: whose edge closes a circle starts anew; @*nr vertices are in order. */
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
		struct vertex *at = &n->vertices[v];
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

/* May an instruction stand on the edge alone? */
static bool has_place(const struct me_number *n, const struct me_flow_edge *edge)
{
	const struct mp_block *from;

	if (edge->place == ME_FLOW_TO || edge->place == ME_FLOW_OUTSIDE ||
	    edge->place == ME_FLOW_BETWEEN)
		return true;
	if (edge->place != ME_FLOW_FROM)
		return false;
	from = block_of(n, edge->from);
	return from->term != MP_TERM_TABLE && from->term != MP_TERM_UNRESOLVED;
}

/* Can every way to @v be given its number? The first edge adds nothing. */
static bool can_meet(const struct me_number *n, uint32_t v)
{
	const struct vertex *at = &n->vertices[v];

	for (uint32_t k = 0; k < at->nr_in; k++) {
		const struct me_flow_edge *edge = &n->flow.edges[n->in[at->first_in + k]];

		if (!has_place(n, edge) && (k > 0 || !passes(n, edge)))
			return false;
	}
	return true;
}

/* Where a loop's turn ends this may be asked before they are counted. */
static uint32_t ways_to(const struct vertex *at)
{
	return at->starts ? 1 : at->ways;
}

/* Nobody's number comes to @at: its own starts there. */
static void forget_ways(struct me_number *n, struct vertex *at)
{
	for (uint32_t k = 0; k < at->nr_in; k++) {
		struct edge *edge = &n->edges[n->in[at->first_in + k]];

		edge->value = 0;
		edge->carries = false;
	}
	at->starts = true;
}

/* In an order in which whoever leads to a block comes before it, where paths do not start. */
static void count_ways(struct me_number *n, uint32_t v)
{
	struct vertex *at = &n->vertices[v];
	uint64_t ways = 0;

	if (at->reg == MP_NO_REGISTER || !at->nr_in ||
	    (at->nr_in > 1 && !at->starts && !can_meet(n, v)))
		at->starts = true;
	for (uint32_t k = 0; k < at->nr_in && !at->starts; k++) {
		uint32_t e = n->in[at->first_in + k];

		n->edges[e].value = (uint32_t)ways;
		n->edges[e].carries = may_carry(n, &n->flow.edges[e]);
		ways += n->edges[e].carries ? ways_to(&n->vertices[n->flow.edges[e].from]) : 1;
		if (ways > MAX_WAYS)
			at->starts = true;
	}
	/* Nobody's number comes here: it may as well start. */
	if (at->nr_in == 1 && !n->edges[n->in[at->first_in]].carries)
		at->starts = true;
	if (at->starts) {
		forget_ways(n, at);
		ways = 1;
	}
	at->ways = (uint32_t)ways;
}

/* Does the number at the end of @v tell something further on; @around: in the next turn of a loop? */
static bool is_needed(const struct me_number *n, uint32_t v, bool around)
{
	const struct vertex *at = &n->vertices[v];

	for (uint32_t e = at->first_out; e < at->first_out + at->nr_out; e++) {
		const struct vertex *to = &n->vertices[n->flow.edges[e].to];

		if (n->edges[e].carries && (to->nr_in > 1 || to->needed) &&
		    (around || !n->edges[e].closes))
			return true;
	}
	return false;
}

/*
 * A number that tells nothing, here or further on, is not kept. Nor is one that tells the first turn of
 * a loop from the others, and nothing else: it costs each turn, and samples know.
 */
static void drop_needless(struct me_number *n, uint32_t v, bool around)
{
	struct vertex *at = &n->vertices[v];

	at->needed = is_needed(n, v, around);
	if (at->needed || (around ? at->ways > 1 && !at->starts : !at->heads))
		return;
	forget_ways(n, at);
	at->reg = MP_NO_REGISTER;
}

/* ---- starts -------------------------------------------------------------------------------- */

/*
 * As long as one way alone leads to a block its number is known, and need not be in the register: it
 * may as well be set further on, where less runs. What that costs is summed up from the ends of these
 * trees.
 */
static void weigh_start(struct me_number *n, uint32_t v)
{
	struct vertex *at = &n->vertices[v];

	at->with = at->without = 0;
	for (uint32_t e = at->first_out; e < at->first_out + at->nr_out; e++) {
		const struct me_flow_edge *edge = &n->flow.edges[e];
		const struct vertex *to = &n->vertices[edge->to];
		bool passes_on = passes(n, edge);

		if (!n->edges[e].carries)
			continue;
		if (to->nr_in == 1 && !n->edges[e].closes) {
			double set = to->weight + to->with;

			at->with += fmin(passes_on ? to->with : set, to->without);
			at->without += fmin(set, to->without);
			continue;
		}
		at->with += passes_on ? 0 : n->edges[e].price;
		at->without += has_place(n, edge) ? n->edges[e].price : HUGE_VAL;
	}
}

/* No number is set in @at: its path starts there all the same, and further on where it leads. */
static void leave_out(struct vertex *at)
{
	at->reg = MP_NO_REGISTER;
	at->starts = true;
}

/* From the roots on: where the register is set, and where it is not. */
static void place_start(struct me_number *n, uint32_t v)
{
	struct vertex *at = &n->vertices[v];
	bool was_set = at->reg != MP_NO_REGISTER;

	if (at->starts && was_set && at->without < at->weight + at->with)
		leave_out(at);
	for (uint32_t e = at->first_out; e < at->first_out + at->nr_out; e++) {
		struct vertex *to = &n->vertices[n->flow.edges[e].to];
		bool is_child = to->nr_in == 1 && !n->edges[e].closes;

		if (!n->edges[e].carries)
			continue;
		if (at->reg == MP_NO_REGISTER) {
			n->edges[e].carries = false;
			if (is_child)
				to->starts = true;
		} else if (is_child &&
			   to->without <
				   to->with + (passes(n, &n->flow.edges[e]) ? 0 : to->weight)) {
			n->edges[e].carries = false;
			leave_out(to);
		}
	}
}

static void place_starts(struct me_number *n, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		weigh_start(n, n->order[i]);
	for (uint32_t i = nr; i-- > 0;)
		if (n->vertices[n->order[i]].ways == 1)
			place_start(n, n->order[i]);
}

static void number_ways(struct me_number *n)
{
	const struct me_flow *flow = &n->flow;
	uint32_t nr = 0;

	link_edges(n);
	choose_registers(n);
	settle_registers(n);
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (flow->edges[e].from == flow->nr_blocks && flow->edges[e].to != flow->nr_blocks)
			visit(n, flow->edges[e].to, &nr);
	for (uint32_t v = 0; v < flow->nr_blocks; v++)
		visit(n, v, &nr);
	for (int around = 0; around < 2; around++) {
		for (uint32_t i = nr; i-- > 0;)
			count_ways(n, n->order[i]);
		for (uint32_t i = 0; i < nr; i++)
			drop_needless(n, n->order[i], around);
	}
	place_starts(n, nr);
}

/* Where a path starts, and one way alone leads on, what that adds is set at once. */
static double price_of_adding(const struct me_number *n, uint32_t e)
{
	const struct me_flow_edge *edge = &n->flow.edges[e];

	if (!has_place(n, edge))
		return HUGE_VAL;
	if (edge->place == ME_FLOW_FROM && n->vertices[edge->from].starts)
		return 0;
	return n->edges[e].price;
}

static bool find_potentials(struct me_number *n)
{
	uint32_t nr = 0;

	for (uint32_t e = 0; e < n->flow.nr_edges; e++) {
		const struct me_flow_edge *edge = &n->flow.edges[e];

		if (n->edges[e].carries && passes(n, edge))
			n->passing[nr++] =
				(struct me_potential_edge){.from = edge->from,
							   .to = edge->to,
							   .value = n->edges[e].value,
							   .price = price_of_adding(n, e)};
	}
	if (me_potentials_find(n->passing, nr, n->flow.nr_blocks, n->potential))
		return false;
	for (uint32_t v = 0; v < n->flow.nr_blocks; v++)
		if (n->vertices[v].reg != MP_NO_REGISTER)
			n->vertices[v].potential = n->vertices[v].shift = n->potential[v];
	return true;
}

/* ---- stubs --------------------------------------------------------------------------------- */

/* What brings the number over edge @e; false: nothing has to. */
static bool bring(const struct me_number *n, uint32_t e, struct me_stub *stub)
{
	const struct me_flow_edge *edge = &n->flow.edges[e];
	const struct vertex *from = &n->vertices[edge->from], *to = &n->vertices[edge->to];
	int64_t value = (int64_t)n->edges[e].value + to->potential;

	*stub = (struct me_stub){.does = ME_STUB_SETS, .reg = to->reg};
	if (n->edges[e].carries) {
		stub->does = ME_STUB_ADDS;
		stub->reg_from = from->reg;
		value -= from->potential;
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

/* The edge that alone leads on from @v, and to a block where ways meet, in the same register. */
static uint32_t only_way(const struct me_number *n, uint32_t v)
{
	const struct vertex *at = &n->vertices[v];
	uint32_t e = at->first_out;

	if (at->nr_out != 1 || !n->edges[e].carries || n->flow.edges[e].place != ME_FLOW_FROM ||
	    n->vertices[n->flow.edges[e].to].nr_in < 2 || !passes(n, &n->flow.edges[e]))
		return MP_NONE;
	return e;
}

/*
 * Does the path that comes to @v end there, always or by a loop's turn, or mostly, and its number tell
 * something? Where it goes on another end tells of it again: a beginning told twice says less wrong
 * than an end told never. Of rarer ends little is lost.
 */
static bool ends_paths(const struct me_number *n, uint32_t v)
{
	const struct vertex *at = &n->vertices[v];
	double all = 0, ended = 0;
	bool ends = !at->nr_out;

	if (at->reg == MP_NO_REGISTER || at->starts || at->ways < 2)
		return false;
	for (uint32_t e = at->first_out; e < at->first_out + at->nr_out; e++) {
		all += n->flow.edges[e].weight;
		if (n->edges[e].carries)
			continue;
		if (n->edges[e].closes)
			return true;
		ended += n->flow.edges[e].weight;
		ends = true;
	}
	return ends && ended >= MOSTLY * all;
}

/* What polls, and what notes, changes flags: nobody may read them from @v on. */
static bool may_poll(const struct me_number *n, uint32_t v)
{
	uint32_t block = n->flow.first_block + v;

	return !n->flags.live[block] && !n->flags.shared[n->cfg->blocks[block].func];
}

/* Where @v polls before it runs: a free register beside its own, or MP_NO_REGISTER. */
static uint8_t free_beside(const struct me_number *n, uint32_t v)
{
	/* Of rax, and of what callees save, more has to be proved. */
	static const uint8_t order[] = {11, 10, 9, 8, 7, 6, 1, 2, 0, 3, 12, 13, 14, 15};
	uint32_t block = n->flow.first_block + v;
	uint16_t is_free = n->registers.dead[block] & ~(1u << n->vertices[v].reg);

	for (size_t i = 0; i < sizeof(order); i++)
		if (is_free >> order[i] & 1)
			return order[i];
	return MP_NO_REGISTER;
}

/* One that is free, or one that no unwind row of a compiler's names, if that can be kept elsewhere. */
static bool find_scratch(const struct me_number *n, uint32_t v, struct me_stub *note)
{
	note->scratch = free_beside(n, v);
	if (note->scratch != MP_NO_REGISTER)
		return true;
	note->vector = n->vector;
	note->scratch = note->reg == 11 ? 9 : 11;
	return n->vector != ME_NO_VECTOR;
}

/* Make @stub, on all ways to @v, poll, if it should. Return: false: out of memory. */
static bool add_poll(struct me_number *n, uint32_t v, struct me_stub *stub)
{
	struct vertex *at = &n->vertices[v];
	struct me_stub note = {.does = ME_STUB_NOTES, .ways = ME_STUB_POLL, .reg = at->reg};

	if (!n->polls || !ends_paths(n, v))
		return true;
	n->report->nr_ends++;
	n->report->ends += at->weight;
	if (!may_poll(n, v) || !find_scratch(n, v, &note))
		return true;
	n->report->nr_polls++;
	n->report->polls += at->weight;
	stub->polls = true;
	note.counter = n->table.nr_blocks + v;
	return me_stubs_add(&n->stubs, (struct me_stub_to){n->flow.first_block + v, note});
}

/* Before @v: where a path starts, where its one edge brings the register, and what its one way on
 * adds: the register has that in @v already. */
static bool add_before(struct me_number *n, uint32_t v)
{
	struct vertex *at = &n->vertices[v];
	uint32_t way = only_way(n, v);
	struct me_stub stub = {.does = ME_STUB_ADDS, .reg = at->reg, .reg_from = at->reg}, on;
	bool any = false;

	if (at->reg == MP_NO_REGISTER)
		return true;
	if (at->starts) {
		stub = (struct me_stub){
			.does = ME_STUB_SETS, .value = (int32_t)at->potential, .reg = at->reg};
		any = true;
	} else if (at->nr_in == 1) {
		any = bring(n, n->in[at->first_in], &stub);
	}
	if (way != MP_NONE && bring(n, way, &on)) {
		at->shift += (uint32_t)on.value;
		stub.value += on.value;
		any = true;
	}
	if (stub.does == ME_STUB_ADDS && stub.reg_from == stub.reg && !stub.value)
		any = false;
	if (!any)
		stub.does = ME_STUB_PASSES;
	stub.ways = ME_STUB_ALL;
	if (!add_poll(n, v, &stub))
		return false;
	return (!any && !stub.polls) || add_stub(n, n->flow.first_block + v, &stub, at->weight);
}

/* Where ways meet, on each of them. */
static bool add_between(struct me_number *n, uint32_t v)
{
	const struct vertex *at = &n->vertices[v];

	for (uint32_t k = 0; k < at->nr_in && !at->starts && at->nr_in > 1; k++) {
		uint32_t e = n->in[at->first_in + k];
		const struct me_flow_edge *edge = &n->flow.edges[e];
		struct me_stub stub;

		if (!bring(n, e, &stub) ||
		    (edge->from != n->flow.nr_blocks && only_way(n, edge->from) == e))
			continue;
		stub.ways = edge->place == ME_FLOW_OUTSIDE ? ME_STUB_OUTSIDE : ME_STUB_EDGE;
		stub.from = n->flow.first_block + edge->from;
		if (!add_stub(n, n->flow.first_block + v, &stub, edge->weight))
			return false;
	}
	return true;
}

/* ---- the table ----------------------------------------------------------------------------- */

static void sum_up(struct me_number *n)
{
	struct me_number_report *r = n->report;

	for (uint32_t v = 0; v < n->flow.nr_blocks; v++) {
		const struct vertex *at = &n->vertices[v];

		r->insns += at->weight * block_of(n, v)->nr_insns;
		if (at->nr_in < 2)
			continue;
		r->nr_merges++;
		r->merges += at->weight;
		if (at->starts)
			continue;
		r->nr_told++;
		r->told += at->weight;
	}
}

static bool add_to_table(struct me_number *n)
{
	struct mp_path_table *t = &n->table;
	const struct me_flow *flow = &n->flow;
	uint32_t first = t->nr_blocks, first_edge = t->nr_edges;

	if (!me_grow(&t->blocks, &n->room_blocks, (uint64_t)first + flow->nr_blocks,
		     sizeof(*t->blocks)) ||
	    !me_grow(&t->edges, &n->room_table_edges, (uint64_t)first_edge + flow->nr_edges,
		     sizeof(*t->edges)))
		return false;
	for (uint32_t v = 0; v < flow->nr_blocks; v++) {
		const struct mp_block *block = block_of(n, v);
		const struct vertex *at = &n->vertices[v];

		t->blocks[t->nr_blocks++] = (struct mp_path_block){
			.vaddr = block->vaddr,
			.size = block->size,
			.term_off = block->size - block->term_len,
			.reg = at->reg,
			.starts = at->starts,
			.shift = at->shift,
		};
		for (uint32_t k = 0; k < at->nr_in; k++) {
			uint32_t e = n->in[at->first_in + k];
			const struct me_flow_edge *edge = &flow->edges[e];

			t->edges[t->nr_edges++] = (struct mp_path_edge){
				.from = edge->from == flow->nr_blocks ? MP_NONE
								      : first + edge->from,
				.to = first + v,
				.kind = edge->kind,
				.carries = n->edges[e].carries,
				.value = n->edges[e].value,
			};
		}
	}
	t->funcs[t->nr_funcs++] =
		(struct mp_path_func){first, flow->nr_blocks, first_edge, t->nr_edges - first_edge};
	return true;
}

static bool add_function(struct me_number *n)
{
	number_ways(n);
	if (!find_potentials(n))
		return false;
	for (uint32_t v = 0; v < n->flow.nr_blocks; v++)
		if (!add_before(n, v) || !add_between(n, v))
			return false;
	sum_up(n);
	return add_to_table(n);
}

/* Which block follows which in the plan; what it lacks stays in order. */
static bool follow_plan(struct me_number *n, const struct me_plan *plan, const uint8_t *movable)
{
	const struct mp_cfg *cfg = n->cfg;
	uint8_t *planned = calloc((size_t)cfg->nr_blocks + 1, 1);
	uint32_t last = MP_NONE;

	n->next = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*n->next));
	if (!n->next || !planned) {
		free(planned);
		return false;
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		n->next[b] = MP_NONE;
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		planned[plan->blocks[i].block] = 1;
		if (!plan->blocks[i].clone && i + 1 < plan->nr_blocks)
			n->next[plan->blocks[i].block] = plan->blocks[i + 1].block;
	}
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		uint32_t func = cfg->blocks[b].func;

		if (planned[b] || func == MP_NONE || !movable[func] ||
		    me_block_stays(&cfg->blocks[b]))
			continue;
		if (last != MP_NONE && cfg->blocks[last].func == func)
			n->next[last] = b;
		last = b;
	}
	free(planned);
	return true;
}

static int add_functions(struct me_number *n, const struct mp_counts *counts,
			 const uint8_t *movable)
{
	const struct mp_cfg *cfg = n->cfg;

	n->table.funcs = malloc(((size_t)cfg->nr_funcs + 1) * sizeof(*n->table.funcs));
	if (!n->table.funcs)
		return -ENOMEM;
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		if (!movable[f] || !cfg->funcs[f].nr_blocks)
			continue;
		if (me_flow_build(cfg, NULL, counts, f, &n->flow) || !reserve(n) ||
		    !add_function(n))
			return -ENOMEM;
	}
	return 0;
}

int me_number_plan(struct me_number *n, const struct mp_counts *counts, const uint8_t *movable,
		   struct me_plan *plan, struct me_number_report *report, struct mp_err *err)
{
	int rc;

	*report = (struct me_number_report){0};
	n->report = report;
	rc = follow_plan(n, plan, movable) ? add_functions(n, counts, movable) : -ENOMEM;
	report->nr_funcs = n->table.nr_funcs;
	if (!rc)
		rc = me_stubs_put(n->cfg, movable, &n->stubs, plan, &report->nr_inline);
	if (rc)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (report->nr_polls) {
		plan->polls = true;
		plan->nr_counters = ME_POLLS_BYTES / 8;
	}
	plan->table_name = MP_PATH_TABLE_SECTION;
	return mp_path_table_encode(&n->table, &plan->table, &plan->table_size, err);
}
