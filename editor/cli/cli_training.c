// SPDX-License-Identifier: Apache-2.0
/* cli_training - options and messages of the commands that run another one; see cli_training.h. */
#include "editor/cli/cli_training.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "editor/base/output_name.h"
#include "editor/cli/report.h"
#include "editor/refine/interrupt.h"
#include "editor/train/train_advice.h"
#include "libprof/cli/progress.h"

enum key {
	KEY_AUDIT_SECONDS = 0x580,
	KEY_AUDIT_PAIRS,
	KEY_BUDGET,
	KEY_FILTER,
	KEY_DEBUG_FILE,
};

static const struct argp_option options[] = {
	{"output", 'o', "OUTPUT", 0, "Write the optimised file here, if it is faster", 0},
	{"audit-seconds", KEY_AUDIT_SECONDS, "S", 0,
	 "The first audit takes no longer (default 120, or what 16 pairs need, if that is at most "
	 "1800)",
	 0},
	{"audit-pairs", KEY_AUDIT_PAIRS, "MIN[:MAX]", 0,
	 "The first audit takes at least MIN pairs of runs, and at most MAX, instead", 0},
	{"budget", KEY_BUDGET, "S", 0,
	 "After the first audit, look so long for a faster version (default 120, or what 48 runs "
	 "need, if that is at most 1800)",
	 0},
	{"filter", KEY_FILTER, "CMD", 0,
	 "A shell command that removes from the command's output what varies from run to run, such "
	 "as timings, before audits compare it",
	 0},
	{"debug-file", KEY_DEBUG_FILE, "PATH|auto", 0,
	 "The debug information of the file is in this file (auto: where a debugger looks, if "
	 "anywhere); write one for the output, too",
	 0},
	{0}};

static double read_seconds(struct argp_state *state, const char *option, const char *arg)
{
	double seconds = (double)me_cli_number(state, option, arg);

	if (seconds <= 0)
		argp_error(state, "%s: 0 is too few", option);
	return seconds;
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

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct me_cli_training *a = state->input;
	struct me_train_options *t = &a->train;

	switch (key) {
	case 'o': t->output = arg; return 0;
	case KEY_AUDIT_SECONDS:
		t->audit_seconds = read_seconds(state, "--audit-seconds", arg);
		return 0;
	case KEY_AUDIT_PAIRS: read_pairs(state, t, arg); return 0;
	case KEY_BUDGET: t->budget_seconds = read_seconds(state, "--budget", arg); return 0;
	case KEY_FILTER: t->filter = arg; return 0;
	case KEY_DEBUG_FILE: a->cli->options.debug_file = arg; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp me_cli_audit_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

error_t me_cli_training_word(struct argp_state *state, struct me_cli_training *a, char *arg)
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

void me_cli_training_check(struct argp_state *state, const struct me_cli_training *a)
{
	if (!a->train.command)
		argp_error(state, "which command? Give it behind --");
	if (a->cli->options.all)
		argp_error(state, "a profile is needed: --all does without");
	if (a->cli->options.counting.none || a->cli->patch_list)
		argp_error(state, "--lab: kind= and list-patches= are for one version");
	if (a->train.audit_pairs && a->train.audit_seconds > 0)
		argp_error(state, "--audit-seconds and --audit-pairs exclude each other");
	if (a->train.filter && a->train.no_audit)
		argp_error(state, "--filter does not go with --no-audit");
}

void me_cli_training_name_output(struct argp_state *state, struct me_cli_training *a)
{
	struct mp_err err = {""};

	if (a->train.output)
		return;
	if (me_output_name(a->train.file, a->cli->output, sizeof(a->cli->output), &err))
		argp_failure(state, EXIT_FAILURE, 0, "%s", err.msg);
	a->train.output = a->cli->output;
	a->cli->default_output = true;
}

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
	case -ECANCELED: return MP_EXIT_NOT_FASTER;
	case -EBADE: return MP_EXIT_DIFFERS;
	case -EAGAIN: return MP_EXIT_UNDECIDED;
	case -ESRCH: return MP_EXIT_NO_PROFILE;
	default: return me_cli_exit_status(rc);
	}
}

int me_cli_training_run(struct me_cli_training *a)
{
	struct me_train_report report;
	struct mp_err err = {""};
	int rc, failed = 0;

	a->train.optimize = a->cli->options;
	me_interrupt_catch();
	if (mp_progress_start("morph-optimize", true))
		a->train.say = say_step;
	a->train.warn = say_warning;
	rc = me_train(&a->train, &report, &err);
	mp_progress_stop();
	if (rc)
		me_cli_complain(&err);
	/* Without a version nothing was tried, and a store that is damaged has had its message. */
	if (report.trials_lost && report.final.new_size)
		fprintf(stderr, "morph-optimize: trials are not kept: %s\n", report.trials_lost);
	if (a->cli->json && report.final.new_size)
		failed = me_report_train_json(stdout, &a->train, &report, !rc);
	else if (!a->cli->quiet && report.final.new_size)
		me_report_train(stdout, &a->train, &report, !rc);
	if (!rc && a->train.only_profile && !a->cli->quiet)
		printf("what was counted is in %s\n", a->train.output);
	if (me_cli_flush(failed))
		rc = rc ? rc : -EIO;
	me_train_advice(stderr, &a->train, &report, rc);
	me_train_report_fini(&report);
	return status_of(rc);
}
