// SPDX-License-Identifier: Apache-2.0
/*
 * counts_doubt - how sure inferred counts are, for those who predict by them.
 *
 * A layout goes by the likeliest counts. What it promises by these same counts is too much: it was
 * chosen by their errors, too (the winner's curse).
 */
#ifndef MP_COUNTS_DOUBT_H
#define MP_COUNTS_DOUBT_H

#include "libprof/counts.h"

/* So many samples say of each branch that it goes both ways alike. Fitted (scripts/fit-hints). */
#define MP_DOUBT_FITTED 2.0

/*
 * mp_counts_temper - counts for predictions: the blocks' are @counts', and at each conditional branch
 * the share of a way is what is to be expected of it, given how many samples, paths and transfers
 * speak of it and @doubt samples that do not. Counts that were counted stay as they are.
 * @out->edge is new, all else is shared with @counts.
 * Return: 0, -ENOMEM. Ownership: free(@out->edge), before @counts.
 */
int mp_counts_temper(const struct mp_cfg *cfg, const struct mp_counts *counts, double doubt,
		     struct mp_counts *out);

#endif
