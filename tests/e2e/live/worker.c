// SPDX-License-Identifier: Apache-2.0
/*
 * worker THREADS - a server-like program that checks itself: threads with recursion, switches, floating-point numbers,
 * signal handlers on stacks of their own that interrupt any instruction, waits with and without timeouts, longjmp(),
 * a second stack, and children. Prints "WRONG what" and ends with status 1 if anything is not as the first time.
 * SIGTERM ends it: "done N", N: rounds of the slowest thread. SIGUSR1 prints "at N", the same.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define MAX	 256

static unsigned long rounds[MAX];
static int nr_threads;
static volatile sig_atomic_t end, ask;
static __thread unsigned int in_handler_wrong;

static void wrong(const char *what)
{
	printf("WRONG %s\n", what);
	fflush(stdout);
	_exit(1);
}

static NOINLINE unsigned int step(unsigned int x, int k)
{
	switch (k & 15) {
	case 0: return x * 3 + 1;
	case 1: return x ^ (x >> 3);
	case 2: return x + 77;
	case 3: return x * x + 5;
	case 4: return ~x;
	case 5: return x << 3 | x >> 29;
	case 6: return x - 12;
	case 7: return x / 3 + 9;
	case 8: return x % 1000003;
	case 9: return x * 2654435761u;
	default: return x * 5 + (unsigned int)k;
	}
}

static NOINLINE unsigned int deep(unsigned int x, int n)
{
	unsigned int y;

	if (n <= 0)
		return x;
	y = step(x, n);
	return deep(y + (unsigned int)n, n - 1) ^ y;
}

static NOINLINE double floats(int n)
{
	double a = 1.5, b = 0.25;

	for (int i = 1; i < n; i++) {
		a = a * 1.000001 + b / i;
		b = b * 0.99 + a * 1e-6;
	}
	return a + b;
}

static int compare(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return x < y ? -1 : x > y;
}

static NOINLINE unsigned int sorted(unsigned int seed)
{
	unsigned int a[64], h = 0;

	for (int i = 0; i < 64; i++)
		a[i] = seed = deep(seed * 1103515245u + 12345u, i % 20);
	qsort(a, 64, sizeof(*a), compare);
	for (int i = 0; i < 64; i++)
		h = h * 31 + a[i];
	return h;
}

static NOINLINE int leap(jmp_buf *buf, int n)
{
	if (n == 0)
		longjmp(*buf, 7);
	return leap(buf, n - 1) + 1;
}

static NOINLINE int jumped(void)
{
	jmp_buf buf;
	int r = setjmp(buf);

	return r ? r : leap(&buf, 9);
}

/* A second stack, which stays suspended between rounds. */
struct coroutine {
	ucontext_t here, there;
	unsigned int value;
	char stack[65536];
};

static __thread struct coroutine *current;

static NOINLINE void generate(void)
{
	struct coroutine *c = current;

	for (unsigned int x = 1;; x = deep(x, 7)) {
		c->value = x;
		swapcontext(&c->there, &c->here);
	}
}

static NOINLINE unsigned int resume(struct coroutine *c)
{
	current = c;
	swapcontext(&c->here, &c->there);
	return c->value;
}

static struct coroutine *new_coroutine(void)
{
	struct coroutine *c = calloc(1, sizeof(*c));

	getcontext(&c->there);
	c->there.uc_stack.ss_sp = c->stack;
	c->there.uc_stack.ss_size = sizeof(c->stack);
	makecontext(&c->there, generate, 0);
	return c;
}

static unsigned int handler_wants;

static void on_timer(int signal)
{
	int saved = errno;

	(void)signal;
	if (sorted(99) != handler_wants)
		in_handler_wrong = 1;
	errno = saved;
}

static void on_end(int signal)
{
	if (signal == SIGTERM)
		end = 1;
	else
		ask = 1;
}

static unsigned long slowest(void)
{
	unsigned long least = rounds[0];

	for (int i = 1; i < nr_threads; i++)
		if (__atomic_load_n(&rounds[i], __ATOMIC_RELAXED) < least)
			least = rounds[i];
	return least;
}

/* Waits in the ways that a server waits. None of them may end for another reason than time. */
static void rest(long id, int epoll)
{
	struct timespec t = {.tv_nsec = 300000};
	struct epoll_event event;

	switch (id % 4) {
	case 1:
		while (nanosleep(&t, &t))
			if (errno != EINTR)
				wrong("nanosleep");
		break;
	case 2:
		if (epoll_wait(epoll, &event, 1, 1) != 0 && errno != EINTR)
			wrong("epoll_wait");
		break;
	case 3: usleep(200); break;
	}
}

static void *run(void *arg)
{
	long id = (long)arg;
	unsigned int want = sorted((unsigned int)id), x = 1;
	double want_floats = floats(2000);
	struct coroutine *c = new_coroutine();
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	sigaltstack(&stack, NULL);
	while (!end) {
		if (sorted((unsigned int)id) != want)
			wrong("sorted");
		if (floats(2000) != want_floats)
			wrong("floats");
		if (jumped() != 7)
			wrong("longjmp");
		if (resume(c) != x)
			wrong("coroutine");
		x = deep(x, 7);
		if (id == 1 && rounds[id] % 64 == 0 && deep(5, 20000) != deep(5, 20000))
			wrong("deep");
		if (in_handler_wrong)
			wrong("handler");
		rest(id, epoll);
		__atomic_fetch_add(&rounds[id], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void child(unsigned int want)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(sorted(4) == want ? 0 : 1);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			wrong("waitpid");
	if (status)
		wrong("child");
}

int main(int argc, char **argv)
{
	const struct itimerval every = {{0, 700}, {0, 700}};
	struct sigaction action = {.sa_flags = SA_RESTART | SA_ONSTACK};
	unsigned int want = sorted(4);
	pthread_t threads[MAX];

	handler_wants = sorted(99);
	nr_threads = argc > 1 ? atoi(argv[1]) : 4;
	action.sa_handler = on_timer;
	sigaction(SIGPROF, &action, NULL);
	action.sa_handler = on_end;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (long i = 0; i < nr_threads; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			wrong("pthread_create");
	setitimer(ITIMER_PROF, &every, NULL);
	puts("ready");
	fflush(stdout);
	while (!end) {
		if (ask) {
			ask = 0;
			printf("at %lu\n", slowest());
			fflush(stdout);
		}
		child(want);
		usleep(20000);
	}
	for (int i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	printf("done %lu\n", slowest());
	return 0;
}
