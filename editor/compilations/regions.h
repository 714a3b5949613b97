// SPDX-License-Identifier: Apache-2.0
/*
 * regions - parts of two compilations that do the same work, found by code markers.
 *
 * A marker's loops are the innermost loops that hold its increments. Compilers copy a loop's header
 * to the front of the loop, and peel rounds off; these copies hold increments of the same marker,
 * too. So if a loop with the marker lies inside another one with the same marker, only the inner
 * loop is the marker's. Where a compiler put the loops of two markers into one, or took a marker
 * out of its loop, the two cannot be told apart any more, and are one region in both compilations.
 * Code outside of marked loops belongs to its function. Functions are the same if their names are
 * the same without the suffixes of compilers (.constprop.0, .cold).
 *
 * A second division joins whole functions: a function with its loops, and with all functions that
 * one compilation inlined into it and the other did not, by what calls and markers show.
 *
 * Called by compilations; runs nothing.
 */
#ifndef ME_REGIONS_H
#define ME_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/compilations/build.h"

enum {
	ME_OLD,
	ME_NEW,
	ME_NR_BUILDS
};

enum me_division {
	ME_DIVISION_FUNCTIONS,
	ME_DIVISION_LOOPS,
	ME_NR_DIVISIONS
};

/* A marker that one of the compilations has. */
struct me_region_marker {
	char *name; /* without prefix */
	struct me_marker_place place;
	bool placed; /* @place is known */
	uint64_t total[ME_NR_BUILDS];
	uint32_t nr_inside[ME_NR_BUILDS], nr_outside[ME_NR_BUILDS]; /* accesses, of its loops */
	uint32_t nr_stay[ME_NR_BUILDS]; /* accesses that a copy cannot lack */
	uint32_t region[ME_NR_DIVISIONS];
};

struct me_region_function {
	char *name;
	bool present[ME_NR_BUILDS];
	/* Calls of this function by others, whose number differs: a part of them may be inlined. */
	bool perhaps_inlined;
	uint64_t samples; /* sum over all runs, set by callers that trace; me_regions_find() leaves it 0 */
	uint32_t region[ME_NR_DIVISIONS];
};

struct me_regions {
	struct me_region_marker *markers; /* ascending name */
	uint32_t nr_markers;
	struct me_region_function *functions; /* ascending name */
	uint32_t nr_functions;
	uint32_t nr[ME_NR_DIVISIONS];
	uint32_t *function_of[ME_NR_BUILDS]; /* per function of a build: index in @functions */
	/* per division and build: region of each block */
	uint32_t *of_block[ME_NR_DIVISIONS][ME_NR_BUILDS];
};

/* Return: 0, -ENOMEM. Ownership: me_regions_fini(@out), after an error too. */
int me_regions_find(const struct me_build builds[ME_NR_BUILDS], struct me_regions *out);
void me_regions_fini(struct me_regions *regions);
/* Return: index of the marker @name, or MP_NONE. */
uint32_t me_regions_marker(const struct me_regions *regions, const char *name);

#endif
