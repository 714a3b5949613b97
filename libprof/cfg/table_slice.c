// SPDX-License-Identifier: Apache-2.0
/*
 * table_slice - follows a register backward from a jump: through straight code and over
 * direct branches, with a budget. It reports what it cannot see, and never guesses. Called
 * by table.
 */
#include "libprof/cfg/table_slice.h"

#include <errno.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"

#define BUDGET	  1500
#define MAX_SEEN  256
#define MAX_DEPTH 6
/* As many branches are sorted in place. */
#define FEW 8

static uint64_t pred_key(const struct mp_pred *pred)
{
	return (uint64_t)pred->target << 32 | pred->source;
}

int mp_slice_add_pred(struct mp_slice *s, uint32_t target, uint32_t source)
{
	if (target == MP_NONE)
		return 0;
	return mp_push(s->preds, s->nr_preds, s->cap_preds, (struct mp_pred){target, source});
}

/* Sorts few branches in place. */
static void sort_few(struct mp_pred *preds, uint32_t nr)
{
	for (uint32_t i = 1; i < nr; i++) {
		struct mp_pred pred = preds[i];
		uint32_t k = i;

		for (; k && pred_key(&preds[k - 1]) > pred_key(&pred); k--)
			preds[k] = preds[k - 1];
		preds[k] = pred;
	}
}

/* Merges the sorted parts @in[0 .. middle) and @in[middle .. nr) into @out. */
static void merge(const struct mp_pred *in, uint32_t middle, uint32_t nr, struct mp_pred *out)
{
	uint32_t a = 0, b = middle;

	while (a < middle && b < nr) {
		bool second = pred_key(&in[b]) < pred_key(&in[a]);

		*out++ = in[second ? b : a];
		b += second;
		a += !second;
	}
	memcpy(out, in + a, (middle - a) * sizeof(*in));
	memcpy(out + (middle - a), in + b, (nr - b) * sizeof(*in));
}

/* qsort() would take three times as long: it calls a function for each comparison. */
int mp_slice_sort(struct mp_slice *s)
{
	struct mp_pred *from = s->preds, *to;
	uint32_t nr = s->nr_preds;

	for (uint32_t i = 0; i < nr; i += FEW)
		sort_few(from + i, nr - i < FEW ? nr - i : FEW);
	if (nr <= FEW)
		return 0;
	if (mp_grow(s->merged, s->cap_merged, nr + 1))
		return -ENOMEM;
	to = s->merged;
	for (uint64_t run = FEW; run < nr; run *= 2) {
		struct mp_pred *sorted = to;

		for (uint64_t i = 0; i < nr; i += 2 * run) {
			uint32_t left = nr - (uint32_t)i;

			merge(from + i, left < run ? left : (uint32_t)run,
			      left < 2 * run ? left : (uint32_t)(2 * run), to + i);
		}
		to = from;
		from = sorted;
	}
	if (from != s->preds)
		memcpy(s->preds, from, nr * sizeof(*from));
	return 0;
}

int mp_slice_init(struct mp_slice *s, struct mp_cfg_build *b, uint32_t func)
{
	const struct mp_func *f = &b->cfg->funcs[func];

	s->b = b;
	s->func = func;
	s->nr_preds = 0;
	for (uint32_t r = 0; r < f->nr_ranges; r++) {
		const struct mp_part *part = &b->index->parts[b->part_of_range[f->first_range + r]];

		for (uint32_t i = 0; i < part->nr_flows; i++) {
			const struct mp_flow *flow = &b->flows[part->first_flow + i];

			if (flow->kind != MP_INSN_COND && flow->kind != MP_INSN_JUMP &&
			    flow->kind != MP_INSN_LOOP)
				continue;
			if (mp_slice_add_pred(s, flow->target, flow->at))
				return -ENOMEM;
		}
	}
	return mp_slice_sort(s);
}

void mp_slice_fini(struct mp_slice *s)
{
	free(s->preds);
	free(s->merged);
	s->preds = s->merged = NULL;
	s->nr_preds = s->cap_preds = s->cap_merged = 0;
}

uint32_t mp_slice_prev(const struct mp_slice *s, const struct mp_part *part, uint32_t at)
{
	for (uint32_t back = 1; back <= 15 && back <= at - part->at; back++)
		if (mp_bit(s->b->starts, at - back))
			return at - back;
	return MP_NONE;
}

bool mp_slice_falls_into(const struct mp_slice *s, const struct mp_part *part, uint32_t at)
{
	for (;;) {
		uint32_t prev = mp_slice_prev(s, part, at);
		struct mp_op op;

		if (prev == MP_NONE || mp_op_decode(s->b, prev, &op))
			return true;
		if (!op.falls)
			return false;
		if (!op.nop || mp_bit(s->b->index->targets, prev))
			return true;
		at = prev;
	}
}

uint32_t mp_slice_first_pred(const struct mp_slice *s, uint32_t at)
{
	uint32_t lo = mp_search(i, 0, s->nr_preds, s->preds[i].target < at);

	return lo < s->nr_preds && s->preds[lo].target == at ? lo : s->nr_preds;
}

struct search {
	const struct mp_slice *s;
	struct mp_defs *defs;
	uint8_t reg;
	unsigned int budget;
	uint32_t seen[MAX_SEEN];
	unsigned int nr_seen;
};

static bool see(struct search *q, uint32_t at)
{
	for (unsigned int i = 0; i < q->nr_seen; i++)
		if (q->seen[i] == at)
			return false;
	if (q->nr_seen == MAX_SEEN) {
		q->defs->incomplete = true;
		q->defs->argument = false;
		return false;
	}
	q->seen[q->nr_seen++] = at;
	return true;
}

static void incomplete(struct search *q, bool argument)
{
	if (!q->defs->incomplete)
		q->defs->argument = argument;
	else
		q->defs->argument &= argument;
	q->defs->incomplete = true;
}

static void add_def(struct search *q, const struct mp_op *op)
{
	for (unsigned int i = 0; i < q->defs->nr; i++)
		if (q->defs->op[i].at == op->at)
			return;
	if (q->defs->nr == MP_MAX_DEFS) {
		incomplete(q, false);
		return;
	}
	q->defs->op[q->defs->nr++] = *op;
}

static void walk(struct search *q, uint32_t at, unsigned int depth)
{
	const struct mp_slice *s = q->s;
	uint32_t p = mp_part_at(s->b->index, at);
	const struct mp_part *part;

	if (p == MP_NONE || depth > 24) {
		incomplete(q, false);
		return;
	}
	part = &s->b->index->parts[p];
	for (;;) {
		uint32_t prev;
		struct mp_op op;
		bool joined = false;

		if (mp_bit(s->b->index->targets, at)) {
			uint32_t i = mp_slice_first_pred(s, at);

			if (!see(q, at))
				return;
			for (; i < s->nr_preds && s->preds[i].target == at; i++) {
				joined = true;
				walk(q, s->preds[i].source, depth + 1);
			}
			if (joined && !mp_slice_falls_into(s, part, at))
				return;
		}
		prev = mp_slice_prev(s, part, at);
		if (prev == MP_NONE) {
			incomplete(q, s->b->cfg->funcs[s->func].vaddr ==
					      mp_space_vaddr(s->b->index, at));
			return;
		}
		if (!q->budget || mp_op_decode(s->b, prev, &op)) {
			incomplete(q, false);
			return;
		}
		q->budget--;
		if (!op.falls) {
			/* Only a table leads here, or nothing. */
			if (!joined)
				incomplete(q, false);
			return;
		}
		if (op.writes >> q->reg & 1) {
			add_def(q, &op);
			return;
		}
		at = prev;
	}
}

void mp_slice_defs(const struct mp_slice *s, uint32_t at, uint8_t reg, struct mp_defs *defs)
{
	struct search q = {.s = s, .defs = defs, .reg = reg, .budget = BUDGET};

	defs->nr = 0;
	defs->incomplete = defs->argument = false;
	if (reg >= 16)
		defs->incomplete = true;
	else
		walk(&q, at, 0);
}

static void add_value(struct mp_values *values, uint64_t value)
{
	for (unsigned int i = 0; i < values->nr; i++)
		if (values->value[i] == value)
			return;
	if (values->nr == MP_MAX_VALUES)
		values->incomplete = true;
	else
		values->value[values->nr++] = value;
}

static void collect(const struct mp_slice *s, uint32_t at, uint8_t reg, int64_t bias,
		    unsigned int depth, struct mp_values *values)
{
	struct mp_defs *defs;

	if (depth > MAX_DEPTH) {
		values->incomplete = true;
		return;
	}
	defs = malloc(sizeof(*defs));
	if (!defs) {
		values->incomplete = true;
		return;
	}
	mp_slice_defs(s, at, reg, defs);
	values->incomplete |= defs->incomplete;
	for (unsigned int i = 0; i < defs->nr; i++) {
		const struct mp_op *op = &defs->op[i];

		switch (op->dst == reg ? op->kind : MP_OP_OTHER) {
		case MP_OP_CONST: add_value(values, (uint64_t)(op->value + bias)); break;
		case MP_OP_COPY: collect(s, op->at, op->src, bias, depth + 1, values); break;
		case MP_OP_CMOV:
			collect(s, op->at, op->src, bias, depth + 1, values);
			collect(s, op->at, op->dst, bias, depth + 1, values);
			break;
		case MP_OP_ADD_IMM:
			collect(s, op->at, reg, bias + op->value, depth + 1, values);
			break;
		case MP_OP_LEA:
			if (op->index == MP_NO_REG && op->base != MP_NO_REG)
				collect(s, op->at, op->base, bias + op->disp, depth + 1, values);
			else
				values->incomplete = true;
			break;
		default: values->incomplete = true; break;
		}
	}
	free(defs);
}

void mp_slice_values(const struct mp_slice *s, uint32_t at, uint8_t reg, struct mp_values *values)
{
	values->nr = 0;
	values->incomplete = false;
	if (reg >= 16)
		values->incomplete = true;
	else
		collect(s, at, reg, 0, 0, values);
}
