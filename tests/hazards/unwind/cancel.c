// SPDX-License-Identifier: Apache-2.0
// Threads that are cancelled, at a cancellation point and at any instruction, and threads that exit
// from a deep call. Cleanup handlers and cleanup attributes run in order.
// flags: -pthread -fexceptions
// link: -pthread
// moves: works deep main
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../hazard.h"

static _Thread_local int mine;
static sem_t started;

struct log {
	int text[64];
	int nr;
};

static void note(struct log *log, int n) { log->text[log->nr++ & 63] = n; }
static void handler(void *arg) { note(arg, 1000 + mine); }

struct scope {
	struct log *log;
	int n;
};
static void leave(struct scope *s) { note(s->log, s->n); }

KEEP void deep(struct log *log, int depth, void (*last)(void))
{
	__attribute__((cleanup(leave))) struct scope s = {log, depth};

	if (depth)
		deep(log, depth - 1, last);
	else
		last();
	note(log, -depth);
}

static void exits(void) { pthread_exit((void *)5); }
static void waits(void)
{
	sem_post(&started);
	for (;;)
		usleep(100000);
}
static void spins(void)
{
	volatile unsigned int n = 0;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	sem_post(&started);
	for (;;) {
		n = n * 3 + 1;
		if (n & 4)
			n ^= 77;
	}
}

struct job {
	struct log log;
	void (*last)(void);
};

static void *works(void *arg)
{
	struct job *job = arg;

	mine = 42;
	pthread_cleanup_push(handler, &job->log);
	mine++;
	deep(&job->log, 6, job->last);
	pthread_cleanup_pop(1);
	return NULL;
}

int main(void)
{
	static void (*const lasts[])(void) = {exits, waits, spins};

	sem_init(&started, 0, 0);
	for (int round = 0; round < 6; round++) {
		struct job job = {.last = lasts[round % 3]};
		pthread_t thread;
		void *result;

		if (pthread_create(&thread, NULL, works, &job))
			return 2;
		if (round % 3) {
			sem_wait(&started);
			pthread_cancel(thread);
		}
		pthread_join(thread, &result);
		printf("%s:", result == PTHREAD_CANCELED ? "cancelled" : "left");
		for (int i = 0; i < job.log.nr; i++)
			printf(" %d", job.log.text[i]);
		printf("\n");
	}
	return 0;
}
