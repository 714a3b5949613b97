// SPDX-License-Identifier: Apache-2.0
/* args - see args.h. */
#include "libprof/cli/args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/cli/exit_status.h"

void mp_args_parse(const struct argp *argp, int argc, char **argv, unsigned int flags, void *input)
{
	error_t code;

	argp_err_exit_status = MP_EXIT_USAGE;
	code = argp_parse(argp, argc, argv, flags, NULL, input);
	if (!code)
		return;
	fprintf(stderr, "%s: %s\n", program_invocation_short_name,
		code == ENOMEM ? "out of memory" : strerror(code));
	exit(MP_EXIT_FAILED);
}
