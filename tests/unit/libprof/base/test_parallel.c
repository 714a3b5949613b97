// SPDX-License-Identifier: Apache-2.0
/*
 * test_parallel - every item is done once with any number of threads, and the first error is
 * reported.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#include "libprof/base/parallel.h"
#include "tests/unit/suite.h"

#define NR 1000

struct seen {
	uint32_t times[NR]; /* one counter per item */
	uint32_t grain;
	unsigned int nr_threads;
	atomic_flag busy[MP_PARALLEL_MAX];
	uint32_t of_worker[MP_PARALLEL_MAX];
};

static int note(void *ctx, unsigned int worker, uint32_t first, uint32_t end, struct mp_err *err)
{
	struct seen *seen = ctx;

	(void)err;
	if (worker >= seen->nr_threads || atomic_flag_test_and_set(&seen->busy[worker]))
		return -EBUSY;
	if (first >= end || end - first > seen->grain || first % seen->grain)
		return -EINVAL;
	for (uint32_t i = first; i < end; i++)
		seen->times[i]++;
	seen->of_worker[worker] += end - first;
	atomic_flag_clear(&seen->busy[worker]);
	return 0;
}

TEST(parallel_does_every_item_once)
{
	static const uint32_t sizes[] = {0, 1, 2, 63, 64, 65, NR}, grains[] = {1, 3, 64, NR, 5000};
	static const unsigned int threads[] = {0, 1, 2, 5, MP_PARALLEL_MAX, 1000};

	for (int s = 0; s < 7; s++)
		for (int g = 0; g < 5; g++)
			for (int t = 0; t < 6; t++) {
				struct seen seen = {.grain = grains[g],
						    .nr_threads = threads[t] ? threads[t] : 1};
				const struct mp_parallel work = {.nr_items = sizes[s],
								 .grain = grains[g],
								 .run = note,
								 .ctx = &seen};
				uint32_t sum = 0;

				ck_assert_int_eq(mp_parallel_for(threads[t], &work, NULL), 0);
				for (uint32_t i = 0; i < NR; i++)
					ck_assert_uint_eq(seen.times[i], i < sizes[s]);
				for (int w = 0; w < MP_PARALLEL_MAX; w++)
					sum += seen.of_worker[w];
				ck_assert_uint_eq(sum, sizes[s]);
			}
}

struct failing {
	uint32_t slow, fast; /* both fail, the fast one earlier than the slow one */
	atomic_bool fast_failed;
	bool done[NR];
};

static void pause_us(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static int fail_some(void *ctx, unsigned int worker, uint32_t first, uint32_t end,
		     struct mp_err *err)
{
	struct failing *f = ctx;

	(void)worker;
	(void)end;
	f->done[first] = true;
	if (first == f->slow) {
		/* With one thread, the fast item never comes before this one. */
		for (int i = 0; i < 100 && !atomic_load(&f->fast_failed); i++)
			pause_us(100);
		return mp_err_set(err, ERANGE, "item %u", first);
	}
	if (first == f->fast) {
		atomic_store(&f->fast_failed, true);
		return mp_err_set(err, EPERM, "item %u", first);
	}
	/* Slow, so that the fast item fails before all others are done. */
	if (first > f->fast)
		pause_us(1000);
	return 0;
}

TEST(parallel_tells_the_first_error_not_the_earliest)
{
	static const unsigned int threads[] = {1, 2, 5, 16};

	for (int t = 0; t < 4; t++)
		for (uint32_t gap = 1; gap < 4; gap++) {
			struct failing f = {.slow = 100, .fast = 100 + gap};
			const struct mp_parallel work = {
				.nr_items = NR, .run = fail_some, .ctx = &f};
			struct mp_err err = {"untouched"};

			ck_assert_int_eq(mp_parallel_for(threads[t], &work, &err), -ERANGE);
			ck_assert_str_eq(err.msg, "item 100");
			for (uint32_t i = 0; i <= 100; i++)
				ck_assert(f.done[i]);
			ck_assert(!f.done[NR - 1]);
			ck_assert_int_eq(mp_parallel_for(threads[t], &work, NULL), -ERANGE);
		}
}

static int add_up(void *ctx, unsigned int worker, uint32_t first, uint32_t end, struct mp_err *err)
{
	(void)worker;
	(void)err;
	atomic_fetch_add((_Atomic uint64_t *)ctx, end - first);
	return 0;
}

TEST(parallel_counts_to_the_end_of_its_numbers)
{
	static const uint32_t grains[] = {UINT32_MAX, UINT32_MAX - 1, UINT32_MAX / 3, 1u << 31};

	for (int g = 0; g < 4; g++) {
		_Atomic uint64_t sum = 0;
		const struct mp_parallel work = {
			.nr_items = UINT32_MAX, .grain = grains[g], .run = add_up, .ctx = &sum};

		ck_assert_int_eq(mp_parallel_for(4, &work, NULL), 0);
		ck_assert_uint_eq(sum, UINT32_MAX);
	}
}

static int note_signals(void *ctx, unsigned int worker, uint32_t first, uint32_t end,
			struct mp_err *err)
{
	atomic_bool *wrong = ctx;
	sigset_t now;

	(void)first;
	(void)end;
	(void)err;
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	if (sigismember(&now, SIGALRM) != (worker != 0))
		*wrong = true;
	pause_us(100);
	return 0;
}

TEST(parallel_leaves_signals_to_its_caller)
{
	atomic_bool wrong = false;
	const struct mp_parallel work = {.nr_items = 100, .run = note_signals, .ctx = &wrong};

	ck_assert_int_eq(mp_parallel_for(3, &work, NULL), 0);
	ck_assert(!wrong);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

TEST(parallel_goes_on_alone_without_room_for_threads)
{
#ifdef SANITIZED
	MORPH_SKIP("a sanitizer needs the address space that is taken away");
#else
	struct seen seen = {.grain = 10, .nr_threads = 8};
	const struct mp_parallel work = {.nr_items = NR, .grain = 10, .run = note, .ctx = &seen};
	struct rlimit limit = {.rlim_cur = 1, .rlim_max = RLIM_INFINITY};
	struct rlimit before;

	ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ck_assert_int_eq(mp_parallel_for(8, &work, NULL), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
	ck_assert_uint_eq(seen.of_worker[0], NR);
#endif
}

TEST(parallel_counts_the_processors_it_may_use)
{
	unsigned int nr = mp_parallel_cpus();
	cpu_set_t one, before;

	ck_assert_uint_ge(nr, 1);
	ck_assert_uint_le(nr, MP_PARALLEL_USUAL);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &before)) {
			CPU_SET(cpu, &one);
			break;
		}
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	ck_assert_uint_eq(mp_parallel_cpus(), 1);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(before), &before), 0);
	ck_assert_uint_eq(mp_parallel_cpus(), nr);
}
