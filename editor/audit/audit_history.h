// SPDX-License-Identifier: Apache-2.0
/*
 * audit_history - the interval of an audit as it narrows with each pair.
 *
 * Called by audit_svg and audit_plot.
 */
#ifndef ME_AUDIT_HISTORY_H
#define ME_AUDIT_HISTORY_H

#include <stddef.h>

#include "libprof/audit/sequential_test.h"

/* The state after @nr pairs: logarithms of the ratio. @lo and @hi may be infinite. */
struct me_history_point {
	size_t nr;
	double estimate, lo, hi;
};

struct me_history {
	struct me_history_point *points; /* ascending; the last one is after all pairs */
	size_t nr;
};

/* Enough for a picture; each point costs the interval of its pairs. */
#define ME_HISTORY_MAX 100

/* me_history_make - at most ME_HISTORY_MAX points. Return: 0 or -ENOMEM. Ownership:
 * me_history_fini(). */
int me_history_make(const struct mp_seq *seq, struct me_history *history);
void me_history_fini(struct me_history *history);

#endif
