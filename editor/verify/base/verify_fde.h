// SPDX-License-Identifier: Apache-2.0
/*
 * verify_fde - unwind sections as verify has read them.
 */
#ifndef ME_VERIFY_FDE_H
#define ME_VERIFY_FDE_H

#include <stdbool.h>
#include <stdint.h>

struct mp_elf;

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
	VF_FDE_COMPUTES =
		1 << 15, /* computes with labels, or others know its own: they keep their values */
};

/* Bytes of one entry of the index for vf_eh_find(), which runs for each piece, patch and changed call. */
#define VF_EH_PAGE 1024u

struct vf_eh {
	const struct mp_elf *elf;
	struct vf_cie *cies; /* ascending vaddr */
	struct vf_fde *fdes; /* ascending start */
	uint32_t nr_cies, nr_fdes, max_cies, max_fdes;
	uint32_t nr_symbol_only; /* of @fdes: those with VF_FDE_SYMBOL_ONLY */
	/* For each VF_EH_PAGE bytes from @pages_start on, and one more: the first FDE that ends
	 * behind the start of these bytes. NULL: too few FDEs, or they lie too far apart. */
	uint32_t *pages;
	uint64_t pages_start;
	uint32_t nr_pages;
	uint64_t vaddr, size, hdr_vaddr;
	uint8_t count_enc, table_enc; /* of the search table */
	const uint8_t *rows;	      /* of an original's search table, of 8 bytes */
	uint32_t nr_rows;
	bool strict;	    /* an output of Morph: accept no superfluous bytes */
	uint64_t new_start; /* in an output: FDEs from here on belong to copies */
};

/* Return: the FDE that covers @vaddr, or NULL. */
struct vf_fde *vf_eh_find(const struct vf_eh *eh, uint64_t vaddr);

#endif
