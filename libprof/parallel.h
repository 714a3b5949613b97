// SPDX-License-Identifier: Apache-2.0
/*
 * parallel - one loop over independent items, on several threads.
 *
 * Decides who does what, nothing about the work. What is done and what it gives never depends on
 * the number of threads: the pieces that the loop is cut into do not, and of errors the first one
 * in the order of items wins.
 */
#ifndef MP_PARALLEL_H
#define MP_PARALLEL_H

#include <stdint.h>

#include "libprof/err.h"

/* More than this are not started. */
#define MP_PARALLEL_MAX 64
/* As many as are used unless somebody asks for more. */
#define MP_PARALLEL_USUAL 8

/* The processors that this process may run on, at most MP_PARALLEL_USUAL. */
unsigned int mp_parallel_cpus(void);

struct mp_parallel {
	uint32_t nr_items;
	uint32_t grain; /* items that go together; 0: 1 */
	/*
	 * Do items @first to @end, without it. At any time no two calls have the same @worker,
	 * which is less than nr_threads: what it names needs no lock. Everything else that a call
	 * writes must be its items' alone.
	 * Return: 0; < 0: nothing behind these items will be begun.
	 */
	int (*run)(void *ctx, unsigned int worker, uint32_t first, uint32_t end,
		   struct mp_err *err);
	void *ctx;
};

/*
 * mp_parallel_for - @work, by this thread, which is worker 0, and up to @nr_threads - 1 others. 0
 * is 1. Where a thread cannot be had it goes on with fewer.
 * Return: 0, or what @run returned for the first items for which it failed, with its @err.
 */
int mp_parallel_for(unsigned int nr_threads, const struct mp_parallel *work, struct mp_err *err);

#endif
