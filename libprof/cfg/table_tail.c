// SPDX-License-Identifier: Apache-2.0
/*
 * table_tail - decides whether an indirect jump uses a pointer that comes from outside the
 * function.
 *
 * It follows the register backward from the jump over all ways, without a limit of depth.
 * Every value must come from outside: a parameter, a word of memory, the result of a call,
 * or a constant that is no place inside the function. A callee may have made the value or
 * kept it (-fipa-ra lets callers rely on that), so both are examined. Called by table for
 * jumps that its own limited search did not explain.
 */
#include <errno.h>

#include "libprof/cfg/table_slice.h"

/* Largest number of pairs (place, register) per jump. */
#define MAX_PLACES 16384
#define HASH_LOG2  15

struct chase {
	const struct mp_slice *s;
	uint64_t *seen; /* hash table: at << 4 | reg, plus 1; 0: free */
	uint64_t *todo; /* pairs, as at << 4 | reg, that are still to be followed */
	uint32_t nr_seen, nr_todo;
	bool failed;
};

/* The value of @reg before @at matters, too: follow it unless that was done before. */
static void add_place(struct chase *c, uint32_t at, uint8_t reg)
{
	uint64_t key = ((uint64_t)at << 4 | reg) + 1;
	uint32_t i = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_LOG2));

	if (reg >= 16 || c->nr_seen == MAX_PLACES) {
		c->failed = true;
		return;
	}
	for (; c->seen[i]; i = (i + 1) & ((1u << HASH_LOG2) - 1))
		if (c->seen[i] == key)
			return;
	c->seen[i] = key;
	c->nr_seen++;
	c->todo[c->nr_todo++] = key - 1;
}

/* True if @vaddr is a code address to which a jump leaves the function. */
static bool is_outside(const struct mp_slice *s, uint64_t vaddr)
{
	const struct mp_cfg_build *b = s->b;
	uint32_t at = mp_space_at(b->index, vaddr);
	uint32_t part = at == MP_NONE ? MP_NONE : mp_part_at(b->index, at);

	return at != MP_NONE && mp_space_is_text(b->index, at) &&
	       (mp_bit(b->entries, at) || part == MP_NONE || b->index->parts[part].func != s->func);
}

/* @op sets @reg. */
static void explain(struct chase *c, const struct mp_op *op, uint8_t reg)
{
	if (op->dst != reg && (op->writes & MP_CALLER_SAVED) == MP_CALLER_SAVED) {
		/*
		 * A call returns its result in rax. Any other register must hold its value
		 * from before the call.
		 */
		if (reg != 0)
			add_place(c, op->at, reg);
		return;
	}
	switch (op->dst == reg ? op->kind : MP_OP_OTHER) {
	case MP_OP_COPY:
		if (op->width != 8 || op->size != 8)
			c->failed = true;
		else
			add_place(c, op->at, op->src);
		return;
	case MP_OP_CMOV:
		add_place(c, op->at, op->dst);
		add_place(c, op->at, op->src);
		return;
	case MP_OP_LOAD: c->failed |= op->width != 8 || op->size != 8; return;
	case MP_OP_CONST: c->failed |= !is_outside(c->s, (uint64_t)op->value); return;
	default: c->failed = true; return;
	}
}

/* Goes back from @at to an instruction that sets @reg, or to a place that branches lead to. */
static void go_back(struct chase *c, uint32_t at, uint8_t reg)
{
	const struct mp_slice *s = c->s;
	const struct mp_cfg_build *b = s->b;
	uint32_t p = mp_part_at(b->index, at);
	const struct mp_part *part;

	if (p == MP_NONE || b->index->parts[p].func != s->func) {
		c->failed = true;
		return;
	}
	part = &b->index->parts[p];
	while (!c->failed) {
		uint32_t prev = mp_slice_prev(s, part, at);
		bool joined = false;
		struct mp_op op;

		if (mp_bit(b->index->targets, at)) {
			uint32_t i = mp_slice_first_pred(s, at);

			for (; i < s->nr_preds && s->preds[i].target == at; i++) {
				joined = true;
				add_place(c, s->preds[i].source, reg);
			}
		}
		/*
		 * The function's start: @reg is a parameter. No code falls into the start
		 * of another part.
		 */
		if (prev == MP_NONE) {
			c->failed |= !joined &&
				     b->cfg->funcs[s->func].vaddr != mp_space_vaddr(b->index, at);
			return;
		}
		if (joined && !mp_slice_falls_into(s, part, at))
			return;
		if (mp_op_decode(b, prev, &op) || !op.falls) {
			c->failed = true;
			return;
		}
		if (op.writes >> reg & 1) {
			explain(c, &op, reg);
			return;
		}
		/* A loop must end here, too. */
		if (joined) {
			add_place(c, prev, reg);
			return;
		}
		at = prev;
	}
}

int mp_slice_from_outside(const struct mp_slice *s, uint32_t jump, uint8_t reg, bool *outside)
{
	struct chase c = {
		.s = s,
		.seen = calloc(1u << HASH_LOG2, sizeof(*c.seen)),
		.todo = malloc(MAX_PLACES * sizeof(*c.todo)),
	};
	int ret = c.seen && c.todo ? 0 : -ENOMEM;

	if (!ret) {
		add_place(&c, jump, reg);
		while (c.nr_todo && !c.failed) {
			uint64_t key = c.todo[--c.nr_todo];

			go_back(&c, (uint32_t)(key >> 4), key & 15);
		}
	}
	*outside = !ret && !c.failed;
	free(c.seen);
	free(c.todo);
	return ret;
}
