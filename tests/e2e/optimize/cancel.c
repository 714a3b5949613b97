// SPDX-License-Identifier: Apache-2.0
/* Unwinding without C++: cleanups run on pthread cancellation, backtrace() walks the copies. */
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static int nr_cleanups;
static volatile int sink;
static int ready[2];

static void cleanup(int *p)
{
	nr_cleanups += *p;
}

static NOINLINE int wait_forever(int n)
{
	int token __attribute__((cleanup(cleanup))) = n;
	char c = 1;

	if (n > 0)
		return wait_forever(n - 1) + 1;
	if (write(ready[1], &c, 1) != 1)
		return 0;
	for (;;)
		pause();
	return token;
}

static void *thread(void *arg)
{
	sink = wait_forever(*(int *)arg);
	return NULL;
}

static NOINLINE int depth(int n)
{
	void *frames[64];
	int nr;

	if (n)
		return depth(n - 1) + (sink & 0);
	nr = backtrace(frames, 64);
	return nr;
}

/* A signal may arrive at any instruction, even in a function without a stack frame. */
static volatile int nr_signals, nr_short;

static void on_signal(int signo)
{
	void *frames[64];

	(void)signo;
	nr_signals++;
	if (backtrace(frames, 64) < 4)
		nr_short++;
}

static NOINLINE unsigned int spin(unsigned int n)
{
	unsigned int x = n;

	for (unsigned int i = 0; i < n; i++) {
		if (x & 1)
			x = x * 1664525u + 1013904223u;
		else
			x = (x >> 1) ^ (i * 40503u);
	}
	return x;
}

int main(void)
{
	pthread_t t;
	void *result;
	int n = 5;
	char c;

	printf("depth %d %d\n", depth(3), depth(20));
	if (pipe(ready) || pthread_create(&t, NULL, thread, &n))
		return 1;
	if (read(ready[0], &c, 1) != 1 || pthread_cancel(t) || pthread_join(t, &result))
		return 1;
	printf("cancelled %d cleanups %d\n", result == PTHREAD_CANCELED, nr_cleanups);
	signal(SIGALRM, on_signal);
	ualarm(1000, 1000);
	while (nr_signals < 50)
		sink = (int)spin(10000);
	ualarm(0, 0);
	printf("short backtraces %d\n", nr_short);
	return 0;
}
