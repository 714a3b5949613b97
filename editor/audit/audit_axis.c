// SPDX-License-Identifier: Apache-2.0
/* audit_axis - ranges and ticks. */
#include "editor/audit/audit_axis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double me_axis_place(const struct me_axis *axis, double value)
{
	return axis->from + (value - axis->lo) / (axis->hi - axis->lo) * (axis->to - axis->from);
}

static int axis_compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

void me_axis_cover(struct me_axis *axis, const double *values, size_t nr, double bulk)
{
	double *sorted = nr ? malloc(nr * sizeof(*sorted)) : NULL, low, high, room;

	axis->lo = 0;
	axis->hi = 1;
	if (!sorted)
		return;
	memcpy(sorted, values, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), axis_compare);
	low = sorted[nr / 4];
	high = sorted[nr - 1 - nr / 4];
	room = bulk * (high - low);
	axis->lo = room > 0 ? fmax(sorted[0], low - room) : sorted[0];
	axis->hi = room > 0 ? fmin(sorted[nr - 1], high + room) : sorted[nr - 1];
	room = (axis->hi - axis->lo) / 20;
	if (room <= 0)
		room = fabs(axis->lo) / 100 + 1e-9;
	axis->lo -= room;
	axis->hi += room;
	free(sorted);
}

double me_axis_step(const struct me_axis *axis, int nr, int *decimals)
{
	double rough = (axis->hi - axis->lo) / nr, power = pow(10, floor(log10(rough)));
	double step = rough / power;

	step = (step > 5 ? 10 : step > 2 ? 5 : step > 1 ? 2 : 1) * power;
	*decimals = (int)fmax(0, -floor(log10(step) + 1e-9));
	return step;
}
