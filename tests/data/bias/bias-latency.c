// SPDX-License-Identifier: Apache-2.0
/*
 * bias-latency - a program whose threads wait for one another (Lee, 2015, figure 3). Each of 8 threads takes
 * a lock, calls work() 50 times from first(), then 50 times from second(), and gives the lock away. A
 * sampler that asks a waiting thread for its next call hears of first() too often. For
 * tests/e2e/bench/bias.sh.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE   __attribute__((noinline, noclone))
#define NR_THREADS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned int sink;
static long turns = 20000;

static NOINLINE unsigned int work(unsigned int nr)
{
	unsigned int x = nr;

	for (unsigned int i = 0; i < nr; i++)
		x = x * 1664525u + sink;
	return x;
}

static NOINLINE unsigned int first(void)
{
	unsigned int x = 0;

	for (int i = 0; i < 50; i++)
		x += work(40);
	return x;
}

static NOINLINE unsigned int second(void)
{
	unsigned int x = 1;

	for (int i = 0; i < 50; i++)
		x += work(40);
	return x;
}

static void *run(void *arg)
{
	unsigned int x = 0;

	for (long i = 0; i < turns; i++) {
		pthread_mutex_lock(&lock);
		x += first();
		x += second();
		pthread_mutex_unlock(&lock);
	}
	*(unsigned int *)arg = x;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[NR_THREADS];
	unsigned int x[NR_THREADS];

	turns = argc > 1 ? atol(argv[1]) : turns;
	for (int i = 0; i < NR_THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, &x[i]))
			return 1;
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%ld %ld\n", 50 * turns * NR_THREADS, 50 * turns * NR_THREADS);
	return x[0] == 12345;
}
