// SPDX-License-Identifier: Apache-2.0
/*
 * verify_marker_private - what verify_marker and verify_marker_step share: the markers of the
 * original, and what one instruction wants, replaces and does with a marker.
 */
#ifndef ME_VERIFY_MARKER_PRIVATE_H
#define ME_VERIFY_MARKER_PRIVATE_H

#include "editor/verify/base/verify_context.h"

/*
 * Sets of values: low bytes of general registers from bit 0, arithmetic flags from 16, xmm
 * registers from 32, all other bytes of general registers from 48.
 */
#define VF_MARKER_REGS(mask) ((uint64_t)(uint16_t)(mask) | (uint64_t)(uint16_t)(mask) << 48)
#define VF_MARKER_FLAGS	     UINT64_C(0x3f0000)
#define VF_MARKER_VECTORS(n) (((UINT64_C(1) << (n)) - 1) << 32)
#define VF_MARKER_ALL	     (VF_MARKER_REGS(0xffff) | VF_MARKER_FLAGS | VF_MARKER_VECTORS(16))
#define VF_MARKER_SIZE	     8

struct vf_marker {
	uint64_t vaddr;
	bool listed; /* in .morph.markers: made by a compiler, so no source names it */
	bool read;   /* by something that must stay */
};

struct vf_marker_step {
	uint64_t reads, sets, replaces;
	uint32_t marker; /* VF_NONE: it accesses none */
	bool reads_marker, writes_marker;
	/*
	 * A copy may lack it if its results are not wanted: it only sets places and writes the
	 * marker's memory. It cannot fault, jump, or write other memory.
	 */
	bool may_go;
};

/* Read the local variables of 8 bytes that .symtab names so, ascending. Ownership: free(). */
int vf_markers_read(const struct vf *vf, struct vf_marker **markers, uint32_t *nr);
/* Set @read of markers that are referred to in any other way than by an instruction's access. */
void vf_markers_find_references(const struct vf *vf, struct vf_marker *markers, uint32_t nr);
/* Read the instruction at @at. */
void vf_marker_step_read(const struct vf *vf, struct vf_marker *markers, uint32_t nr, uint64_t at,
			 uint64_t end, struct vf_marker_step *step);

#endif
