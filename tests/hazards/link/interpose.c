// SPDX-License-Identifier: Apache-2.0
// Interposition: a preloaded library, and the program itself, replace functions of a library, also
// in the library's own calls. A function's address is the same everywhere.
// link: -linterpose -ldl -rdynamic
// modes: pie nopie
// library: libinterpose.so -DLIBRARY
// library: libpreload.so -DPRELOAD
// run: ./prog
// run: LD_PRELOAD=./libpreload.so ./prog
// run: LD_BIND_NOW=1 LD_PRELOAD=./libpreload.so ./prog
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "../hazard.h"

typedef int function(int);
#if defined(LIBRARY)
int replaced(int n) { return n + 1; }
int taken_over(int n) { return n + 10; }
__attribute__((visibility("protected"))) int protected_one(int n) { return n + 100; }
static function *const pointers[] = {replaced, taken_over};
int library_calls(int n)
{
	return replaced(n) + taken_over(n) * 3 + protected_one(n) + pointers[n & 1](n);
}
function *library_address(int n) { return n ? taken_over : replaced; }
#elif defined(PRELOAD)
static int calls;
int replaced(int n)
{
	static function *next;

	if (!next)
		next = (function *)dlsym(RTLD_NEXT, "replaced");
	calls++;
	return next(n) * 1000 + (calls > 0);
}
int atoi(const char *s)
{
	static int (*next)(const char *);

	if (!next)
		next = (int (*)(const char *))dlsym(RTLD_NEXT, "atoi");
	return next(s) + 5;
}
#else
int library_calls(int n);
int protected_one(int n);
int replaced(int n);
function *library_address(int n);
int taken_over(int n) { return n % 3 ? n - 1 : n * 7; }

int main(void)
{
	long sum = 0;

	for (int i = 0; i < 100; i++)
		sum = sum * 31 + library_calls(i) + replaced(i) + taken_over(i) + protected_one(i);
	printf("%ld %d\n", sum, atoi(OPAQUE("37")));
	printf("%d %d\n", library_address(1) == taken_over, library_address(0) == replaced);
	return 0;
}
#endif
