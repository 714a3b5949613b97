// SPDX-License-Identifier: Apache-2.0
// Hand-written assembly hands values over below the stack pointer (redzone.S), in several threads and far down the stack.
// asm: redzone.S
// link: -pthread
// moves: rz_pass rz_take
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>

#include "../hazard.h"

long rz_pass(long, long, int), rz_take(void);

KEEP long deep(long i, long a)
{
	volatile char *p = alloca(300000);

	p[0] = p[299999] = 1;
	return rz_pass(i, a, 1) + p[0];
}

static void *work(void *a)
{
	long sum = 0;

	for (long i = 0; i < 100; i++)
		sum += i % 3 ? rz_pass(i, (long)a, i & 1) : deep(i, (long)a);
	return (void *)sum;
}

/* A thread may begin where an address is taken. */
void *volatile taken = (void *)rz_take;

int main(void)
{
	for (int r = 0; r < 20; r++) {
		pthread_t threads[4];
		long sum = 0;

		for (long i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, work, (void *)i);
		for (int i = 0; i < 4; i++) {
			void *part;

			pthread_join(threads[i], &part);
			sum += (long)part;
		}
		printf("%ld\n", sum);
	}
	return 0;
}
