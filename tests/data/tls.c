// SPDX-License-Identifier: Apache-2.0
/*
 * Thread-local storage that is larger than the space after the program's data. By its address and
 * size, PT_TLS ends far after the last segment, at addresses that new code is placed at.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static __thread char large[300000];
static __thread int seeded = 7;
__thread long sum;

__attribute__((noinline)) static int step(int n)
{
	switch (n % 5) {
	case 0: seeded += 3; break;
	case 1: seeded ^= n; break;
	case 2: large[(unsigned int)(n * 7919) % sizeof(large)]++; break;
	case 3: sum += seeded; break;
	default: return n + large[n % sizeof(large)];
	}
	return seeded;
}

static void *work(void *arg)
{
	for (int i = 0; i < 20000; i++)
		sum += step(i + (int)(long)arg);
	for (size_t i = 0; i < sizeof(large); i++)
		sum += large[i] * (long)(i % 97);
	return (void *)sum;
}

int main(void)
{
	pthread_t threads[3];
	void *result;

	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &result);
		printf("%ld\n", (long)result);
	}
	printf("%d %ld\n", seeded, sum);
	return 0;
}
