// SPDX-License-Identifier: Apache-2.0
/*
 * storm - creates many short-lived processes: forks without exec, execs, and execs that exec again.
 *
 *	storm N JOBS DIRECTORY		N processes, JOBS at a time, of the programs variant1 to
 *					variant6 in DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Code that a child inherits from its parent. */
__attribute__((noinline)) static void spin_here(long nr)
{
	volatile unsigned long x = 1;

	while (nr--)
		x = x * 3 + 1;
}

static void child(unsigned int seed, const char *dir)
{
	char first[256], second[256];

	snprintf(first, sizeof(first), "%s/variant%d", dir, 1 + rand_r(&seed) % 6);
	snprintf(second, sizeof(second), "%s/variant%d", dir, 1 + rand_r(&seed) % 6);
	switch (rand_r(&seed) % 4) {
	case 0: spin_here(300000); _exit(0);
	case 1:
		spin_here(100000);
		execl(first, first, "2", NULL);
		break;
	case 2: execl(first, first, "2", second, "2", NULL); break;
	case 3: execl(first, first, "1", second, "1", first, "1", second, "1", NULL); break;
	}
	_exit(127);
}

int main(int argc, char **argv)
{
	int nr, jobs, i, running = 0, bad = 0, status;

	if (argc < 4)
		return 2;
	nr = atoi(argv[1]);
	jobs = atoi(argv[2]);
	for (i = 0; i < nr || running; i++) {
		if (i < nr) {
			if (!fork())
				child(i * 7919 + 1, argv[3]);
			running++;
		}
		if (running >= jobs || i >= nr) {
			if (wait(&status) < 0)
				return 1;
			running--;
			bad += status != 0;
		}
	}
	if (bad)
		fprintf(stderr, "storm: %d of %d ended badly\n", bad, nr);
	return bad != 0;
}
