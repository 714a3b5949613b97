// SPDX-License-Identifier: Apache-2.0
/* args - reads the command line by argp, of which an error is the end of the program. */
#ifndef MP_ARGS_H
#define MP_ARGS_H

#include <argp.h>

/*
 * mp_args_parse - argp_parse(). Usage errors end the program with status 2, all others with status 1 and a
 * message; argp leaves it to its caller to notice these.
 */
void mp_args_parse(const struct argp *argp, int argc, char **argv, unsigned int flags, void *input);

#endif
