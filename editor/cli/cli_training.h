// SPDX-License-Identifier: Apache-2.0
/* cli_training - what the commands train and refine share: the options of audits, and running. */
#ifndef ME_CLI_TRAINING_H
#define ME_CLI_TRAINING_H

#include "editor/cli/cli.h"
#include "editor/train/train.h"

struct me_cli_training {
	struct me_cli *cli;
	struct me_train_options train;
	char db[PATH_MAX]; /* storage for train.trials_db */
};

/* -o, --audit-seconds, --audit-pairs, --budget, --filter, --debug-file; the input is struct me_cli_training. */
extern const struct argp me_cli_audit_argp;
/* Reads one word: FILE stands before the "--", and the command behind it. */
error_t me_cli_training_word(struct argp_state *state, struct me_cli_training *a, char *arg);
/* Usage errors that both commands have in common. */
void me_cli_training_check(struct argp_state *state, const struct me_cli_training *a);
/* Without -o, the output is FILE.morph. There must be a FILE. */
void me_cli_training_name_output(struct argp_state *state, struct me_cli_training *a);
/* Trains or refines, and prints the report. Return: the exit status. */
int me_cli_training_run(struct me_cli_training *a);

#endif
