// SPDX-License-Identifier: Apache-2.0
// Exceptions that must not be caught: through noexcept, out of a destructor during another
// exception, out of a thread; each ends in the program's own terminate handler. Also an uncaught
// exception.
// flags: -pthread
// link: -pthread
// run: ./prog noexcept
// run: ./prog destructor
// run: ./prog nothing
// run: ./prog thread
// run: ./prog later
// status: 9
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>
#include <unistd.h>

#include "../hazard.h"

static int unwound;
struct guard {
	~guard() { unwound++; }
};

static void ended()
{
	const char *what = "nothing";

	try {
		if (std::current_exception())
			std::rethrow_exception(std::current_exception());
	} catch (const std::exception &e) {
		what = e.what();
	} catch (int) {
		what = "a number";
	}
	printf("terminate: %s, %d unwound\n", what, unwound > 0);
	fflush(stdout);
	_exit(9);
}

KEEP void throws(int n)
{
	guard g;

	if (n)
		throw std::runtime_error("thrown");
}

KEEP void quiet(int n) noexcept
{
	guard g;

	throws(n);
}

struct bad {
	~bad() noexcept(false) { throw 5; }
};

KEEP void two_at_once(int n)
{
	bad b;

	throws(n);
}

int main(int argc, char **argv)
{
	std::set_terminate(ended);
	if (argc < 2)
		return 1;
	if (!strcmp(argv[1], "noexcept")) {
		quiet(0);
		quiet(1);
	} else if (!strcmp(argv[1], "destructor")) {
		try {
			two_at_once(1);
		} catch (...) {
		}
	} else if (!strcmp(argv[1], "thread")) {
		std::thread(throws, 1).join();
	} else if (!strcmp(argv[1], "later")) {
		try {
			throws(1);
		} catch (...) {
			std::terminate();
		}
	} else {
		throws(argc);
	}
	return 2;
}
