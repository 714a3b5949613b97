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

#include "editor/base/object_kind.h"
#include "editor/optimize/optimize.h"
#include "editor/print/print.h"
#include "editor/replace/inplace.h"
#include "editor/train/train.h"
#include "libprof/base/err.h"
#include "libprof/cli/commands.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/options.h"

/* The parsed command line of any command. */
struct me_cli {
	struct me_optimize_options options;
	struct me_layout_options layout; /* without options */
	struct me_inplace_options inplace;
	struct me_train_options train;
	struct me_print_options print;
	bool in_place, printing;
	bool meters;		  /* instrument --kind=meter */
	const char *program;	  /* of --program */
	enum me_object_kind kind; /* of the input */
	const char *original;	  /* verify: the original */
	unsigned int
		kinds; /* verify, adopt: a bit for each enum me_kind that the file may be, 0: default */
	const char *adopted; /* adopt: the output that is put in place */
	bool json, quiet;    /* --report */
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

/*
 * Several command lines in one call, each behind a word ME_CLI_EACH: for morph-worker. Each output is the one that its
 * line alone would write; the first line's report is printed.
 */
#define ME_CLI_EACH "--each"
int me_cli_several(const struct me_cli *defaults, int argc, char **argv);
int me_cli_optimize(struct me_cli *cli, int argc, char **argv);
int me_cli_instrument(struct me_cli *cli, int argc, char **argv);
int me_cli_train(struct me_cli *cli, int argc, char **argv);
int me_cli_refine(struct me_cli *cli, int argc, char **argv);
int me_cli_verify(struct me_cli *cli, int argc, char **argv);
int me_cli_adopt(struct me_cli *cli, int argc, char **argv);
int me_cli_restore(struct me_cli *cli, int argc, char **argv);

/* ---- options that several commands have ---- */

extern const struct mp_option me_cli_report_options[];	  /* --report, --json */
extern const struct mp_option me_cli_profile_options[];	  /* which profile, and how it is read */
extern const struct mp_option me_cli_output_options[];	  /* -o, -n, --explain */
extern const struct mp_option me_cli_functions_options[]; /* --skip, --only, --threads */
extern const struct mp_option me_cli_layout_options[];	  /* --layout, --lab */
extern const struct mp_option me_cli_adjust_options[];	  /* --adjust */
extern const struct mp_option
	me_cli_backup_options[]; /* --backup-dir, --break-links, --no-symlinks */

/* Usage errors of the profile's options. */
void me_cli_check_profile(struct argp_state *state, const struct me_cli *cli);
/* For MP_SET(): so many threads. */
void me_cli_set_threads(const struct mp_option *option, void *cli, char *arg,
			struct argp_state *state);
#define ME_CLI_THREADS_SHORT                                                                       \
	MP_SET("threads", 0, me_cli_set_threads, "N",                                              \
	       "Work on so many threads (default: as many as there are processors, at most 8)")

/* For MP_SET(): adds kinds of outputs to @cli->kinds. */
void me_cli_add_kinds(const struct mp_option *option, void *cli, char *arg,
		      struct argp_state *state);
#define ME_CLI_KINDS                                                                               \
	"layout, edges, edges+threads, meter, pep, pep+poll, audit, calls, live, "                 \
	"live+edges, live+meter"
#define ME_CLI_KIND(doc_) MP_SET("kind", 0, me_cli_add_kinds, "KIND[,KIND]", doc_)

/* Return: false: @arg is no number. */
bool me_cli_to_number(const char *arg, uint64_t *value);
/* ---- running ---- */

/* Reads the command line: --help, usage errors and --version end the process. */
void me_cli_parse(const struct mp_usage *usage, struct me_cli *cli, int argc, char **argv);
void me_cli_parse_optimize(struct me_cli *cli, int argc, char **argv);
void me_cli_parse_instrument(struct me_cli *cli, int argc, char **argv);
/* Chooses the database, and refuses outputs that would replace an input. Return: 0 or -errno with a message. */
int me_cli_prepare(struct me_cli *cli, struct mp_err *err);
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
