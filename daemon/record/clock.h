// SPDX-License-Identifier: Apache-2.0
/* clock - reads the clocks that records, sources and cost measurements use. */
#ifndef MD_CLOCK_H
#define MD_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t md_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Reads CLOCK_MONOTONIC, the clock of all records. */
static inline uint64_t md_clock_now_ns(void)
{
	return (uint64_t)md_clock_ns(CLOCK_MONOTONIC);
}

#endif
