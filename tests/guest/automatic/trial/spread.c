// SPDX-License-Identifier: Apache-2.0
/* spread ROUNDS - a command whose blocks lie far apart. */
#include <stdio.h>
#include <stdlib.h>

#include "steps.h"

int main(int argc, char **argv)
{
	printf("%u\n", mix(1, argc > 1 ? atoi(argv[1]) : 1000));
	return 0;
}
