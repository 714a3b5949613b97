// SPDX-License-Identifier: Apache-2.0
// Split stacks: a function's first call may return twice, the second time one byte after its return
// address.
// only: gcc
// flags: -fsplit-stack -pthread
// link: -pthread
// modes: pie nopie
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../hazard.h"

KEEP long deep(int n)
{
	char room[700];

	memset(OPAQUE(&room[0]), n, sizeof(room));
	if (n <= 0)
		return room[n & 7];
	if (n % 3 == 0)
		return deep(n - 1) * 3 + room[n % 100];
	return deep(n - 1) + n;
}

static void *works(void *arg)
{
	*(long *)arg = deep(3000);
	return NULL;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	long a = 0, b = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	if (pthread_create(&thread, &attr, works, &a))
		return 2;
	pthread_join(thread, NULL);
	works(&b);
	printf("%ld %ld\n", a, b);
	return 0;
}
