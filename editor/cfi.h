// SPDX-License-Identifier: Apache-2.0
/*
 * cfi - call-frame programs: from a program to the rows it stands for, and from a change of row
 * back to instructions. DWARF 4, section 6.4; GNU's DW_CFA_GNU_args_size is kept per row.
 */
#ifndef ME_CFI_H
#define ME_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/bytes.h"
#include "libprof/eh.h"

/* General registers, the return address (16), xmm0 to xmm15. */
#define ME_CFI_NR_REGS 33

enum me_cfi_kind {
	ME_CFI_UNSPECIFIED, /* never mentioned */
	ME_CFI_UNDEFINED,
	ME_CFI_SAME,
	ME_CFI_OFFSET, /* saved at CFA + off; of the CFA: reg + off */
	ME_CFI_VAL_OFFSET,
	ME_CFI_REGISTER,
	ME_CFI_EXPRESSION, /* of the CFA: the CFA's value */
	ME_CFI_VAL_EXPRESSION,
};

struct me_cfi_rule {
	uint8_t kind; /* enum me_cfi_kind */
	uint16_t reg;
	uint32_t expr_size;
	int64_t off;
	const uint8_t *expr; /* in the ELF file */
};

/* Each distinct rule once, so that rows are small and compare as bytes; [0] is "unspecified". */
struct me_cfi_rules {
	struct me_cfi_rule *rules;
	uint32_t nr, room;
	uint32_t *hash; /* rule number + 1, 0: free */
	uint32_t hash_size;
};

struct me_cfi_row {
	uint64_t args_size;
	uint16_t cfa, regs[ME_CFI_NR_REGS]; /* rule numbers */
	uint16_t zero[2];		    /* no padding: rows compare as bytes */
};

struct me_cfi_line {
	uint64_t off; /* from the FDE's start; the row holds to the next line's */
	struct me_cfi_row row;
};

struct me_cfi_table {
	struct me_cfi_row initial; /* what the CIE's program leaves */
	struct me_cfi_line *lines; /* ascending off, first 0 */
	uint32_t nr, room;
};

int me_cfi_rules_init(struct me_cfi_rules *rules);
void me_cfi_rules_fini(struct me_cfi_rules *rules);

/*
 * me_cfi_expand - the rows of one FDE. @table is reused: zeroed before its first use.
 * Return: 0, -ENOMEM, -EOPNOTSUPP for what is not understood in full (unknown operations, what
 * unwinders read differently, expressions that depend on the program counter).
 */
int me_cfi_expand(struct me_cfi_rules *rules, const struct mp_eh_cie *cie,
		  const struct mp_eh_fde *fde, struct me_cfi_table *table);
void me_cfi_table_fini(struct me_cfi_table *table);

/* Number of the line that holds at @off. */
uint32_t me_cfi_line_at(const struct me_cfi_table *table, uint64_t off);

/* Instructions that turn @from into @to, both of programs of @cie. */
void me_cfi_put_change(struct me_bytes *out, const struct me_cfi_rules *rules,
		       const struct mp_eh_cie *cie, const struct me_cfi_row *from,
		       const struct me_cfi_row *to);
void me_cfi_put_advance(struct me_bytes *out, uint64_t delta);

/*
 * me_cfi_program_end - where the last operation that is no DW_CFA_nop ends. *@set_loc: the program
 * holds an address (DW_CFA_set_loc), hence cannot be copied byte by byte.
 * A program that cannot be read is taken whole.
 */
size_t me_cfi_program_end(const struct mp_eh_cie *cie, const uint8_t *program, size_t size,
			  bool *set_loc);

#endif
