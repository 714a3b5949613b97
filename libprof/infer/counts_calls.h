// SPDX-License-Identifier: Apache-2.0
/* counts_calls - evidence of the call graph about the counts of blocks. */
#ifndef MP_COUNTS_CALLS_H
#define MP_COUNTS_CALLS_H

#include "libprof/infer/counts.h"

/* Evidence beside a block's own samples: as if @insns more instructions had got @samples. */
struct mp_calls_evidence {
	double *samples, *insns; /* per block */
};

/*
 * mp_calls_begin - derives evidence from samples alone: a callee without samples ran seldom,
 * and so did the blocks that call it. @counts: its samples are used.
 * Return: 0, -ENOMEM. Ownership: mp_calls_evidence_fini(@out), also after an error.
 */
int mp_calls_begin(const struct mp_cfg *cfg, const struct mp_profile *profile,
		   const struct mp_counts *counts, struct mp_calls_evidence *out);
/*
 * mp_calls_weigh - adds evidence from counts that were inferred function by function. A
 * block that calls g ran as often as g was entered from there, and g's entry as often as
 * its call sites.
 * Return: 0, -ENOMEM.
 */
int mp_calls_weigh(const struct mp_cfg *cfg, const struct mp_counts *counts,
		   struct mp_calls_evidence *evidence);
void mp_calls_evidence_fini(struct mp_calls_evidence *evidence);

#endif
