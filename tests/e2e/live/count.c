// SPDX-License-Identifier: Apache-2.0
/*
 * count [THREADS] - does the same work for each letter that it reads, and answers with a line: "w" in this process, in
 * THREADS threads at the same time if that is given; "f" in a child. After "k", a child answers instead of its parent,
 * and after "u" one that has become another user, nobody. main() is never moved, since it makes a system call by itself, so
 * only work is counted.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static NOINLINE unsigned int step(unsigned int x, int k)
{
	switch (k % 7) {
	case 0: return x * 3 + 1;
	case 1: return x ^ (x >> 3);
	case 2: return x + 77;
	case 3: return x * x + 5;
	case 4: return ~x;
	case 5: return x / 3 + 9;
	default: return x * 5 + (unsigned int)k;
	}
}

static NOINLINE unsigned int work(unsigned int x, int n)
{
	for (int i = 0; i < n; i++)
		x = x & 1 ? step(x, i) : step(x + 1, i / 2) ^ x;
	return x;
}

static void *run(void *arg)
{
	return (void *)(unsigned long)work((unsigned int)(unsigned long)arg, 100000);
}

static inline __attribute__((always_inline)) long call3(long nr, long a, void *b, long c)
{
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return r;
}

static NOINLINE int in_child(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(work(1, 100000) == 0);
	return waitpid(pid, &status, 0) == pid && !status;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t threads[64];
	char c;

	puts("ready");
	fflush(stdout);
	while (call3(SYS_read, 0, &c, 1) == 1) {
		unsigned int sum = 0;

		if (c == 'k' || c == 'u') {
			if (fork())
				for (;;)
					pause();
			if (c == 'u' && setuid(65534))
				return 1;
			printf("child %d\n", (int)getpid());
		} else if (c == 'f') {
			printf("answer %d\n", in_child());
		} else if (c == 'w') {
			for (int i = 0; i < nr; i++)
				pthread_create(&threads[i], NULL, run, (void *)1ul);
			for (int i = 0; i < nr; i++) {
				void *answer;

				pthread_join(threads[i], &answer);
				sum += (unsigned int)(unsigned long)answer;
			}
			printf("answer %u\n", nr ? sum : work(1, 100000));
		}
		fflush(stdout);
	}
	return 0;
}
