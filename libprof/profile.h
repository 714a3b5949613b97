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

#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/err.h"

struct mp_ip_count {
	uint64_t vaddr; /* link-time address */
	uint64_t count;
};

struct mp_profile {
	uint64_t *block_samples; /* per cfg block */
	uint64_t nr_samples;	 /* that fell into blocks */
	uint64_t nr_outside;	 /* that fell into no block of the cfg */
	uint32_t nr_blocks;
};

/*
 * mp_profile_build - witness counts per block of @cfg from @counts (ascending vaddr).
 * Return: 0, -ENOMEM. Ownership: *@out is freed by mp_profile_free(), which takes NULL.
 */
int mp_profile_build(const struct mp_cfg *cfg, const struct mp_ip_count *counts, size_t nr,
		     struct mp_profile **out, struct mp_err *err);
void mp_profile_free(struct mp_profile *profile);

/* Length-scaled weight of a block: samples per instruction. */
static inline double mp_profile_weight(uint64_t samples, uint32_t nr_insns)
{
	return nr_insns ? (double)samples / nr_insns : 0.0;
}

#endif
