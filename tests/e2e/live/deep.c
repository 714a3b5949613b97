// SPDX-License-Identifier: Apache-2.0
/* Waits in the innermost of several functions without frame pointers. */
#include <stdio.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile int sink;

/* They have names that the linker sees. */
int leaf(int n);
int middle(int n);
int outer(int n);

NOINLINE int leaf(int n)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "%d", n);
	puts(buf);
	fflush(stdout);
	pause();
	return buf[0];
}

NOINLINE int middle(int n)
{
	int x[100];

	for (int i = 0; i < 100; i++)
		x[i] = n * i;
	sink = leaf(x[n]);
	return x[n + 1] + sink;
}

NOINLINE int outer(int n)
{
	return middle(n) + 1;
}

int main(int argc, char **argv)
{
	(void)argv;
	return outer(argc) & 1;
}
