// SPDX-License-Identifier: Apache-2.0
/* cli_refine - `morph-optimize refine': the fastest version by an existing profile, audited. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "editor/base/output_name.h"
#include "editor/cli/cli_training.h"

static void check(struct argp_state *state, struct me_cli_training *a)
{
	if (!a->train.file)
		argp_error(state, "which file?");
	me_cli_training_check(state, a);
	me_cli_training_name_output(state, a);
}

static const struct argp_child children[] = {{&me_cli_audit_argp, 0, NULL, 0},
					     {&me_cli_report_argp, 0, NULL, 0},
					     {&me_cli_profile_argp, 0, NULL, 0},
					     {&me_cli_functions_argp, 0, NULL, 0},
					     {&me_cli_adjust_argp, 0, NULL, 0},
					     {&me_cli_layout_argp, 0, NULL, 0},
					     {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct me_cli_training *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = a;
		for (size_t i = 1; children[i].argp; i++)
			state->child_inputs[i] = a->cli;
		return 0;
	case ARGP_KEY_ARG: return me_cli_training_word(state, a, arg);
	case ARGP_KEY_END: check(state, a); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "FILE -- COMMAND [ARGS...]",
	.doc = "Optimise FILE by its profile, and run COMMAND, which uses FILE, to find the fastest "
	       "version: functions that take longer than in the original stay where it has them. "
	       "The result is kept if an audit finds it faster.",
	.children = children,
};

int me_cli_refine(struct me_cli *cli, int argc, char **argv)
{
	struct me_cli_training a = {.cli = cli, .train = {.has_profile = true}};
	struct mp_err err = {""};
	int rc = 0;

	me_cli_parse(&argp, cli, argc, argv, &a);
	if (cli->default_output)
		rc = me_output_replaceable(a.train.output, &err) ? -EEXIST : 0;
	if (cli->fleet)
		cli->options.input = a.train.file;
	if (!rc)
		rc = me_cli_choose_db(cli, &err);
	if (rc) {
		if (err.msg[0])
			me_cli_complain(&err);
		return me_cli_exit_status(rc);
	}
	/* A fleet's profile is in a temporary database, which keeps no trials. */
	if (!cli->fleet)
		a.train.trials_db = cli->options.db;
	return me_cli_training_run(&a);
}
