// SPDX-License-Identifier: Apache-2.0
/*
 * audit_axis - the range of an axis and its round ticks.
 *
 * Called by audit_svg and audit_plot.
 */
#ifndef ME_AUDIT_AXIS_H
#define ME_AUDIT_AXIS_H

#include <stddef.h>

struct me_axis {
	double lo, hi;	 /* values at its two ends, lo < hi */
	double from, to; /* places of the two ends */
};

/* me_axis_place - the place of @value, which may lie beyond the ends. */
double me_axis_place(const struct me_axis *axis, double value);
/*
 * me_axis_cover - let the axis cover the @nr @values. Values more than @bulk quartile distances
 * from the quartiles stay outside, so that one disturbed run does not flatten all others.
 */
void me_axis_cover(struct me_axis *axis, const double *values, size_t nr, double bulk);
/* Suits the values of runs. */
#define ME_AXIS_BULK 4.0
/* me_axis_step - distance of about @nr round ticks. *@decimals: what their numbers need. */
double me_axis_step(const struct me_axis *axis, int nr, int *decimals);

#endif
