// SPDX-License-Identifier: Apache-2.0
/*
 * parallel - runs one loop over independent items on several threads.
 * It decides which thread does which items. The result never depends on the number of
 * threads: the pieces of the loop do not, and of several errors the first one in the order
 * of items is returned.
 */
#ifndef MP_PARALLEL_H
#define MP_PARALLEL_H

#include <stdint.h>

#include "libprof/base/err.h"

/* Largest number of threads. */
#define MP_PARALLEL_MAX 64
/* Number of threads unless the user asks for more. */
#define MP_PARALLEL_USUAL 8

/* Number of processors that this process may run on, at most MP_PARALLEL_USUAL. */
unsigned int mp_parallel_cpus(void);

struct mp_parallel {
	uint32_t nr_items;
	uint32_t grain; /* items per piece; 0: 1 */
	/*
	 * Does items @first to @end, without @end. No two calls at a time have the same
	 * @worker, which is below nr_threads: data per worker needs no lock. A call may
	 * otherwise write only data of its items.
	 * Return: 0; < 0: no later items will be started.
	 */
	int (*run)(void *ctx, unsigned int worker, uint32_t first, uint32_t end,
		   struct mp_err *err);
	void *ctx;
};

/*
 * mp_parallel_for - runs @work on this thread, which is worker 0, and up to @nr_threads - 1
 * others. 0 means 1. If a thread cannot be started, it goes on with fewer.
 * Return: 0, or the result of @run for the first items that failed, with their @err.
 */
int mp_parallel_for(unsigned int nr_threads, const struct mp_parallel *work, struct mp_err *err);

#endif
