// SPDX-License-Identifier: Apache-2.0
/*
 * cfi - runs call-frame programs. Stricter than unwinders: refuses operations that
 * unwinders read differently, and operations whose result a copy of the code would change.
 */
#include "libprof/unwind/cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"
#include "libprof/unwind/cfi_ops.h"

#define RSP	       7
#define RETURN_ADDRESS 16
#define MAX_STATES     64	  /* depth of DW_CFA_remember_state; compilers use one */
#define MAX_LINES      (1u << 18) /* limits a hostile FDE to 20 MiB of rows */

_Static_assert(sizeof(struct mp_cfi_row) == 8 + 2 * (1 + MP_CFI_NR_REGS + 2), "padding");

struct machine {
	struct mp_cfi_rules *rules;
	const struct mp_eh_cie *cie;
	struct mp_cfi_row row;
	struct mp_cfi_row states[MAX_STATES];
	unsigned int nr_states;
	bool has_initial;
	struct mp_cfi_row initial;
	struct mp_cursor cur;
	int error; /* the first error */
};

static void fail(struct machine *m, int error)
{
	if (!m->error)
		m->error = error;
}

int mp_cfi_rules_init(struct mp_cfi_rules *rules)
{
	*rules = (struct mp_cfi_rules){.cap = 64, .hash_size = 256, .nr = 1};
	rules->rules = calloc(rules->cap, sizeof(*rules->rules));
	rules->hash = calloc(rules->hash_size, sizeof(*rules->hash));
	if (!rules->rules || !rules->hash) {
		mp_cfi_rules_fini(rules);
		return -ENOMEM;
	}
	return 0;
}

void mp_cfi_rules_fini(struct mp_cfi_rules *rules)
{
	free(rules->rules);
	free(rules->hash);
	*rules = (struct mp_cfi_rules){0};
}

static bool same_rule(const struct mp_cfi_rule *a, const struct mp_cfi_rule *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->off == b->off &&
	       a->expr_size == b->expr_size &&
	       (!a->expr_size || !memcmp(a->expr, b->expr, a->expr_size));
}

static uint32_t hash_rule(const struct mp_cfi_rule *rule)
{
	uint64_t h = rule->kind * 31u + rule->reg;

	h = h * 0x9e3779b97f4a7c15ull + (uint64_t)rule->off;
	for (uint32_t i = 0; i < rule->expr_size; i++)
		h = h * 0x100000001b3ull + rule->expr[i];
	h *= 0x9e3779b97f4a7c15ull;
	return (uint32_t)(h >> 32);
}

static void insert_hash(struct mp_cfi_rules *rules, uint32_t nr)
{
	uint32_t mask = rules->hash_size - 1, i = hash_rule(&rules->rules[nr]) & mask;

	while (rules->hash[i])
		i = (i + 1) & mask;
	rules->hash[i] = nr + 1;
}

static int grow_rules(struct mp_cfi_rules *rules)
{
	struct mp_cfi_rule *grown;
	uint32_t *hash;

	if (rules->cap >= UINT16_MAX)
		return -EOPNOTSUPP;
	grown = reallocarray(rules->rules, rules->cap * 2, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	rules->rules = grown;
	hash = calloc(rules->hash_size * 2, sizeof(*hash));
	if (!hash)
		return -ENOMEM;
	free(rules->hash);
	rules->hash = hash;
	rules->cap *= 2;
	rules->hash_size *= 2;
	for (uint32_t i = 1; i < rules->nr; i++)
		insert_hash(rules, i);
	return 0;
}

static uint16_t rule_number(struct machine *m, const struct mp_cfi_rule *rule)
{
	struct mp_cfi_rules *rules = m->rules;
	uint32_t mask = rules->hash_size - 1;
	int ret;

	for (uint32_t i = hash_rule(rule) & mask; rules->hash[i]; i = (i + 1) & mask) {
		if (same_rule(&rules->rules[rules->hash[i] - 1], rule))
			return (uint16_t)(rules->hash[i] - 1);
	}
	if (rules->nr == rules->cap) {
		ret = grow_rules(rules);
		if (ret) {
			fail(m, ret);
			return 0;
		}
	}
	rules->rules[rules->nr] = *rule;
	insert_hash(rules, rules->nr);
	return (uint16_t)rules->nr++;
}

static uint64_t read_register(struct machine *m)
{
	uint64_t reg = mp_cursor_uleb(&m->cur);

	if (reg >= MP_CFI_NR_REGS) {
		fail(m, -EOPNOTSUPP);
		return 0;
	}
	return reg;
}

static int64_t factored(struct machine *m, int64_t n)
{
	int64_t v;

	if (__builtin_mul_overflow(n, m->cie->data_align, &v)) {
		fail(m, -EOPNOTSUPP);
		return 0;
	}
	return v;
}

static int64_t read_unsigned(struct machine *m)
{
	uint64_t v = mp_cursor_uleb(&m->cur);

	if (v > INT64_MAX) {
		fail(m, -EOPNOTSUPP);
		return 0;
	}
	return (int64_t)v;
}

/*
 * True if the expression reads only registers and memory: its value then does not
 * depend on where the code lies. @may_read_pc: it may read the program counter, too.
 */
static bool expression_may_move(const uint8_t *expr, uint32_t size, bool may_read_pc)
{
	struct mp_cursor cur = {.p = expr, .end = expr + size};

	while (cur.p < cur.end && !cur.bad) {
		uint8_t op = mp_cursor_u8(&cur);

		switch (op) {
		case 0x06:	    /* deref */
		case 0x12 ... 0x14: /* dup drop over */
		case 0x16 ... 0x17: /* swap rot */
		case 0x19 ... 0x22: /* abs to plus */
		case 0x24 ... 0x27: /* shl shr shra xor */
		case 0x29 ... 0x2e: /* eq to ne */
		case 0x30 ... 0x4f: /* lit0 to lit31 */
		case 0x96: break;   /* nop */
		case 0x08:	    /* const1u const1s, pick, deref_size */
		case 0x09:
		case 0x15:
		case 0x94: mp_cursor_skip(&cur, 1); break;
		case 0x0a: /* const2u const2s, bra, skip */
		case 0x0b:
		case 0x28:
		case 0x2f: mp_cursor_skip(&cur, 2); break;
		case 0x0c: /* const4u const4s */
		case 0x0d: mp_cursor_skip(&cur, 4); break;
		case 0x0e: /* const8u const8s */
		case 0x0f: mp_cursor_skip(&cur, 8); break;
		case 0x10: /* constu, plus_uconst */
		case 0x23: mp_cursor_uleb(&cur); break;
		case 0x11:	    /* consts */
		case 0x70 ... 0x7f: /* breg0 to breg15: not the return address */
			mp_cursor_sleb(&cur);
			break;
		case 0x80: /* breg16: the return address column, that is the program counter */
			if (!may_read_pc)
				return false;
			mp_cursor_sleb(&cur);
			break;
		default: return false;
		}
	}
	return !cur.bad;
}

static void read_expression(struct machine *m, struct mp_cfi_rule *rule)
{
	uint64_t size = mp_cursor_uleb(&m->cur);

	rule->expr = m->cur.p;
	mp_cursor_skip(&m->cur, size);
	if (m->cur.bad || size > UINT32_MAX ||
	    !expression_may_move(rule->expr, (uint32_t)size, m->rules->for_walking)) {
		fail(m, -EOPNOTSUPP);
		return;
	}
	rule->expr_size = (uint32_t)size;
}

static void set_register(struct machine *m, uint64_t reg, enum mp_cfi_kind kind, int64_t off)
{
	struct mp_cfi_rule rule = {.kind = (uint8_t)kind, .off = off};

	m->row.regs[reg] = rule_number(m, &rule);
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t off)
{
	struct mp_cfi_rule rule = {.kind = MP_CFI_OFFSET, .reg = (uint16_t)reg, .off = off};

	/* LLVM's unwinder reads register 0 as "none", and libgcc has no place for vector registers. */
	if (!m->rules->for_walking && (!reg || reg > RETURN_ADDRESS))
		fail(m, -EOPNOTSUPP);
	m->row.cfa = rule_number(m, &rule);
}

/*
 * The CFA's rule, for operations that change only register or offset. Refused after an
 * expression: unwinders disagree about the result.
 */
static struct mp_cfi_rule current_cfa(struct machine *m)
{
	struct mp_cfi_rule rule = m->rules->rules[m->row.cfa];

	if (rule.kind != MP_CFI_OFFSET)
		fail(m, -EOPNOTSUPP);
	return rule;
}

static void restore_register(struct machine *m, uint64_t reg)
{
	/*
	 * libgcc drops the rule, other unwinders restore the CIE's: equal only if the
	 * CIE has none.
	 */
	if (reg >= MP_CFI_NR_REGS || !m->has_initial || m->initial.regs[reg])
		fail(m, -EOPNOTSUPP);
	else
		m->row.regs[reg] = 0;
}

static void run_cfa_op(struct machine *m, uint8_t op)
{
	struct mp_cfi_rule rule = {.kind = MP_CFI_EXPRESSION};
	uint64_t reg;

	switch (op) {
	case MP_CFA_DEF_CFA:
		reg = read_register(m);
		set_cfa(m, reg, read_unsigned(m));
		break;
	case MP_CFA_DEF_CFA_SF:
		reg = read_register(m);
		set_cfa(m, reg, factored(m, mp_cursor_sleb(&m->cur)));
		break;
	case MP_CFA_DEF_CFA_REGISTER:
		rule = current_cfa(m);
		set_cfa(m, read_register(m), rule.off);
		break;
	case MP_CFA_DEF_CFA_OFFSET:
		rule = current_cfa(m);
		set_cfa(m, rule.reg, read_unsigned(m));
		break;
	case MP_CFA_DEF_CFA_OFFSET_SF:
		rule = current_cfa(m);
		set_cfa(m, rule.reg, factored(m, mp_cursor_sleb(&m->cur)));
		break;
	case MP_CFA_DEF_CFA_EXPRESSION:
		read_expression(m, &rule);
		m->row.cfa = rule_number(m, &rule);
		break;
	}
}

static void run_register_op(struct machine *m, uint8_t op)
{
	struct mp_cfi_rule rule = {0};
	uint64_t reg = read_register(m);

	switch (op) {
	case MP_CFA_OFFSET_EXTENDED:
		set_register(m, reg, MP_CFI_OFFSET, factored(m, read_unsigned(m)));
		break;
	case MP_CFA_OFFSET_EXTENDED_SF:
		set_register(m, reg, MP_CFI_OFFSET, factored(m, mp_cursor_sleb(&m->cur)));
		break;
	case MP_CFA_GNU_NEGATIVE_OFFSET_EXTENDED: /* libunwind does not multiply it */
		if (!m->rules->for_walking)
			fail(m, -EOPNOTSUPP);
		set_register(m, reg, MP_CFI_OFFSET, factored(m, -read_unsigned(m)));
		break;
	case MP_CFA_VAL_OFFSET:
		set_register(m, reg, MP_CFI_VAL_OFFSET, factored(m, read_unsigned(m)));
		break;
	case MP_CFA_VAL_OFFSET_SF:
		set_register(m, reg, MP_CFI_VAL_OFFSET, factored(m, mp_cursor_sleb(&m->cur)));
		break;
	case MP_CFA_RESTORE_EXTENDED: restore_register(m, reg); break;
	case MP_CFA_UNDEFINED: set_register(m, reg, MP_CFI_UNDEFINED, 0); break;
	case MP_CFA_SAME_VALUE: set_register(m, reg, MP_CFI_SAME, 0); break;
	case MP_CFA_REGISTER:
		rule.kind = MP_CFI_REGISTER;
		rule.reg = (uint16_t)read_register(m);
		m->row.regs[reg] = rule_number(m, &rule);
		break;
	case MP_CFA_EXPRESSION:
	case MP_CFA_VAL_EXPRESSION:
		rule.kind = op == MP_CFA_EXPRESSION ? MP_CFI_EXPRESSION : MP_CFI_VAL_EXPRESSION;
		read_expression(m, &rule);
		m->row.regs[reg] = rule_number(m, &rule);
		break;
	default: fail(m, -EOPNOTSUPP);
	}
}

static void run_state_op(struct machine *m, uint8_t op)
{
	uint64_t args_size = m->row.args_size;

	if (op == MP_CFA_REMEMBER_STATE) {
		if (m->nr_states == MAX_STATES)
			fail(m, -EOPNOTSUPP);
		else
			m->states[m->nr_states++] = m->row;
		return;
	}
	if (!m->nr_states) {
		fail(m, -EOPNOTSUPP);
		return;
	}
	m->row = m->states[--m->nr_states];
	/* For libgcc it is not part of the state, for LLVM's unwinder it is. */
	if (m->row.args_size != args_size && !m->rules->for_walking)
		fail(m, -EOPNOTSUPP);
	m->row.args_size = args_size;
}

/* Run one operation that does not advance the location. */
static void run_op(struct machine *m, uint8_t op)
{
	if ((op & 0xc0) == MP_CFA_OFFSET) {
		if ((op & 0x3f) >= MP_CFI_NR_REGS)
			fail(m, -EOPNOTSUPP);
		else
			set_register(m, op & 0x3f, MP_CFI_OFFSET, factored(m, read_unsigned(m)));
		return;
	}
	if ((op & 0xc0) == MP_CFA_RESTORE) {
		restore_register(m, op & 0x3f);
		return;
	}
	switch (op) {
	case MP_CFA_NOP: break;
	case MP_CFA_REMEMBER_STATE:
	case MP_CFA_RESTORE_STATE: run_state_op(m, op); break;
	case MP_CFA_GNU_ARGS_SIZE: m->row.args_size = mp_cursor_uleb(&m->cur); break;
	case MP_CFA_DEF_CFA:
	case MP_CFA_DEF_CFA_REGISTER:
	case MP_CFA_DEF_CFA_OFFSET:
	case MP_CFA_DEF_CFA_EXPRESSION:
	case MP_CFA_DEF_CFA_SF:
	case MP_CFA_DEF_CFA_OFFSET_SF: run_cfa_op(m, op); break;
	default: run_register_op(m, op); break;
	}
}

/* Return: true if @op advances, by *@delta, or to the address *@delta if *@absolute. */
static bool read_advance(struct machine *m, uint8_t op, uint64_t *delta, bool *absolute)
{
	*absolute = false;
	if ((op & 0xc0) == MP_CFA_ADVANCE_LOC) {
		*delta = op & 0x3f;
		return true;
	}
	switch (op) {
	case MP_CFA_ADVANCE_LOC1: *delta = mp_cursor_u8(&m->cur); return true;
	case MP_CFA_ADVANCE_LOC2: *delta = mp_cursor_u16(&m->cur); return true;
	case MP_CFA_ADVANCE_LOC4: *delta = mp_cursor_u32(&m->cur); return true;
	case MP_CFA_SET_LOC:
		*absolute = true;
		*delta = mp_cursor_pointer(&m->cur, m->cie->fde_enc, 0);
		return true;
	}
	return false;
}

static void add_line(struct machine *m, struct mp_cfi_table *table, uint64_t off)
{
	if (table->nr && table->lines[table->nr - 1].off == off) {
		table->lines[table->nr - 1].row = m->row;
		return;
	}
	if (table->nr && !memcmp(&table->lines[table->nr - 1].row, &m->row, sizeof(m->row)))
		return;
	if (table->nr == table->cap) {
		uint32_t cap = table->cap ? table->cap * 2 : 64;
		struct mp_cfi_line *lines;

		if (cap > MAX_LINES) {
			fail(m, -EOPNOTSUPP);
			return;
		}
		lines = reallocarray(table->lines, cap, sizeof(*lines));
		if (!lines) {
			fail(m, -ENOMEM);
			return;
		}
		table->lines = lines;
		table->cap = cap;
	}
	table->lines[table->nr++] = (struct mp_cfi_line){.off = off, .row = m->row};
}

static void start_program(struct machine *m, const uint8_t *program, size_t size, uint64_t vaddr)
{
	m->cur = (struct mp_cursor){.p = program, .end = program + size, .vaddr = vaddr};
	m->nr_states = 0;
}

static int run_fde(struct machine *m, const struct mp_eh_fde *fde, struct mp_cfi_table *table)
{
	uint64_t off = 0, delta;
	bool absolute;

	start_program(m, fde->program, fde->program_size, fde->program_vaddr);
	while (m->cur.p < m->cur.end && !m->error && !m->cur.bad) {
		uint8_t op = mp_cursor_u8(&m->cur);

		if (!read_advance(m, op, &delta, &absolute)) {
			run_op(m, op);
			continue;
		}
		add_line(m, table, off);
		if (absolute && (delta < fde->start || delta - fde->start < off))
			fail(m, -EOPNOTSUPP);
		off = absolute ? delta - fde->start : off + delta;
		if (off >= fde->size)
			return m->error; /* rows after the FDE's end are never used */
	}
	add_line(m, table, off);
	if (m->cur.bad)
		fail(m, -EOPNOTSUPP);
	return m->error;
}

int mp_cfi_expand(struct mp_cfi_rules *rules, const struct mp_eh_cie *cie,
		  const struct mp_eh_fde *fde, struct mp_cfi_table *table)
{
	struct machine m = {.rules = rules, .cie = cie};

	table->nr = 0;
	if (cie->code_align != 1 || !cie->data_align || cie->ra_reg != 16)
		return -EOPNOTSUPP;
	start_program(&m, cie->program, cie->program_size, cie->program_vaddr);
	while (m.cur.p < m.cur.end && !m.error && !m.cur.bad)
		run_op(&m, mp_cursor_u8(&m.cur));
	if (m.cur.bad || (m.row.cfa == 0 && !rules->for_walking))
		fail(&m, -EOPNOTSUPP);
	if (m.error)
		return m.error;
	m.has_initial = true;
	m.initial = m.row;
	table->initial = m.row;
	return run_fde(&m, fde, table);
}

void mp_cfi_table_fini(struct mp_cfi_table *table)
{
	free(table->lines);
	*table = (struct mp_cfi_table){0};
}

uint32_t mp_cfi_line_at(const struct mp_cfi_table *table, uint64_t off)
{
	return mp_search(i, 1, table->nr, table->lines[i].off <= off) - 1;
}

int mp_cfi_row_lower(struct mp_cfi_rules *rules, const struct mp_cfi_row *row, int64_t by,
		     struct mp_cfi_row *out)
{
	struct machine m = {.rules = rules};
	struct mp_cfi_rule cfa = rules->rules[row->cfa];

	*out = *row;
	if (cfa.kind != MP_CFI_OFFSET)
		return -EOPNOTSUPP;
	for (int i = 0; i < MP_CFI_NR_REGS; i++) {
		const struct mp_cfi_rule *rule = &rules->rules[row->regs[i]];

		if (rule->kind == MP_CFI_EXPRESSION || rule->kind == MP_CFI_VAL_EXPRESSION ||
		    rule->kind == MP_CFI_REGISTER)
			return -EOPNOTSUPP;
	}
	if (cfa.reg != RSP)
		return 0;
	cfa.off += by;
	out->cfa = rule_number(&m, &cfa);
	return m.error;
}

int mp_cfi_rule_number(struct mp_cfi_rules *rules, const struct mp_cfi_rule *rule, uint16_t *number)
{
	struct machine m = {.rules = rules};

	*number = rule_number(&m, rule);
	return m.error;
}
