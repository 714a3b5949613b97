// SPDX-License-Identifier: Apache-2.0
/*
 * stale - carries counts of one build over to another build of the same program.
 * After Ayupov, Panchenko and Pupyrev, "Stale Profile Matching" (CC 2024): functions are
 * matched first, then the blocks of matched functions, by hashes of their instructions and
 * of their neighbours. The rest is left to inference. Beyond the paper, functions need no
 * names: those of a stripped file are found by their code, by their place between matched
 * functions, and by their callers.
 */
#ifndef MP_STALE_H
#define MP_STALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/stale/fingerprint.h"
#include "libprof/infer/profile.h"

/* The evidence by which a function was matched. */
enum mp_stale_how {
	MP_STALE_NOT_FOUND,
	MP_STALE_NAME,
	MP_STALE_CODE,	/* the same code, which no other function has */
	MP_STALE_PLACE, /* between two matched functions */
	MP_STALE_CALL,	/* called from the same place of a matched function */
	MP_NR_STALE_HOW
};
const char *mp_stale_how_name(enum mp_stale_how how);

struct mp_stale_match {
	const struct mp_fingerprint *old_build, *new_build;
	uint32_t *func_to; /* per old function: the new one, or MP_NONE */
	uint32_t *func_of; /* per new function: the old one, or MP_NONE */
	uint8_t *how;	   /* per old function: enum mp_stale_how */
	/* per old block that was kept: the new one in new_build->blocks, or MP_NONE */
	uint32_t *block_to;
	uint32_t *block_of; /* per new block: the old one, or MP_NONE */
};

/*
 * mp_stale_match - finds @old_build's functions and blocks in @new_build, which must have
 * all blocks. Both must outlive @out. Return: 0, -ENOMEM. Ownership:
 * mp_stale_match_fini(@out).
 */
int mp_stale_match(const struct mp_fingerprint *old_build, const struct mp_fingerprint *new_build,
		   struct mp_stale_match *out, struct mp_err *err);
void mp_stale_match_fini(struct mp_stale_match *match);

/*
 * mp_stale_match_blocks - matches the blocks of the old function @from and the new function
 * @to, which must not have been matched before. Return: 0, -ENOMEM.
 */
int mp_stale_match_blocks(struct mp_stale_match *match, uint32_t from, uint32_t to);

/* How much of a profile was matched. */
struct mp_stale_stats {
	uint32_t nr_funcs, nr_funcs_matched; /* with samples or transfers */
	uint32_t nr_by[MP_NR_STALE_HOW];     /* the matched ones, by enum mp_stale_how */
	uint32_t nr_blocks, nr_blocks_matched;
	uint64_t samples, samples_matched;
	uint64_t transfers, transfers_matched;
};

/* Counts for the new build: used like its own, and never stored with them. */
struct mp_stale_counts {
	struct mp_ip_count *counts; /* ascending; a block's count stands at its first instruction */
	size_t nr_counts;
	struct mp_edge_count *edges; /* ascending */
	size_t nr_edges;
	/*
	 * Ascending addresses of blocks in matched functions that the old build does not
	 * have: a missing count says nothing about them.
	 */
	uint64_t *unknown;
	size_t nr_unknown;
	struct mp_stale_stats stats;
};

/*
 * mp_stale_carry - converts @counts and @edges of the old build (both ascending) to the new
 * one.
 * Return: 0, -ENOMEM. Ownership: mp_stale_counts_fini(@out).
 */
int mp_stale_carry(const struct mp_stale_match *match, const struct mp_ip_count *counts,
		   size_t nr_counts, const struct mp_edge_count *edges, size_t nr_edges,
		   struct mp_stale_counts *out, struct mp_err *err);
void mp_stale_counts_fini(struct mp_stale_counts *counts);

#endif
