// SPDX-License-Identifier: Apache-2.0
// setjmp and longjmp, also the compiler's built-ins: out of handlers, in loops, with a switch on
// the result. Also vfork, another function that returns twice.
// moves: lands main
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../hazard.h"

static jmp_buf env[4];
static sigjmp_buf from_handler;
static void *builtin_env[5];

KEEP void leaps(int depth, int to)
{
	char room[depth * 16 + 16];

	room[depth] = (char)depth;
	if (depth > 5)
		longjmp(env[to], to + room[depth] - depth + 1);
	leaps(depth + 1, to);
	OPAQUE(room);
}

KEEP int lands(int n)
{
	volatile int sum = n;

	for (volatile int i = 0; i < 4; i++) {
		switch (setjmp(env[i])) {
		case 0: leaps(0, (n + i) % (i + 1)); break;
		case 1: sum = sum * 3 + 1; break;
		case 2: sum = sum * 5 + 2; break;
		case 3: sum = sum * 7 + 3; break;
		case 4: sum = sum * 11 + 4; break;
		default: abort();
		}
	}
	return sum;
}

KEEP void builtin_leaps(int n)
{
	if (n)
		builtin_leaps(n - 1);
	else
		__builtin_longjmp(builtin_env, 1);
	OPAQUE(n);
}

KEEP int builtin_lands(int n)
{
	volatile int times = n;

	if (__builtin_setjmp(builtin_env)) {
		times += 100;
		return times;
	}
	builtin_leaps(n);
	return -1;
}

static void handler(int sig) { siglongjmp(from_handler, sig); }

KEEP int interrupted(int n)
{
	volatile int rounds = 0;

	if (sigsetjmp(from_handler, 1) == SIGUSR2 && rounds > n)
		return rounds;
	rounds++;
	raise(SIGUSR2);
	return -1;
}

KEEP int forks(int n)
{
	volatile int parent = n;
	pid_t child = vfork();
	int status;

	if (!child)
		_exit(parent & 63);
	waitpid(child, &status, 0);
	return WEXITSTATUS(status) + parent;
}

int main(void)
{
	/* It copies its frame's address, so those that call it directly stay. */
	int (*lands_by)(int) = OPAQUE(&builtin_lands);
	long sum = 0;

	signal(SIGUSR2, handler);
	for (int i = 0; i < 50; i++) {
		sum = sum * 31 + lands(i % 9);
		sum = sum * 31 + lands_by(i % 5);
		sum = sum * 31 + interrupted(i % 4);
	}
	for (int i = 0; i < 5; i++)
		sum = sum * 31 + forks(i * 9);
	printf("%ld\n", sum);
	return 0;
}
