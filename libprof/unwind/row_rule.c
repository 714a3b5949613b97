// SPDX-License-Identifier: Apache-2.0
/*
 * row_rule - recognises the few forms of rules that walkers compute. Expressions are recognised
 * as a whole: those of realigned frames, of signal frames and of PLT entries. Called by
 * rows_compile.
 */
#include <limits.h>

#include "libprof/unwind/row_rule_private.h"

#define NR_DWARF_GENERAL 16

#define OP_DEREF       0x06
#define OP_AND	       0x1a
#define OP_PLUS	       0x22
#define OP_PLUS_UCONST 0x23
#define OP_SHL	       0x24
#define OP_GE	       0x2a
#define OP_LIT0	       0x30
#define OP_BREG0       0x70
#define OP_BREG_RA     0x80

/* x86's numbers of the registers that DWARF calls 0 to 15. */
static const uint8_t x86_number[NR_DWARF_GENERAL] = {0, 2, 1,  3,  6,  7,  5,  4,
						     8, 9, 10, 11, 12, 13, 14, 15};

struct mp_row_rule mp_row_rule_stop(enum mp_row_stop stop)
{
	return (struct mp_row_rule){.cfa = MP_ROW_STOP, .stop = (uint16_t)stop};
}

static bool fits(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

/* Reads "breg": a general register and an offset. */
static bool read_breg(struct mp_cursor *cur, uint8_t *reg, int64_t *off)
{
	uint8_t op = mp_cursor_u8(cur);

	if (op < OP_BREG0 || op >= OP_BREG0 + NR_DWARF_GENERAL)
		return false;
	*reg = (uint8_t)(op - OP_BREG0);
	*off = mp_cursor_sleb(cur);
	return !cur->bad && fits(*off);
}

/* The rest of binutils' expression for PLT entries, behind "breg7 8". */
static bool read_plt(struct mp_cursor *cur, struct mp_row_rule *rule)
{
	uint8_t lit;

	if (mp_cursor_u8(cur) != OP_BREG_RA || mp_cursor_sleb(cur) ||
	    mp_cursor_u8(cur) != OP_LIT0 + 15 || mp_cursor_u8(cur) != OP_AND)
		return false;
	lit = mp_cursor_u8(cur);
	if (lit < OP_LIT0 || lit > OP_LIT0 + 15 || mp_cursor_u8(cur) != OP_GE ||
	    mp_cursor_u8(cur) != OP_LIT0 + 3 || mp_cursor_u8(cur) != OP_SHL ||
	    mp_cursor_u8(cur) != OP_PLUS)
		return false;
	rule->cfa = MP_ROW_PLT;
	rule->cfa_add = lit - OP_LIT0;
	return !cur->bad && cur->p == cur->end;
}

static bool read_cfa_expression(const struct mp_cfi_rule *cfa, struct mp_row_rule *rule)
{
	struct mp_cursor cur = {.p = cfa->expr, .end = cfa->expr + cfa->expr_size}, rest;
	uint64_t add = 0;
	uint8_t reg;
	int64_t off;

	if (!read_breg(&cur, &reg, &off))
		return false;
	rule->cfa_reg = x86_number[reg];
	rule->cfa_off = (int32_t)off;
	rule->cfa = MP_ROW_REGISTER;
	if (cur.p == cur.end)
		return true;
	rest = cur;
	if (mp_cursor_u8(&rest) != OP_DEREF)
		return read_plt(&cur, rule);
	if (rest.p < rest.end) {
		if (mp_cursor_u8(&rest) != OP_PLUS_UCONST)
			return false;
		add = mp_cursor_uleb(&rest);
	}
	rule->cfa = MP_ROW_DEREF;
	rule->cfa_add = (int32_t)add;
	return !rest.bad && rest.p == rest.end && add <= INT32_MAX;
}

static enum mp_row_stop set_cfa(const struct mp_cfi_rule *cfa, struct mp_row_rule *rule)
{
	if (cfa->kind == MP_CFI_EXPRESSION)
		return read_cfa_expression(cfa, rule) ? MP_ROW_STOP_NONE : MP_ROW_STOP_EXPRESSION;
	if (cfa->kind == MP_CFI_UNSPECIFIED)
		return MP_ROW_STOP_PROGRAM;
	if (cfa->kind != MP_CFI_OFFSET || cfa->reg >= NR_DWARF_GENERAL || !fits(cfa->off))
		return MP_ROW_STOP_RANGE;
	rule->cfa = MP_ROW_REGISTER;
	rule->cfa_reg = x86_number[cfa->reg];
	rule->cfa_off = (int32_t)cfa->off;
	return MP_ROW_STOP_NONE;
}

/* Return: where @from says that a register was saved, and its offset. */
static enum mp_row_saved saved_at(const struct mp_cfi_rule *from, int32_t *off)
{
	struct mp_cursor cur = {0};
	int64_t at;
	uint8_t reg;

	switch (from->kind) {
	case MP_CFI_UNSPECIFIED:
	case MP_CFI_SAME: return MP_ROW_SAME;
	case MP_CFI_OFFSET:
		if (!fits(from->off))
			return MP_ROW_UNKNOWN;
		*off = (int32_t)from->off;
		return MP_ROW_AT_CFA;
	case MP_CFI_EXPRESSION:
		cur.p = from->expr;
		cur.end = from->expr + from->expr_size;
		if (!read_breg(&cur, &reg, &at) || cur.p != cur.end ||
		    (reg != MP_DWARF_RSP && reg != MP_DWARF_RBP))
			return MP_ROW_UNKNOWN;
		*off = (int32_t)at;
		return reg == MP_DWARF_RSP ? MP_ROW_AT_RSP : MP_ROW_AT_RBP;
	default: return MP_ROW_UNKNOWN;
	}
}

struct mp_row_rule mp_row_rule_of(const struct mp_cfi_rules *rules, const struct mp_cfi_row *row,
				  bool signal)
{
	const struct mp_cfi_rule *ra = &rules->rules[row->regs[MP_DWARF_RA]];
	struct mp_row_rule rule = {.flags = signal ? MP_ROW_SIGNAL : 0};
	enum mp_row_saved saved;
	enum mp_row_stop stop;

	if (ra->kind == MP_CFI_UNDEFINED)
		return (struct mp_row_rule){.flags = rule.flags | MP_ROW_BOTTOM};
	stop = set_cfa(&rules->rules[row->cfa], &rule);
	if (stop)
		return mp_row_rule_stop(stop);
	saved = saved_at(ra, &rule.ra_off);
	if (saved == MP_ROW_SAME || saved == MP_ROW_UNKNOWN)
		return mp_row_rule_stop(MP_ROW_STOP_RETURN);
	rule.ra = (uint8_t)saved;
	rule.rbp = (uint8_t)saved_at(&rules->rules[row->regs[MP_DWARF_RBP]], &rule.rbp_off);
	return rule;
}
