// SPDX-License-Identifier: Apache-2.0
// Label tables whose labels are also known elsewhere, and one whose labels are not.
#include <stdio.h>

#define NOINLINE __attribute__((noinline))

volatile int sink;
const void *volatile last;

NOINLINE int kept(const unsigned char *code)
{
	static const void *const labels[] = {&&stop, &&add, &&sub};
	int acc = 0;

	last = &&add;
	goto *labels[*code++];
add:
	acc += 3;
	goto *labels[*code++];
sub:
	acc -= sink;
	goto *labels[*code++];
stop:
	return acc + (last == labels[1]);
}

NOINLINE int writable(const unsigned char *code)
{
	static const void *labels[] = {&&stop, &&add, &&sub};
	int acc = 0;

	if (sink > 5)
		labels[1] = &&sub;
	goto *labels[*code++];
add:
	acc += 7;
	goto *labels[*code++];
sub:
	acc -= sink;
	goto *labels[*code++];
stop:
	return acc;
}

NOINLINE int clean(const unsigned char *code)
{
	static const void *const labels[] = {&&stop, &&add, &&sub};
	int acc = 0;

	goto *labels[*code++];
add:
	acc += 5;
	goto *labels[*code++];
sub:
	acc -= sink;
	goto *labels[*code++];
stop:
	return acc;
}

int main(void)
{
	static const unsigned char code[] = {1, 2, 1, 1, 2, 0};
	int sum = 0;

	for (int i = 0; i < 100; i++) {
		sink = i % 9;
		sum += kept(code) + writable(code) * 3 + clean(code) * 7;
	}
	printf("%d\n", sum);
	return 0;
}
