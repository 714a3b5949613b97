// SPDX-License-Identifier: Apache-2.0
/*
 * cfi - call-frame programs: expands a program to rows, and writes the instructions for
 * a change of row. After DWARF 4, section 6.4; GNU's DW_CFA_GNU_args_size is kept in
 * each row. Called by unwind.
 */
#ifndef ME_CFI_H
#define ME_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/base/bytes.h"
#include "libprof/elf/eh.h"

/* General registers, the return address (16), xmm0 to xmm15. */
#define ME_CFI_NR_REGS 33

enum me_cfi_kind {
	ME_CFI_UNSPECIFIED, /* the register has no rule */
	ME_CFI_UNDEFINED,
	ME_CFI_SAME,
	ME_CFI_OFFSET, /* saved at CFA + off; for the CFA itself: reg + off */
	ME_CFI_VAL_OFFSET,
	ME_CFI_REGISTER,
	ME_CFI_EXPRESSION, /* saved at the expression's value; for the CFA itself: that value */
	ME_CFI_VAL_EXPRESSION,
};

struct me_cfi_rule {
	uint8_t kind; /* enum me_cfi_kind */
	uint16_t reg;
	uint32_t expr_size;
	int64_t off;
	const uint8_t *expr; /* in the ELF file */
};

/*
 * Each distinct rule once, so that rows are small and can be compared as bytes.
 * rules[0] is "unspecified".
 */
struct me_cfi_rules {
	struct me_cfi_rule *rules;
	uint32_t nr, cap;
	uint32_t *hash; /* rule number + 1; 0: free */
	uint32_t hash_size;
};

struct me_cfi_row {
	uint64_t args_size;
	uint16_t cfa, regs[ME_CFI_NR_REGS]; /* rule numbers */
	uint16_t zero[2];		    /* instead of padding: rows are compared as bytes */
};

struct me_cfi_line {
	uint64_t off; /* from the FDE's start; the row holds up to the next line's off */
	struct me_cfi_row row;
};

struct me_cfi_table {
	struct me_cfi_row initial; /* row after the CIE's program */
	struct me_cfi_line *lines; /* ascending off, the first is 0 */
	uint32_t nr, cap;
};

int me_cfi_rules_init(struct me_cfi_rules *rules);
void me_cfi_rules_fini(struct me_cfi_rules *rules);

/*
 * me_cfi_expand - the rows of one FDE. @table may be reused; zero it before its first use.
 * Return: 0, -ENOMEM, or -EOPNOTSUPP for unknown operations, operations that unwinders
 * read differently, and expressions that depend on the program counter. Ownership:
 * me_cfi_table_fini(@table).
 */
int me_cfi_expand(struct me_cfi_rules *rules, const struct mp_eh_cie *cie,
		  const struct mp_eh_fde *fde, struct me_cfi_table *table);
void me_cfi_table_fini(struct me_cfi_table *table);

/* me_cfi_line_at - index of the line that holds at @off. */
uint32_t me_cfi_line_at(const struct me_cfi_table *table, uint64_t off);

/* me_cfi_put_change - write instructions that turn row @from into row @to; both belong to @cie. */
void me_cfi_put_change(struct me_bytes *out, const struct me_cfi_rules *rules,
		       const struct mp_eh_cie *cie, const struct me_cfi_row *from,
		       const struct me_cfi_row *to);
/* me_cfi_put_advance - write instructions that advance the location by @delta bytes. */
void me_cfi_put_advance(struct me_bytes *out, uint64_t delta);

/*
 * me_cfi_row_lower - *@out: @row for a stack pointer that is @by bytes lower.
 * Return: 0, -EOPNOTSUPP: an expression finds the frame or what was saved, -ENOMEM.
 */
int me_cfi_row_lower(struct me_cfi_rules *rules, const struct me_cfi_row *row, int64_t by,
		     struct me_cfi_row *out);
/*
 * me_cfi_program_end - offset of the end of the last operation that is not DW_CFA_nop;
 * @size if the program cannot be read. *@set_loc: the program holds an address
 * (DW_CFA_set_loc), so it cannot be copied byte by byte.
 */
size_t me_cfi_program_end(const struct mp_eh_cie *cie, const uint8_t *program, size_t size,
			  bool *set_loc);

#endif
