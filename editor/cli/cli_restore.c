// SPDX-License-Identifier: Apache-2.0
/* cli_restore - `morph-optimize restore': put the original of an output back. */
#include <stdio.h>

#include "editor/cli/cli.h"
#include "editor/cli/report.h"

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct me_cli *cli = options;

	if (cli->options.input)
		argp_error(state, "one file at a time");
	cli->options.input = arg;
}

static void check(void *options, struct argp_state *state)
{
	if (!((struct me_cli *)options)->options.input)
		argp_error(state, "which file?");
}

static const struct mp_option *const more[] = {me_cli_report_options, me_cli_backup_options, NULL};

static const struct mp_usage usage = {
	.more = more,
	.arguments = "FILE",
	.word = take_word,
	.check = check,
	.doc = "Put the original of FILE back, and remove the debug file that --in-place wrote."};

int me_cli_restore(struct me_cli *cli, int argc, char **argv)
{
	struct me_inplace_report done;
	struct mp_err err = {""};
	int rc;

	me_cli_parse(&usage, cli, argc, argv);
	rc = me_restore(cli->options.input, &cli->inplace, &done, &err);
	if (rc)
		me_cli_complain(&err);
	else if (!cli->quiet)
		rc = me_cli_flush(me_report_restored(stdout, cli->json, cli->options.input, &done));
	me_inplace_report_fini(&done);
	return me_cli_exit_status(rc);
}
