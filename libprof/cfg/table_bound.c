// SPDX-License-Identifier: Apache-2.0
/*
 * table_bound - finds the number of entries of a jump table, from the comparison or mask
 * before the jump.
 * It follows the index backward from the load. It remembers comparisons of other registers,
 * since the index may be a copy of one. If several ways lead to the load, the largest bound
 * counts. Called by table.
 */
#include "libprof/cfg/table_slice.h"

#define BUDGET	    200
#define MAX_PASSED  6
#define MAX_PENDING 6
#define MAX_DEPTH   8
#define MAX_ENTRIES 65536

struct place {
	uint8_t reg; /* MP_NO_REG: a place in memory */
	uint8_t base, index, scale;
	bool rip;
	int64_t disp;
};

struct pending {
	struct place place;
	struct mp_bound bound;
};

struct state {
	struct place at;
	int64_t bias;	/* index = value at @at + bias */
	uint32_t limit; /* from a zero extension; 0: none */
	uint8_t passed[MAX_PASSED];
	unsigned int nr_passed;
	struct pending pending[MAX_PENDING];
	unsigned int nr_pending;
};

struct walk {
	const struct mp_slice *s;
	unsigned int budget;
};

static bool same_place(const struct place *a, const struct place *b)
{
	if (a->reg != MP_NO_REG || b->reg != MP_NO_REG)
		return a->reg == b->reg;
	return a->base == b->base && a->index == b->index && a->scale == b->scale &&
	       a->rip == b->rip && a->disp == b->disp;
}

static struct place mem_place(const struct mp_op *op)
{
	return (struct place){MP_NO_REG, op->base, op->index, op->scale, op->rip, op->disp};
}

static struct place reg_place(uint8_t reg)
{
	return (struct place){.reg = reg};
}

static bool place_changes(const struct place *p, const struct mp_op *op)
{
	if (p->reg != MP_NO_REG)
		return op->writes >> p->reg & 1;
	return (p->base < 16 && (op->writes >> p->base & 1)) ||
	       (p->index < 16 && (op->writes >> p->index & 1));
}

/* The bound from a comparison with @value and the branches passed since. */
static struct mp_bound compare(const struct state *st, int64_t value)
{
	struct mp_bound bound = {0, false, false};

	if (value < 0 || value >= MAX_ENTRIES)
		return bound;
	for (unsigned int i = 0; i < st->nr_passed; i++) {
		switch (st->passed[i]) {
		case 0x2: /* below */ return (struct mp_bound){(uint32_t)value, true, false};
		case 0x6: /* below or equal */
			return (struct mp_bound){(uint32_t)value + 1, true, false};
		case 0xc: /* less: a signed comparison, the sign is unknown */
			bound = (struct mp_bound){(uint32_t)value, false, false};
			break;
		case 0xe: bound = (struct mp_bound){(uint32_t)value + 1, false, false}; break;
		default: break;
		}
	}
	return bound;
}

static struct mp_bound finish(const struct state *st, struct mp_bound bound)
{
	int64_t nr = (int64_t)bound.nr + st->bias;

	if (!bound.nr || nr <= 0 || nr > MAX_ENTRIES)
		return (struct mp_bound){st->limit, false, st->limit != 0};
	return (struct mp_bound){(uint32_t)nr, bound.exact && !st->bias, bound.soft};
}

static void drop_pending(struct state *st, const struct mp_op *op)
{
	unsigned int out = 0;

	for (unsigned int i = 0; i < st->nr_pending; i++)
		if (!place_changes(&st->pending[i].place, op))
			st->pending[out++] = st->pending[i];
	st->nr_pending = out;
}

/* Follows the index to @place. Return: true if @place has been compared already. */
static bool move_to(struct state *st, struct place place, struct mp_bound *bound)
{
	st->at = place;
	for (unsigned int i = 0; i < st->nr_pending; i++) {
		if (!same_place(&st->pending[i].place, &place))
			continue;
		*bound = finish(st, st->pending[i].bound);
		return true;
	}
	return false;
}

static void take_limit(struct state *st, uint8_t size)
{
	if (size == 1 && !st->bias)
		st->limit = 256;
}

/* The index changes here. Return: true if *@bound is the answer. */
static bool step_write(struct state *st, const struct mp_op *op, struct mp_bound *bound)
{
	*bound = finish(st, (struct mp_bound){0, false, false});
	if (st->at.reg == MP_NO_REG || op->dst != st->at.reg)
		return true;
	switch (op->kind) {
	case MP_OP_COPY: take_limit(st, op->size); return move_to(st, reg_place(op->src), bound);
	case MP_OP_LOAD: take_limit(st, op->size); return move_to(st, mem_place(op), bound);
	case MP_OP_AND_IMM:
		if (op->value > 0 && op->value < MAX_ENTRIES)
			*bound =
				finish(st, (struct mp_bound){(uint32_t)op->value + 1, false, true});
		return true;
	case MP_OP_SHR_IMM:
		if (op->value < op->width * 8 && op->width * 8 - op->value <= 16)
			*bound = finish(st, (struct mp_bound){1u << (op->width * 8 - op->value),
							      false, true});
		return true;
	case MP_OP_SHL_IMM: /* scaled by hand: the entry size */ return false;
	case MP_OP_ADD_IMM:
		st->bias += op->value;
		return st->bias > MAX_ENTRIES || st->bias < -MAX_ENTRIES;
	case MP_OP_LEA:
		if (op->base == MP_NO_REG && op->index != MP_NO_REG && !op->disp)
			return move_to(st, reg_place(op->index), bound);
		if (op->index == MP_NO_REG && op->base != MP_NO_REG && op->disp > -MAX_ENTRIES &&
		    op->disp < MAX_ENTRIES) {
			st->bias += op->disp;
			return move_to(st, reg_place(op->base), bound);
		}
		return true;
	default: return true;
	}
}

static void pass(struct state *st, uint8_t cc)
{
	if (st->nr_passed < MAX_PASSED)
		st->passed[st->nr_passed++] = cc;
}

static void step_compare(struct state *st, const struct mp_op *op, struct mp_bound *bound)
{
	struct place place = op->mem ? mem_place(op) : reg_place(op->src);
	struct mp_bound found = compare(st, op->value);

	if (!found.nr)
		return;
	if (same_place(&place, &st->at))
		*bound = finish(st, found);
	else if (st->nr_pending < MAX_PENDING)
		st->pending[st->nr_pending++] = (struct pending){place, found};
}

static struct mp_bound go(struct walk *w, uint32_t at, struct state st, unsigned int depth,
			  bool join);

static uint8_t taken_cc(const struct walk *w, uint32_t source)
{
	struct mp_op op;

	return mp_op_decode(w->s->b, source, &op) ? 0xff : op.cond;
}

/* Several ways lead to @at: takes the largest bound, or none if one of them has none. */
static bool fork_paths(struct walk *w, uint32_t at, bool falls, const struct state *st,
		       unsigned int depth, struct mp_bound *out)
{
	const struct mp_slice *s = w->s;
	uint32_t first = mp_slice_first_pred(s, at);
	struct mp_bound max = {0, true, false};

	if (first == s->nr_preds)
		return false;
	*out = (struct mp_bound){0, false, false};
	if (depth >= MAX_DEPTH)
		return true;
	for (uint32_t i = first; i < s->nr_preds && s->preds[i].target == at; i++) {
		struct state next = *st;
		struct mp_bound bound;
		uint8_t cc = taken_cc(w, s->preds[i].source);

		/* A loop's back edge adds no bound. */
		if (s->preds[i].source >= at && (falls || i > first))
			continue;
		if (cc != 0xff)
			pass(&next, cc);
		bound = go(w, s->preds[i].source, next, depth + 1, true);
		if (!bound.nr)
			return true;
		if (bound.nr > max.nr)
			max.nr = bound.nr;
		max.exact &= bound.exact;
		max.soft |= bound.soft;
	}
	if (falls) {
		struct mp_bound bound = go(w, at, *st, depth + 1, false);

		if (!bound.nr)
			return true;
		if (bound.nr > max.nr)
			max.nr = bound.nr;
		max.exact &= bound.exact;
		max.soft |= bound.soft;
	}
	*out = max;
	return true;
}

/* @join: other branches to @at are still to be followed. */
static struct mp_bound go(struct walk *w, uint32_t at, struct state st, unsigned int depth,
			  bool join)
{
	const struct mp_slice *s = w->s;
	uint32_t p = mp_part_at(s->b->index, at);
	struct mp_bound none = finish(&st, (struct mp_bound){0, false, false}), bound;
	const struct mp_part *part;

	if (p == MP_NONE)
		return none;
	part = &s->b->index->parts[p];
	for (;;) {
		uint32_t prev = mp_slice_prev(s, part, at);
		struct mp_op op = {.cond = 0xff};

		none = finish(&st, (struct mp_bound){0, false, false});
		if (!w->budget)
			return none;
		w->budget--;
		if (prev != MP_NONE && mp_op_decode(s->b, prev, &op))
			return none;
		if (join && mp_bit(s->b->index->targets, at) &&
		    fork_paths(w, at, mp_slice_falls_into(s, part, at), &st, depth, &bound))
			return bound.nr ? bound : none;
		join = true;
		if (!op.falls)
			return none;
		at = prev;
		if (op.cond != 0xff) {
			pass(&st, op.cond ^ 1);
			continue;
		}
		if (op.kind == MP_OP_CMP_IMM) {
			bound.nr = 0;
			step_compare(&st, &op, &bound);
			if (bound.nr)
				return bound;
		}
		if (op.flags)
			st.nr_passed = 0;
		if (op.writes)
			drop_pending(&st, &op);
		if (place_changes(&st.at, &op) && step_write(&st, &op, &bound))
			return bound;
	}
}

struct mp_bound mp_slice_bound(const struct mp_slice *s, uint32_t at, uint8_t index)
{
	struct walk w = {.s = s, .budget = BUDGET};
	struct state st = {.at = reg_place(index)};

	if (index >= 16)
		return (struct mp_bound){0, false, false};
	return go(&w, at, st, 0, true);
}
