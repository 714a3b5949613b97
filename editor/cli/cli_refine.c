// SPDX-License-Identifier: Apache-2.0
/* cli_refine - `morph-optimize refine': the fastest version by an existing profile, audited. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "editor/base/output_name.h"
#include "editor/cli/cli_training.h"

static void check(void *options, struct argp_state *state)
{
	struct me_cli *cli = options;

	me_cli_check_profile(state, cli);
	if (!cli->train.file)
		argp_error(state, "which file?");
	me_cli_training_check(state, cli);
	me_cli_training_name_output(state, cli);
}

static const struct mp_option *const more[] = {me_cli_audit_options,
					       me_cli_report_options,
					       me_cli_profile_options,
					       me_cli_functions_options,
					       me_cli_adjust_options,
					       me_cli_layout_options,
					       NULL};

static const struct mp_usage usage = {
	.more = more,
	.arguments = "FILE -- COMMAND [ARGS...]",
	.word = me_cli_training_word,
	.check = check,
	.doc = "Optimise FILE by its profile, and run COMMAND, which uses FILE, to find the fastest "
	       "version: functions that take longer than in the original stay where it has them. "
	       "The result is kept if an audit finds it faster."};

int me_cli_refine(struct me_cli *cli, int argc, char **argv)
{
	struct mp_err err = {""};
	int rc = 0;

	cli->train.has_profile = true;
	me_cli_parse(&usage, cli, argc, argv);
	if (cli->default_output)
		rc = me_output_replaceable(cli->train.output, &err) ? -EEXIST : 0;
	if (cli->fleet)
		cli->options.input = cli->train.file;
	if (!rc)
		rc = me_cli_choose_db(cli, &err);
	if (rc) {
		if (err.msg[0])
			me_cli_complain(&err);
		return me_cli_exit_status(rc);
	}
	/* A fleet's profile is in a temporary database, which keeps no trials. */
	if (!cli->fleet)
		cli->train.trials_db = cli->options.db;
	return me_cli_training_run(cli);
}
