// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_profiled - tells whether the compiler had a profile when it ordered the blocks.
 * Called by counts.
 */
#include "libprof/cfg/cfg.h"

/*
 * Threshold: ways from .cold parts back to hot code, per conditional branch. Without a
 * profile, a compiler puts code into a .cold part that ends there: it aborts, throws, or
 * cleans up after an exception. Of thirteen programs and libraries of a Debian system
 * (scripts/works/stockworks.py) twelve have at most 0.004 ways back for each conditional branch.
 * Python, which was built with a profile, has 0.26. Of 1,165 files below 8 MB only python,
 * binutils (also built with a profile) and libXrandr are above this share.
 */
#define WAYS_BACK_SHARE 0.05
/* Fewer ways back may be hand-written code. */
#define WAYS_BACK_MIN 20

bool mp_cfg_is_profiled(const struct mp_cfg *cfg)
{
	uint64_t nr_branches = 0, nr_back = 0;

	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (!(block->flags & MP_BLOCK_COLD_PART)) {
			nr_branches += block->term == MP_TERM_COND;
			continue;
		}
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			if (!(cfg->blocks[cfg->edges[e].to].flags & MP_BLOCK_COLD_PART)) {
				nr_back++;
				break;
			}
	}
	return nr_back >= WAYS_BACK_MIN && (double)nr_back > WAYS_BACK_SHARE * (double)nr_branches;
}
