// SPDX-License-Identifier: Apache-2.0
/* cli_train - `morph-optimize train': from a command to a faster file, audited. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "editor/base/output_name.h"
#include "editor/cli/cli_training.h"
#include "libprof/store/store.h"

enum key {
	KEY_COUNTERS = 0x500,
	KEY_NO_AUDIT,
	KEY_NO_REFINE,
	KEY_DB,
	KEY_PROFILE,
	KEY_REPORT,
};

static const struct argp_option options[] = {
	{"counters", KEY_COUNTERS, "HOW", 0,
	 "plain, threads or atomic: the counters that count branches (default: threads where the "
	 "file starts threads)",
	 0},
	{"no-audit", KEY_NO_AUDIT, NULL, 0, "Keep the output without an audit", 0},
	{"no-refine", KEY_NO_REFINE, NULL, 0, "Do not look for a faster version than the first", 0},
	{"db", KEY_DB, "FILE", 0,
	 "The store that remembers which versions were tried (default: see FILES in the man page)",
	 0},
	{"profile", KEY_PROFILE, "DB", 0,
	 "Write what was counted into the new store DB, and no version: `morph-optimize --db=DB' makes one",
	 0},
	{"report", KEY_REPORT, "FORMAT", 0, "text (default) or none", 0},
	{0}};

static void read_counters(struct argp_state *state, struct me_counting *c, const char *arg)
{
	c->edges = true;
	if (!strcmp(arg, "plain"))
		c->how = ME_COUNT_PLAIN;
	else if (!strcmp(arg, "threads"))
		c->how = ME_COUNT_THREADS;
	else if (!strcmp(arg, "atomic"))
		c->how = ME_COUNT_ATOMIC;
	else
		argp_error(state, "--counters: '%s' is not plain, threads or atomic", arg);
}

static void read_report(struct argp_state *state, struct me_cli *cli, const char *arg)
{
	cli->quiet = !strcmp(arg, "none");
	if (!cli->quiet && strcmp(arg, "text"))
		argp_error(state, "--report: '%s' is not text or none", arg);
}

static void check(struct argp_state *state, struct me_cli_training *a)
{
	if (a->train.only_profile && !a->train.file)
		argp_error(state, "--profile: name the FILE before the --");
	if (!a->train.output && !a->train.file)
		argp_error(state, "name the FILE before the --, or the output with -o");
	me_cli_training_name_output(state, a);
	me_cli_training_check(state, a);
	if (a->train.budget_seconds > 0 && (a->train.no_refine || a->train.no_audit))
		argp_error(state, "--budget does not go with --no-refine or --no-audit");
}

static const struct argp_child children[] = {{&me_cli_audit_argp, 0, NULL, 0},
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
	case KEY_COUNTERS: read_counters(state, &a->cli->options.counting, arg); return 0;
	case KEY_NO_AUDIT: a->train.no_audit = true; return 0;
	case KEY_NO_REFINE: a->train.no_refine = true; return 0;
	case KEY_DB: a->train.trials_db = arg; return 0;
	case KEY_PROFILE:
		if (a->train.output)
			argp_error(state, "-o and --profile exclude each other");
		a->train.output = arg;
		a->train.only_profile = true;
		return 0;
	case KEY_REPORT: read_report(state, a->cli, arg); return 0;
	case ARGP_KEY_ARG: return me_cli_training_word(state, a, arg);
	case ARGP_KEY_END: check(state, a); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "FILE -- COMMAND [ARGS...]\n-o OUTPUT -- COMMAND [ARGS...]",
	.doc = "Do it all for a command: sample it, count its branches, optimise what it runs (or "
	       "FILE), look for the fastest version, and keep it if an audit finds it faster.",
	.children = children,
};

int me_cli_train(struct me_cli *cli, int argc, char **argv)
{
	struct me_cli_training a = {.cli = cli};
	struct mp_err err = {""};

	me_cli_parse(&argp, cli, argc, argv, &a);
	if (cli->default_output && me_output_replaceable(a.train.output, &err)) {
		me_cli_complain(&err);
		return me_cli_exit_status(-EEXIST);
	}
	/* Without a store, the next training begins anew; that is no failure of this one. */
	if (!a.train.trials_db && !a.train.no_refine && !a.train.no_audit &&
	    !a.train.only_profile && !mp_store_default_path(a.db, sizeof(a.db), true, NULL))
		a.train.trials_db = a.db;
	return me_cli_training_run(&a);
}
