// SPDX-License-Identifier: Apache-2.0
/*
 * profile - sample counts per instruction address and per basic block.
 * Morph (SOSP 1997), section 3.3: a PC sample is a witness for the block that holds it. A
 * block's weight is samples / instructions (length scaling). Runs are combined by plain
 * addition (direct combining).
 */
#ifndef MP_PROFILE_H
#define MP_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"
#include "libprof/base/ip_count.h"

struct mp_profile {
	uint64_t *block_samples; /* per cfg block */
	/* per cfg edge; this and the next two are NULL if there are no transfers */
	uint64_t *edge_transfers;
	/*
	 * Calls, returns and tail calls: how often such instructions of a block were seen
	 * to run, and how many such instructions there are.
	 */
	uint64_t *block_leavings;
	uint32_t *block_leavers;
	/*
	 * Per cfg block: 1 if a missing count says nothing, because the counts come from
	 * another build without such a block. NULL: all blocks are known.
	 */
	uint8_t *block_unknown;
	/*
	 * Per cfg edge of a conditional branch: samples whose registers showed that control would go
	 * this way (mp_foreseen_add()). NULL: none.
	 */
	uint64_t *edge_foreseen;
	uint64_t nr_transfers;	       /* over edges of the cfg, or out of a block */
	uint64_t nr_transfers_outside; /* other transfers: not used */
	uint64_t nr_samples;	       /* in blocks */
	uint64_t nr_outside;	       /* in no block of the cfg */
	uint32_t nr_blocks;
	/*
	 * Samples and transfers are counted executions (mp_store_is_exact()). The caller
	 * sets this; false until then.
	 */
	bool exact;
};

/*
 * mp_profile_build - witness counts per block of @cfg, from @counts (ascending vaddr).
 * Return: 0, -ENOMEM. Ownership: *@out is freed by mp_profile_free(), which takes NULL.
 */
int mp_profile_build(const struct mp_cfg *cfg, const struct mp_ip_count *counts, size_t nr,
		     struct mp_profile **out, struct mp_err *err);
/*
 * mp_profile_add_edges - adds transfers of control (ascending (from, to)) to the samples.
 * At most once per profile. Return: 0, -ENOMEM.
 */
int mp_profile_add_edges(struct mp_profile *profile, const struct mp_cfg *cfg,
			 const struct mp_edge_count *edges, size_t nr, struct mp_err *err);
/* Frees the arrays that mp_profile_add_edges() added; the sums and block_samples stay. */
void mp_profile_drop_edges(struct mp_profile *profile);
/*
 * mp_profile_set_unknown - marks the blocks of @cfg that begin at @vaddrs as unknown.
 * Blocks with samples or transfers stay known; call this after mp_profile_add_edges().
 * Return: 0, -ENOMEM.
 */
int mp_profile_set_unknown(struct mp_profile *profile, const struct mp_cfg *cfg,
			   const uint64_t *vaddrs, size_t nr, struct mp_err *err);
void mp_profile_free(struct mp_profile *profile);

/* Length-scaled weight of a block: samples per instruction. */
static inline double mp_profile_weight(uint64_t samples, uint32_t nr_insns)
{
	return nr_insns ? (double)samples / nr_insns : 0.0;
}

#endif
