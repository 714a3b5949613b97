// SPDX-License-Identifier: Apache-2.0
/*
 * verify_eh_private - verify's own reading of unwind sections and of the exception tables of
 * functions. Included by verify_private.h only.
 */
#ifndef ME_VERIFY_EH_PRIVATE_H
#define ME_VERIFY_EH_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/elf/elf.h"

struct vf;

/* ---- unwind sections -------------------------------------------------------------------- */

/* Languages whose routines read the same tables in different ways: verify_unwind.c says how. */
enum vf_language {
	VF_CXX,
	VF_C,
	VF_RUST,
};

struct vf_cie {
	uint64_t vaddr, personality; /* address as encoded, not followed; 0: none */
	const uint8_t *insns;
	uint32_t insns_len;
	uint64_t code_align;
	int64_t data_align;
	uint32_t ra;
	uint8_t version, fde_enc, lsda_enc, personality_enc;
	bool has_aug, has_lsda, signal;
	bool known_personality; /* a routine that verify_lsda understands */
	uint8_t language;	/* enum vf_language: the routine's */
};

struct vf_fde {
	uint64_t start, size, lsda, vaddr;
	const uint8_t *insns;
	uint64_t insns_vaddr; /* of @insns; only a pc-relative DW_CFA_set_loc needs it */
	uint32_t insns_len;
	uint32_t cie;	/* its number; so many CIEs stand before this one's */
	uint32_t nr;	/* FDEs before this one in the section */
	uint16_t flags; /* enum vf_fde_flag; set by scan, of old FDEs only */
};

enum vf_fde_flag {
	VF_FDE_BAD = 1 << 0,	     /* linear decode fails or does not meet the range's end */
	VF_FDE_OFF_GRID = 1 << 1,    /* a jump leads between two instructions */
	VF_FDE_IJMP = 1 << 2,	     /* holds an indirect jump */
	VF_FDE_IJMP_REG = 1 << 3,    /* through a register: the address may be computed */
	VF_FDE_SELF_REF = 1 << 4,    /* takes the address of a place behind its entry */
	VF_FDE_WORD = 1 << 5,	     /* an address inside it stands in data */
	VF_FDE_LABELS = 1 << 6,	     /* such addresses are labels: no jump target is computed */
	VF_FDE_DIFFERENCES = 1 << 7, /* data may hold differences from such an address */
	VF_FDE_SYMBOL_ONLY = 1 << 8, /* no FDE: a sized symbol of code without unwind data */
	VF_FDE_RETURN_WORD = 1 << 9, /* data may hold a return address in it */
	VF_FDE_NAMED_CODE = 1 << 10, /* no FDE, behind a label that may name all such code here */
	VF_FDE_KNOWN = 1 << 11, /* a table names a place in it, or the bounds of its section do */
	VF_FDE_ASKED = 1 << 12, /* the program may look for it among the frames of its stack */
	VF_FDE_PLACE = 1 << 13, /* data may know a place in it that is no label */
	VF_FDE_READ = 1 << 14,	/* its bytes may be read, or its address computed with */
	VF_FDE_COMPUTES = 1 << 15, /* computes with labels, or others know its own: they keep their values */
};

struct vf_eh {
	const struct mp_elf *elf;
	struct vf_cie *cies; /* ascending vaddr */
	struct vf_fde *fdes; /* ascending start */
	uint32_t nr_cies, nr_fdes;
	uint32_t nr_symbol_only; /* of @fdes: those with VF_FDE_SYMBOL_ONLY */
	/* For each VF_EH_PAGE bytes from @pages_start on, and one more: the first FDE that ends
	 * behind the start of these bytes. NULL: too few FDEs, or they lie too far apart. */
	uint32_t *pages;
	uint64_t pages_start;
	uint32_t nr_pages;
	uint64_t vaddr, size, hdr_vaddr;
	uint8_t count_enc, table_enc; /* of the search table */
	bool strict;		      /* an output of Morph: accept no superfluous bytes */
	uint64_t new_start;	      /* in an output: FDEs from here on belong to copies */
};

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

/* A cursor over encoded bytes. @bad is set once a value was cut off or not understood. */
struct vf_cursor {
	const uint8_t *p, *end;
	uint64_t vaddr; /* of @p */
	bool bad;
	bool terse; /* set @bad for a LEB128 number that is longer than needed */
};

/* Read a number of @size bytes, or in LEB128; or skip @len bytes. Return: 0, or NULL, if @bad. */
uint64_t vf_cursor_fixed(struct vf_cursor *c, unsigned int size);
uint64_t vf_cursor_uleb(struct vf_cursor *c);
int64_t vf_cursor_sleb(struct vf_cursor *c);
const uint8_t *vf_cursor_skip(struct vf_cursor *c, uint64_t len);
/* Read a DW_EH_PE_ pointer that is not indirect. Return: 0 if the raw value is 0. */
uint64_t vf_cursor_encoded(struct vf_cursor *c, uint8_t enc);

/* Read PT_GNU_EH_FRAME and the .eh_frame it names; without this header, the section .eh_frame.
 * @strict: @elf is an output, whose search table must list every FDE. */
int vf_eh_read(const struct vf *vf, const struct mp_elf *elf, bool strict, struct vf_eh *eh);
void vf_eh_fini(struct vf_eh *eh);
/* Return: the FDE that covers @vaddr, or NULL. */
struct vf_fde *vf_eh_find(const struct vf_eh *eh, uint64_t vaddr);
/* Add an FDE without a program for each function that only a symbol describes. */
int vf_add_symbol_fdes(struct vf_eh *eh);
/* Run @fde's program. Return: 0, -ENOMEM, -EBADMSG. Ownership: the caller frees @rows->row. */
int vf_rows_build(const struct vf_eh *eh, const struct vf_fde *fde, struct vf_rows *rows);
/* Return: the row that covers @vaddr, or NULL. */
const struct vf_row *vf_rows_at(const struct vf_rows *rows, uint64_t vaddr);
/* verify_personality.c: does @cie of the original name a routine that reads tables as
 * verify_lsda does? *@language: whose routine it is. Return: 1, 0, -ENOMEM. */
int vf_known_personality(const struct vf *vf, const struct vf_cie *cie, uint8_t *language);
/*
 * Bytes of @fde's, or the CIE's, program without the no-ops at its end. Operands may end in zeros, too, so this reads
 * the program. If it is not understood, these are all bytes.
 */
uint32_t vf_program_size(const uint8_t *insns, uint32_t len);
/* Does the unwinder find the caller's value in the register itself? */
static inline bool vf_rule_keeps(const struct vf_rule *rule)
{
	return rule->kind == VF_RULE_DEFAULT || rule->kind == VF_RULE_SAME;
}
/* Compare the rules of two rows, not their addresses. */
bool vf_row_equal(const struct vf_row *a, const struct vf_row *b);
/* Does an expression of @row read the program counter, or may it? */
bool vf_row_reads_pc(const struct vf_row *row);

/* ---- language-specific data -------------------------------------------------------------- */

struct vf_call_site {
	uint64_t start, end, pad; /* addresses; pad 0: none */
	uint64_t action;	  /* 0: none, else 1 + offset in the action table */
};

struct vf_lsda {
	const struct mp_elf *elf;
	struct vf_call_site *site; /* ascending */
	uint32_t nr, cap;
	const uint8_t *actions, *end;
	uint64_t actions_vaddr, ttype_vaddr;   /* @ttype_vaddr: end of the types; 0: none */
	uint64_t base;			       /* from which landing pads count */
	uint8_t base_enc, ttype_enc, site_enc; /* @base_enc: landing pads' base */
	bool present;
	bool terse; /* an output's: accept no superfluous bytes; set before the table is read */
};

/* Read the table at @vaddr; 0: there is none. Return: 0, -ENOMEM, -EBADMSG. Ownership:
 * vf_lsda_fini(), also after an error. @lsda must be zero or a table that was read before. */
int vf_lsda_read(const struct mp_elf *elf, uint64_t vaddr, uint64_t func_start,
		 struct vf_lsda *lsda);
void vf_lsda_fini(struct vf_lsda *lsda);
/* Return: the call site that covers @vaddr, or NULL. */
const struct vf_call_site *vf_lsda_at(const struct vf_lsda *lsda, uint64_t vaddr);
/* Return: bytes of a pointer with encoding @enc; 0: not known. */
unsigned int vf_lsda_pointer_size(uint8_t enc);
/* *@type: the address in entry @index of the types, not followed. Entries are numbered from 1,
 * backwards from the table's end. Return: false if there is none, or it cannot be read. */
bool vf_lsda_type(const struct vf_lsda *lsda, uint64_t index, uint64_t *type);
/* Do both chains of actions list the same types in the same order? */
bool vf_lsda_same_actions(const struct vf_lsda *a, uint64_t action_a, const struct vf_lsda *b,
			  uint64_t action_b);

#endif
