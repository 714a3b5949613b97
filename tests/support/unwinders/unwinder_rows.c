// SPDX-License-Identifier: Apache-2.0
/*
 * unwinder_rows - runs the programs of a CIE and an FDE, each step as one of the unwinders is known to take it.
 *
 * Where they differ:
 * - restore: libgcc forgets the register's rule, the others return to the CIE's.
 * - same_value: for libgcc and LLVM the same as no rule.
 * - Registers: libgcc knows 18 columns and passes over others; the older libunwind knows 17 and gives up.
 * - The size of arguments: gdb does not know it; LLVM remembers and restores it with the state.
 * - A state that nobody remembered: libgcc reads through a null pointer, libunwinds give up, gdb goes on.
 * - After an expression for the CFA, LLVM takes register 0 to be no register.
 */
#include <stdlib.h>

#include "tests/support/unwinders/unwinder_bytes.h"
#include "tests/support/unwinders/unwinders.h"

#define STATES_MAX 256

struct machine {
	enum unwinder who;
	struct bytes b;
	struct found_row row, initial;
	const struct found_row *restored; /* NULL: the CIE's program runs */
	struct found_row *states;
	unsigned int nr_states, first_state;
	uint64_t code_align, *loc;
	int64_t data_align;
	struct found_frame *frame;
	const char *dies;
};

static void push(struct machine *m)
{
	struct found_frame *frame = m->frame;

	if (frame->nr == frame->cap) {
		frame->cap = frame->cap ? 2 * frame->cap : 16;
		frame->rows = reallocarray(frame->rows, frame->cap, sizeof(*frame->rows));
		if (!frame->rows)
			abort();
	}
	frame->rows[frame->nr++] = m->row;
}

static void advance(struct machine *m, uint64_t delta)
{
	uint64_t to = m->row.loc + delta * m->code_align;

	if (to < m->row.loc) {
		m->dies = "the location goes back";
		return;
	}
	if (to > m->row.loc && m->restored)
		push(m);
	m->row.loc = to;
}

/* The register's place in the row; NULL: the unwinder passes over it. */
static struct found_rule *column(struct machine *m, uint64_t reg)
{
	static const uint64_t limits[NR_UNWINDERS] = {18, UNWINDER_REGS, 17, UNWINDER_REGS};

	if (reg < limits[m->who])
		return &m->row.reg[reg];
	if (m->who == UNWINDER_LLVM || m->who == UNWINDER_NONGNU)
		m->dies = "a register without a number";
	return NULL;
}

static void set(struct machine *m, uint64_t reg, enum found_how how, int64_t off)
{
	struct found_rule *r = column(m, reg);

	if (r)
		*r = (struct found_rule){.how = (uint8_t)how, .off = off};
}

static void set_expr(struct machine *m, uint64_t reg, enum found_how how)
{
	struct found_rule *r = column(m, reg);
	uint64_t size = bytes_uleb(&m->b);

	if (r)
		*r = (struct found_rule){.how = (uint8_t)how, .expr = m->b.p, .size = size};
	bytes_skip(&m->b, size);
}

static void restore(struct machine *m, uint64_t reg)
{
	struct found_rule *r = column(m, reg);

	if (!r)
		return;
	if (m->who == UNWINDER_LIBGCC)
		*r = (struct found_rule){0};
	else if (m->restored)
		*r = m->restored->reg[reg];
	else
		m->dies = "the CIE restores a register";
}

/* A program begins without states; a libunwind has those of the CIE's program, but these differ in it. */
static void restore_state(struct machine *m)
{
	uint64_t loc = m->row.loc, args_size = m->row.args_size;

	if (m->nr_states == m->first_state) {
		if (m->who != UNWINDER_GDB)
			m->dies = "a state that nobody remembered";
		return;
	}
	m->row = m->states[--m->nr_states];
	m->row.loc = loc;
	if (m->who != UNWINDER_LLVM)
		m->row.args_size = args_size;
}

static void remember_state(struct machine *m)
{
	if (m->nr_states == STATES_MAX)
		m->dies = "too many states for this model";
	else
		m->states[m->nr_states++] = m->row;
}

/* The CFA's register. Its offset stays, and after an expression LLVM still has that if this is register 0. */
static void base_cfa(struct machine *m, uint64_t reg)
{
	struct found_rule *cfa = &m->row.cfa;

	cfa->reg = reg;
	if (m->who == UNWINDER_LLVM && !reg)
		return;
	cfa->how = FOUND_REGISTER;
	cfa->expr = NULL;
	cfa->size = 0;
	if (m->who == UNWINDER_LIBGCC && reg >= 18)
		m->dies = "the CFA in a register without a column";
}

static int64_t factored(struct machine *m, uint64_t n)
{
	return (int64_t)(n * (uint64_t)m->data_align);
}

static void step_cfa(struct machine *m, uint8_t op)
{
	uint64_t size;

	switch (op) {
	case 0x0c: /* def_cfa */
		base_cfa(m, bytes_uleb(&m->b));
		m->row.cfa.off = (int64_t)bytes_uleb(&m->b);
		break;
	case 0x12: /* def_cfa_sf */
		base_cfa(m, bytes_uleb(&m->b));
		m->row.cfa.off = factored(m, (uint64_t)bytes_sleb(&m->b));
		break;
	case 0x0d: base_cfa(m, bytes_uleb(&m->b)); break;
	case 0x0e: m->row.cfa.off = (int64_t)bytes_uleb(&m->b); break;
	case 0x13: m->row.cfa.off = factored(m, (uint64_t)bytes_sleb(&m->b)); break;
	default: /* def_cfa_expression: the offset stays, unused */
		size = bytes_uleb(&m->b);
		m->row.cfa = (struct found_rule){
			.how = FOUND_EXPR_IS, .off = m->row.cfa.off, .expr = m->b.p, .size = size};
		bytes_skip(&m->b, size);
	}
}

static void step_register(struct machine *m, uint8_t op)
{
	uint64_t reg = bytes_uleb(&m->b), n;

	switch (op) {
	case 0x05: set(m, reg, FOUND_AT, factored(m, bytes_uleb(&m->b))); break;
	case 0x06: restore(m, reg); break;
	case 0x07: set(m, reg, FOUND_UNDEFINED, 0); break;
	case 0x08:
		set(m, reg,
		    m->who == UNWINDER_LIBGCC || m->who == UNWINDER_LLVM ? FOUND_DEFAULT
									 : FOUND_SAME,
		    0);
		break;
	case 0x09: set(m, reg, FOUND_REGISTER, (int64_t)bytes_uleb(&m->b)); break;
	case 0x10: set_expr(m, reg, FOUND_EXPR_AT); break;
	case 0x11: set(m, reg, FOUND_AT, factored(m, (uint64_t)bytes_sleb(&m->b))); break;
	case 0x14: set(m, reg, FOUND_IS, factored(m, bytes_uleb(&m->b))); break;
	case 0x15: set(m, reg, FOUND_IS, factored(m, (uint64_t)bytes_sleb(&m->b))); break;
	case 0x16: set_expr(m, reg, FOUND_EXPR_IS); break;
	default: /* GNU_negative_offset_extended, which the older libunwind does not multiply */
		n = bytes_uleb(&m->b);
		set(m, reg, FOUND_AT, m->who == UNWINDER_NONGNU ? -(int64_t)n : -factored(m, n));
	}
}

static void step(struct machine *m)
{
	uint8_t op = bytes_u8(&m->b);

	switch (op & 0xc0) {
	case 0x40: advance(m, op & 0x3f); return;
	case 0x80: set(m, op & 0x3f, FOUND_AT, factored(m, bytes_uleb(&m->b))); return;
	case 0xc0: restore(m, op & 0x3f); return;
	}
	switch (op) {
	case 0x00: break;
	case 0x02: advance(m, bytes_u8(&m->b)); break;
	case 0x03: advance(m, bytes_fixed(&m->b, 2)); break;
	case 0x04: advance(m, bytes_u32(&m->b)); break;
	case 0x05 ... 0x09:
	case 0x10:
	case 0x11:
	case 0x14 ... 0x16:
	case 0x2f: step_register(m, op); break;
	case 0x0a: remember_state(m); break;
	case 0x0b: restore_state(m); break;
	case 0x0c ... 0x0f:
	case 0x12:
	case 0x13: step_cfa(m, op); break;
	case 0x2e:
		m->row.args_size = bytes_uleb(&m->b);
		if (m->who == UNWINDER_GDB)
			m->row.args_size = 0;
		break;
	default: m->dies = op == 0x01 ? "a location that is set" : "an unknown operation";
	}
}

static void run(struct machine *m, const uint8_t *program, uint64_t size)
{
	m->b = (struct bytes){.p = program, .end = program + size};
	while (m->b.p < m->b.end && !m->dies) {
		step(m);
		if (m->b.bad)
			m->dies = "an operation that is cut off";
	}
}

void unwinder_run(enum unwinder who, const uint8_t *cie, uint64_t cie_size, const uint8_t *fde,
		  uint64_t fde_size, uint64_t code_align, int64_t data_align,
		  struct found_frame *frame)
{
	struct machine m = {
		.who = who, .code_align = code_align, .data_align = data_align, .frame = frame};

	frame->nr = 0;
	frame->dies = NULL;
	m.states = calloc(STATES_MAX, sizeof(*m.states));
	if (!m.states)
		abort();
	m.row.loc = frame->start;
	run(&m, cie, cie_size);
	m.initial = m.row;
	m.restored = &m.initial;
	/* libgcc and gdb drop states at the border; that the others keep them must not matter. */
	if (!m.dies && m.nr_states && (who == UNWINDER_LIBGCC || who == UNWINDER_GDB))
		m.first_state = m.nr_states;
	if (!m.dies)
		run(&m, fde, fde_size);
	if (!m.dies)
		push(&m);
	if (!m.dies && m.row.loc != frame->start && m.row.loc - frame->start > INT64_MAX)
		m.dies = "a location outside of the code";
	frame->dies = m.dies;
	free(m.states);
}

const struct found_row *found_row_at(const struct found_frame *frame, uint64_t vaddr)
{
	uint32_t lo = 0, hi = frame->nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (frame->rows[mid].loc <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && !frame->dies ? &frame->rows[lo - 1] : NULL;
}

static bool rules_equal(const struct found_rule *a, const struct found_rule *b)
{
	if (a->how != b->how || a->reg != b->reg || a->size != b->size ||
	    (a->size && memcmp(a->expr, b->expr, a->size)))
		return false;
	return a->size || a->off == b->off;
}

bool found_rows_equal(const struct found_row *a, const struct found_row *b)
{
	for (int i = 0; i < UNWINDER_REGS; i++)
		if (!rules_equal(&a->reg[i], &b->reg[i]))
			return false;
	return rules_equal(&a->cfa, &b->cfa) && a->args_size == b->args_size;
}

bool found_rows_agree(const struct found_row *a, const struct found_row *b)
{
	for (int i = 0; i < 17; i++) {
		struct found_rule x = a->reg[i], y = b->reg[i];

		if (i != 7) { /* the stack pointer is the CFA only where there is no rule */
			x.how = x.how == FOUND_SAME ? FOUND_DEFAULT : x.how;
			y.how = y.how == FOUND_SAME ? FOUND_DEFAULT : y.how;
		}
		if (!rules_equal(&x, &y))
			return false;
	}
	return rules_equal(&a->cfa, &b->cfa);
}
