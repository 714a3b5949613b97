// SPDX-License-Identifier: Apache-2.0
/* verify_cfi - runs an FDE's program and gives rows. */
#ifndef ME_VERIFY_CFI_H
#define ME_VERIFY_CFI_H

#include <stdbool.h>
#include <stdint.h>
#include "editor/verify/dwarf/verify_dwarf.h"

struct vf_eh;
struct vf_fde;

#define VF_NR_REGS 33 /* general registers, return address, xmm0 to xmm15 */

enum vf_rule_kind {
	VF_RULE_DEFAULT, /* no rule: the register is unchanged, but the stack pointer is the CFA */
	VF_RULE_SAME,
	VF_RULE_UNDEFINED,
	VF_RULE_OFFSET,
	VF_RULE_VAL_OFFSET,
	VF_RULE_REGISTER,
	VF_RULE_EXPR,
	VF_RULE_VAL_EXPR,
};

struct vf_rule {
	uint8_t kind;
	uint32_t len; /* of @expr */
	union {
		int64_t off; /* or the register */
		const uint8_t *expr;
	};
};

struct vf_row {
	uint64_t loc;	    /* first address that the row describes */
	struct vf_rule cfa; /* OFFSET: from register @cfa_reg; EXPR */
	uint64_t cfa_reg;
	uint64_t args_size;
	struct vf_rule reg[VF_NR_REGS];
};

struct vf_rows {
	struct vf_row *row; /* ascending loc; the last row reaches to the FDE's end */
	uint32_t nr, cap;
	bool ambiguous;	  /* unwinders read the program differently */
	bool expressions; /* some rule is one */
};

/* Run @fde's program. Return: 0, -ENOMEM, -EBADMSG. Ownership: the caller frees @rows->row. */
int vf_rows_build(const struct vf_eh *eh, const struct vf_fde *fde, struct vf_rows *rows);
/* Return: the row that covers @vaddr, or NULL. */
const struct vf_row *vf_rows_at(const struct vf_rows *rows, uint64_t vaddr);

/* Does the unwinder find the caller's value in the register itself? */
static inline bool vf_rule_keeps(const struct vf_rule *rule)
{
	return rule->kind == VF_RULE_DEFAULT || rule->kind == VF_RULE_SAME;
}

/* Compare the rules of two rows, not their addresses. */
bool vf_row_equal(const struct vf_row *a, const struct vf_row *b);
/* Does an expression of @row read the program counter, or may it? */
bool vf_row_reads_pc(const struct vf_row *row);

#endif
