// SPDX-License-Identifier: Apache-2.0
/* cli_train - `morph-optimize train': from a command to a faster file, audited. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "editor/base/output_name.h"
#include "editor/cli/cli_training.h"
#include "libprof/store/store.h"

#define MP_OPTIONS struct me_cli

static void set_counters(const struct mp_option *o, void *options, char *arg,
			 struct argp_state *state)
{
	static const char *const names[] = {[ME_COUNT_PLAIN] = "plain",
					    [ME_COUNT_THREADS] = "threads",
					    [ME_COUNT_ATOMIC] = "atomic"};
	struct me_counting *c = &((struct me_cli *)options)->options.counting;

	c->edges = true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i] && !strcmp(arg, names[i])) {
			c->how = i;
			return;
		}
	argp_error(state, "--%s: '%s' is not plain, threads or atomic", o->name, arg);
}

static void set_report(const struct mp_option *o, void *options, char *arg,
		       struct argp_state *state)
{
	struct me_cli *cli = options;

	cli->quiet = !strcmp(arg, "none");
	if (!cli->quiet && strcmp(arg, "text"))
		argp_error(state, "--%s: '%s' is not text or none", o->name, arg);
}

static void set_profile(const struct mp_option *o, void *options, char *arg,
			struct argp_state *state)
{
	struct me_train_options *train = &((struct me_cli *)options)->train;

	if (train->output)
		argp_error(state, "-o and --%s exclude each other", o->name);
	train->output = arg;
	train->only_profile = true;
}

static const struct mp_option options[] = {
	MP_SET("counters", 0, set_counters, "HOW",
	       "plain, threads or atomic: the counters that count branches (default: threads where the "
	       "file starts threads)"),
	MP_FLAG("no-audit", train.no_audit, "Keep the output without an audit"),
	MP_VALUE(
		TEXT, "db", 0, train.trials_db, "FILE",
		"The store that remembers which versions were tried (default: see FILES in the man page)"),
	MP_SET("profile", 0, set_profile, "DB",
	       "Write what was counted into the new store DB, and no version: `morph-optimize --db=DB' makes one"),
	MP_SET("report", 0, set_report, "FORMAT", "text (default) or none"),
	MP_OPTIONS_END};

static void check(void *options, struct argp_state *state)
{
	struct me_cli *cli = options;

	if (cli->train.only_profile && !cli->train.file)
		argp_error(state, "--profile: name the FILE before the --");
	if (!cli->train.output && !cli->train.file)
		argp_error(state, "name the FILE before the --, or the output with -o");
	me_cli_training_name_output(state, cli);
	me_cli_training_check(state, cli);
	if (cli->train.budget_seconds > 0 && cli->train.no_audit)
		argp_error(state, "--budget does not go with --no-audit");
}

static const struct mp_option *const more[] = {me_cli_audit_options, me_cli_functions_options,
					       me_cli_adjust_options, me_cli_layout_options, NULL};

static const struct mp_usage usage = {
	.options = options,
	.more = more,
	.arguments = "FILE -- COMMAND [ARGS...]\n-o OUTPUT -- COMMAND [ARGS...]",
	.word = me_cli_training_word,
	.check = check,
	.doc = "Do it all for a command: sample it, count its branches, optimise what it runs (or "
	       "FILE), look for the fastest version, and keep it if an audit finds it faster."};

int me_cli_train(struct me_cli *cli, int argc, char **argv)
{
	struct mp_err err = {""};

	me_cli_parse(&usage, cli, argc, argv);
	if (cli->default_output && me_output_replaceable(cli->train.output, &err)) {
		me_cli_complain(&err);
		return me_cli_exit_status(-EEXIST);
	}
	/* Without a store, the next training begins anew; that is no failure of this one. */
	if (!cli->train.trials_db && !cli->train.no_refine && !cli->train.no_audit &&
	    !cli->train.only_profile &&
	    !mp_store_default_path(cli->db, sizeof(cli->db), true, NULL))
		cli->train.trials_db = cli->db;
	return me_cli_training_run(cli);
}
