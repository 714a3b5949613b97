// SPDX-License-Identifier: Apache-2.0
/*
 * order - maps two libraries at one address in quick turns, and runs them on another CPU.
 *
 * Built with -DLIBRARY it is the library. Both libraries have the same two functions, but one only
 * runs first() and the other only second(). The test thus sees each sample that was attributed to
 * the wrong library. usage: order TURNS FIRST.so SECOND.so
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef LIBRARY

void first(unsigned long nr);
void second(unsigned long nr);

void first(unsigned long nr)
{
	while (nr--)
		__asm__ volatile("" ::: "memory");
}

void second(unsigned long nr)
{
	while (nr--)
		__asm__ volatile("" ::: "memory");
}

#else

#define LOOPS 400000UL /* less than a millisecond */

static void (*volatile job)(unsigned long nr);

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set); /* may fail: there may be only one CPU */
}

static void *work(void *arg)
{
	void (*now)(unsigned long nr);

	(void)arg;
	pin(1);
	for (;;) {
		now = job;
		if (!now) {
			sched_yield();
			continue;
		}
		now(LOOPS);
		job = NULL;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"first", "second"};
	pthread_t thread;
	void *library;
	int turn, turns;

	if (argc != 4)
		return 2;
	turns = atoi(argv[1]);
	pin(0);
	if (pthread_create(&thread, NULL, work, NULL))
		return 1;
	for (turn = 0; turn < turns; turn++) {
		library = dlopen(argv[2 + turn % 2], RTLD_NOW);
		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		job = (void (*)(unsigned long))dlsym(library, names[turn % 2]);
		if (turn < 2)
			printf("%p\n", dlsym(library, "first"));
		while (job)
			sched_yield();
		dlclose(library);
	}
	return 0;
}

#endif
