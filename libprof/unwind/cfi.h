// SPDX-License-Identifier: Apache-2.0
/*
 * cfi - call-frame programs: expands a program to rows. After DWARF 4, section 6.4; GNU's
 * DW_CFA_GNU_args_size is kept in each row. Called by rows and by the editor's unwind.
 */
#ifndef MP_CFI_H
#define MP_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/eh.h"

/* General registers, the return address (16), xmm0 to xmm15. */
#define MP_CFI_NR_REGS 33

enum mp_cfi_kind {
	MP_CFI_UNSPECIFIED, /* the register has no rule */
	MP_CFI_UNDEFINED,
	MP_CFI_SAME,
	MP_CFI_OFFSET, /* saved at CFA + off; for the CFA itself: reg + off */
	MP_CFI_VAL_OFFSET,
	MP_CFI_REGISTER,
	MP_CFI_EXPRESSION, /* saved at the expression's value; for the CFA itself: that value */
	MP_CFI_VAL_EXPRESSION,
};

struct mp_cfi_rule {
	uint8_t kind; /* enum mp_cfi_kind */
	uint16_t reg;
	uint32_t expr_size;
	int64_t off;
	const uint8_t *expr; /* in the ELF file */
};

/*
 * Each distinct rule once, so that rows are small and can be compared as bytes.
 * rules[0] is "unspecified".
 */
struct mp_cfi_rules {
	struct mp_cfi_rule *rules;
	uint32_t nr, cap;
	uint32_t *hash; /* rule number + 1; 0: free */
	uint32_t hash_size;
	/*
	 * The rows are not for moved code: accept expressions that read the program counter, and
	 * CIEs that leave the CFA to their FDEs, as libc's for signal frames does.
	 */
	bool for_walking;
};

struct mp_cfi_row {
	uint64_t args_size;
	uint16_t cfa, regs[MP_CFI_NR_REGS]; /* rule numbers */
	uint16_t zero[2];		    /* instead of padding: rows are compared as bytes */
};

struct mp_cfi_line {
	uint64_t off; /* from the FDE's start; the row holds up to the next line's off */
	struct mp_cfi_row row;
};

struct mp_cfi_table {
	struct mp_cfi_row initial; /* row after the CIE's program */
	struct mp_cfi_line *lines; /* ascending off, the first is 0 */
	uint32_t nr, cap;
};

int mp_cfi_rules_init(struct mp_cfi_rules *rules);
void mp_cfi_rules_fini(struct mp_cfi_rules *rules);

/*
 * mp_cfi_expand - the rows of one FDE. @table may be reused; zero it before its first use.
 * Return: 0, -ENOMEM, or -EOPNOTSUPP for unknown operations, operations that unwinders
 * read differently, and expressions that depend on the program counter. Ownership:
 * mp_cfi_table_fini(@table).
 */
int mp_cfi_expand(struct mp_cfi_rules *rules, const struct mp_eh_cie *cie,
		  const struct mp_eh_fde *fde, struct mp_cfi_table *table);
void mp_cfi_table_fini(struct mp_cfi_table *table);

/* mp_cfi_line_at - index of the line that holds at @off. */
uint32_t mp_cfi_line_at(const struct mp_cfi_table *table, uint64_t off);

/*
 * mp_cfi_row_lower - *@out: @row for a stack pointer that is @by bytes lower.
 * Return: 0, -EOPNOTSUPP: an expression finds the frame or what was saved, -ENOMEM.
 */
int mp_cfi_row_lower(struct mp_cfi_rules *rules, const struct mp_cfi_row *row, int64_t by,
		     struct mp_cfi_row *out);
/* mp_cfi_rule_number - *@number: that of @rule, which is added if it is new. Return: 0, -ENOMEM, -EOPNOTSUPP. */
int mp_cfi_rule_number(struct mp_cfi_rules *rules, const struct mp_cfi_rule *rule,
		       uint16_t *number);

#endif
