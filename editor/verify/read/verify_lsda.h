// SPDX-License-Identifier: Apache-2.0
/* verify_lsda - reads what the C and C++ personality routines find for an instruction. */
#ifndef ME_VERIFY_LSDA_H
#define ME_VERIFY_LSDA_H

#include <stdbool.h>
#include <stdint.h>

struct mp_elf;

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
/* Return: the end of that call site; without one, the start of the next; UINT64_MAX: there is none. */
uint64_t vf_lsda_site_end(const struct vf_lsda *lsda, uint64_t vaddr);
/* *@type: the address in entry @index of the types, not followed. Entries are numbered from 1,
 * backwards from the table's end. Return: false if there is none, or it cannot be read. */
bool vf_lsda_type(const struct vf_lsda *lsda, uint64_t index, uint64_t *type);
/* Do both chains of actions list the same types in the same order? */
bool vf_lsda_same_actions(const struct vf_lsda *a, uint64_t action_a, const struct vf_lsda *b,
			  uint64_t action_b);

#endif
