// SPDX-License-Identifier: Apache-2.0
/*
 * moved - what transfers of control seen in moved code say of the original code.
 *
 * Copies of blocks are in another order than the originals, so a transfer that is taken here may
 * fall through there, and the other way round:
 *
 *	original		copy
 *	A: jcc C		A': jncc B'	A to B: falls through there, taken here
 *	B: ...			C': ...		A to C: taken there, falls through here
 *	C: ...			B': ...
 *
 * So what ran straight between two taken branches is looked through too. Called by flush.
 */
#ifndef MD_MOVED_H
#define MD_MOVED_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/elf.h"
#include "libprof/map.h"

/* A block does not run through more copies than this without a taken branch. */
#define MD_MOVED_STRAIGHT_MAX 1024

/*
 * md_moved_ends - where each piece's last instruction begins, as an offset into the piece: that of
 * the copy and of the original alike. @fd: of the optimised file @elf. UINT32_MAX: not known.
 * Return: @map->nr_pieces offsets, or NULL where they cannot be told. Ownership: free().
 */
uint32_t *md_moved_ends(const struct mp_elf *elf, int fd, const struct mp_map *map);

enum md_moved {
	MD_MOVED_TAKEN,	  /* *@from, *@to: the original's transfer */
	MD_MOVED_FELL,	  /* falls through in the original: nothing to count there */
	MD_MOVED_NOTHING, /* stands for nothing in the original: a patch, added code */
	MD_MOVED_UNKNOWN, /* something, but which instruction does it is not known */
};

/* A taken transfer. @ends: of md_moved_ends(), may be NULL. */
enum md_moved md_moved_transfer(const struct mp_map *map, const uint32_t *ends, uint64_t *from,
				uint64_t *to);

/*
 * md_moved_straight - calls @fn for every transfer of the original that ran straight through
 * [@start, @end] of the copies, @end being the instruction that left it.
 * Return: how many were not known, or make no sense.
 */
uint64_t md_moved_straight(const struct mp_map *map, const uint32_t *ends, uint64_t start,
			   uint64_t end, void (*fn)(void *arg, uint64_t from, uint64_t to),
			   void *arg);

#endif
