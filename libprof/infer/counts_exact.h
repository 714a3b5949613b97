// SPDX-License-Identifier: Apache-2.0
/* counts_exact - counts of a profile in which every instruction and every transfer was counted. */
#ifndef MP_COUNTS_EXACT_H
#define MP_COUNTS_EXACT_H

#include "libprof/infer/counts.h"

/*
 * Fills @out's blocks and edges, which must be 0. Nothing is inferred: the count of a
 * fall-through is the block's count less the transfers that left it.
 */
void mp_counts_take_exact(const struct mp_cfg *cfg, const struct mp_profile *profile,
			  struct mp_counts *out);

/*
 * True if the edges of @func carry about as much into its blocks as ran in them. @in: room
 * for one number per block of @func.
 */
bool mp_counts_agree(const struct mp_cfg *cfg, const struct mp_func *func,
		     const struct mp_counts *counts, double *in);

#endif
