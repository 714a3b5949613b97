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

#define MP_OPTIONS struct me_cli

static void set_seconds(const struct mp_option *o, void *options, char *arg,
			struct argp_state *state)
{
	double seconds = (double)mp_options_count(state, o->name, arg);

	if (seconds <= 0)
		argp_error(state, "--%s: 0 is too few", o->name);
	*(double *)((char *)options + o->at) = seconds;
}

static void set_budget(const struct mp_option *o, void *options, char *arg,
		       struct argp_state *state)
{
	struct me_train_options *train = &((struct me_cli *)options)->train;

	train->budget_seconds = (double)mp_options_count(state, o->name, arg);
	train->no_refine = train->budget_seconds <= 0;
}

/* MIN or MIN:MAX, which morph-audit reads. */
static void set_pairs(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	unsigned long min = 0, max = 0;
	int end = 0, nr = sscanf(arg, "%6lu%n:%6lu%n", &min, &end, &max, &end);

	if (nr < 1 || arg[end] || !min || arg[0] < '0' || arg[0] > '9' || (nr == 2 && max < min))
		argp_error(state, "--%s: '%s' is not MIN or MIN:MAX", o->name, arg);
	((struct me_cli *)options)->train.audit_pairs = arg;
}

#define SECONDS(name_, field, doc_)                                                                \
	{                                                                                          \
		.name = name_, .value = "S", .doc = doc_, .kind = MP_OPTION_SET,                   \
		.at = MP_AT(field), .set = set_seconds                                             \
	}

const struct mp_option me_cli_audit_options[] = {
	MP_VALUE(TEXT, "output", 'o', train.output, "OUTPUT",
		 "Write the optimised file here, if it is faster"),
	SECONDS("audit-seconds", train.audit_seconds,
		"The first audit takes no longer (default 120, or what 16 pairs need, if that is at most "
		"1800)"),
	MP_SET("audit-pairs", 0, set_pairs, "MIN[:MAX]",
	       "The first audit takes at least MIN pairs of runs, and at most MAX, instead"),
	MP_SET("budget", 0, set_budget, "S",
	       "After the first audit, look so long for a faster version (default 120, or what 48 runs "
	       "need, if that is at most 1800; 0: not at all)"),
	MP_VALUE(TEXT, "filter", 0, train.filter, "CMD",
		 "A shell command that removes from the command's output what varies from run to run, such "
		 "as timings, before audits compare it"),
	MP_VALUE(TEXT, "debug-file", 0, options.debug_file, "PATH|auto",
		 "The debug information of the file is in this file (auto: where a debugger looks, if "
		 "anywhere); write one for the output, too"),
	MP_OPTIONS_END};

void me_cli_training_word(void *options, char *arg, struct argp_state *state)
{
	struct me_train_options *train = &((struct me_cli *)options)->train;

	if (state->quoted && state->next > state->quoted) {
		train->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return;
	}
	if (train->file)
		argp_error(state, "one file at a time");
	train->file = arg;
}

void me_cli_training_check(struct argp_state *state, const struct me_cli *cli)
{
	if (!cli->train.command)
		argp_error(state, "which command? Give it behind --");
	if (cli->options.all)
		argp_error(state, "a profile is needed: --all does without");
	if (cli->options.counting.none || cli->patch_list)
		argp_error(state, "--lab: kind= and list-patches= are for one version");
	if (cli->train.audit_pairs && cli->train.audit_seconds > 0)
		argp_error(state, "--audit-seconds and --audit-pairs exclude each other");
	if (cli->train.filter && cli->train.no_audit)
		argp_error(state, "--filter does not go with --no-audit");
}

void me_cli_training_name_output(struct argp_state *state, struct me_cli *cli)
{
	struct mp_err err = {""};

	if (cli->train.output)
		return;
	if (me_output_name(cli->train.file, cli->output, sizeof(cli->output), &err))
		argp_failure(state, EXIT_FAILURE, 0, "%s", err.msg);
	cli->train.output = cli->output;
	cli->default_output = true;
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

int me_cli_training_run(struct me_cli *cli)
{
	struct me_train_report report;
	struct mp_err err = {""};
	int rc, failed = 0;

	cli->train.optimize = cli->options;
	me_interrupt_catch();
	if (mp_progress_start("morph-optimize", true))
		cli->train.say = say_step;
	cli->train.warn = say_warning;
	rc = me_train(&cli->train, &report, &err);
	mp_progress_stop();
	if (rc)
		me_cli_complain(&err);
	/* Without a version nothing was tried, and a store that is damaged has had its message. */
	if (report.trials_lost && report.final.new_size)
		fprintf(stderr, "morph-optimize: trials are not kept: %s\n", report.trials_lost);
	if (cli->json && report.final.new_size)
		failed = me_report_train_json(stdout, &cli->train, &report, !rc);
	else if (!cli->quiet && report.final.new_size)
		me_report_train(stdout, &cli->train, &report, !rc);
	if (!rc && cli->train.only_profile && !cli->quiet)
		printf("what was counted is in %s\n", cli->train.output);
	if (me_cli_flush(failed))
		rc = rc ? rc : -EIO;
	me_train_advice(stderr, &cli->train, &report, rc);
	me_train_report_fini(&report);
	return status_of(rc);
}
