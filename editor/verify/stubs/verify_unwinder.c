// SPDX-License-Identifier: Apache-2.0
/*
 * verify_unwinder - which registers an unwinder needs at a place, and which it finds in the stack, by the rows of the
 * original.
 */
#include <dwarf.h>
#include <errno.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_effect.h"
#include "editor/verify/stubs/verify_unwinder.h"

/* DWARF's order: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp. */
static uint16_t by_dwarf(uint64_t reg)
{
	static const uint8_t number[] = {0, 2, 1, 3, 6, 7, 5, 4};

	if (reg >= 16)
		return 0;
	return VF_REG(reg < 8 ? number[reg] : reg);
}

uint16_t vf_row_rules(const struct vf_row *row, bool saved)
{
	uint16_t mask = 0;

	for (unsigned int i = 0; i < 16; i++) {
		const struct vf_rule *rule = &row->reg[i];

		if (saved == (!vf_rule_keeps(rule) && rule->kind != VF_RULE_UNDEFINED))
			mask |= by_dwarf(i);
	}
	return mask & VF_CALLEE_SAVED;
}

uint16_t vf_row_saves(const struct vf_row *row)
{
	return vf_row_rules(row, true);
}

/* Registers in an expression [DW_OP_bregN offset] [DW_OP_deref]; all registers for any other
 * one. */
static uint16_t named_by_expr(const struct vf_rule *rule)
{
	struct vf_cursor c = {.p = rule->expr, .end = rule->expr + rule->len};
	uint8_t op = (uint8_t)vf_cursor_fixed(&c, 1);

	if (op < DW_OP_breg0 || op > DW_OP_breg31)
		return VF_ALL_REGS;
	vf_cursor_sleb(&c);
	if (!c.bad && c.p < c.end && *c.p == DW_OP_deref)
		c.p++;
	return c.bad || c.p != c.end ? VF_ALL_REGS : by_dwarf(op - DW_OP_breg0);
}

uint16_t vf_named_by_row(const struct vf_row *row)
{
	uint16_t mask = row->cfa.kind == VF_RULE_OFFSET ? by_dwarf(row->cfa_reg)
							: named_by_expr(&row->cfa);

	for (unsigned int i = 0; i < VF_NR_REGS; i++) {
		const struct vf_rule *rule = &row->reg[i];

		if (rule->kind == VF_RULE_REGISTER)
			mask |= by_dwarf((uint64_t)rule->off);
		else if (rule->kind == VF_RULE_EXPR || rule->kind == VF_RULE_VAL_EXPR)
			mask |= named_by_expr(rule);
	}
	return mask;
}

int vf_unwinder_reads(const struct vf *vf, uint64_t vaddr, unsigned int reg)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, vaddr);
	int ret = fde ? 0 : -EBADMSG;
	struct vf_rows rows = {0};
	const struct vf_row *row;

	if (!ret)
		ret = vf_rows_build(&vf->old.eh, fde, &rows);
	if (ret != -ENOMEM) {
		row = ret ? NULL : vf_rows_at(&rows, vaddr);
		ret = !row || vf_named_by_row(row) >> reg & 1;
	}
	free(rows.row);
	return ret;
}
