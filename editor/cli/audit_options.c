// SPDX-License-Identifier: Apache-2.0
/*
 * audit_options - the options of morph-audit: their table, how they are read and checked.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "editor/audit/server/audit_ready.h"
#include "editor/base/output_name.h"
#include "editor/cli/audit_private.h"

#define MP_OPTIONS struct me_audit_arguments

static void set_count(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	double value = mp_options_number(state, o->name, arg, o->low, 1e6);

	if (value != floor(value))
		argp_error(state, "--%s=%s: not a whole number", o->name, arg);
	*(size_t *)((char *)options + o->at) = (size_t)value;
}

static void set_cpu(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	((struct me_audit_arguments *)options)->audit.cpu =
		(int)mp_options_number(state, o->name, arg, 0, 1e6);
}

/* A percentage, as the logarithm of a ratio. */
static void set_percent(const struct mp_option *o, void *options, char *arg,
			struct argp_state *state)
{
	*(double *)((char *)options + o->at) =
		log1p(mp_options_number(state, o->name, arg, o->low, 100) / 100);
}

static void set_metric(const struct mp_option *o, void *options, char *arg,
		       struct argp_state *state)
{
	struct me_metric *metric = &((struct me_audit_arguments *)options)->audit.metric;
	struct mp_err err = {""};

	me_pattern_fini(&metric->pattern);
	if (me_metric_parse(metric, arg, &err))
		argp_error(state, "--%s: %s", o->name, err.msg);
}

static void set_requests(const struct mp_option *o, void *options, char *arg,
			 struct argp_state *state)
{
	struct me_metric *metric = &((struct me_audit_arguments *)options)->audit.metric;
	struct mp_err err = {""};

	me_pattern_fini(&metric->requests);
	if (me_pattern_parse(&metric->requests, arg, &err))
		argp_error(state, "--%s: %s", o->name, err.msg);
}

static void set_ready(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	struct mp_err err = {""};

	if (me_ready_check(arg, &err))
		argp_error(state, "--%s: %s", o->name, err.msg);
	((struct me_audit_arguments *)options)->audit.ready = arg;
}

static void set_unit(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	for (const char *c = arg; *c; c++)
		if (iscntrl((unsigned char)*c))
			argp_error(state, "--%s: '%s' holds a control character", o->name, arg);
	((struct me_audit_arguments *)options)->audit.metric.unit = arg;
}

static void set_env(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	(void)options;
	if (arg[0] == '=' || !strchr(arg, '=') || putenv(arg))
		argp_error(state, "--%s: '%s' is not NAME=VALUE", o->name, arg);
}

static void add_file(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	struct me_audit_arguments *args = options;
	char **files = realloc(args->files, (args->nr_files + 2) * sizeof(*files));

	if (!files)
		argp_failure(state, MP_EXIT_FAILED, ENOMEM, "--%s", o->name);
	files[args->nr_files++] = arg;
	files[args->nr_files] = NULL;
	args->files = files;
}

static void add_export(const struct mp_option *o, void *options, char *arg,
		       struct argp_state *state)
{
	static const char *const suffixes[ME_NR_AUDIT_EXPORTS] = {[ME_EXPORT_CSV] = ".csv",
								  [ME_EXPORT_JSON] = ".json",
								  [ME_EXPORT_MARKDOWN] = ".md",
								  [ME_EXPORT_SVG] = ".svg"};
	const char *dot = strrchr(arg, '.');

	for (int i = 0; dot && i < ME_NR_AUDIT_EXPORTS; i++)
		if (!strcmp(dot, suffixes[i])) {
			((struct me_audit_arguments *)options)->exports[i] = arg;
			return;
		}
	argp_error(state, "--%s: '%s' ends with none of .csv, .json, .md and .svg", o->name, arg);
}

static void set_pairs(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	struct me_audit_arguments *args = options;
	struct mp_option count = {.name = o->name, .low = 1, .at = MP_AT(audit.max_pairs)};
	char *colon = strchr(arg, ':');

	if (colon) {
		set_count(&count, options, colon + 1, state);
		*colon = 0;
	}
	/* ":MAX" leaves the minimum as it is. */
	if (!*arg && colon)
		return;
	count.at = MP_AT(audit.min_pairs);
	set_count(&count, options, arg, state);
	args->min_given = true;
}

static void set_seconds(const struct mp_option *o, void *options, char *arg,
			struct argp_state *state)
{
	struct me_audit_arguments *args = options;

	args->audit.max_seconds = mp_options_number(state, o->name, arg, 0, 1e9);
	args->seconds_given = true;
}

static void set_at(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	struct me_audit_arguments *args = options;

	(void)o, (void)state;
	args->audit.at = arg;
	args->at_given = true;
}

static void set_library(const struct mp_option *o, void *options, char *arg,
			struct argp_state *state)
{
	struct me_audit_opts *a = &((struct me_audit_arguments *)options)->audit;

	(void)o, (void)state;
	a->library = true;
	a->a = a->at = arg;
}

/* ---- the table ------------------------------------------------------------------------------ */

static const char *const pairings[] = {
	[ME_PAIRING_AUTO] = "auto", [ME_PAIRING_BOTH] = "both", [ME_PAIRING_TURNS] = "turns", NULL};
static const char *const ways[] = {"", "higher", "lower", NULL};

#define HEAD(text, nr)                                                                             \
	{                                                                                          \
		text, .kind = MP_OPTION_HEAD, .group = nr                                          \
	}
#define AT_LEAST(name_, set_, field, least, value_, doc_)                                          \
	{                                                                                          \
		.name = name_, .value = value_, .doc = doc_, .kind = MP_OPTION_SET,                \
		.at = MP_AT(field), .low = least, .set = set_                                      \
	}

static const struct mp_option option_table[] = {
	HEAD("What is run:", 1),
	MP_VALUE(TEXT, "stdin", 0, audit.stdin_path, "FILE", "Input of each run (default: none)"),
	MP_SET("env", 0, set_env, "NAME=VALUE", "Set NAME to VALUE in the environment of each run"),
	MP_VALUE(TEXT, "name", 0, audit.name, "NAME",
		 "Run both programs under this name (default: A's name)"),
	MP_SET("at", 0, set_at, "PATH",
	       "Put both programs at this existing path, for their own runs only"),
	MP_FLAG("command", command, "ARGS are a whole command that uses the file at --at"),
	MP_SET("library", 0, set_library, "FILE",
	       "A is this shared library; ARGS are a whole command that uses it"),
	MP_FLAG("compilations", compilations,
		"A and B are compilations of one source with code markers: say which functions and loops "
		"B makes faster or slower"),
	MP_VALUE(TEXT, "dir", 0, audit.parent, "DIR",
		 "Keep the private copies in DIR (default: $TMPDIR or /tmp)"),
	MP_SET("cpu", 0, set_cpu, "N", "Run on this CPU only"),
	MP_WORD("pairing", audit.pairing, pairings, "HOW",
		"both: the two runs of a pair go on at the same time, on one CPU; turns: one after the other; "
		"auto (default): both, unless a run changes files, has threads, or talks to others"),
	MP_NUMBER(
		"timeout", 0, audit.timeout_seconds, 0.001, 1e9, "SECONDS",
		"Limit of one run (default: none for A's first, then ten times A's longest plus 10 s)"),
	HEAD("Servers, and commands around the runs:", 2),
	MP_VALUE(TEXT, "client", 0, audit.client, "CMD",
		 "A and B are servers: start one, run this shell command, end the server"),
	MP_SET("ready", 0, set_ready, "WHEN",
	       "With --client: the server is ready when tcp:[HOST:]PORT or unix:PATH accepts a connection, "
	       "or when this shell command succeeds"),
	MP_VALUE(TEXT, "setup", 0, audit.hooks.setup, "CMD",
		 "Run this shell command once, before the audit"),
	MP_VALUE(TEXT, "prepare", 0, audit.hooks.prepare, "CMD",
		 "Run this shell command before each run"),
	MP_VALUE(TEXT, "teardown", 0, audit.hooks.teardown, "CMD",
		 "Run this shell command once, after the audit, also after an error or a signal"),
	HEAD("What is compared:", 3),
	MP_SET("metric", 0, set_metric, "M",
	       "cpu (default: user + system), user, wall, or /REGEX/: a number in the output, the first "
	       "group of the first match (stderr:/REGEX/: in standard error)"),
	MP_WORD("better", better, ways, "WAY", "Of a /REGEX/: higher (default) or lower is better"),
	MP_SET("unit", 0, set_unit, "NAME", "Of a /REGEX/: the unit of the number"),
	MP_SET("requests", 0, set_requests, "/REGEX/",
	       "Divide the time by this number in the output, and give it per request"),
	MP_VALUE(TEXT, "filter", 0, audit.filter, "CMD",
		 "Shell command that the output passes through first"),
	MP_FLAG("stderr", audit.with_stderr, "Compare stderr, too"),
	MP_SET("compare-file", 0, add_file, "FILE",
	       "Compare this file that each run writes, then remove it (may be given again)"),
	HEAD("When it ends:", 4),
	MP_NUMBER("alpha", 0, audit.alpha, 1e-9, 0.5, "P",
		  "Chance of a false claim (default: 0.01)"),
	AT_LEAST("warmup", set_count, audit.warmup, 0, "N",
		 "Warm-up pairs, which do not count (default: 1)"),
	MP_SET("pairs", 0, set_pairs, "[MIN][:MAX]",
	       "At least MIN pairs, however long they take, and at most MAX (default: 8:500)"),
	MP_SET("max-seconds", 0, set_seconds, "S",
	       "End the audit undecided after S seconds (default: 600, or MIN pairs if these take "
	       "longer); without MIN, that may be before 8 pairs"),
	MP_VALUE(TEXT, "continue", 0, earlier, "FILE",
		 "Continue the audit that wrote this file with --export"),
	AT_LEAST("indifference", set_percent, audit.indifference, 0, "PERCENT",
		 "Stop when any difference is below this (default: 0.5; 0: never)"),
	AT_LEAST(
		"precision", set_percent, audit.precision, 0.001, "PERCENT",
		"Go on until the effect is known to PERCENT (default: until the verdict is certain)"),
	HEAD("Results:", 5),
	MP_FLAG("json", json, "Print JSON"),
	MP_FLAG("plot", plot, "Also draw the values and the interval in the terminal"),
	MP_SET("export", 0, add_export, "FILE",
	       "Write FILE.csv: the values of each pair; FILE.json: the result, as --json prints it; FILE.md: "
	       "a table; FILE.svg: a picture (may be given again)"),
	MP_NUMBER(
		"progress", 0, progress_s, 0, 1e9, "SECONDS",
		"Without a terminal: print a line of progress every SECONDS (default: 60; 0: none)"),
	MP_OPTIONS_END};

/* Default of B: the file that morph-optimize writes for A without -o. */
static void find_output(struct argp_state *state, struct me_audit_arguments *args)
{
	struct me_audit_opts *a = &args->audit;
	struct mp_err err = {""};
	int rc = me_output_name(a->a, args->output, sizeof(args->output), &err);

	if (!rc)
		rc = me_output_made_of(args->output, a->a, &err);
	if (rc == -ENOENT)
		argp_error(state, "there is no %s: give a second program, or run morph-optimize %s",
			   args->output, a->a);
	if (rc)
		argp_failure(state, MP_EXIT_FAILED, 0, "%s", err.msg);
	a->b = args->output;
}

static void check_metric(struct argp_state *state, struct me_audit_arguments *args)
{
	struct me_metric *metric = &args->audit.metric;
	bool pattern = metric->kind == ME_METRIC_PATTERN;

	if (!pattern && (args->better || metric->unit))
		argp_error(state, "%s is for a --metric=/REGEX/: less time is better",
			   args->better ? "--better" : "--unit");
	if (pattern && metric->requests.text)
		argp_error(state, "--requests is for times: --metric=/REGEX/ is a number already");
	if (pattern)
		metric->higher_is_better = args->better != ME_BETTER_LOWER;
}

static void check_run(struct argp_state *state, struct me_audit_arguments *args)
{
	struct me_audit_opts *a = &args->audit;

	if (!a->client != !a->ready)
		argp_error(state, "--client and --ready are given together");
	if (a->library && (args->at_given || args->command || a->name))
		argp_error(state, "--library stands for --at and --command, and sets the name");
	if (a->library)
		args->command = true;
	if (args->command && !a->at)
		argp_error(state, "--command needs --at PATH");
	if (args->command && (!a->args || !a->args[0]))
		argp_error(state, "%s needs a command after `--`",
			   a->library ? "--library" : "--command");
}

/* Rejects options that do not apply to a comparison of compilations. */
static void check_compilations(struct argp_state *state, const struct me_audit_arguments *args)
{
	const struct me_audit_opts *a = &args->audit;
	const struct {
		bool given;
		const char *name;
	} others[] = {
		{args->at_given, "--at"},
		{args->command, "--command"},
		{a->library, "--library"},
		{a->client || a->ready, "--client"},
		{a->hooks.setup || a->hooks.prepare || a->hooks.teardown, "--setup"},
		{a->metric.kind != ME_METRIC_CPU || a->metric.requests.text, "--metric"},
		{args->earlier != NULL, "--continue"},
		{a->precision > 0, "--precision"},
		{args->plot, "--plot"},
		{args->exports[ME_EXPORT_CSV] || args->exports[ME_EXPORT_MARKDOWN] ||
			 args->exports[ME_EXPORT_SVG],
		 "--export of pairs, tables and pictures"},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].given)
			argp_error(state, "--compilations and %s cannot be combined",
				   others[i].name);
	if (!a->b)
		argp_error(state, "--compilations needs two programs");
}

static void check(void *options, struct argp_state *state)
{
	struct me_audit_arguments *args = options;
	struct me_audit_opts *a = &args->audit;

	if (!a->a)
		argp_error(state, "no program given");
	if (args->compilations)
		check_compilations(state, args);
	if (!a->b)
		find_output(state, args);
	check_run(state, args);
	check_metric(state, args);
	/* If the user gave no minimum, the maximum limits it. */
	if (!args->min_given && a->min_pairs > a->max_pairs)
		a->min_pairs = a->max_pairs;
	if (a->min_pairs > a->max_pairs)
		argp_error(state, "the minimum of %zu pairs is above the maximum of %zu",
			   a->min_pairs, a->max_pairs);
	a->pairs_despite_timeout = args->min_given || !args->seconds_given ? a->min_pairs : 0;
}

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct me_audit_opts *a = &((struct me_audit_arguments *)options)->audit;

	if (!a->a)
		a->a = arg;
	else if (!a->b)
		a->b = arg;
	else
		argp_error(state, "'%s': the programs' arguments follow `--`", arg);
}

const struct mp_usage me_audit_usage = {
	.options = option_table,
	.arguments = "A [B] [-- ARGS...]",
	.word = take_word,
	.check = check,
	.doc = "Runs programs A and B (default: A.morph, which morph-optimize writes) in pairs under the same name until it is certain which one "
	       "is faster, and compares what they write."
	       "\vExit status: 0 B is faster, 1 failed, 2 usage, 3 too few samples (--compilations), "
	       "5 B is not faster, 6 B's output differs."};

int me_audit_export_open(const struct me_audit_arguments *args, enum me_audit_export kind,
			 struct mp_outfile *out, struct mp_err *err)
{
	const char *path = args->exports[kind];

	return mp_outfile_open(path[0] == '-' && path[1] == '.' ? NULL : path, NULL, out, err);
}
