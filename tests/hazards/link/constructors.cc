// SPDX-License-Identifier: Apache-2.0
// Code before and after main: constructors with priorities, destructors, atexit, thread-local
// destructors, quick_exit, arrays of pointers that the start-up code calls.
// flags: -pthread
// modes: pie nopie static
// link: -pthread
// moves: main
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "../hazard.h"

static long trace;
static void note(int n) { trace = (trace * 10 + n) % 1000000007; }

__attribute__((constructor(101))) static void first() { note(1); }
__attribute__((constructor(102))) static void second() { note(2); }
__attribute__((constructor)) static void third() { note(3); }
__attribute__((destructor)) static void last() { printf("destructor %ld\n", trace); }
static void noted_early(int, char **, char **) { note(9); }
__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char **, char **) =
	noted_early;

struct object {
	int n;
	explicit object(int n) : n(n) { note(n); }
	~object() { printf("~object %d\n", n); }
};
static object one(4), two(5);
static thread_local object mine(6);
static object &lazy()
{
	static object o(7);

	return o;
}
static void at_exit() { printf("atexit %ld\n", trace); }

int main()
{
	atexit(at_exit);
	at_quick_exit(at_exit);
	std::thread([] { note(mine.n); }).join();
	note(lazy().n + mine.n);
	printf("%ld\n", trace);
	return 0;
}
