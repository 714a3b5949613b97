// SPDX-License-Identifier: Apache-2.0
/*
 * meter_private - windows as they are kept, and the columns that candidates are; for meter_windows
 * and meter_choose.
 */
#ifndef MP_METER_PRIVATE_H
#define MP_METER_PRIVATE_H

#include <stdbool.h>

#include "libprof/trial/meter_windows.h"

struct mp_meter_windows {
	uint32_t *counters; /* that are kept, ascending */
	uint64_t *totals;   /* of each of them, over all windows */
	uint32_t *misses;   /* windows in which it counted nothing */
	uint32_t nr_counters;
	/*
	 * Of each window that is kept: its CPU time, and a row: each counter's counts in a second
	 * of it.
	 */
	float *rates;
	double *cpu_s;
	size_t nr_rows, max_rows;
	uint32_t every; /* every so-manieth window is kept */
	uint32_t nr_windows;
	double total_s;
	/* Short windows that become one: sums of all counters, also of those that are not kept. */
	uint64_t *begun;
	uint32_t nr_begun;
	double begun_s;
};

/* Positions of some of the counters in the rows. */
struct mp_meter_columns {
	uint32_t *at; /* ascending */
	uint32_t nr;
};

/*
 * mp_meter_columns_good - the counters that may be candidates, of those with a bit in @usable
 * (NULL: all). @slack: the limits of rates are wider by this factor, those of windows without
 * counts too. Return: 0, -ENOMEM. Ownership: free(out->at).
 */
int mp_meter_columns_good(const struct mp_meter_windows *m, const uint64_t *usable, double slack,
			  struct mp_meter_columns *out);
/* Keeps one of each set of columns that are the same in all rows. Return: 0, -ENOMEM. */
int mp_meter_columns_differ(const struct mp_meter_windows *m, struct mp_meter_columns *columns);
/*
 * Keeps MP_METER_CANDIDATES columns at most: half of them are those of the smallest spread (the
 * standard deviation of the rate, as a part of its mean), each of which tells the time alone; the
 * others are of all kinds of spread. Return: 0, -ENOMEM.
 */
int mp_meter_columns_few(const struct mp_meter_windows *m, struct mp_meter_columns *columns);

#endif
