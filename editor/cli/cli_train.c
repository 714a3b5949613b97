// SPDX-License-Identifier: Apache-2.0
/* cli_train - `morph-optimize train': from a command to a faster file, audited. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "editor/cli/cli.h"
#include "editor/cli/report.h"
#include "editor/cli/train.h"
#include "editor/cli/train_advice.h"
#include "libprof/cli/progress.h"

enum key {
	KEY_COUNTERS = 0x500,
	KEY_AUDIT_SECONDS,
	KEY_AUDIT_PAIRS,
	KEY_NO_AUDIT,
	KEY_DEBUG_FILE,
	KEY_REPORT,
};

static const struct argp_option options[] = {
	{"output", 'o', "OUTPUT", 0, "Write the optimised file here, if it is faster", 0},
	{"counters", KEY_COUNTERS, "HOW", 0,
	 "plain, threads or atomic: the counters that count branches (default: threads where the "
	 "file starts threads)",
	 0},
	{"audit-seconds", KEY_AUDIT_SECONDS, "S", 0,
	 "The audit takes no longer (default 120, or what 16 pairs need, if that is at most 1800)",
	 0},
	{"audit-pairs", KEY_AUDIT_PAIRS, "MIN[:MAX]", 0,
	 "The audit takes at least MIN pairs of runs, and at most MAX, instead", 0},
	{"no-audit", KEY_NO_AUDIT, NULL, 0, "Keep the output without an audit", 0},
	{"debug-file", KEY_DEBUG_FILE, "PATH|auto", 0,
	 "The debug information of the file is in this file (auto: where a debugger looks, if "
	 "anywhere); write one for the output, too",
	 0},
	{"report", KEY_REPORT, "FORMAT", 0, "text (default) or none", 0},
	{0}};

struct training {
	struct me_cli *cli;
	struct me_train_options train;
};

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

static void read_seconds(struct argp_state *state, struct me_train_options *train, const char *arg)
{
	train->audit_seconds = (double)me_cli_number(state, "--audit-seconds", arg);
	if (train->audit_seconds <= 0)
		argp_error(state, "--audit-seconds: 0 is too few");
}

/* MIN or MIN:MAX, which morph-audit reads. */
static void read_pairs(struct argp_state *state, struct me_train_options *train, const char *arg)
{
	unsigned long min = 0, max = 0;
	int end = 0, nr = sscanf(arg, "%6lu%n:%6lu%n", &min, &end, &max, &end);

	if (nr < 1 || arg[end] || !min || arg[0] < '0' || arg[0] > '9' || (nr == 2 && max < min))
		argp_error(state, "--audit-pairs: '%s' is not MIN or MIN:MAX", arg);
	train->audit_pairs = arg;
}

static void read_report(struct argp_state *state, struct me_cli *cli, const char *arg)
{
	cli->quiet = !strcmp(arg, "none");
	if (!cli->quiet && strcmp(arg, "text"))
		argp_error(state, "--report: '%s' is not text or none", arg);
}

/* FILE, if any, stands before the "--", and the command behind it. */
static error_t read_word(struct argp_state *state, struct training *a, char *arg)
{
	if (state->quoted && state->next > state->quoted) {
		a->train.command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	}
	if (a->train.file)
		argp_error(state, "one file at a time");
	a->train.file = arg;
	return 0;
}

static void check(struct argp_state *state, const struct training *a)
{
	if (!a->train.output)
		argp_error(state, "-o FILE is needed");
	if (!a->train.command)
		argp_error(state, "which command? Give it behind --");
	if (a->train.audit_pairs && a->train.audit_seconds > 0)
		argp_error(state, "--audit-seconds and --audit-pairs exclude each other");
}

static const struct argp_child children[] = {
	{&me_cli_functions_argp, 0, NULL, 0}, {&me_cli_layout_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct training *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		for (size_t i = 0; children[i].argp; i++)
			state->child_inputs[i] = a->cli;
		return 0;
	case 'o': a->train.output = arg; return 0;
	case KEY_COUNTERS: read_counters(state, &a->cli->options.counting, arg); return 0;
	case KEY_NO_AUDIT: a->train.no_audit = true; return 0;
	case KEY_AUDIT_SECONDS: read_seconds(state, &a->train, arg); return 0;
	case KEY_AUDIT_PAIRS: read_pairs(state, &a->train, arg); return 0;
	case KEY_DEBUG_FILE: a->cli->options.debug_file = arg; return 0;
	case KEY_REPORT: read_report(state, a->cli, arg); return 0;
	case ARGP_KEY_ARG: return read_word(state, a, arg);
	case ARGP_KEY_END: check(state, a); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "-o OUTPUT [FILE] -- COMMAND [ARGS...]",
	.doc = "Do it all for a command: sample it, count its branches, optimise what it runs (or "
	       "FILE), and keep the new version if an audit finds it faster.",
	.children = children,
};

static void say_step(const char *step)
{
	mp_progress_say("%s", step);
}

static void say_warning(const char *what)
{
	mp_progress_stop();
	fprintf(stderr, "morph-optimize: %s\n", what);
}

/* The exit status for @rc; the verdicts of morph-audit keep its exit statuses. */
static int status_of(int rc)
{
	switch (rc) {
	case -ECANCELED: return ME_CLI_NOT_FASTER;
	case -EBADE: return ME_CLI_DIFFERS;
	case -EAGAIN: return ME_CLI_UNDECIDED;
	case -ESRCH: return ME_CLI_NO_PROFILE;
	default: return me_cli_exit_status(rc);
	}
}

int me_cli_train(struct me_cli *cli, int argc, char **argv)
{
	struct training a = {.cli = cli};
	struct me_train_report report;
	struct mp_err err = {""};
	int rc;

	me_cli_parse(&argp, cli, argc, argv, &a);
	a.train.optimize = cli->options;
	if (mp_progress_start("morph-optimize", true))
		a.train.say = say_step;
	a.train.warn = say_warning;
	rc = me_train(&a.train, &report, &err);
	mp_progress_stop();
	if (rc)
		me_cli_complain(&err);
	if (!cli->quiet && report.final.new_size) {
		me_report_train(stdout, &a.train, &report, !rc);
		rc = me_cli_flush(0) ? -EIO : rc;
	}
	me_train_advice(stderr, &a.train, &report, rc);
	me_train_report_fini(&report);
	return status_of(rc);
}
