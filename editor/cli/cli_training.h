// SPDX-License-Identifier: Apache-2.0
/* cli_training - what the commands train and refine share: the options of audits, and running. */
#ifndef ME_CLI_TRAINING_H
#define ME_CLI_TRAINING_H

#include "editor/cli/cli.h"

/* -o, --audit-seconds, --audit-pairs, --budget, --filter, --debug-file */
extern const struct mp_option me_cli_audit_options[];
/* Reads one word: FILE stands before the "--", and the command behind it. */
void me_cli_training_word(void *options, char *arg, struct argp_state *state);
/* Usage errors that both commands have in common. */
void me_cli_training_check(struct argp_state *state, const struct me_cli *cli);
/* Without -o, the output is FILE.morph. There must be a FILE. */
void me_cli_training_name_output(struct argp_state *state, struct me_cli *cli);
/* Trains or refines, and prints the report. Return: the exit status. */
int me_cli_training_run(struct me_cli *cli);

#endif
