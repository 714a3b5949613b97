// SPDX-License-Identifier: Apache-2.0
/*
 * service THREADS CHILDREN: works for ever, in threads of this process and in processes that it makes, in server.c's function
 * of jumps, which a better layout does without. Each result is compared with the first one. Prints "ready"; SIGTERM ends it,
 * "done" is all right.
 */
int serve_main(int argc, char **argv);

#define main serve_main
#include "server.c"
#undef main

#include <pthread.h>
#include <sys/wait.h>

static volatile sig_atomic_t end;

static void on_term(int signal)
{
	(void)signal;
	end = 1;
}

/* Begun so often that it tells how much work was done, also while it counts. */
#define PIECE  (SIZE / 8)
#define PIECES 20

/* A thread stays in run(), but comes here again and again. */
APART int pieces_are(unsigned int want);
APART int pieces_are(unsigned int want)
{
	for (int i = 0; i < PIECES; i++)
		if (work(data, PIECE) != want)
			return 0;
	return 1;
}

static void *run(void *unused)
{
	unsigned int want = work(data, PIECE);

	(void)unused;
	while (!end) {
		if (!pieces_are(want)) {
			puts("WRONG");
			fflush(stdout);
			_exit(1);
		}
		usleep(200);
	}
	return NULL;
}

static void run_threads(int nr)
{
	pthread_t threads[64];

	for (int i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			_exit(1);
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) & 63 : 1, children = argc > 2 ? atoi(argv[2]) : 0,
	    bad = 0, status;
	struct sigaction action = {.sa_handler = on_term};
	pid_t pids[64];

	sigaction(SIGTERM, &action, NULL);
	serve_main(1, argv); /* fills the data */
	for (int i = 0; i < children && i < 64; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			run(NULL);
			_exit(0);
		}
	}
	puts("ready");
	fflush(stdout);
	run_threads(threads);
	while (!end)
		pause();
	for (int i = 0; i < children && i < 64; i++)
		kill(pids[i], SIGTERM);
	while (wait(&status) > 0)
		bad |= status;
	puts(bad ? "WRONG child" : "done");
	return bad != 0;
}
