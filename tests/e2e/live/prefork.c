// SPDX-License-Identifier: Apache-2.0
/*
 * prefork N [US] - a server with N children that work each US microseconds (1000); SIGUSR1 makes one more, SIGTERM ends all.
 * A wrong result ends it with 1.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t end, more;

static void on_signal(int signal)
{
	if (signal == SIGTERM)
		end = 1;
	else
		more = 1;
}

__attribute__((noinline)) static unsigned int work(unsigned int x, int n)
{
	for (int i = 0; i < n; i++)
		x = i % 3 ? x * 2654435761u + 1 : x ^ (x >> 7);
	return x;
}

static pid_t new_child(useconds_t pause_us)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (unsigned int want = work(1, 5000); !end;) {
		if (work(1, 5000) != want)
			_exit(1);
		usleep(pause_us);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	int nr = argc > 1 ? atoi(argv[1]) : 2, status, bad = 0;
	const useconds_t pause_us = argc > 2 ? (useconds_t)atoi(argv[2]) : 1000;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < nr; i++)
		new_child(pause_us);
	puts("ready");
	fflush(stdout);
	while (!end) {
		pause();
		if (more) {
			more = 0;
			new_child(pause_us);
			puts("more");
			fflush(stdout);
		}
	}
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	while (wait(&status) > 0)
		bad |= status;
	printf("done, %s\n", bad ? "a child was wrong" : "all right");
	return bad != 0;
}
