// SPDX-License-Identifier: Apache-2.0
/*
 * verify_ranges - finds code that others know by a range of addresses or by a table, which a copy
 * would leave.
 */
#ifndef ME_VERIFY_RANGES_H
#define ME_VERIFY_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"

/* Before the scan: find the ends. In the scan: note the ends that an instruction names. */
void vf_find_ends(struct vf *vf);
void vf_note_end(struct vf *vf, uint64_t at, const struct vf_insn *insn);
/* Programs round the end of memory to 8, and to a page by adding 4095. */
#define VF_MEMORY_END_SPAN (7 + 4095)

/* Does @vaddr lie among the ends of code, or near that of memory? Few operands do. */
static inline bool vf_may_be_end(const struct vf *vf, uint64_t vaddr)
{
	return vaddr - vf->old.ends_low <= vf->old.ends_span ||
	       vaddr - vf->old.memory_end <= VF_MEMORY_END_SPAN;
}

static inline void vf_note_ends(struct vf *vf, uint64_t at, const struct vf_insn *insn)
{
	if ((insn->disp_off && vf_may_be_end(vf, insn->target)) ||
	    (insn->imm_size >= 4 && vf_may_be_end(vf, (uint64_t)insn->imm)))
		vf_note_end(vf, at, insn);
}

/* After the scan: mark functions that stay in place, since a table or bounds of a section name them. */
void vf_find_known(const struct vf *vf);
/* Find functions of which operands name bounds inside. Return: 0, -ENOMEM. */
int vf_find_bounds(const struct vf *vf);
/* Does the program ask where its code ends, or rely on where its memory ends? */
int vf_check_ranges(const struct vf *vf);

#endif
