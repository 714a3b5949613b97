// SPDX-License-Identifier: Apache-2.0
/*
 * meter_windows - keeps what a counting version counted in windows of time, as far as a meter may
 * be chosen from it (meter_choose.h). Memory has a bound that is fixed beforehand: counters that
 * cannot become candidates any more are forgotten, then every second window.
 */
#ifndef MP_METER_WINDOWS_H
#define MP_METER_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Counts in a second of CPU time, in the mean. 50,000 additions to memory take less than a
 * thousandth of it.
 */
#define MP_METER_RATE_MIN 2000.0
#define MP_METER_RATE_MAX 50000.0
/* A candidate is 0 in one window of so many at most. */
#define MP_METER_SELDOM 20
/* Of more candidates, so many are looked at. */
#define MP_METER_CANDIDATES 30000u
/*
 * Windows that are shorter, in seconds, are taken together with those that follow: a candidate counts
 * hundreds of times then, and clocks are exact enough.
 */
#define MP_METER_WINDOW_S 0.1
/* A program with more counters than this gets no meter. */
#define MP_METER_MAX_COUNTERS 4000000u

struct mp_meter_windows;

/*
 * mp_meter_new - no window yet. Memory stays below 200 MB for a million counters, choosing
 * included. Return: NULL: no memory, or no counter, or more than MP_METER_MAX_COUNTERS.
 */
struct mp_meter_windows *mp_meter_new(uint32_t nr_counters);
void mp_meter_free(struct mp_meter_windows *m);
/*
 * mp_meter_add_window - @deltas: how often each counter counted in this window, or in one process;
 * @cpu_s: the CPU time in seconds, of just what the counters counted. Return: 0; -EINVAL: @cpu_s is
 * below 0 or not finite; -ENOMEM: the windows may be used for nothing more.
 */
int mp_meter_add_window(struct mp_meter_windows *m, double cpu_s, const uint64_t *deltas);

#endif
