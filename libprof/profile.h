// SPDX-License-Identifier: Apache-2.0
/*
 * profile - sample counts per instruction address, and per basic block.
 *
 * Morph (SOSP 1997) section 3.3: a PC sample is a witness for the block that holds it (a block's
 * weight is samples / instructions: length scaling), and runs are combined by plain addition
 * (direct combining).
 */
#ifndef MP_PROFILE_H
#define MP_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/err.h"
#include "libprof/ip_count.h"

struct mp_profile {
	uint64_t *block_samples;  /* per cfg block */
	uint64_t *edge_transfers; /* per cfg edge; NULL, as the next two: none was ever seen */
	/* Calls, returns and tail calls: how often those of a block's instructions were seen to
	 * run, and how many of them that are. */
	uint64_t *block_leavings;
	uint32_t *block_leavers;
	/* Per cfg block: that it has no count says nothing, since the counts are another build's, which
	 * has no such block. NULL: of every block something is known. */
	uint8_t *block_unknown;
	uint64_t nr_transfers;	       /* over edges of the cfg, or leaving a block */
	uint64_t nr_transfers_outside; /* others: they say nothing */
	uint64_t nr_samples;	       /* that fell into blocks */
	uint64_t nr_outside;	       /* that fell into no block of the cfg */
	uint32_t nr_blocks;
	/* Samples and transfers are executions that were counted (mp_store_is_exact()); false, until
	 * who built it knows. */
	bool exact;
};

/*
 * mp_profile_build - witness counts per block of @cfg from @counts (ascending vaddr).
 * Return: 0, -ENOMEM. Ownership: *@out is freed by mp_profile_free(), which takes NULL.
 */
int mp_profile_build(const struct mp_cfg *cfg, const struct mp_ip_count *counts, size_t nr,
		     struct mp_profile **out, struct mp_err *err);
/*
 * mp_profile_add_edges - what is known of transfers of control (ascending (from, to)), beside the
 * samples. At most once for a profile. Return: 0, -ENOMEM.
 */
int mp_profile_add_edges(struct mp_profile *profile, const struct mp_cfg *cfg,
			 const struct mp_edge_count *edges, size_t nr, struct mp_err *err);
/* What mp_profile_add_edges() added, but for the sums; block_samples stay. */
void mp_profile_drop_edges(struct mp_profile *profile);
/*
 * mp_profile_set_unknown - the blocks of @cfg that begin at @vaddrs have no count because nothing is
 * known of them. Those with samples, or that transfers lead from or to, are known all the same: call
 * after mp_profile_add_edges(). Return: 0, -ENOMEM.
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
