// SPDX-License-Identifier: Apache-2.0
/*
 * cli - the list of commands, and how each of them starts and ends. Called by the commands in
 * cli_<command>.c.
 */
#include "editor/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/parallel.h"
#include "libprof/cli/args.h"
#include "libprof/cli/stdio.h"

static const struct me_cli_command commands[] = {
	{{"train", "sample, count, optimise and audit a command"}, me_cli_train},
	{{"refine", "find the fastest version by a profile and a command"}, me_cli_refine},
	{{"instrument", "write a version that counts branches or tells paths"}, me_cli_instrument},
	{{"verify", "prove that a file is what Morph may have made of another"}, me_cli_verify},
	{{"adopt", "put an output that was written earlier in the place of its original"},
	 me_cli_adopt},
	{{"restore", "put the original back that adopt or --in-place replaced"}, me_cli_restore},
};

const struct mp_commands me_cli_commands = {.program = "morph-optimize", MP_COMMANDS(commands)};

void me_cli_parse(const struct argp *argp, struct me_cli *cli, int argc, char **argv, void *input)
{
	mp_args_parse(argp, argc, argv, ARGP_IN_ORDER, input);
	mp_stdio_parsed();
	if (!cli->options.nr_threads)
		cli->options.nr_threads = mp_parallel_cpus();
}

int me_cli_exit_status(int rc)
{
	switch (rc) {
	case 0: return EXIT_SUCCESS;
	case -ENODATA: return MP_EXIT_NO_PROFILE;
	case -EPERM: return MP_EXIT_REFUSED;
	case -ENOTUNIQ: return MP_EXIT_USAGE; /* adjustments contradict each other */
	default: return EXIT_FAILURE;
	}
}

int me_cli_flush(int failed)
{
	if (!failed && fflush(stdout))
		failed = -errno;
	if (failed)
		fprintf(stderr, "morph-optimize: standard output: %s\n", strerror(-failed));
	return failed;
}

void me_cli_complain(const struct mp_err *err)
{
	fprintf(stderr, "morph-optimize: %s\n", err->msg);
}
