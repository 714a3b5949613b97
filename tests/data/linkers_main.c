// SPDX-License-Identifier: Apache-2.0
// Beside the library that linkers.cc or linkers.rs makes.
#include <stdlib.h>

int run_all(int rounds);

int main(int argc, char **argv)
{
	return run_all(argc > 1 ? atoi(argv[1]) : 2);
}
