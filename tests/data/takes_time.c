// SPDX-License-Identifier: Apache-2.0
/*
 * takes_time - takes CPU time in the way that its first argument names: quit; crash; spin MS; exec MS FILE
 * ARGUMENT...: spins, then executes FILE; threads NR MS; leaves MS: the first thread ends, another one spins;
 * forks NR MS; waits: until its standard input ends, after MS; grows MS: a child waits so, once a byte was read.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void spin(long ms)
{
	struct timespec now;
	volatile long left;

	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
	/* Reading the clock makes the kernel take account. Some milliseconds follow of which it has not. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (left = now.tv_nsec % 6000000; left > 0; left--)
		;
}

static void *thread(void *ms)
{
	spin((long)(intptr_t)ms);
	return NULL;
}

static void many(int threads, long nr, long ms)
{
	pthread_t ids[64];
	long i;

	for (i = 0; i < nr && i < 64; i++) {
		if (threads) {
			pthread_create(&ids[i], NULL, thread, (void *)(intptr_t)ms);
		} else if (!fork()) {
			spin(ms);
			_exit(0);
		}
	}
	for (i = 0; i < nr && i < 64; i++) {
		if (threads)
			pthread_join(ids[i], NULL);
		else
			wait(NULL);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "quit";
	long first = argc > 2 ? atol(argv[2]) : 0, second = argc > 3 ? atol(argv[3]) : 0;
	pthread_t id;
	char byte;

	if (!strcmp(what, "crash"))
		abort();
	if (!strcmp(what, "grows")) {
		write(1, "", 1);
		if (read(0, &byte, 1) == 1 && fork())
			return wait(NULL) < 0;
		what = "waits";
	}
	if (!strcmp(what, "spin") || !strcmp(what, "exec") || !strcmp(what, "waits"))
		spin(first);
	if (!strcmp(what, "exec"))
		execv(argv[3], argv + 3);
	if (!strcmp(what, "threads") || !strcmp(what, "forks"))
		many(*what == 't', first, second);
	if (!strcmp(what, "leaves")) {
		pthread_create(&id, NULL, thread, (void *)(intptr_t)first);
		pthread_exit(NULL);
	}
	if (!strcmp(what, "waits")) {
		write(1, "", 1);
		while (read(0, &byte, 1) > 0)
			spin(first += 50);
	}
	return 0;
}
