// SPDX-License-Identifier: Apache-2.0
/* A second object: functions that hot.c reaches by name and by pointer. */
int other_step(int x);
extern int (*const other_table[4])(int);

static int __attribute__((noinline)) a(int x)
{
	int sum = 0;

	for (int i = 0; i < (x & 7); i++)
		sum += i * x;
	return sum;
}

static int __attribute__((noinline)) b(int x)
{
	return x % 17 ? x : a(x + 1);
}

int other_step(int x)
{
	return x & 1 ? b(x) : a(x) + 4;
}

int (*const other_table[4])(int) = {a, b, other_step, b};
