// SPDX-License-Identifier: Apache-2.0
/* See namesake.c. The function here can be moved. */
int other(int x);

static __attribute__((noinline)) int step(int x)
{
	int sum = 0;

	for (int i = 0; i < x; i++)
		sum += i * x;
	return sum;
}

int other(int x)
{
	return step(x) * 2;
}
