// SPDX-License-Identifier: Apache-2.0
/*
 * counts_calls - what the call graph says about the counts of blocks.
 */
#ifndef ME_COUNTS_CALLS_H
#define ME_COUNTS_CALLS_H

#include "editor/layout.h"

/* Evidence beside a block's own samples: as if @insns more instructions had caught @samples. */
struct me_calls_evidence {
	double *samples, *insns; /* per block */
};

/*
 * me_calls_weigh - from counts inferred function by function: a block that calls g ran as often
 * as g was entered from there, and g's entry as often as its call sites.
 * Return: 0, -ENOMEM. Ownership: me_calls_evidence_fini(@out), also after an error.
 */
int me_calls_weigh(const struct mp_cfg *cfg, const struct me_counts *counts,
		   struct me_calls_evidence *out);
void me_calls_evidence_fini(struct me_calls_evidence *evidence);

#endif
