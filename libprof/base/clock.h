// SPDX-License-Identifier: Apache-2.0
/* clock - reads the clocks that records, sources, cost measurements and limits in time use. */
#ifndef MP_CLOCK_H
#define MP_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t mp_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Reads CLOCK_MONOTONIC, the clock of all records. */
static inline uint64_t mp_now_ns(void)
{
	return (uint64_t)mp_clock_ns(CLOCK_MONOTONIC);
}

/* The same clocks in seconds. */
static inline double mp_clock_s(clockid_t clock)
{
	return (double)mp_clock_ns(clock) / 1e9;
}

static inline double mp_now_s(void)
{
	return mp_clock_s(CLOCK_MONOTONIC);
}

#endif
