// SPDX-License-Identifier: Apache-2.0
/*
 * Walks stacks in a signal handler by _Unwind_Backtrace(), and asks for the function of each frame; ends threads by
 * pthread_exit() and by asynchronous cancellation in the midst of code. Prints whether the walks were whole.
 * Build it with -fno-optimize-sibling-calls.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unwind.h>

#define NOINLINE __attribute__((noinline))

static volatile sig_atomic_t nr_walks, nr_short, walking;
static volatile unsigned int sink;
static int nr_cleanups;
static volatile int spinning;

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
	int *depth = arg;

	(void)context;
	++*depth;
	return _URC_NO_REASON;
}

/* The handler, the kernel's frame, spin, nine times recurse, main, two of libc, and _start. */
static void on_signal(int signo)
{
	int depth = 0;

	(void)signo;
	if (!walking)
		return;
	_Unwind_Backtrace(step, &depth);
	nr_walks++;
	nr_short += depth < 16;
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

static NOINLINE unsigned int recurse(int n)
{
	unsigned int x;

	if (n == 0) {
		walking = 1;
		x = spin(200000);
		walking = 0;
		return x;
	}
	return recurse(n - 1) * 3 + 1;
}

static void cleanup(int *p)
{
	nr_cleanups += *p;
}

static NOINLINE int leave(int n)
{
	int token __attribute__((cleanup(cleanup))) = n;

	if (n == 0)
		pthread_exit(&nr_cleanups);
	return leave(n - 1) + token;
}

static void *leaving(void *arg)
{
	(void)arg;
	sink = (unsigned int)leave(5);
	return NULL;
}

static NOINLINE void spin_forever(int n)
{
	int token __attribute__((cleanup(cleanup))) = n;

	if (n > 0) {
		spin_forever(n - 1);
		sink = (unsigned int)token;
	}
	spinning = 1;
	for (;;)
		sink = spin(1000) + (unsigned int)token;
}

static void *spinner(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	spin_forever(*(int *)arg);
	return NULL;
}

int main(void)
{
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	pthread_t t;
	void *result;
	int n = 3;

	signal(SIGPROF, on_signal);
	setitimer(ITIMER_PROF, &often, NULL);
	while (nr_walks < 50)
		sink = recurse(8);
	setitimer(ITIMER_PROF, &never, NULL);
	printf("short walks: %d\n", (int)nr_short);
	if (pthread_create(&t, NULL, leaving, NULL) || pthread_join(t, &result))
		return 1;
	printf("left: %d, cleanups %d\n", result == &nr_cleanups, nr_cleanups);
	if (pthread_create(&t, NULL, spinner, &n))
		return 1;
	while (!spinning)
		;
	if (pthread_cancel(t) || pthread_join(t, &result))
		return 1;
	printf("cancelled: %d, cleanups %s\n", result == PTHREAD_CANCELED,
	       nr_cleanups >= 15 ? "done" : "lacking");
	return 0;
}
