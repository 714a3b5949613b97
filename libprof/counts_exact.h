// SPDX-License-Identifier: Apache-2.0
/*
 * counts_exact - counts of a profile in which every instruction and every transfer was counted.
 */
#ifndef MP_COUNTS_EXACT_H
#define MP_COUNTS_EXACT_H

#include "libprof/counts.h"

/* Fills @out's blocks and edges, which are 0. Nothing is inferred: what fell through a block is what
 * ran in it and was not seen to leave. */
void mp_counts_take_exact(const struct mp_cfg *cfg, const struct mp_profile *profile,
			  struct mp_counts *out);

/* Whether what @func's edges carry into its blocks is about what ran in them. @in: room for a number
 * of each block of @func. */
bool mp_counts_agree(const struct mp_cfg *cfg, const struct mp_func *func,
		     const struct mp_counts *counts, double *in);

#endif
