// SPDX-License-Identifier: Apache-2.0
/*
 * stale - counts of one build carried over to another build of the same program.
 *
 * After Ayupov, Panchenko and Pupyrev, "Stale Profile Matching" (CC 2024): functions first, then the
 * blocks of matched functions by hashes of their instructions and of their neighbours; what has no
 * match is left to inference. Beyond the paper, functions need no names: those of a stripped file
 * are found by their code, by their place between functions that are found, and by who calls them.
 */
#ifndef MP_STALE_H
#define MP_STALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/err.h"
#include "libprof/fingerprint.h"
#include "libprof/profile.h"

/* What a function was found by. */
enum mp_stale_how {
	MP_STALE_NOT_FOUND,
	MP_STALE_NAME,
	MP_STALE_CODE,	/* the same code, and nothing else has it */
	MP_STALE_PLACE, /* between two functions that were found */
	MP_STALE_CALL,	/* called from the same place of a function that was found */
	MP_NR_STALE_HOW
};
const char *mp_stale_how_name(enum mp_stale_how how);

struct mp_stale_match {
	const struct mp_fingerprint *old_build, *new_build;
	uint32_t *func_to;  /* per old function: the new one, or MP_NONE */
	uint32_t *func_of;  /* per new function: the old one, or MP_NONE */
	uint8_t *how;	    /* per old function: enum mp_stale_how */
	uint32_t *block_to; /* per old block that was kept: the new one in new_build->blocks */
	uint32_t *block_of; /* per new block: the old one, or MP_NONE */
};

/*
 * mp_stale_match - find @old_build's functions and blocks in @new_build, of which all blocks are kept. Both
 * must outlive @out. Return: 0, -ENOMEM. Ownership: mp_stale_match_fini(@out).
 */
int mp_stale_match(const struct mp_fingerprint *old_build, const struct mp_fingerprint *new_build,
		   struct mp_stale_match *out, struct mp_err *err);
void mp_stale_match_fini(struct mp_stale_match *match);

/*
 * mp_stale_match_blocks - those of the function @from of the old build and @to of the new one, which
 * have not been matched before. Return: 0, -ENOMEM.
 */
int mp_stale_match_blocks(struct mp_stale_match *match, uint32_t from, uint32_t to);

/* How much of a profile was found again. */
struct mp_stale_stats {
	uint32_t nr_funcs, nr_funcs_matched; /* with samples or transfers */
	uint32_t nr_by[MP_NR_STALE_HOW];     /* of them */
	uint32_t nr_blocks, nr_blocks_matched;
	uint64_t samples, samples_matched;
	uint64_t transfers, transfers_matched;
};

/* Counts as of the new build: to be used like its own, and never stored among them. */
struct mp_stale_counts {
	struct mp_ip_count *counts; /* ascending; a block's stand at its first instruction */
	size_t nr_counts;
	struct mp_edge_count *edges; /* ascending */
	size_t nr_edges;
	/* Ascending addresses of blocks in matched functions of which the old build knows nothing:
	 * that they have no count says nothing. */
	uint64_t *unknown;
	size_t nr_unknown;
	struct mp_stale_stats stats;
};

/*
 * mp_stale_carry - what @counts and @edges of the old build (both ascending) mean in the new one.
 * Return: 0, -ENOMEM. Ownership: mp_stale_counts_fini(@out).
 */
int mp_stale_carry(const struct mp_stale_match *match, const struct mp_ip_count *counts,
		   size_t nr_counts, const struct mp_edge_count *edges, size_t nr_edges,
		   struct mp_stale_counts *out, struct mp_err *err);
void mp_stale_counts_fini(struct mp_stale_counts *counts);

#endif
