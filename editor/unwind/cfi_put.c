// SPDX-License-Identifier: Apache-2.0
/*
 * cfi_put - writes the shortest call-frame instructions that turn one row into another.
 *
 * Never writes DW_CFA_remember_state: rows of neighbouring copies do not nest, and
 * mostly differ only in the CFA's offset.
 */
#include <string.h>

#include "editor/unwind/cfi_put.h"
#include "libprof/unwind/cfi_ops.h"

void me_cfi_put_advance(struct me_bytes *out, uint64_t delta)
{
	if (!delta)
		return;
	if (delta < 0x40) {
		me_bytes_u8(out, (uint8_t)(MP_CFA_ADVANCE_LOC | delta));
	} else if (delta <= UINT8_MAX) {
		me_bytes_u8(out, MP_CFA_ADVANCE_LOC1);
		me_bytes_u8(out, (uint8_t)delta);
	} else if (delta <= UINT16_MAX) {
		me_bytes_u8(out, MP_CFA_ADVANCE_LOC2);
		me_bytes_u16(out, (uint16_t)delta);
	} else {
		/* Enough: block sizes have 32 bits, and gaps within a run are small. */
		me_bytes_u8(out, MP_CFA_ADVANCE_LOC4);
		me_bytes_u32(out, (uint32_t)delta);
	}
}

static void put_expression(struct me_bytes *out, const struct mp_cfi_rule *rule)
{
	me_bytes_uleb(out, rule->expr_size);
	me_bytes_put(out, rule->expr, rule->expr_size);
}

static void put_cfa(struct me_bytes *out, const struct mp_eh_cie *cie,
		    const struct mp_cfi_rule *from, const struct mp_cfi_rule *to)
{
	if (to->kind == MP_CFI_EXPRESSION) {
		me_bytes_u8(out, MP_CFA_DEF_CFA_EXPRESSION);
		put_expression(out, to);
		return;
	}
	if (to->off < 0) {
		/* A negative offset was read from a factored operand, so the division is exact. */
		me_bytes_u8(out, MP_CFA_DEF_CFA_SF);
		me_bytes_uleb(out, to->reg);
		me_bytes_sleb(out, to->off / cie->data_align);
		return;
	}
	if (from->kind == MP_CFI_OFFSET && from->reg == to->reg) {
		me_bytes_u8(out, MP_CFA_DEF_CFA_OFFSET);
		me_bytes_uleb(out, (uint64_t)to->off);
	} else if (from->kind == MP_CFI_OFFSET && from->off == to->off) {
		me_bytes_u8(out, MP_CFA_DEF_CFA_REGISTER);
		me_bytes_uleb(out, to->reg);
	} else {
		me_bytes_u8(out, MP_CFA_DEF_CFA);
		me_bytes_uleb(out, to->reg);
		me_bytes_uleb(out, (uint64_t)to->off);
	}
}

static void put_offset(struct me_bytes *out, const struct mp_eh_cie *cie, uint8_t reg,
		       const struct mp_cfi_rule *rule)
{
	int64_t n = rule->off / cie->data_align;
	bool value = rule->kind == MP_CFI_VAL_OFFSET;

	if (n >= 0 && !value) {
		me_bytes_u8(out, MP_CFA_OFFSET | reg);
		me_bytes_uleb(out, (uint64_t)n);
		return;
	}
	if (n >= 0) {
		me_bytes_u8(out, MP_CFA_VAL_OFFSET);
		me_bytes_uleb(out, reg);
		me_bytes_uleb(out, (uint64_t)n);
		return;
	}
	me_bytes_u8(out, value ? MP_CFA_VAL_OFFSET_SF : MP_CFA_OFFSET_EXTENDED_SF);
	me_bytes_uleb(out, reg);
	me_bytes_sleb(out, n);
}

static void put_register(struct me_bytes *out, const struct mp_eh_cie *cie, uint8_t reg,
			 const struct mp_cfi_rule *rule)
{
	switch (rule->kind) {
	case MP_CFI_UNSPECIFIED:
		/* Only a register without a rule in the CIE can have this state. */
		me_bytes_u8(out, MP_CFA_RESTORE | reg);
		break;
	case MP_CFI_UNDEFINED:
		me_bytes_u8(out, MP_CFA_UNDEFINED);
		me_bytes_uleb(out, reg);
		break;
	case MP_CFI_SAME:
		me_bytes_u8(out, MP_CFA_SAME_VALUE);
		me_bytes_uleb(out, reg);
		break;
	case MP_CFI_OFFSET:
	case MP_CFI_VAL_OFFSET: put_offset(out, cie, reg, rule); break;
	case MP_CFI_REGISTER:
		me_bytes_u8(out, MP_CFA_REGISTER);
		me_bytes_uleb(out, reg);
		me_bytes_uleb(out, rule->reg);
		break;
	case MP_CFI_EXPRESSION:
	case MP_CFI_VAL_EXPRESSION:
		me_bytes_u8(out, rule->kind == MP_CFI_EXPRESSION ? MP_CFA_EXPRESSION
								 : MP_CFA_VAL_EXPRESSION);
		me_bytes_uleb(out, reg);
		put_expression(out, rule);
		break;
	}
}

void me_cfi_put_change(struct me_bytes *out, const struct mp_cfi_rules *rules,
		       const struct mp_eh_cie *cie, const struct mp_cfi_row *from,
		       const struct mp_cfi_row *to)
{
	if (from->cfa != to->cfa)
		put_cfa(out, cie, &rules->rules[from->cfa], &rules->rules[to->cfa]);
	for (uint8_t reg = 0; reg < MP_CFI_NR_REGS; reg++) {
		if (from->regs[reg] != to->regs[reg])
			put_register(out, cie, reg, &rules->rules[to->regs[reg]]);
	}
	if (from->args_size != to->args_size) {
		me_bytes_u8(out, MP_CFA_GNU_ARGS_SIZE);
		me_bytes_uleb(out, to->args_size);
	}
}

/* Skip the operands of @op. Return: false if @op is unknown. */
static bool skip_operands(struct mp_cursor *cur, const struct mp_eh_cie *cie, uint8_t op)
{
	if ((op & 0xc0) == MP_CFA_ADVANCE_LOC || (op & 0xc0) == MP_CFA_RESTORE)
		return true;
	if ((op & 0xc0) == MP_CFA_OFFSET) {
		mp_cursor_uleb(cur);
		return true;
	}
	switch (op) {
	case MP_CFA_NOP:
	case MP_CFA_REMEMBER_STATE:
	case MP_CFA_RESTORE_STATE: return true;
	case MP_CFA_SET_LOC: mp_cursor_pointer(cur, cie->fde_enc, 0); return true;
	case MP_CFA_ADVANCE_LOC1: mp_cursor_skip(cur, 1); return true;
	case MP_CFA_ADVANCE_LOC2: mp_cursor_skip(cur, 2); return true;
	case MP_CFA_ADVANCE_LOC4: mp_cursor_skip(cur, 4); return true;
	case MP_CFA_RESTORE_EXTENDED:
	case MP_CFA_UNDEFINED:
	case MP_CFA_SAME_VALUE:
	case MP_CFA_DEF_CFA_REGISTER:
	case MP_CFA_DEF_CFA_OFFSET:
	case MP_CFA_DEF_CFA_OFFSET_SF:
	case MP_CFA_GNU_ARGS_SIZE: mp_cursor_uleb(cur); return true;
	case MP_CFA_OFFSET_EXTENDED:
	case MP_CFA_OFFSET_EXTENDED_SF:
	case MP_CFA_REGISTER:
	case MP_CFA_DEF_CFA:
	case MP_CFA_DEF_CFA_SF:
	case MP_CFA_VAL_OFFSET:
	case MP_CFA_VAL_OFFSET_SF:
	case MP_CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		mp_cursor_uleb(cur);
		mp_cursor_uleb(cur);
		return true;
	case MP_CFA_DEF_CFA_EXPRESSION: mp_cursor_skip(cur, mp_cursor_uleb(cur)); return true;
	case MP_CFA_EXPRESSION:
	case MP_CFA_VAL_EXPRESSION:
		mp_cursor_uleb(cur);
		mp_cursor_skip(cur, mp_cursor_uleb(cur));
		return true;
	}
	return false;
}

size_t me_cfi_program_end(const struct mp_eh_cie *cie, const uint8_t *program, size_t size,
			  bool *set_loc)
{
	struct mp_cursor cur = {.p = program, .end = program + size};
	size_t end = 0;

	*set_loc = false;
	while (cur.p < cur.end) {
		uint8_t op = mp_cursor_u8(&cur);

		if (op == MP_CFA_SET_LOC)
			*set_loc = true;
		if (!skip_operands(&cur, cie, op) || cur.bad)
			return size;
		if (op != MP_CFA_NOP)
			end = (size_t)(cur.p - program);
	}
	return end;
}
