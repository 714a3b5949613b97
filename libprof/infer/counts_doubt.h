// SPDX-License-Identifier: Apache-2.0
/*
 * counts_doubt - how certain inferred counts are, for predictions.
 * A layout follows the likeliest counts. A prediction from the same counts promises too
 * much, because the layout was chosen by their errors, too (the winner's curse).
 */
#ifndef MP_COUNTS_DOUBT_H
#define MP_COUNTS_DOUBT_H

#include "libprof/infer/counts.h"

/*
 * Samples that are added to each branch as evidence for both ways alike. Fitted
 * (scripts/bench/fit-hints).
 */
#define MP_DOUBT_FITTED 2.0

/*
 * mp_counts_add_doubt - counts for predictions. Blocks keep the counts of @counts. At each
 * conditional branch a way's share is its expected value, given the samples, paths and
 * transfers about the branch and @doubt samples divided evenly. Exact counts stay as they
 * are. @out->edge is new; everything else is shared with @counts.
 * Return: 0, -ENOMEM. Ownership: free(@out->edge), before @counts.
 */
int mp_counts_add_doubt(const struct mp_cfg *cfg, const struct mp_counts *counts, double doubt,
			struct mp_counts *out);

#endif
