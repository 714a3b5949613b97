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

enum {
	KEY_ALPHA = 256,
	KEY_AT,
	KEY_BETTER,
	KEY_CLIENT,
	KEY_COMMAND,
	KEY_COMPARE_FILE,
	KEY_COMPILATIONS,
	KEY_CONTINUE,
	KEY_CPU,
	KEY_DIR,
	KEY_ENV,
	KEY_EXPORT,
	KEY_FILTER,
	KEY_INDIFFERENCE,
	KEY_JSON,
	KEY_LIBRARY,
	KEY_MAX_SECONDS,
	KEY_METRIC,
	KEY_NAME,
	KEY_PAIRING,
	KEY_PAIRS,
	KEY_PLOT,
	KEY_PRECISION,
	KEY_PREPARE,
	KEY_PROGRESS,
	KEY_READY,
	KEY_REQUESTS,
	KEY_SETUP,
	KEY_SIMULATE,
	KEY_STDERR,
	KEY_STDIN,
	KEY_TEARDOWN,
	KEY_TIMEOUT,
	KEY_UNIT,
	KEY_WARMUP,
};

const struct argp_option me_audit_options[] = {
	{0, 0, 0, 0, "What is run:", 1},
	{"stdin", KEY_STDIN, "FILE", 0, "Input of each run (default: none)", 0},
	{"env", KEY_ENV, "NAME=VALUE", 0, "Set NAME to VALUE in the environment of each run", 0},
	{"name", KEY_NAME, "NAME", 0, "Run both programs under this name (default: A's name)", 0},
	{"at", KEY_AT, "PATH", 0,
	 "Put both programs at this existing path, for their own runs only", 0},
	{"command", KEY_COMMAND, 0, 0, "ARGS are a whole command that uses the file at --at", 0},
	{"library", KEY_LIBRARY, "FILE", 0,
	 "A is this shared library; ARGS are a whole command that uses it", 0},
	{"compilations", KEY_COMPILATIONS, 0, 0,
	 "A and B are compilations of one source with code markers: say which functions and loops "
	 "B makes faster or slower",
	 0},
	{"dir", KEY_DIR, "DIR", 0, "Keep the private copies in DIR (default: $TMPDIR or /tmp)", 0},
	{"cpu", KEY_CPU, "N", 0, "Run on this CPU only", 0},
	{"pairing", KEY_PAIRING, "HOW", 0,
	 "both: the two runs of a pair go on at the same time, on one CPU; turns: one after the other; "
	 "auto (default): both, unless a run changes files, has threads, or talks to others",
	 0},
	{"timeout", KEY_TIMEOUT, "SECONDS", 0,
	 "Limit of one run (default: none for A's first, then ten times A's longest plus 10 s)", 0},
	{0, 0, 0, 0, "Servers, and commands around the runs:", 2},
	{"client", KEY_CLIENT, "CMD", 0,
	 "A and B are servers: start one, run this shell command, end the server", 0},
	{"ready", KEY_READY, "WHEN", 0,
	 "With --client: the server is ready when tcp:[HOST:]PORT or unix:PATH accepts a connection, "
	 "or when this shell command succeeds",
	 0},
	{"setup", KEY_SETUP, "CMD", 0, "Run this shell command once, before the audit", 0},
	{"prepare", KEY_PREPARE, "CMD", 0, "Run this shell command before each run", 0},
	{"teardown", KEY_TEARDOWN, "CMD", 0,
	 "Run this shell command once, after the audit, also after an error or a signal", 0},
	{0, 0, 0, 0, "What is compared:", 3},
	{"metric", KEY_METRIC, "M", 0,
	 "cpu (default: user + system), user, wall, or /REGEX/: a number in the output, the first "
	 "group of the first match (stderr:/REGEX/: in standard error)",
	 0},
	{"better", KEY_BETTER, "WAY", 0, "Of a /REGEX/: higher (default) or lower is better", 0},
	{"unit", KEY_UNIT, "NAME", 0, "Of a /REGEX/: the unit of the number", 0},
	{"requests", KEY_REQUESTS, "/REGEX/", 0,
	 "Divide the time by this number in the output, and give it per request", 0},
	{"filter", KEY_FILTER, "CMD", 0, "Shell command that the output passes through first", 0},
	{"stderr", KEY_STDERR, 0, 0, "Compare stderr, too", 0},
	{"compare-file", KEY_COMPARE_FILE, "FILE", 0,
	 "Compare this file that each run writes, then remove it (may be given again)", 0},
	{0, 0, 0, 0, "When it ends:", 4},
	{"alpha", KEY_ALPHA, "P", 0, "Chance of a false claim (default: 0.01)", 0},
	{"warmup", KEY_WARMUP, "N", 0, "Warm-up pairs, which do not count (default: 1)", 0},
	{"pairs", KEY_PAIRS, "[MIN][:MAX]", 0,
	 "At least MIN pairs, however long they take, and at most MAX (default: 8:500)", 0},
	{"max-seconds", KEY_MAX_SECONDS, "S", 0,
	 "End the audit undecided after S seconds (default: 600, or MIN pairs if these take "
	 "longer); without MIN, that may be before 8 pairs",
	 0},
	{"continue", KEY_CONTINUE, "FILE", 0,
	 "Continue the audit that wrote this file with --export", 0},
	{"indifference", KEY_INDIFFERENCE, "PERCENT", 0,
	 "Stop when any difference is below this (default: 0.5; 0: never)", 0},
	{"precision", KEY_PRECISION, "PERCENT", 0,
	 "Go on until the effect is known to PERCENT (default: until the verdict is certain)", 0},
	{0, 0, 0, 0, "Results:", 5},
	{"json", KEY_JSON, 0, 0, "Print JSON", 0},
	{"plot", KEY_PLOT, 0, 0, "Also draw the values and the interval in the terminal", 0},
	{"export", KEY_EXPORT, "FILE", 0,
	 "Write FILE.csv: the values of each pair; FILE.json: the result, as --json prints it; FILE.md: "
	 "a table; FILE.svg: a picture (may be given again)",
	 0},
	{"progress", KEY_PROGRESS, "SECONDS", 0,
	 "Without a terminal: print a line of progress every SECONDS (default: 60; 0: none)", 0},
	{"simulate", KEY_SIMULATE, "RUNS", OPTION_HIDDEN, NULL, 0},
	{0},
};

static double parse_number(struct argp_state *state, const char *arg, const char *what, double min,
			   double max)
{
	char *end;
	double value = strtod(arg, &end);

	if (end == arg || *end || !(value >= min && value <= max))
		argp_error(state, "%s: '%s' is not a number from %g to %g", what, arg, min, max);
	return value;
}

static size_t parse_count(struct argp_state *state, const char *arg, const char *what, size_t min)
{
	double value = parse_number(state, arg, what, (double)min, 1e6);

	if (value != floor(value))
		argp_error(state, "%s: '%s' is not a whole number", what, arg);
	return (size_t)value;
}

static void parse_metric(struct argp_state *state, struct me_metric *metric, const char *arg)
{
	struct mp_err err = {""};

	me_pattern_fini(&metric->pattern);
	if (me_metric_parse(metric, arg, &err))
		argp_error(state, "--metric: %s", err.msg);
}

static void parse_requests(struct argp_state *state, struct me_metric *metric, const char *arg)
{
	struct mp_err err = {""};

	me_pattern_fini(&metric->requests);
	if (me_pattern_parse(&metric->requests, arg, &err))
		argp_error(state, "--requests: %s", err.msg);
}

static void parse_ready(struct argp_state *state, struct me_audit_opts *a, const char *arg)
{
	struct mp_err err = {""};

	if (me_ready_check(arg, &err))
		argp_error(state, "--ready: %s", err.msg);
	a->ready = arg;
}

static void parse_unit(struct argp_state *state, struct me_metric *metric, const char *arg)
{
	for (const char *c = arg; *c; c++)
		if (iscntrl((unsigned char)*c))
			argp_error(state, "--unit: '%s' holds a control character", arg);
	metric->unit = arg;
}

static void parse_env(struct argp_state *state, char *arg)
{
	if (arg[0] == '=' || !strchr(arg, '=') || putenv(arg))
		argp_error(state, "--env: '%s' is not NAME=VALUE", arg);
}

static void parse_file(struct argp_state *state, struct me_audit_arguments *args, char *arg)
{
	char **files = realloc(args->files, (args->nr_files + 2) * sizeof(*files));

	if (!files)
		argp_failure(state, MP_EXIT_FAILED, ENOMEM, "--compare-file");
	files[args->nr_files++] = arg;
	files[args->nr_files] = NULL;
	args->files = files;
}

static void parse_export(struct argp_state *state, struct me_audit_arguments *args, const char *arg)
{
	static const char *const suffixes[ME_NR_AUDIT_EXPORTS] = {[ME_EXPORT_CSV] = ".csv",
								  [ME_EXPORT_JSON] = ".json",
								  [ME_EXPORT_MARKDOWN] = ".md",
								  [ME_EXPORT_SVG] = ".svg"};
	const char *dot = strrchr(arg, '.');

	for (int i = 0; dot && i < ME_NR_AUDIT_EXPORTS; i++)
		if (!strcmp(dot, suffixes[i])) {
			args->exports[i] = arg;
			return;
		}
	argp_error(state, "--export: '%s' ends with none of .csv, .json, .md and .svg", arg);
}

static enum me_pairing parse_pairing(struct argp_state *state, const char *arg)
{
	static const char *const names[] = {
		[ME_PAIRING_AUTO] = "auto", [ME_PAIRING_BOTH] = "both", [ME_PAIRING_TURNS] = "turns"};

	for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
		if (!strcmp(arg, names[i]))
			return (enum me_pairing)i;
	argp_error(state, "--pairing: '%s' is not auto, both or turns", arg);
	return ME_PAIRING_AUTO;
}

static void parse_pairs(struct argp_state *state, struct me_audit_arguments *args, char *arg)
{
	char *colon = strchr(arg, ':');

	if (colon) {
		args->audit.max_pairs = parse_count(state, colon + 1, "--pairs", 1);
		*colon = 0;
	}
	/* ":MAX" leaves the minimum as it is. */
	if (!*arg && colon)
		return;
	args->audit.min_pairs = parse_count(state, arg, "--pairs", 1);
	args->min_given = true;
}

static error_t parse_ending(struct argp_state *state, int key, char *arg,
			    struct me_audit_arguments *args)
{
	struct me_audit_opts *a = &args->audit;

	switch (key) {
	case KEY_ALPHA: a->alpha = parse_number(state, arg, "--alpha", 1e-9, 0.5); return 0;
	case KEY_CONTINUE: args->earlier = arg; return 0;
	case KEY_WARMUP: a->warmup = parse_count(state, arg, "--warmup", 0); return 0;
	case KEY_PAIRS: parse_pairs(state, args, arg); return 0;
	case KEY_MAX_SECONDS:
		a->max_seconds = parse_number(state, arg, "--max-seconds", 0, 1e9);
		args->seconds_given = true;
		return 0;
	case KEY_TIMEOUT:
		a->timeout_seconds = parse_number(state, arg, "--timeout", 0.001, 1e9);
		return 0;
	case KEY_INDIFFERENCE:
		a->indifference = log1p(parse_number(state, arg, "--indifference", 0, 100) / 100);
		return 0;
	case KEY_PRECISION:
		a->precision = log1p(parse_number(state, arg, "--precision", 0.001, 100) / 100);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

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

static error_t parse_server(struct argp_state *state, int key, char *arg,
			    struct me_audit_arguments *args)
{
	struct me_audit_opts *a = &args->audit;

	switch (key) {
	case KEY_CLIENT: a->client = arg; return 0;
	case KEY_READY: parse_ready(state, a, arg); return 0;
	case KEY_SETUP: a->hooks.setup = arg; return 0;
	case KEY_PAIRING: a->pairing = parse_pairing(state, arg); return 0;
	case KEY_PREPARE: a->hooks.prepare = arg; return 0;
	case KEY_TEARDOWN: a->hooks.teardown = arg; return 0;
	default: return parse_ending(state, key, arg, args);
	}
}

static error_t parse_measure(struct argp_state *state, int key, char *arg,
			     struct me_audit_arguments *args)
{
	struct me_audit_opts *a = &args->audit;

	switch (key) {
	case KEY_METRIC: parse_metric(state, &a->metric, arg); return 0;
	case KEY_REQUESTS: parse_requests(state, &a->metric, arg); return 0;
	case KEY_UNIT: parse_unit(state, &a->metric, arg); return 0;
	case KEY_BETTER:
		if (strcmp(arg, "higher") && strcmp(arg, "lower"))
			argp_error(state, "--better: '%s' is not higher or lower", arg);
		args->better = arg;
		return 0;
	default: return parse_server(state, key, arg, args);
	}
}

static error_t parse_results(struct argp_state *state, int key, char *arg,
			     struct me_audit_arguments *args)
{
	switch (key) {
	case KEY_EXPORT: parse_export(state, args, arg); return 0;
	case KEY_JSON: args->json = true; return 0;
	case KEY_PLOT: args->plot = true; return 0;
	case KEY_PROGRESS:
		args->progress_s = parse_number(state, arg, "--progress", 0, 1e9);
		return 0;
	default: return parse_measure(state, key, arg, args);
	}
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
		metric->higher_is_better = !args->better || !strcmp(args->better, "higher");
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

static void check_arguments(struct argp_state *state, struct me_audit_arguments *args)
{
	struct me_audit_opts *a = &args->audit;

	if (args->simulate)
		return;
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

error_t me_audit_parse(int key, char *arg, struct argp_state *state)
{
	struct me_audit_arguments *args = state->input;
	struct me_audit_opts *a = &args->audit;

	switch (key) {
	case KEY_AT:
		a->at = arg;
		args->at_given = true;
		return 0;
	case KEY_LIBRARY:
		a->library = true;
		a->a = a->at = arg;
		return 0;
	case KEY_COMMAND: args->command = true; return 0;
	case KEY_COMPILATIONS: args->compilations = true; return 0;
	case KEY_COMPARE_FILE: parse_file(state, args, arg); return 0;
	case KEY_CPU: a->cpu = (int)parse_count(state, arg, "--cpu", 0); return 0;
	case KEY_DIR: a->parent = arg; return 0;
	case KEY_ENV: parse_env(state, arg); return 0;
	case KEY_FILTER: a->filter = arg; return 0;
	case KEY_NAME: a->name = arg; return 0;
	case KEY_SIMULATE: args->simulate = parse_count(state, arg, "--simulate", 1); return 0;
	case KEY_STDERR: a->with_stderr = true; return 0;
	case KEY_STDIN: a->stdin_path = arg; return 0;
	case ARGP_KEY_ARG:
		if (!a->a)
			a->a = arg;
		else if (!a->b)
			a->b = arg;
		else
			argp_error(state, "'%s': the programs' arguments follow `--`", arg);
		return 0;
	case ARGP_KEY_END: check_arguments(state, args); return 0;
	default: return parse_results(state, key, arg, args);
	}
}

int me_audit_export_open(const struct me_audit_arguments *args, enum me_audit_export kind,
			 struct mp_outfile *out, struct mp_err *err)
{
	const char *path = args->exports[kind];

	return mp_outfile_open(path[0] == '-' && path[1] == '.' ? NULL : path, NULL, out, err);
}
