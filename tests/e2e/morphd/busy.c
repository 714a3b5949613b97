// SPDX-License-Identifier: Apache-2.0
/*
 * busy - uses CPU time at known places. Every source of samples must report these places.
 *
 *	busy spin MS			in this file's own code
 *	busy exec MS PROGRAM		spin, then become `PROGRAM spin MS`
 *	busy fork MS			parent and child spin
 *	busy short N PROGRAM		N children, each `PROGRAM spin 4`
 *	busy dl MS LIB...		each library in turn: dlopen, spin in it, dlclose
 *	busy threads MS N		N threads spin
 *	busy until N FILE		N threads spin until there is FILE
 *	busy jit MS			in code written into anonymous memory
 *	busy gone MS FILE		unlink FILE, then spin
 *	busy replace MS FILE NEW	rename NEW over FILE, then spin
 *
 * With -DLIBRARY it is a library with one function, spin().
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void spin(long ms);

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* Spins for @ms of CPU time, not of elapsed time: other load on the machine changes nothing. */
__attribute__((noinline)) void spin(long ms)
{
	double end = cpu_ms() + ms;
	volatile unsigned long x = 1;
	int i;

	while (cpu_ms() < end)
		for (i = 0; i < 300000; i++)
			x = x * 3 + 1;
}

#ifndef LIBRARY

static void *thread(void *arg)
{
	spin(*(long *)arg);
	return NULL;
}

static void *thread_until(void *arg)
{
	while (access(arg, F_OK))
		spin(10);
	return NULL;
}

static void spin_in_anonymous_memory(long ms)
{
	/* mov $1000000,%ecx; 1: dec %ecx; jnz 1b; ret */
	static const unsigned char code[] = {0xb9, 0x40, 0x42, 0x0f, 0x00,
					     0xff, 0xc9, 0x75, 0xfc, 0xc3};
	double end = cpu_ms() + ms;
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(p, code, sizeof(code));
	if (mprotect(p, 4096, PROT_READ | PROT_EXEC))
		exit(1);
	while (cpu_ms() < end)
		((void (*)(void))p)();
}

static void run_child(const char *program)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execl(program, program, "spin", "4", NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		exit(1);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	long ms = argc > 2 ? atol(argv[2]) : 0;
	pthread_t threads[16];
	int i, n;

	if (!strcmp(what, "spin")) {
		spin(ms);
	} else if (!strcmp(what, "exec") && argc > 3) {
		spin(ms);
		execl(argv[3], argv[3], "spin", argv[2], NULL);
		return 1;
	} else if (!strcmp(what, "fork")) {
		pid_t pid = fork();

		spin(ms);
		if (pid)
			wait(NULL);
	} else if (!strcmp(what, "short") && argc > 3) {
		for (i = 0; i < ms; i++)
			run_child(argv[3]);
	} else if (!strcmp(what, "dl")) {
		for (i = 3; i < argc; i++) {
			void *lib = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
			void (*f)(long) = lib ? (void (*)(long))dlsym(lib, "spin") : NULL;

			if (!f)
				return 1;
			/* The test checks that two libraries were mapped at the same address. */
			printf("%p\n", (void *)f);
			f(ms);
			dlclose(lib);
		}
	} else if (!strcmp(what, "threads") && argc > 3) {
		n = atoi(argv[3]);
		for (i = 0; i < n && i < 16; i++)
			pthread_create(&threads[i], NULL, thread, &ms);
		for (i = 0; i < n && i < 16; i++)
			pthread_join(threads[i], NULL);
	} else if (!strcmp(what, "until") && argc > 3) {
		for (i = 0; i < ms && i < 16; i++)
			pthread_create(&threads[i], NULL, thread_until, argv[3]);
		for (i = 0; i < ms && i < 16; i++)
			pthread_join(threads[i], NULL);
	} else if (!strcmp(what, "jit")) {
		spin_in_anonymous_memory(ms);
	} else if (!strcmp(what, "gone") && argc > 3) {
		if (unlink(argv[3]))
			return 1;
		spin(ms);
	} else if (!strcmp(what, "replace") && argc > 4) {
		if (rename(argv[4], argv[3]))
			return 1;
		spin(ms);
	} else {
		return 2;
	}
	return 0;
}
#endif
