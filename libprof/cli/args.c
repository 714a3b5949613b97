// SPDX-License-Identifier: Apache-2.0
/* args - see args.h. */
#include "libprof/cli/args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mp_args_parse(const struct argp *argp, int argc, char **argv, unsigned int flags, void *input)
{
	error_t code = argp_parse(argp, argc, argv, flags, NULL, input);

	if (!code)
		return;
	fprintf(stderr, "%s: %s\n", program_invocation_short_name,
		code == ENOMEM ? "out of memory" : strerror(code));
	exit(EXIT_FAILURE);
}
