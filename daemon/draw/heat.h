// SPDX-License-Identifier: Apache-2.0
/*
 * heat - computes where the executed code of a program lies and which branches are taken, in
 * the original and in an optimised version.
 *
 * Uses inferred counts only; nothing is run. Counts are in samples per instruction, so only
 * their proportions mean anything. Called by "morph-stats heat"; draws nothing.
 */
#ifndef MD_HEAT_H
#define MD_HEAT_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/infer/counts.h"
#include "libprof/note/map.h"

#define MD_HEAT_LINE 64
#define MD_HEAT_PAGE 4096

/* Executed code in one place: a block, a copy of a block or of a part of it, or an address outside of all blocks. */
struct md_heat_place {
	uint64_t vaddr;
	uint32_t size;
	uint32_t func; /* in the original's cfg; MP_NONE: none */
	double count;  /* number of executions */
	/* executed instructions; a block's copies together have the block's count */
	double insns;
};

enum md_heat_kind {
	MD_HEAT_BRANCH, /* a taken conditional branch, or a direct jump */
	MD_HEAT_TABLE,	/* a jump through a table: taken in any layout */
	MD_HEAT_CALL,	/* a direct call, or a direct jump out of the function */
};

struct md_heat_jump {
	uint64_t from, to;
	double count;
	uint8_t kind; /* enum md_heat_kind */
};

struct md_heat {
	struct md_heat_place *places; /* ascending by vaddr */
	size_t nr_places, max_places;
	struct md_heat_jump *jumps;
	size_t nr_jumps, max_jumps;
	double insns;	      /* executed instructions of all places */
	double taken;	      /* sum of the counts of MD_HEAT_BRANCH */
	uint32_t nr_unplaced; /* pieces of the map that match no block of the original */
	uint32_t nr_moved;    /* functions with an executed copy */
	/*
	 * Optimised version only: a cautious prediction of @taken (counts with doubt give smaller
	 * gains), and its ratio to the original's.
	 */
	double expected_taken, expected_ratio;
};

/* The original program with its counts. */
struct md_heat_input {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	const struct mp_ip_count *loose; /* samples outside of all blocks, ascending */
	size_t nr_loose;
};

/* Return: 0, -ENOMEM. Ownership: md_heat_fini(@out), also after an error. */
int md_heat_before(const struct md_heat_input *in, struct md_heat *out);

/*
 * md_heat_after - send the same flow through @after, the optimised file, whose map is @map. The
 * successors of a copied block are read from the copy's own branches. A clone gets the flow
 * that falls into it from the copy before; the primary copy gets the rest. Flow that enters at
 * the old address of a moved function (an exported one, say) is counted at the copy directly.
 * Where a called function's code stands in place of a call, that code gets the part of the function's
 * counts that the call has of all calls of the function.
 * Return: 0, -ENOMEM. Ownership: md_heat_fini(@out), also after an error.
 */
int md_heat_after(const struct md_heat_input *in, const struct mp_map *map,
		  const struct mp_elf *after, struct md_heat *out);
void md_heat_fini(struct md_heat *heat);

/* Adds to @heat, unless the count is 0. Return: 0, -ENOMEM. */
int md_heat_add_place(struct md_heat *heat, const struct md_heat_place *place);
int md_heat_add_jump(struct md_heat *heat, uint64_t from, uint64_t to, double count,
		     enum md_heat_kind kind);
/* Sorts places by address. */
void md_heat_sort(struct md_heat *heat);
/* Adds @in->loose. Return: 0, -ENOMEM. */
int md_heat_add_loose(const struct md_heat_input *in, struct md_heat *heat);
/* Return: the part of @block's count that leaves the function by the block's last branch. */
double md_heat_leaving(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t block);

#endif
