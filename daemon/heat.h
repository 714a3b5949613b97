// SPDX-License-Identifier: Apache-2.0
/*
 * heat - where the executed code of a program lies, and which branches it takes, in the original
 * and in an optimised version of it.
 *
 * From inferred counts alone: nothing is run. Counts are in samples per instruction, so only
 * their proportions mean anything. Called by the command heat; draws nothing.
 */
#ifndef MD_HEAT_H
#define MD_HEAT_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/counts.h"
#include "libprof/map.h"

#define MD_HEAT_LINE 64
#define MD_HEAT_PAGE 4096

/* Code that runs, at one place: a block, a copy of one, or an address that no block holds. */
struct md_heat_place {
	uint64_t vaddr;
	uint32_t size;
	uint32_t block, func; /* of the original's cfg; MP_NONE: none */
	double count;	      /* how often it runs */
	double insns;	      /* executed instructions: of all copies together the block's */
};

enum md_heat_kind {
	MD_HEAT_BRANCH, /* a conditional branch that is taken, or a direct jump */
	MD_HEAT_TABLE,	/* a jump through a table: taken in any layout */
	MD_HEAT_CALL,	/* a direct call, or a direct jump out of the function */
};

struct md_heat_jump {
	uint64_t from, to;
	double count;
	uint8_t kind; /* enum md_heat_kind */
};

struct md_heat {
	struct md_heat_place *places; /* ascending vaddr */
	size_t nr_places, max_places;
	struct md_heat_jump *jumps;
	size_t nr_jumps, max_jumps;
	double insns;	      /* executed, over all places */
	double taken;	      /* MD_HEAT_BRANCH, over all jumps */
	uint32_t nr_unplaced; /* pieces of the map that are no block of the original */
	uint32_t nr_moved;    /* functions that have a copy that runs */
	/* After only: @taken as a run will show it, smaller gains than counts promise; and the
	 * ratio of that to before. */
	double expected_taken, expected_ratio;
};

/* What runs, before anything is moved. */
struct md_heat_input {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	const struct mp_ip_count *loose; /* samples that no block holds, ascending */
	size_t nr_loose;
};

/* Return: 0, -ENOMEM. Ownership: md_heat_fini(@out), also after an error. */
int md_heat_before(const struct md_heat_input *in, struct md_heat *out);

/*
 * md_heat_after - the same flow through @after, the file whose map is @map. Which way a copied
 * block goes is read from the copy's own branches. A clone gets what the copy before it lets fall
 * into it, the block's other copy the rest. What enters through addresses that nobody could change
 * (an exported function, say) is taken to arrive at the copy at once.
 * Return: 0, -ENOMEM. Ownership: md_heat_fini(@out), also after an error.
 */
int md_heat_after(const struct md_heat_input *in, const struct mp_map *map,
		  const struct mp_elf *after, struct md_heat *out);
void md_heat_fini(struct md_heat *heat);

/* Add to @heat; what never runs is left out. Return: 0, -ENOMEM. */
int md_heat_add_place(struct md_heat *heat, const struct md_heat_place *place);
int md_heat_add_jump(struct md_heat *heat, uint64_t from, uint64_t to, double count,
		     enum md_heat_kind kind);
/* Places ascending. */
void md_heat_sort(struct md_heat *heat);
/* Add @in->loose. Return: 0, -ENOMEM. */
int md_heat_add_loose(const struct md_heat_input *in, struct md_heat *heat);
/* Of @block's count, what leaves its function by the branch at its end. */
double md_heat_leaving(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t block);

#endif
