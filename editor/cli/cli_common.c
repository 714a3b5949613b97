// SPDX-License-Identifier: Apache-2.0
/*
 * cli_common - what all commands of morph-optimize share: the command line, messages, exit
 * statuses.
 */
#include "editor/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/parallel.h"

void me_cli_parse(const struct mp_usage *usage, struct me_cli *cli, int argc, char **argv)
{
	struct mp_usage in_order = *usage;

	in_order.in_order = true;
	mp_options_read(&in_order, argc, argv, cli, NULL);
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
