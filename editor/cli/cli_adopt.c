// SPDX-License-Identifier: Apache-2.0
/* cli_adopt - `morph-optimize adopt': put an output that exists in the place of its original. */
#include <argp.h>
#include <stdio.h>

#include "editor/cli/cli.h"
#include "editor/cli/report.h"

enum key {
	KEY_THREADS = 0x800,
};

static const struct argp_option options[] = {
	{"dry-run", 'n', NULL, 0, "Do everything, verification too, but replace no file", 0},
	{"threads", KEY_THREADS, "N", 0,
	 "Work on so many threads (default: as many as there are processors, at most 8)", 0},
	{0}};

struct adoption {
	struct me_cli *cli;
	const char *output;
	struct me_inplace_options inplace;
};

static const struct argp_child children[] = {
	{&me_cli_report_argp, 0, NULL, 0}, {&me_cli_backup_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct adoption *a = state->input;
	struct me_optimize_options *o = &a->cli->options;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = a->cli;
		state->child_inputs[1] = &a->inplace;
		return 0;
	case 'n': a->inplace.dry_run = true; return 0;
	case KEY_THREADS: me_cli_threads(state, a->cli, arg); return 0;
	case ARGP_KEY_ARG:
		if (a->output)
			argp_error(state, "two files at a time");
		if (o->input)
			a->output = arg;
		else
			o->input = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->output)
			argp_error(state, "which files? FILE, and what was made of it");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "FILE OUTPUT",
	.doc = "Put OUTPUT, which morph-optimize made of FILE and which verifies, in the place of FILE, and "
	       "keep the original in the backup directory.",
	.children = children,
};

int me_cli_adopt(struct me_cli *cli, int argc, char **argv)
{
	struct adoption a = {.cli = cli};
	struct me_inplace_report done;
	struct mp_err err = {""};
	int rc;

	me_cli_parse(&argp, cli, argc, argv, &a);
	rc = me_adopt(cli->options.input, a.output, &a.inplace, cli->options.nr_threads, &done,
		      &err);
	if (rc)
		me_cli_complain(&err);
	else if (!cli->quiet)
		rc = me_cli_flush(
			me_report_adopted(stdout, cli->json, cli->options.input, a.output, &done));
	me_inplace_report_fini(&done);
	return me_cli_exit_status(rc);
}
