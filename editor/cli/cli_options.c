// SPDX-License-Identifier: Apache-2.0
/* cli_options - options that several commands have, and how their values are read. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "editor/cli/cli.h"
#include "libprof/base/parallel.h"
#include "libprof/cli/since.h"

enum key {
	KEY_DRY_RUN = 'n',
	KEY_DB = 0x200,
	KEY_FLEET,
	KEY_JSON,
	KEY_REPORT,
	KEY_SINCE,
	KEY_MIN_SAMPLES,
	KEY_EXACT,
	KEY_STALE,
	KEY_ALL,
	KEY_EXPLAIN,
	KEY_THREADS,
	KEY_SKIP,
	KEY_ONLY,
};

bool me_cli_to_number(const char *arg, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(arg, &end, 10);
	return !errno && !*end && end != arg && *arg != '-';
}

uint64_t me_cli_number(struct argp_state *state, const char *option, const char *arg)
{
	uint64_t value;

	if (!me_cli_to_number(arg, &value))
		argp_error(state, "%s: '%s' is not a number", option, arg);
	return value;
}

/* ---- the report --------------------------------------------------------------------------- */

static const struct argp_option report_options[] = {
	{"report", KEY_REPORT, "FORMAT", 0, "text (default), json or none", 0},
	{"json", KEY_JSON, NULL, 0, "The same as --report=json", 0},
	{0}};

static void read_report(struct argp_state *state, struct me_cli *cli, const char *arg)
{
	cli->json = !strcmp(arg, "json");
	cli->quiet = !strcmp(arg, "none");
	if (!cli->json && !cli->quiet && strcmp(arg, "text"))
		argp_error(state, "--report: '%s' is not text, json or none", arg);
}

static error_t parse_report(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case KEY_JSON: read_report(state, state->input, "json"); return 0;
	case KEY_REPORT: read_report(state, state->input, arg); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp me_cli_report_argp = {report_options, parse_report, NULL, NULL, NULL, NULL, NULL};

/* ---- the profile -------------------------------------------------------------------------- */

static const struct argp_option profile_options[] = {
	{"db", KEY_DB, "FILE", 0, "The store to read (default: see FILES in the man page)", 0},
	{"fleet", KEY_FLEET, "CONNECTION", 0,
	 "Use the profile of a fleet: 'host=NAME dbname=NAME ...' or postgresql://... (needs "
	 "morph-fleet)",
	 0},
	{"min-samples", KEY_MIN_SAMPLES, "N", 0, "Refuse to work with fewer samples (default 1000)",
	 0},
	{"since", KEY_SINCE, "WHEN", 0,
	 "Use no counts older than 2h, 3d, 2026-11-20, today, ...; a mere number is of days", 0},
	{"exact-profile", KEY_EXACT, NULL, 0,
	 "The counts were counted, not sampled, though the database does not say so (imported from "
	 "BOLT): believe all of them",
	 1},
	{"stale", KEY_STALE, "OLD", 0,
	 "With too few samples of FILE, use those of this other build of it: a file, or a build-id "
	 "that morph-stats remember knows (default: the same path or name, if that is remembered); none: "
	 "use no samples of other builds",
	 1},
	{"all", KEY_ALL, NULL, 0, "Use no profile: copy every function that may be copied", 2},
	{0}};

static void read_since(struct argp_state *state, struct me_optimize_options *o, const char *arg)
{
	char days[32];
	const char *text = arg;

	/* A number without a unit is a number of days. */
	if (*arg && !arg[strspn(arg, "0123456789")] && strlen(arg) < sizeof(days) - 1) {
		snprintf(days, sizeof(days), "%sd", arg);
		text = days;
	}
	if (mp_since_parse(text, time(NULL), &o->since_s))
		argp_error(state, "--since: '%s' is not a time: " MP_SINCE_FORMATS, arg);
}

static void check_profile(struct argp_state *state, const struct me_cli *cli)
{
	const struct me_optimize_options *o = &cli->options;

	if (cli->fleet && (o->db || o->all))
		argp_error(state, "--fleet does not go with --db or --all");
	if (o->stale.from && o->all)
		argp_error(state, "--stale does not go with --all");
	if (o->exact_profile && o->all)
		argp_error(state, "--exact-profile needs a profile, which --all does without");
}

static error_t parse_profile(int key, char *arg, struct argp_state *state)
{
	struct me_cli *cli = state->input;
	struct me_optimize_options *o = &cli->options;

	switch (key) {
	case KEY_DB: o->db = arg; return 0;
	case KEY_FLEET: cli->fleet = arg; return 0;
	case KEY_MIN_SAMPLES: o->min_samples = me_cli_number(state, "--min-samples", arg); return 0;
	case KEY_SINCE: read_since(state, o, arg); return 0;
	case KEY_EXACT: o->exact_profile = true; return 0;
	case KEY_STALE:
		o->stale.never = !strcmp(arg, "none");
		o->stale.from = o->stale.never ? NULL : arg;
		return 0;
	case KEY_ALL: o->all = true; return 0;
	case ARGP_KEY_END: check_profile(state, cli); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp me_cli_profile_argp = {
	profile_options, parse_profile, NULL, NULL, NULL, NULL, NULL};

/* ---- the output --------------------------------------------------------------------------- */

static const struct argp_option output_options[] = {
	{"output", 'o', "FILE", 0, "Write the new file here", 0},
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Do everything, verification too, but keep no file", 0},
	{"explain", KEY_EXPLAIN, NULL, 0,
	 "Say what was verified, how often, and what is assumed; of audits, also what the stubs of "
	 "functions that are left out would cost, and where loops are timed",
	 0},
	{0}};

static error_t parse_output(int key, char *arg, struct argp_state *state)
{
	struct me_cli *cli = state->input;

	switch (key) {
	case 'o': cli->options.output = arg; return 0;
	case KEY_DRY_RUN: cli->dry_run = true; return 0;
	case KEY_EXPLAIN: cli->options.explain = true; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp me_cli_output_argp = {output_options, parse_output, NULL, NULL, NULL, NULL, NULL};

/* ---- functions and threads ---------------------------------------------------------------- */

static const struct argp_option functions_options[] = {
	{"skip", KEY_SKIP, "FUNCTION,...|@FILE", 0,
	 "Leave these functions alone: names, patterns (*, ?, []), addresses, @FILE with one a line",
	 1},
	{"only", KEY_ONLY, "FUNCTION,...|@FILE", 0, "Move no functions but these", 1},
	{"threads", KEY_THREADS, "N", 0,
	 "Work on so many threads (default: as many as there are processors, at most 8); the output "
	 "is the same with any number",
	 0},
	{0}};

void me_cli_threads(struct argp_state *state, struct me_cli *cli, const char *arg)
{
	uint64_t nr = me_cli_number(state, "--threads", arg);

	if (nr < 1 || nr > MP_PARALLEL_MAX)
		argp_error(state, "--threads: '%s' is not from 1 to %d", arg, MP_PARALLEL_MAX);
	cli->options.nr_threads = (unsigned int)nr;
}

static void read_words(struct argp_state *state, const char *option, struct me_words *words,
		       const char *arg)
{
	struct mp_err err = {""};

	if (me_words_add(words, arg, &err))
		argp_error(state, "%s: %s", option, err.msg);
}

static error_t parse_functions(int key, char *arg, struct argp_state *state)
{
	struct me_cli *cli = state->input;

	switch (key) {
	case KEY_SKIP: read_words(state, "--skip", &cli->options.skip, arg); return 0;
	case KEY_ONLY: read_words(state, "--only", &cli->options.only, arg); return 0;
	case KEY_THREADS: me_cli_threads(state, cli, arg); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp me_cli_functions_argp = {
	functions_options, parse_functions, NULL, NULL, NULL, NULL, NULL};
