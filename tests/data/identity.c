// SPDX-License-Identifier: Apache-2.0
// Addresses as values: function pointers compared inside the program and across a shared object,
// a table of functions that looks like a switch, ifuncs, signal handlers, backtraces.
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define NOINLINE __attribute__((noinline, noclone))

NOINLINE int exported(int x) { return x + 11; }
static NOINLINE int hidden(int x) { return x + 22; }
static NOINLINE int third(int x) { return x + 33; }

static int (*const handlers[])(int) = {exported, hidden, third};
static int (*pointer)(int) = hidden;

static NOINLINE int dispatch(unsigned int i, int x)
{
	if (i > 2)
		return -1;
	return handlers[i](x);
}

#ifdef WITH_IFUNC
static int fast(int x) { return x * 2; }
static int slow(int x) { return x * 2 + 1; }
static int (*resolve(void))(int) { return sizeof(long) == 8 ? fast : slow; }
int chosen(int x) __attribute__((ifunc("resolve")));
#else
static NOINLINE int chosen(int x) { return x * 2; }
#endif

static volatile sig_atomic_t signals;
static volatile int divisor;

static void on_signal(int sig) { signals += sig == SIGUSR1 ? 1 : 100; }

static NOINLINE int raises(int n)
{
	for (int i = 0; i < n; i++)
		raise(SIGUSR1);
	return signals;
}

static NOINLINE int frames_of(void **frames, int max, int depth)
{
	int n;

	if (depth == 0)
		return backtrace(frames, max);
	n = frames_of(frames, max, depth - 1);
	divisor = 3; /* not a tail call */
	return n;
}

/* Return: the number of stack frames below @depth calls. */
NOINLINE int names_frames(int depth)
{
	void *frames[32];
	int n = frames_of(frames, 32, depth);

	return n;
}

static void on_exit_handler(void) { printf("atexit\n"); }
static __attribute__((constructor)) void early(void) { divisor = 3; }

int main(void)
{
	struct sigaction sa;
	int same = 0, total = 0;
	void *self = dlopen(NULL, RTLD_NOW);
	void *found = self ? dlsym(self, "exported") : NULL;

	same += pointer == hidden;
	same += handlers[0] == exported;
	same += handlers[1] == pointer;
	same += handlers[1] != handlers[2];
	same += !found || found == (void *)exported;
	for (unsigned int i = 0; i < 5; i++)
		total += dispatch(i, (int)i);
	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_signal;
	sigaction(SIGUSR1, &sa, NULL);
	atexit(on_exit_handler);
	printf("%d %d %d %d\n", same, total, chosen(21), raises(5));
	printf("%d frames\n", names_frames(6) - names_frames(0));
	printf("%d\n", divisor);
	return 0;
}
