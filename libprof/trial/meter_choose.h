// SPDX-License-Identifier: Apache-2.0
/*
 * meter_choose - chooses the work meter of a program: at most eight of its counters whose weighted
 * sum tells how much work the program did.
 *
 * Everyday runs of a program are never the same work twice, so their times cannot be compared;
 * times for a unit of work can. The weights are seconds for one count, so the work is a time: what
 * the counting version would have taken for these counts. Called with the windows of a counting
 * version. It decides nothing about times of versions.
 *
 * Candidates count between MP_METER_RATE_MIN and MP_METER_RATE_MAX times in a second of CPU time:
 * often enough to tell the work of a second, rarely enough to cost nothing. They occur in 95 % of
 * the windows, and no two of them have the same counts. Among them, counters are added one by one,
 * each time the one that lowers most the sum over the windows of (1 - work / CPU time)^2, with
 * weights that are not negative.
 *
 * How well the meter predicts is measured on windows that it was not chosen with: it is chosen with
 * every second window and judged by the others, and the other way round. So many counters are taken
 * as predict best there.
 */
#ifndef MP_METER_CHOOSE_H
#define MP_METER_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/trial/meter_windows.h"

/* Counters of a meter, at most. */
#define MP_METER_MAX 8
/*
 * Fewer windows (of MP_METER_WINDOW_S at least) are too few to choose with one half and to judge by
 * the other.
 */
#define MP_METER_LEAST_WINDOWS 16
/* A meter that is wrong by more than this (standard deviation of the logarithm) is of no use. */
#define MP_METER_DEVIATION_MAX 0.20

struct mp_meter {
	bool usable; /* it predicts within MP_METER_DEVIATION_MAX; else use another unit of work */
	size_t nr;   /* of counters; 0: no counter may be used */
	uint32_t index[MP_METER_MAX];
	double weight[MP_METER_MAX]; /* seconds for one count, above 0 */
	double rate;		     /* counts of all of them in a second of CPU time */
	/*
	 * Standard deviation of log(CPU time / work) on windows that were not used for choosing.
	 * Without a meter: of log(CPU time), as if each window were the same work. INFINITY: no
	 * counter.
	 */
	double deviation, deviation_without;
	size_t nr_windows;    /* of MP_METER_WINDOW_S at least */
	size_t nr_candidates; /* counters among which were chosen */
};

/*
 * mp_meter_choose - @usable: bit i % 64 of word i / 64 says that a stub may hold counter i; NULL:
 * each may. Return: 0, also if no meter is usable; -EAGAIN: fewer than MP_METER_LEAST_WINDOWS
 * windows, more are needed; -ENOMEM. More windows may be added afterwards.
 */
int mp_meter_choose(const struct mp_meter_windows *m, const uint64_t *usable, struct mp_meter *out);
/*
 * mp_meter_work - the work of @counts in seconds; @counts are those of the meter's counters, in its
 * order.
 */
double mp_meter_work(const struct mp_meter *meter, const uint64_t *counts);

#endif
