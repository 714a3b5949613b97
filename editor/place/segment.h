// SPDX-License-Identifier: Apache-2.0
/*
 * segment - chooses the new segment's address, file offset and program header. If that costs few
 * bytes, its offset differs from its address by as much as that of .text. Called by emit.
 *
 * The program header table never moves (strip and patchelf would lose it), so an entry that the
 * program can spare becomes the new PT_LOAD; or the table grows in place (phdr_extend).
 */
#ifndef ME_SEGMENT_H
#define ME_SEGMENT_H

#include <stdint.h>

#include "editor/place/phdr_extend.h"
#include "libprof/elf/elf.h"
#include "libprof/base/err.h"

#define ME_NO_SLOT UINT32_MAX

struct me_segment {
	Elf64_Phdr *phdrs; /* the new table; emit fills in [slot] and moved headers */
	uint32_t nr_phdrs;
	uint32_t slot;		       /* index of the new PT_LOAD R+X */
	uint32_t eh_frame_slot;	       /* index of PT_GNU_EH_FRAME; ME_NO_SLOT: a static program */
	const char *price;	       /* what the slot cost, for the report */
	bool grown;		       /* the table has one entry more than the original's */
	struct me_displaced displaced; /* bytes that moved to make room for it */
	uint64_t vaddr, off, align;
	uint64_t lowest;	    /* address of the original's segments */
	uint64_t page;		    /* greatest alignment of the original's segments */
	uint64_t live_at;	    /* as the plan's */
	uint64_t old_end;	    /* file bytes [0, old_end) are kept at their offsets */
	uint64_t zeros, zeros_size; /* writable memory of me_segment_reserve() */
};

/*
 * me_segment_choose - @align: of the segment, in memory and file; a power of two, 0: as the
 * others. @live_at: the least address of what is added to memory; 0: right behind the others.
 * Return: 0, -ENOMEM, -EPERM refused: no slot, or an unusual file; the reason is in @err.
 * Ownership: me_segment_fini(@out).
 */
int me_segment_choose(const struct mp_elf *elf, uint64_t align, uint64_t live_at,
		      struct me_segment *out, struct mp_err *err);
/*
 * me_segment_reserve - reserves @size bytes of zeroed writable memory, in whole pages, between
 * the original's last segment, which grows up to their end, and the new one. Call it before anything is
 * placed.
 * Return: 0, -EPERM the last segment is not writable.
 */
int me_segment_reserve(const struct mp_elf *elf, struct me_segment *segment, uint64_t size,
		       struct mp_err *err);
void me_segment_fini(struct me_segment *segment);

#endif
