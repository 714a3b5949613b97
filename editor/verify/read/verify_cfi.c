// SPDX-License-Identifier: Apache-2.0
/*
 * verify_cfi - runs an FDE's program and gives rows: each register's rule from an address on.
 *
 * Morph has its own interpreter for two reasons: it also knows DW_CFA_GNU_args_size, which
 * libdw ignores and the C++ runtime needs; and a pass over a whole FDE costs what libdw spends
 * on one address. The tests compare its rows with libdw's. Called by verify_unwind and
 * verify_free_registers.
 */
#include <dwarf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_cfi.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

#define VF_STACK_MAX 16
/* More rows than any function has. They limit what a hostile file costs. */
#define VF_ROWS_MAX (1u << 18)

#define PC 16 /* the return address's column, which holds the program counter in the frame itself */

struct machine {
	struct vf_cursor c;
	const struct vf_cie *cie;
	const struct vf_row *initial; /* NULL while the CIE's own program runs */
	bool expressions;	      /* some rule was one */
	bool names_pc;		      /* some register has the program counter's value */
	struct vf_row row;
	struct vf_row *stack;
	unsigned int depth;
	struct vf_rows *rows; /* NULL while the CIE's program runs */
	/*
	 * An output of Morph: only steps that all unwinders read alike, in their shortest form. In each row, they
	 * follow one another in the order CFA, registers, argument size; each occurs once and changes something.
	 */
	bool terse;
	uint8_t order; /* of the next step in this row, at least; 0: the row has none yet */
	uint64_t end;  /* no row of a terse program begins here or behind */
	uint8_t fde_enc;
};

enum {
	ORDER_CFA = 0,
	ORDER_REGISTERS = 1,
	ORDER_ARGS_SIZE = ORDER_REGISTERS + VF_NR_REGS,
};

/* A step of @order: there is none behind it in this row. */
static void take_turn(struct machine *m, unsigned int order)
{
	m->c.bad |= m->terse && order < m->order;
	m->order = (uint8_t)(order + 1);
}

/* A factored offset. libgcc calculates with 64 bits, others need not. */
static int64_t scaled(struct machine *m, int64_t n)
{
	int64_t off = 0;

	m->c.bad |= __builtin_mul_overflow(n, m->cie->data_align, &off);
	return off;
}

static int64_t read_unsigned(struct machine *m)
{
	uint64_t n = vf_cursor_uleb(&m->c);

	m->c.bad |= n > INT64_MAX;
	return (int64_t)n;
}

/* A number with a sign, which a terse program has only where it needs one. */
static int64_t read_signed(struct machine *m)
{
	int64_t n = vf_cursor_sleb(&m->c);

	m->c.bad |= m->terse && n >= 0;
	return n;
}

static struct vf_rule *rule(struct machine *m, uint64_t reg)
{
	static _Thread_local struct vf_rule sink;

	if (reg < VF_NR_REGS)
		return &m->row.reg[reg];
	m->c.bad = true;
	return &sink;
}

static int rows_push(struct vf_rows *rows, const struct vf_row *row)
{
	if (rows->nr == VF_ROWS_MAX)
		return -EBADMSG;
	if (mp_push(rows->row, rows->nr, rows->cap, *row))
		return -ENOMEM;
	/*
	 * LLVM's unwinder reads register 0 as "none", and libgcc has no place for vector registers. The program counter
	 * is another one in a copy.
	 */
	rows->ambiguous |= row->cfa.kind != VF_RULE_EXPR && (!row->cfa_reg || row->cfa_reg >= PC);
	return 0;
}

/* @least: the smallest distance that needs this form of the step. */
static int advance(struct machine *m, uint64_t to, uint64_t least)
{
	int ret = 0;

	/* Only the first row of a terse program may be the CIE's. */
	if (!m->rows || to < m->row.loc ||
	    (m->terse && (to - m->row.loc < least || to >= m->end || (m->rows->nr && !m->order)))) {
		m->c.bad = true;
		return 0;
	}
	if (to > m->row.loc)
		ret = rows_push(m->rows, &m->row);
	m->row.loc = to;
	m->order = 0;
	return ret;
}

static bool rule_equal(const struct vf_rule *a, const struct vf_rule *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == VF_RULE_EXPR || a->kind == VF_RULE_VAL_EXPR)
		return a->len == b->len && !memcmp(a->expr, b->expr, a->len);
	return a->off == b->off;
}

static void set_rule(struct machine *m, struct vf_rule *r, struct vf_rule to)
{
	if (m->terse && !m->c.bad)
		m->c.bad = rule_equal(r, &to);
	*r = to;
}

static void set_register(struct machine *m, uint64_t reg, struct vf_rule to)
{
	struct vf_rule *r = rule(m, reg);

	if (reg < VF_NR_REGS)
		take_turn(m, ORDER_REGISTERS + (unsigned int)reg);
	set_rule(m, r, to);
}

static void set_off(struct machine *m, uint64_t reg, uint8_t kind, int64_t off)
{
	set_register(m, reg, (struct vf_rule){.kind = kind, .off = off});
}

static struct vf_rule read_expr(struct machine *m, uint8_t kind)
{
	uint64_t len = vf_cursor_uleb(&m->c);
	struct vf_rule r = {.kind = kind};

	r.expr = vf_cursor_skip(&m->c, len);
	r.len = (uint32_t)len;
	m->expressions = true;
	return r;
}

/* libgcc forgets the register's rule; other unwinders return to the CIE's. */
static void restore_initial(struct machine *m, uint64_t reg)
{
	if (!m->initial || reg >= VF_NR_REGS) {
		m->c.bad = true;
		return;
	}
	m->rows->ambiguous |= m->initial->reg[reg].kind != VF_RULE_DEFAULT;
	set_register(m, reg, m->initial->reg[reg]);
}

/*
 * A step that sets the rule of one register. The register is read into a variable first: C does
 * not define the order in which arguments are evaluated.
 */
static void step_register(struct machine *m, uint8_t op)
{
	uint64_t reg = vf_cursor_uleb(&m->c), from;

	switch (op) {
	case DW_CFA_offset_extended:
		set_off(m, reg, VF_RULE_OFFSET, scaled(m, read_unsigned(m)));
		return;
	case DW_CFA_offset_extended_sf:
		set_off(m, reg, VF_RULE_OFFSET, scaled(m, read_signed(m)));
		return;
	case DW_CFA_GNU_negative_offset_extended: /* libunwind does not multiply it */
		if (m->rows)
			m->rows->ambiguous = true;
		set_off(m, reg, VF_RULE_OFFSET, scaled(m, -read_unsigned(m)));
		return;
	case DW_CFA_val_offset:
		set_off(m, reg, VF_RULE_VAL_OFFSET, scaled(m, read_unsigned(m)));
		return;
	case DW_CFA_val_offset_sf:
		set_off(m, reg, VF_RULE_VAL_OFFSET, scaled(m, read_signed(m)));
		return;
	case DW_CFA_register:
		from = vf_cursor_uleb(&m->c);
		m->names_pc |= from == PC;
		set_off(m, reg, VF_RULE_REGISTER, (int64_t)from);
		return;
	case DW_CFA_restore_extended: restore_initial(m, reg); return;
	case DW_CFA_undefined: set_off(m, reg, VF_RULE_UNDEFINED, 0); return;
	case DW_CFA_same_value: set_off(m, reg, VF_RULE_SAME, 0); return;
	case DW_CFA_expression: set_register(m, reg, read_expr(m, VF_RULE_EXPR)); return;
	default: set_register(m, reg, read_expr(m, VF_RULE_VAL_EXPR));
	}
}

/* A step that sets the rule of the CFA. */
static void step_cfa(struct machine *m, uint8_t op)
{
	const struct vf_rule was = m->row.cfa;
	const uint64_t was_reg = m->row.cfa_reg;
	struct vf_rule *cfa = &m->row.cfa;

	take_turn(m, ORDER_CFA);
	switch (op) {
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
		m->row.cfa_reg = vf_cursor_uleb(&m->c);
		*cfa = (struct vf_rule){.kind = VF_RULE_OFFSET};
		break;
	case DW_CFA_def_cfa_register: m->row.cfa_reg = vf_cursor_uleb(&m->c); break;
	case DW_CFA_def_cfa_expression:
		*cfa = read_expr(m, VF_RULE_EXPR);
		m->row.cfa_reg = 0;
		break;
	default: break;
	}
	if (op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_offset)
		cfa->off = read_unsigned(m);
	else if (op == DW_CFA_def_cfa_sf || op == DW_CFA_def_cfa_offset_sf)
		cfa->off = scaled(m, read_signed(m));
	m->c.bad |= op != DW_CFA_def_cfa_expression && cfa->kind != VF_RULE_OFFSET;
	if (m->terse && !m->c.bad)
		m->c.bad = was_reg == m->row.cfa_reg && rule_equal(&was, cfa);
	/* A change of one half has a shorter form. */
	if (m->terse && op == DW_CFA_def_cfa && was.kind == VF_RULE_OFFSET)
		m->c.bad |= was_reg == m->row.cfa_reg || was.off == cfa->off;
}

static void set_args_size(struct machine *m, uint64_t size)
{
	take_turn(m, ORDER_ARGS_SIZE);
	m->c.bad |= m->terse && size == m->row.args_size;
	m->row.args_size = size;
}

static void remember_state(struct machine *m)
{
	if (m->depth == VF_STACK_MAX)
		m->c.bad = true;
	else
		m->stack[m->depth++] = m->row;
}

/* For libgcc, address and size of arguments are not part of the state; for LLVM's unwinder the size is. */
static void restore_state(struct machine *m)
{
	uint64_t loc = m->row.loc, args_size = m->row.args_size;

	if (!m->depth) {
		m->c.bad = true;
		return;
	}
	m->row = m->stack[--m->depth];
	if (m->rows)
		m->rows->ambiguous |= m->row.args_size != args_size;
	m->row.loc = loc;
	m->row.args_size = args_size;
}

static int set_loc(struct machine *m)
{
	uint64_t to = vf_cursor_encoded(&m->c, m->fde_enc);

	if (m->rows)
		m->rows->ambiguous = true; /* LLVM's unwinder takes the address for a distance */
	return advance(m, to, 0);
}

/* The forms of steps that a terse program has. */
static bool is_plain(uint8_t op)
{
	switch (op) {
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
	case DW_CFA_expression:
	case DW_CFA_val_expression:
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_expression:
	case DW_CFA_GNU_args_size: return true;
	default: return false;
	}
}

static int step_extended(struct machine *m, uint8_t op)
{
	uint64_t at = m->row.loc, ca = m->cie->code_align;

	if (m->terse && !is_plain(op)) {
		m->c.bad = true;
		return 0;
	}
	switch (op) {
	case DW_CFA_nop: return 0;
	case DW_CFA_set_loc: return set_loc(m);
	case DW_CFA_advance_loc1: return advance(m, at + vf_cursor_fixed(&m->c, 1) * ca, 0x40);
	case DW_CFA_advance_loc2: return advance(m, at + vf_cursor_fixed(&m->c, 2) * ca, 0x100);
	case DW_CFA_advance_loc4: return advance(m, at + vf_cursor_fixed(&m->c, 4) * ca, 0x10000);
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
	case DW_CFA_expression:
	case DW_CFA_val_expression: step_register(m, op); return 0;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression: step_cfa(m, op); return 0;
	case DW_CFA_remember_state: remember_state(m); return 0;
	case DW_CFA_restore_state: restore_state(m); return 0;
	case DW_CFA_GNU_args_size: set_args_size(m, vf_cursor_uleb(&m->c)); return 0;
	default: m->c.bad = true; return 0;
	}
}

/* No-ops end a terse program, as many as its entry needs to be a multiple of four bytes long. */
static bool is_last_padding(const struct vf_cursor *c)
{
	if (c->end - c->p >= 4)
		return false;
	for (const uint8_t *p = c->p; p < c->end; p++)
		if (*p)
			return false;
	return true;
}

static int run(struct machine *m, const uint8_t *insns, uint32_t len, uint64_t vaddr)
{
	int ret = 0;

	m->c = (struct vf_cursor){
		.p = insns, .end = insns + len, .vaddr = vaddr, .terse = m->terse};
	while (!ret && !m->c.bad && m->c.p < m->c.end) {
		uint8_t op = *m->c.p;

		if (m->terse && op == DW_CFA_nop && is_last_padding(&m->c))
			break;
		vf_cursor_skip(&m->c, 1);
		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			ret = advance(m, m->row.loc + (op & 63) * m->cie->code_align, 1);
			break;
		case DW_CFA_offset:
			set_off(m, op & 63, VF_RULE_OFFSET, scaled(m, read_unsigned(m)));
			break;
		case DW_CFA_restore: restore_initial(m, op & 63); break;
		default: ret = step_extended(m, op);
		}
	}
	if (!ret && (m->c.bad || (m->terse && m->rows->nr && !m->order)))
		ret = -EBADMSG;
	return ret;
}

int vf_rows_build(const struct vf_eh *eh, const struct vf_fde *fde, struct vf_rows *rows)
{
	const struct vf_cie *cie = &eh->cies[fde->cie];
	struct machine m = {.cie = cie, .fde_enc = cie->fde_enc};
	struct vf_row initial;
	int ret;

	rows->nr = 0;
	rows->ambiguous = rows->expressions = false;
	m.stack = malloc(VF_STACK_MAX * sizeof(*m.stack));
	if (!m.stack)
		return -ENOMEM;
	ret = run(&m, cie->insns, cie->insns_len, 0);
	if (ret)
		goto out;
	initial = m.row;
	m.initial = &initial;
	m.depth = 0; /* no state of the CIE's program is left for this one */
	m.order = 0;
	m.rows = rows;
	m.terse = eh->strict && fde->start >= eh->new_start;
	m.end = fde->start + fde->size;
	m.row.loc = fde->start;
	ret = run(&m, fde->insns, fde->insns_len, fde->insns_vaddr);
	if (!ret)
		ret = rows_push(rows, &m.row);
	rows->expressions = m.expressions;
	rows->ambiguous |= m.names_pc;
out:
	free(m.stack);
	return ret;
}

const struct vf_row *vf_rows_at(const struct vf_rows *rows, uint64_t vaddr)
{
	uint32_t behind = mp_search(i, 0, rows->nr, rows->row[i].loc <= vaddr);

	return behind ? &rows->row[behind - 1] : NULL;
}

bool vf_row_equal(const struct vf_row *a, const struct vf_row *b)
{
	/* Equal rows nearly always have equal bytes; if not, only unused bytes may differ. */
	if (!memcmp(&a->cfa, &b->cfa, sizeof(*a) - offsetof(struct vf_row, cfa)))
		return true;
	if (a->cfa_reg != b->cfa_reg || a->args_size != b->args_size ||
	    !rule_equal(&a->cfa, &b->cfa))
		return false;
	for (int i = 0; i < VF_NR_REGS; i++)
		if (!rule_equal(&a->reg[i], &b->reg[i]))
			return false;
	return true;
}

/* Skip an operation. Return: false: it reads the program counter, jumps, or is not known. */
static bool skip_plain(struct vf_cursor *c)
{
	uint8_t op = (uint8_t)vf_cursor_fixed(c, 1);

	switch (op) {
	case DW_OP_deref:
	case DW_OP_dup ... DW_OP_over:
	case DW_OP_swap ... DW_OP_rot:
	case DW_OP_abs ... DW_OP_plus:
	case DW_OP_shl ... DW_OP_xor:
	case DW_OP_eq ... DW_OP_ne:
	case DW_OP_lit0 ... DW_OP_lit31:
	case DW_OP_nop: return true;
	case DW_OP_pick:
	case DW_OP_deref_size: vf_cursor_skip(c, 1); return true;
	case DW_OP_const1u ... DW_OP_const8s:
		vf_cursor_skip(c, 1u << (op - DW_OP_const1u) / 2);
		return true;
	case DW_OP_constu:
	case DW_OP_plus_uconst: vf_cursor_uleb(c); return true;
	case DW_OP_consts:
	case DW_OP_breg0 ... DW_OP_breg15: vf_cursor_sleb(c); return true;
	default: return false;
	}
}

/*
 * An expression that reads the program counter gives another value in the copy. If the
 * expression jumps, any byte that looks like such an operation counts.
 */
static bool expression_reads_pc(const struct vf_rule *r)
{
	struct vf_cursor c = {.p = r->expr, .end = r->expr + r->len};

	while (!c.bad && c.p < c.end)
		if (!skip_plain(&c))
			c.bad = true;
	if (!c.bad)
		return false;
	for (uint32_t i = 0; i < r->len; i++)
		if (r->expr[i] == DW_OP_breg16 || r->expr[i] == DW_OP_bregx ||
		    r->expr[i] == DW_OP_reg16 || r->expr[i] == DW_OP_regx ||
		    (i == 0 && r->expr[i] == DW_OP_addr))
			return true;
	return false;
}

/* Inline, because hardly any rule is an expression. */
static inline bool reads_pc(const struct vf_rule *r)
{
	return (r->kind == VF_RULE_EXPR || r->kind == VF_RULE_VAL_EXPR) && expression_reads_pc(r);
}

bool vf_row_reads_pc(const struct vf_row *row)
{
	bool reads = reads_pc(&row->cfa);

	for (int i = 0; !reads && i < VF_NR_REGS; i++)
		reads = reads_pc(&row->reg[i]);
	return reads;
}
