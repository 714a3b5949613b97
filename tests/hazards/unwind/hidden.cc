// SPDX-License-Identifier: Apache-2.0
// An empty function in front of another one: lld's search table has one row for both, that of the empty function, so
// libgcc does not find the other one, and exceptions end there; LLVM's unwinder finds it.
// refused: to which its search table does not lead
// only: clang
// linkers: lld bfd gold mold
// moves: thrower
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <unistd.h>

#include "../hazard.h"

NOINLINE void thrower(int n)
{
	if (n > 3)
		throw std::runtime_error("more than 3");
	std::printf("%d\n", n);
}

void impossible(int)
{
	__builtin_unreachable();
}

__attribute__((noinline, aligned(1))) int middle(int n)
{
	thrower(n);
	return n * 3;
}

int main()
{
	std::set_terminate([] {
		std::puts("terminated");
		std::fflush(stdout);
		_exit(0);
	});
	for (int i = 0; i < 6; i++) {
		try {
			std::printf("%d\n", middle(i));
		} catch (std::exception &e) {
			std::printf("caught %s\n", e.what());
		}
	}
	return 0;
}
