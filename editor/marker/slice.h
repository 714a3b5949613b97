// SPDX-License-Identifier: Apache-2.0
/*
 * slice - finds the instructions that serve only code markers: load, additions and store of a
 * marker, and what computes only the number to add. Called by optimize_markers and compilations.
 *
 * An instruction serves only markers if its result is needed when markers are read, and is not
 * needed when no marker is read. Liveness over all functions answers both questions: an instruction
 * counts as unnecessary until a necessary one reads its result ("faint" variables). An instruction
 * that is not understood counts as necessary.
 */
#ifndef ME_SLICE_H
#define ME_SLICE_H

#include <stdlib.h>

#include "editor/marker/marker.h"
#include "libprof/cfg/cfg.h"

/* Why an instruction that accesses a marker stays. */
enum me_slice_stay {
	ME_SLICE_GOES,	   /* it does not stay */
	ME_SLICE_FUNCTION, /* its function is not understood */
	ME_SLICE_UNPROVED, /* verify could not prove that a copy may lack it */
	ME_SLICE_FORM,	   /* an instruction of another kind */
	ME_SLICE_READ,	   /* the marker is read by something that is no marker's code */
	ME_SLICE_BLOCK,	   /* nothing needs it, but it is no block of its own */
	ME_NR_SLICE_STAYS
};

/* An instruction that accesses a marker. */
struct me_slice_access {
	uint64_t vaddr;
	uint32_t marker;
	uint8_t stays; /* enum me_slice_stay */
};

struct me_slice_insn {
	uint64_t vaddr;
	uint8_t len;
};

struct me_slices {
	struct me_slice_insn *insns; /* ascending: all that serve only markers */
	uint32_t nr_insns;
	struct me_slice_access *accesses; /* ascending */
	uint32_t nr_accesses;
};

/* Instructions that must stay, since verify could not prove that a copy may lack them. */
struct me_slice_barred {
	uint64_t *vaddrs;
	uint32_t nr;
};

/*
 * me_slices_find - analyse all functions of @cfg. @barred may be NULL. A file without the linker's relocations has no
 * slices: other references to markers could not be excluded.
 * Return: 0, -ENOMEM. Ownership: me_slices_fini(@out).
 */
int me_slices_find(const struct mp_cfg *cfg, const struct me_markers *markers,
		   const struct me_slice_barred *barred, struct me_slices *out, struct mp_err *err);
static inline void me_slices_fini(struct me_slices *slices)
{
	free(slices->insns);
	free(slices->accesses);
	*slices = (struct me_slices){0};
}

#endif
