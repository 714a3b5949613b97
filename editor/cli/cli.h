// SPDX-License-Identifier: Apache-2.0
/*
 * cli - what the commands of morph-optimize share: options, how options are read, exit statuses.
 *
 * A command has a file of its own, cli_<command>.c, with its table of options. The command without
 * a name, `morph-optimize FILE', is in cli_optimize.c.
 */
#ifndef ME_CLI_H
#define ME_CLI_H

#include <argp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "editor/replace/inplace.h"
#include "editor/optimize/optimize.h"
#include "libprof/base/err.h"
#include "libprof/cli/commands.h"
#include "libprof/cli/exit_status.h"

/* The parsed command line. */
struct me_cli {
	struct me_optimize_options options;
	bool json, quiet; /* --report */
	bool dry_run;
	const char *patch_list;
	const char *fleet;     /* take the profile from this fleet's database; NULL: from a store */
	bool default_output;   /* the output is FILE.morph, which -o did not name */
	char db[PATH_MAX];     /* storage for options.db */
	char counts[PATH_MAX]; /* storage for options.counting.path */
	char output[PATH_MAX]; /* storage for options.output */
};

struct me_cli_command {
	struct mp_command command;
	/* Return: the exit status. */
	int (*run)(struct me_cli *cli, int argc, char **argv);
};

/* Its rows are struct me_cli_command. */
extern const struct mp_commands me_cli_commands;

int me_cli_optimize(struct me_cli *cli, int argc, char **argv);
int me_cli_instrument(struct me_cli *cli, int argc, char **argv);
int me_cli_train(struct me_cli *cli, int argc, char **argv);
int me_cli_refine(struct me_cli *cli, int argc, char **argv);
int me_cli_verify(struct me_cli *cli, int argc, char **argv);
int me_cli_adopt(struct me_cli *cli, int argc, char **argv);
int me_cli_restore(struct me_cli *cli, int argc, char **argv);

/* ---- groups of options; their input is struct me_cli ---- */

extern const struct argp me_cli_report_argp;	/* --report, --json */
extern const struct argp me_cli_profile_argp;	/* which profile, and how it is read */
extern const struct argp me_cli_output_argp;	/* -o, -n, --explain */
extern const struct argp me_cli_functions_argp; /* --skip, --only, --threads */
extern const struct argp me_cli_layout_argp;	/* --layout, --lab */
extern const struct argp me_cli_adjust_argp;	/* --adjust */
/* --backup-dir, --break-links, --no-symlinks; @input is a struct me_inplace_options */
extern const struct argp me_cli_backup_argp;

/* Return: false: @arg is no number. */
bool me_cli_to_number(const char *arg, uint64_t *value);
/* Values of options; a wrong one is a usage error. */
uint64_t me_cli_number(struct argp_state *state, const char *option, const char *arg);
void me_cli_threads(struct argp_state *state, struct me_cli *cli, const char *arg);

/* ---- running ---- */

/* Reads the command line: --help, usage errors and --version end the process. */
void me_cli_parse(const struct argp *argp, struct me_cli *cli, int argc, char **argv, void *input);
/*
 * me_cli_work - optimise, in place where @inplace is given, and print the report.
 * Return: the exit status.
 */
int me_cli_work(struct me_cli *cli, const struct me_inplace_options *inplace);
/* Rewrites objects by the profile of @program. Return: the exit status. */
int me_cli_object(struct me_cli *cli, const char *program);
/* Verifies a rewritten object or archive. Return: the exit status. */
int me_cli_verify_object(struct me_cli *cli, const char *original);
/*
 * Sets cli->options.db to the default store, if --db names none and one is needed, or with --fleet to a
 * temporary one.
 */
int me_cli_choose_db(struct me_cli *cli, struct mp_err *err);
/*
 * Refuses an @output that is an input of the command line under any name, or that cannot be written.
 * @output NULL: none; @other: one more input, or NULL. Return: 0 or -errno with a message.
 */
int me_cli_check_output(const struct me_cli *cli, const char *output, const char *other,
			struct mp_err *err);
/* The exit status for a return value of the editor. */
int me_cli_exit_status(int rc);
/* Flushes standard output unless @failed; says what failed. Return: 0, -errno. */
int me_cli_flush(int failed);
/* Prints "morph-optimize: " and the message. */
void me_cli_complain(const struct mp_err *err);

#endif
