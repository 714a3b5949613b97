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

#define MP_OPTIONS struct me_cli

/* Addresses of memory that can be mapped are multiples of it. */
#define ME_CLI_PAGE 4096

bool me_cli_to_number(const char *arg, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(arg, &end, 10);
	return !errno && !*end && end != arg && *arg != '-';
}

/* ---- the report --------------------------------------------------------------------------- */

static void set_report(const struct mp_option *o, void *options, char *arg,
		       struct argp_state *state)
{
	struct me_cli *cli = options;
	const char *format = arg ? arg : o->name; /* --json */

	cli->json = !strcmp(format, "json");
	cli->quiet = !strcmp(format, "none");
	if (!cli->json && !cli->quiet && strcmp(format, "text"))
		argp_error(state, "--report: '%s' is not text, json or none", format);
}

const struct mp_option me_cli_report_options[] = {
	MP_SET("report", 0, set_report, "FORMAT", "text (default), json or none"),
	MP_SET("json", 0, set_report, NULL, "The same as --report=json"), MP_OPTIONS_END};

/* ---- the profile -------------------------------------------------------------------------- */

static void set_since(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	struct me_cli *cli = options;
	const char *text = arg;
	char days[32];

	/* A number without a unit is a number of days. */
	if (*arg && !arg[strspn(arg, "0123456789")] && strlen(arg) < sizeof(days) - 1) {
		snprintf(days, sizeof(days), "%sd", arg);
		text = days;
	}
	if (mp_since_parse(text, time(NULL), &cli->options.since_s))
		argp_error(state, "--%s: '%s' is not a time: " MP_SINCE_FORMATS, o->name, arg);
}

static void set_stale(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	struct me_cli *cli = options;

	(void)o, (void)state;
	cli->options.stale.never = !strcmp(arg, "none");
	cli->options.stale.from = cli->options.stale.never ? NULL : arg;
}

const struct mp_option me_cli_profile_options[] = {
	MP_VALUE(TEXT, "db", 0, options.db, "FILE",
		 "The store to read (default: see FILES in the man page)"),
	MP_VALUE(TEXT, "fleet", 0, fleet, "CONNECTION",
		 "Use the profile of a fleet: 'host=NAME dbname=NAME ...' or postgresql://... (needs "
		 "morph-fleet)"),
	MP_VALUE(COUNT, "min-samples", 0, options.min_samples, "N",
		 "Refuse to work with fewer samples (default 1000)"),
	MP_SET("since", 0, set_since, "WHEN",
	       "Use no counts older than 2h, 3d, 2026-11-20, today, ...; a mere number is of days"),
	MP_FLAG("exact-profile", options.exact_profile,
		"The counts were counted, not sampled, though the database does not say so (imported from "
		"BOLT): believe all of them"),
	MP_SET("stale", 0, set_stale, "OLD",
	       "With too few samples of FILE, use those of this other build of it: a file, or a build-id "
	       "that morph-stats remember knows (default: the same path or name, if that is remembered); none: "
	       "use no samples of other builds"),
	MP_FLAG("all", options.all, "Use no profile: copy every function that may be copied"),
	MP_OPTIONS_END};

void me_cli_check_profile(struct argp_state *state, const struct me_cli *cli)
{
	const struct me_optimize_options *o = &cli->options;

	if (cli->fleet && (o->db || o->all))
		argp_error(state, "--fleet does not go with --db or --all");
	if (o->stale.from && o->all)
		argp_error(state, "--stale does not go with --all");
	if (o->exact_profile && o->all)
		argp_error(state, "--exact-profile needs a profile, which --all does without");
}

/* ---- the output --------------------------------------------------------------------------- */

static void set_live_at(const struct mp_option *o, void *options, char *arg,
			struct argp_state *state)
{
	struct me_cli *cli = options;
	char *end;

	errno = 0;
	cli->options.live_at = strtoull(arg, &end, 0);
	if (errno || *end || end == arg || *arg == '-' || !cli->options.live_at ||
	    cli->options.live_at % ME_CLI_PAGE)
		argp_error(state, "--%s: '%s' is not an address of a page", o->name, arg);
}

const struct mp_option me_cli_output_options[] = {
	MP_VALUE(TEXT, "output", 'o', options.output, "FILE", "Write the new file here"),
	MP_SET("live-at", 0, set_live_at, "ADDRESS",
	       "Make it for processes that run FILE already: what is added to their memory begins at this "
	       "address, and only code and constant tables change. ADDRESS is that of a free page, less the "
	       "address at which FILE is loaded if FILE is position-independent"),
	MP_LETTER_FLAG("dry-run", 'n', dry_run,
		       "Do everything, verification too, but keep no file"),
	MP_FLAG("explain", options.explain,
		"Say what was verified, how often, and what is assumed; of audits, also what the stubs of "
		"functions that are left out would cost, and where loops are timed"),
	MP_OPTIONS_END};

/* ---- functions and threads ---------------------------------------------------------------- */

void me_cli_set_threads(const struct mp_option *o, void *options, char *arg,
			struct argp_state *state)
{
	unsigned long nr = mp_options_count(state, o->name, arg);

	if (nr < 1 || nr > MP_PARALLEL_MAX)
		argp_error(state, "--%s: '%s' is not from 1 to %d", o->name, arg, MP_PARALLEL_MAX);
	((struct me_cli *)options)->options.nr_threads = (unsigned int)nr;
}

void me_cli_add_kinds(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	unsigned int kinds = me_kinds_find(arg);

	if (!kinds)
		argp_error(state, "--%s=%s: there is no such kind", o->name, arg);
	((struct me_cli *)options)->kinds |= kinds;
}

static void add_words(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	struct mp_err err = {""};

	if (me_words_add((struct me_words *)((char *)options + o->at), arg, &err))
		argp_error(state, "--%s: %s", o->name, err.msg);
}

#define ADD_WORDS(name_, field, value_, doc_)                                                      \
	{                                                                                          \
		.name = name_, .value = value_, .doc = doc_, .kind = MP_OPTION_SET,                \
		.at = MP_AT(field), .set = add_words                                               \
	}

const struct mp_option me_cli_functions_options[] = {
	ADD_WORDS(
		"skip", options.skip, "FUNCTION,...|@FILE",
		"Leave these functions alone: names, patterns (*, ?, []), addresses, @FILE with one a line"),
	ADD_WORDS("only", options.only, "FUNCTION,...|@FILE", "Move no functions but these"),
	MP_SET("threads", 0, me_cli_set_threads, "N",
	       "Work on so many threads (default: as many as there are processors, at most 8); the output "
	       "is the same with any number"),
	MP_OPTIONS_END};

/* ---- replacing a file ---------------------------------------------------------------------- */

static void set_backup_dir(const struct mp_option *o, void *options, char *arg,
			   struct argp_state *state)
{
	if (!*arg)
		argp_error(state, "--%s: which directory?", o->name);
	((struct me_cli *)options)->inplace.backup_dir = arg;
}

const struct mp_option me_cli_backup_options[] = {
	MP_SET("backup-dir", 0, set_backup_dir, "DIR",
	       "Where originals are kept (default: see FILES in the man page)"),
	MP_FLAG("break-links", inplace.break_links,
		"Replace FILE even if another name in its directory (a hard link) keeps the old bytes"),
	MP_FLAG("no-symlinks", inplace.no_symlinks,
		"Refuse a FILE whose path leads through a symbolic link, or does not begin with /"),
	MP_OPTIONS_END};
