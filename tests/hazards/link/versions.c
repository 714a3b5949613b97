// SPDX-License-Identifier: Apache-2.0
// Two versions of one symbol, and a third one that only old programs use.
// link: -lversions -ldl
// modes: pie nopie
// library: libversions.so -DLIBRARY
// library-link: -Wl,--version-script=@/versions.map
#include <dlfcn.h>
#include <stdio.h>

#include "../hazard.h"

#ifdef LIBRARY
__asm__(".symver old_answer, answer@ONE");
__asm__(".symver middle_answer, answer@TWO");
__asm__(".symver new_answer, answer@@THREE");
int old_answer(int n) { return n % 3 ? n + 1 : 100; }
int middle_answer(int n) { return n % 5 ? n * 2 : 200; }
int new_answer(int n) { return n % 7 ? n - 3 : 300; }
#else
int answer(int n);

int main(void)
{
	static const char *const names[] = {"ONE", "TWO", "THREE"};
	void *library = dlopen("libversions.so", RTLD_NOW);
	long sum = 0;

	for (int v = 0; v < 3; v++) {
		int (*f)(int) = (int (*)(int))dlvsym(library, "answer", names[v]);

		if (!f)
			return 2;
		for (int i = 0; i < 50; i++)
			sum = sum * 31 + f(i) + answer(i);
	}
	printf("%ld\n", sum);
	return 0;
}
#endif
