// SPDX-License-Identifier: Apache-2.0
/* cli_restore - `morph-optimize restore': put the original of an output back. */
#include <argp.h>
#include <stdio.h>

#include "editor/cli/cli.h"
#include "editor/cli/report.h"

struct restoration {
	struct me_cli *cli;
	struct me_inplace_options inplace;
};

static const struct argp_child children[] = {
	{&me_cli_report_argp, 0, NULL, 0}, {&me_cli_backup_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct restoration *a = state->input;
	struct me_optimize_options *o = &a->cli->options;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = a->cli;
		state->child_inputs[1] = &a->inplace;
		return 0;
	case ARGP_KEY_ARG:
		if (o->input)
			argp_error(state, "one file at a time");
		o->input = arg;
		return 0;
	case ARGP_KEY_END:
		if (!o->input)
			argp_error(state, "which file?");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "FILE",
	.doc = "Put the original of FILE back, and remove the debug file that --in-place wrote.",
	.children = children,
};

int me_cli_restore(struct me_cli *cli, int argc, char **argv)
{
	struct restoration a = {.cli = cli};
	struct me_inplace_report done;
	struct mp_err err = {""};
	int rc;

	me_cli_parse(&argp, cli, argc, argv, &a);
	rc = me_restore(cli->options.input, &a.inplace, &done, &err);
	if (rc)
		me_cli_complain(&err);
	else if (!cli->quiet)
		rc = me_cli_flush(me_report_restored(stdout, cli->json, cli->options.input, &done));
	me_inplace_report_fini(&done);
	return me_cli_exit_status(rc);
}
