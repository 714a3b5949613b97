// SPDX-License-Identifier: Apache-2.0
/*
 * parallel - hands out pieces of a loop in ascending order to idle threads.
 * Called by the stages of morph-optimize whose items do not depend on each other.
 */
#include "libprof/base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct loop {
	const struct mp_parallel *work;
	uint64_t grain;
	_Atomic uint64_t next; /* first item that no thread has taken */
	atomic_bool failed;
};

struct worker {
	struct loop *loop;
	unsigned int number;
	pthread_t thread;
	int ret;
	uint64_t at; /* first item of the piece that failed */
	struct mp_err err;
};

unsigned int mp_parallel_cpus(void)
{
	cpu_set_t set;
	int nr;

	/* The set is too small for all processors, so there are many. */
	if (sched_getaffinity(0, sizeof(set), &set))
		return MP_PARALLEL_USUAL;
	nr = CPU_COUNT(&set);
	return nr < 1 ? 1 : nr > MP_PARALLEL_USUAL ? MP_PARALLEL_USUAL : (unsigned int)nr;
}

/*
 * Threads take pieces in ascending order and finish each piece. All pieces before a failed
 * one are therefore done, and the first failure does not depend on the speed of threads.
 */
static void *work_off(void *arg)
{
	struct worker *w = arg;
	const struct mp_parallel *work = w->loop->work;

	while (!atomic_load_explicit(&w->loop->failed, memory_order_relaxed)) {
		uint64_t first = atomic_fetch_add_explicit(&w->loop->next, w->loop->grain,
							   memory_order_relaxed);
		uint64_t end = first + w->loop->grain;

		if (first >= work->nr_items)
			break;
		if (end > work->nr_items)
			end = work->nr_items;
		w->ret = work->run(work->ctx, w->number, (uint32_t)first, (uint32_t)end, &w->err);
		if (w->ret) {
			w->at = first;
			atomic_store_explicit(&w->loop->failed, true, memory_order_relaxed);
			break;
		}
	}
	return NULL;
}

/* Field by field: a message has some kilobytes, which need not be cleared. */
static void worker_init(struct worker *worker, struct loop *loop, unsigned int number)
{
	worker->loop = loop;
	worker->number = number;
	worker->ret = 0;
	worker->at = 0;
	worker->err.msg[0] = '\0';
}

int mp_parallel_for(unsigned int nr_threads, const struct mp_parallel *work, struct mp_err *err)
{
	struct loop loop = {.work = work, .grain = work->grain ? work->grain : 1};
	uint64_t nr_pieces = (work->nr_items + loop.grain - 1) / loop.grain;
	struct worker alone, *workers = &alone, *first = NULL;
	unsigned int nr = 1;
	sigset_t all, before;
	int ret;

	if (nr_threads > MP_PARALLEL_MAX)
		nr_threads = MP_PARALLEL_MAX;
	if (nr_threads > nr_pieces)
		nr_threads = (unsigned int)nr_pieces;
	if (nr_threads > 1)
		workers = malloc(nr_threads * sizeof(*workers));
	if (!workers) {
		workers = &alone;
		nr_threads = 1;
	}
	worker_init(&workers[0], &loop, 0);
	/* New threads block signals: the existing threads handle them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (; nr < nr_threads; nr++) {
		worker_init(&workers[nr], &loop, nr);
		if (pthread_create(&workers[nr].thread, NULL, work_off, &workers[nr]))
			break;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	work_off(&workers[0]);
	for (unsigned int i = 1; i < nr; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned int i = 0; i < nr; i++)
		if (workers[i].ret && (!first || workers[i].at < first->at))
			first = &workers[i];
	ret = first ? first->ret : 0;
	if (first && err)
		*err = first->err;
	if (workers != &alone)
		free(workers);
	return ret;
}
