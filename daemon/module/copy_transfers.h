// SPDX-License-Identifier: Apache-2.0
/*
 * copy_transfers - translates control transfers in moved code to the original code. Called by flush.
 *
 * Copies of blocks have another order than the originals. A branch that is taken in the copy
 * may fall through in the original, and the other way round:
 *
 *	original		copy
 *	A: jcc C		A': jncc B'	A to B: falls through there, taken here
 *	B: ...			C': ...		A to C: taken there, falls through here
 *	C: ...			B': ...
 *
 * Therefore the straight runs between two taken branches are translated too.
 */
#ifndef MD_COPY_TRANSFERS_H
#define MD_COPY_TRANSFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/elf/elf.h"
#include "libprof/note/map.h"

/* Longest straight run, in copies, that is believed. */
#define MD_COPY_RUN_MAX 1024

/*
 * md_copy_branch_offsets - for each piece, the offset of its last instruction; it is the same in copy
 * and original. @fd: the optimised file @elf. UINT32_MAX: not known. Return: @map->nr_pieces
 * offsets, or NULL if they cannot be found. Ownership: free().
 */
uint32_t *md_copy_branch_offsets(const struct mp_elf *elf, int fd, const struct mp_map *map);

enum md_copy_translation {
	MD_COPY_TAKEN,		/* *@from and *@to: the original's transfer */
	MD_COPY_FALLS,		/* falls through in the original: not counted */
	MD_COPY_NO_COUNTERPART, /* has no counterpart in the original: a patch or added code */
	MD_COPY_UNKNOWN,	/* has one, but the branch instruction is not known */
};

/* Translates a taken branch. @ends: from md_copy_branch_offsets(), may be NULL. */
enum md_copy_translation md_copy_translate_branch(const struct mp_map *map, const uint32_t *ends,
						  uint64_t *from, uint64_t *to);

/*
 * md_copy_translate_run - call @fn for every branch of the original that is taken within the
 * straight run of copies from @start to @end. @end: the branch that ended the run. Return:
 * number of branches that could not be translated.
 */
uint64_t md_copy_translate_run(const struct mp_map *map, const uint32_t *ends, uint64_t start,
			       uint64_t end, void (*fn)(void *arg, uint64_t from, uint64_t to),
			       void *arg);

#endif
