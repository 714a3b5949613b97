// SPDX-License-Identifier: Apache-2.0
/*
 * morph-audit - the command line of the audit: is one program faster than another on this
 * machine?
 *
 * Decides defaults, exit statuses and the handling of signals; audit does the rest.
 */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/audit/audit.h"
#include "editor/audit/audit_export.h"
#include "editor/audit/audit_report.h"
#include "editor/audit/audit_run.h"
#include "editor/audit/audit_simulate.h"
#include "editor/base/output_name.h"
#include "libprof/cli/json.h"
#include "libprof/cli/progress.h"
#include "libprof/cli/stdio.h"

#ifndef MORPH_VERSION
#define MORPH_VERSION "unknown"
#endif

extern char **environ;

const char *argp_program_version = "morph-audit " MORPH_VERSION;

enum {
	STATUS_FASTER = 0,
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_SLOW = 5,
	STATUS_DIFFERS = 6
};

enum {
	KEY_ALPHA = 256,
	KEY_AT,
	KEY_COMMAND,
	KEY_COMPARE_FILE,
	KEY_CONTINUE,
	KEY_CPU,
	KEY_DIR,
	KEY_ENV,
	KEY_EXPORT_CSV,
	KEY_EXPORT_JSON,
	KEY_EXPORT_MARKDOWN,
	KEY_FILTER,
	KEY_INDIFFERENCE,
	KEY_JSON,
	KEY_MAX_PAIRS,
	KEY_MAX_SECONDS,
	KEY_METRIC,
	KEY_MIN_PAIRS,
	KEY_NAME,
	KEY_PAIRS,
	KEY_PRECISION,
	KEY_PROGRESS,
	KEY_SIMULATE,
	KEY_STDERR,
	KEY_STDIN,
	KEY_TIMEOUT,
	KEY_WARMUP,
};

static const struct argp_option options[] = {
	{0, 0, 0, 0, "What is run:", 1},
	{"stdin", KEY_STDIN, "FILE", 0, "Input of each run (default: none)", 0},
	{"env", KEY_ENV, "NAME=VALUE", 0, "Set NAME to VALUE in the environment of each run", 0},
	{"name", KEY_NAME, "NAME", 0, "Run both programs under this name (default: A's name)", 0},
	{"at", KEY_AT, "PATH", 0,
	 "Put both programs at this existing path, for their own runs only", 0},
	{"command", KEY_COMMAND, 0, 0,
	 "ARGS are a whole command that uses the file at --at, such as a library", 0},
	{"dir", KEY_DIR, "DIR", 0, "Keep the private copies in DIR (default: $TMPDIR or /tmp)", 0},
	{"cpu", KEY_CPU, "N", 0, "Run on this CPU only", 0},
	{"timeout", KEY_TIMEOUT, "SECONDS", 0,
	 "Limit of one run (default: none for A's first, then ten times A's longest plus 10 s)", 0},
	{0, 0, 0, 0, "What is compared:", 2},
	{"metric", KEY_METRIC, "M", 0, "cpu (default: user + system), user or wall", 0},
	{"filter", KEY_FILTER, "CMD", 0, "Shell command that the output passes through first", 0},
	{"stderr", KEY_STDERR, 0, 0, "Compare stderr, too", 0},
	{"compare-file", KEY_COMPARE_FILE, "FILE", 0,
	 "Compare this file that each run writes, then remove it (may be given again)", 0},
	{0, 0, 0, 0, "When it ends:", 3},
	{"alpha", KEY_ALPHA, "P", 0, "Chance of a false claim (default: 0.01)", 0},
	{"warmup", KEY_WARMUP, "N", 0, "Warm-up pairs, which do not count (default: 1)", 0},
	{"pairs", KEY_PAIRS, "MIN[:MAX]", 0,
	 "At least MIN pairs, however long they take, and at most MAX (default: 8:500)", 0},
	{"min-pairs", KEY_MIN_PAIRS, "N", 0, "Sets MIN of --pairs", 0},
	{"max-pairs", KEY_MAX_PAIRS, "N", 0, "Sets MAX of --pairs", 0},
	{"max-seconds", KEY_MAX_SECONDS, "S", 0,
	 "End the audit undecided after S seconds (default: 600, or MIN pairs if these take "
	 "longer); without MIN, that may be before 8 pairs",
	 0},
	{"continue", KEY_CONTINUE, "FILE", 0,
	 "Continue the audit that wrote this file with --export-csv", 0},
	{"indifference", KEY_INDIFFERENCE, "PERCENT", 0,
	 "Stop when any difference is below this (default: 0.5; 0: never)", 0},
	{"precision", KEY_PRECISION, "PERCENT", 0,
	 "Go on until the effect is known to PERCENT (default: until the verdict is certain)", 0},
	{0, 0, 0, 0, "Other:", 4},
	{"json", KEY_JSON, 0, 0, "Print JSON", 0},
	{"export-csv", KEY_EXPORT_CSV, "FILE", 0, "Write the times of each pair here, as CSV", 0},
	{"export-json", KEY_EXPORT_JSON, "FILE", 0, "Write the result here, as --json prints it",
	 0},
	{"export-markdown", KEY_EXPORT_MARKDOWN, "FILE", 0, "Write the result here, as a table", 0},
	{"progress", KEY_PROGRESS, "SECONDS", 0,
	 "Without a terminal: print a line of progress every SECONDS (default: 60; 0: none)", 0},
	{"simulate", KEY_SIMULATE, "RUNS", 0,
	 "Run no program: simulate RUNS audits and print how often they are right", 0},
	{0},
};

struct arguments {
	struct me_audit_opts audit;
	char **files;
	size_t nr_files;
	bool command, json, min_given, seconds_given;
	const char *csv, *to_json, *markdown, *earlier; /* files; NULL: none */
	double progress_s;
	size_t simulate;
	char output[PATH_MAX]; /* A's output, if B is not given */
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

static enum me_audit_metric parse_metric(struct argp_state *state, const char *arg)
{
	int m;

	for (m = ME_METRIC_CPU; m <= ME_METRIC_WALL; m++)
		if (!strcmp(arg, me_metric_name((enum me_audit_metric)m)))
			return (enum me_audit_metric)m;
	argp_error(state, "--metric: '%s' is not cpu, user or wall", arg);
	return ME_METRIC_CPU;
}

static void parse_env(struct argp_state *state, char *arg)
{
	if (arg[0] == '=' || !strchr(arg, '=') || putenv(arg))
		argp_error(state, "--env: '%s' is not NAME=VALUE", arg);
}

static void parse_file(struct argp_state *state, struct arguments *args, char *arg)
{
	char **files = realloc(args->files, (args->nr_files + 2) * sizeof(*files));

	if (!files)
		argp_failure(state, STATUS_FAILED, ENOMEM, "--compare-file");
	files[args->nr_files++] = arg;
	files[args->nr_files] = NULL;
	args->files = files;
}

static void parse_pairs(struct argp_state *state, struct arguments *args, char *arg)
{
	char *colon = strchr(arg, ':');

	if (colon) {
		args->audit.max_pairs = parse_count(state, colon + 1, "--pairs", 1);
		*colon = 0;
	}
	args->audit.min_pairs = parse_count(state, arg, "--pairs", 1);
	args->min_given = true;
}

static error_t parse_ending(struct argp_state *state, int key, char *arg, struct arguments *args)
{
	struct me_audit_opts *a = &args->audit;

	switch (key) {
	case KEY_ALPHA: a->alpha = parse_number(state, arg, "--alpha", 1e-9, 0.5); return 0;
	case KEY_CONTINUE: args->earlier = arg; return 0;
	case KEY_WARMUP: a->warmup = parse_count(state, arg, "--warmup", 0); return 0;
	case KEY_PAIRS: parse_pairs(state, args, arg); return 0;
	case KEY_MIN_PAIRS:
		a->min_pairs = parse_count(state, arg, "--min-pairs", 1);
		args->min_given = true;
		return 0;
	case KEY_MAX_PAIRS: a->max_pairs = parse_count(state, arg, "--max-pairs", 1); return 0;
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
static void find_output(struct argp_state *state, struct arguments *args)
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
		argp_failure(state, STATUS_FAILED, 0, "%s", err.msg);
	a->b = args->output;
}

static error_t parse_results(struct argp_state *state, int key, char *arg, struct arguments *args)
{
	switch (key) {
	case KEY_EXPORT_CSV: args->csv = arg; return 0;
	case KEY_EXPORT_JSON: args->to_json = arg; return 0;
	case KEY_EXPORT_MARKDOWN: args->markdown = arg; return 0;
	case KEY_JSON: args->json = true; return 0;
	case KEY_PROGRESS:
		args->progress_s = parse_number(state, arg, "--progress", 0, 1e9);
		return 0;
	default: return parse_ending(state, key, arg, args);
	}
}

static void check_arguments(struct argp_state *state, struct arguments *args)
{
	struct me_audit_opts *a = &args->audit;

	if (args->simulate)
		return;
	if (!a->a)
		argp_error(state, "no program given");
	if (!a->b)
		find_output(state, args);
	if (args->command && (!a->at || !a->args || !a->args[0]))
		argp_error(state, "--command needs --at PATH and a command after `--`");
	/* If the user gave no minimum, the maximum limits it. */
	if (!args->min_given && a->min_pairs > a->max_pairs)
		a->min_pairs = a->max_pairs;
	if (a->min_pairs > a->max_pairs)
		argp_error(state, "the minimum of %zu pairs is above the maximum of %zu",
			   a->min_pairs, a->max_pairs);
	a->pairs_despite_timeout = args->min_given || !args->seconds_given ? a->min_pairs : 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	struct me_audit_opts *a = &args->audit;

	switch (key) {
	case KEY_AT: a->at = arg; return 0;
	case KEY_COMMAND: args->command = true; return 0;
	case KEY_COMPARE_FILE: parse_file(state, args, arg); return 0;
	case KEY_CPU: a->cpu = (int)parse_count(state, arg, "--cpu", 0); return 0;
	case KEY_DIR: a->parent = arg; return 0;
	case KEY_ENV: parse_env(state, arg); return 0;
	case KEY_FILTER: a->filter = arg; return 0;
	case KEY_METRIC: a->metric = parse_metric(state, arg); return 0;
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

/* Find a command in PATH, as the shell would. Return: NULL: not found. Ownership: the caller
 * frees it. */
static char *find_command(const char *name)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return strdup(name);
	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":");

		if (len &&
		    snprintf(path, sizeof(path), "%.*s/%s", (int)len, dirs, name) <
			    (int)sizeof(path) &&
		    !access(path, X_OK))
			return strdup(path);
		dirs += len + (dirs[len] == ':');
	}
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
	me_run_cancel();
}

/* Let signals that end the program arrive only while a run waits, so that all is cleaned up. */
static void catch_signals(sigset_t *before)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t block;
	size_t i;

	sigemptyset(&block);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaddset(&block, signals[i]);
		sigaction(signals[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &block, before);
}

/* Print or store one row of a table. */
struct table {
	void (*row)(const struct me_simulation *sim, void *arg);
	void *arg;
};

static int simulate_row(const struct arguments *args, const struct table *table,
			struct me_simulation sim)
{
	sim.alpha = args->audit.alpha;
	sim.nr_audits = args->simulate;
	sim.max_pairs = args->audit.max_pairs;
	sim.seed = 1;
	if (me_simulate(&sim)) {
		fputs("morph-audit: out of memory\n", stderr);
		return STATUS_FAILED;
	}
	table->row(&sim, table->arg);
	return 0;
}

/* Simulate how often an audit is right or wrong with each kind of noise. */
static int simulate_noises(const struct arguments *args, const struct table *table)
{
	static const double effects[] = {0, 0.005, 0.01, 0.05};
	int ret = 0;

	for (int noise = 0; noise < ME_NR_NOISES; noise++)
		for (size_t e = 0; !ret && e < sizeof(effects) / sizeof(effects[0]); e++)
			ret = simulate_row(args, table,
					   (struct me_simulation){.noise = (enum me_noise)noise,
								  .effect = effects[e]});
	return ret;
}

/* Simulate how soon an audit is right. B is faster by @effect; each run has Gaussian noise of
 * @sd. */
static int simulate_power(const struct arguments *args, const struct table *table)
{
	static const double effects[] = {0.01, 0.02, 0.05, 0.1}, sds[] = {0.01, 0.03, 0.05};
	int ret = 0;

	for (size_t s = 0; s < sizeof(sds) / sizeof(sds[0]); s++)
		for (size_t e = 0; !ret && e < sizeof(effects) / sizeof(effects[0]); e++)
			ret = simulate_row(args, table,
					   (struct me_simulation){.noise = ME_NOISE_GAUSSIAN,
								  .sd = sds[s],
								  .effect = log1p(effects[e])});
	return ret;
}

static void print_row(const struct me_simulation *sim, void *arg)
{
	fprintf(arg, "%-16s %8.1f %% %10zu %10zu %10zu %12.1f\n", me_noise_name(sim->noise),
		100 * sim->effect, sim->nr_positive, sim->nr_negative, sim->nr_covered,
		sim->mean_pairs);
}

static void print_power(const struct me_simulation *sim, void *arg)
{
	fprintf(arg, "%6.0f %% %9.0f %% ", 100 * sim->sd, 100 * expm1(sim->effect));
	for (int i = 0; i < ME_NR_WITHINS; i++)
		fprintf(arg, " %6.1f %%", 100 * (double)sim->nr_within[i] / (double)sim->nr_audits);
	fputc('\n', arg);
}

static void append_row(const struct me_simulation *sim, void *arg)
{
	json_array_append_new(arg, json_pack("{s:s, s:f, s:I, s:I, s:I, s:f}", "noise",
					     me_noise_name(sim->noise), "effect", sim->effect,
					     "claimed_faster", (json_int_t)sim->nr_positive,
					     "claimed_slower", (json_int_t)sim->nr_negative,
					     "covered", (json_int_t)sim->nr_covered, "mean_pairs",
					     sim->mean_pairs));
}

static void append_power(const struct me_simulation *sim, void *arg)
{
	json_t *within = json_array();

	for (int i = 0; i < ME_NR_WITHINS; i++)
		json_array_append_new(within, json_pack("{s:I, s:I}", "pairs",
							(json_int_t)me_sim_withins[i], "decided",
							(json_int_t)sim->nr_within[i]));
	json_array_append_new(arg, json_pack("{s:f, s:f, s:o}", "noise_sd", sim->sd, "effect",
					     expm1(sim->effect), "within", within));
}

static int simulate_json(const struct arguments *args)
{
	json_t *root = mp_json_new(ME_AUDIT_SCHEMA, "simulate"), *rows = json_array();
	json_t *power = json_array();
	int ret = simulate_noises(args, &(struct table){append_row, rows});

	if (!ret)
		ret = simulate_power(args, &(struct table){append_power, power});
	json_object_set_new(root, "audits", json_integer((json_int_t)args->simulate));
	json_object_set_new(root, "alpha", json_real(args->audit.alpha));
	json_object_set_new(root, "max_pairs", json_integer((json_int_t)args->audit.max_pairs));
	json_object_set_new(root, "rows", rows);
	json_object_set_new(root, "power", power);
	if (!ret && json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)))
		ret = STATUS_FAILED; /* main() says why */
	putchar('\n');
	json_decref(root);
	return ret;
}

static int simulate(const struct arguments *args)
{
	int ret;

	if (args->json)
		return simulate_json(args);
	printf("claims in %zu audits each, alpha %g, looking after each of at most %zu pairs\n\n",
	       args->simulate, args->audit.alpha, args->audit.max_pairs);
	printf("%-16s %10s %10s %10s %10s %12s\n", "noise", "B faster", "claimed", "slower",
	       "covered", "mean pairs");
	ret = simulate_noises(args, &(struct table){print_row, stdout});
	printf("\naudits that find B faster, with Gaussian noise in each run\n\n%8s %11s  in",
	       "noise", "B faster");
	for (int i = 0; i < ME_NR_WITHINS; i++)
		printf(" %5zu   ", me_sim_withins[i]);
	puts("pairs");
	return ret ? ret : simulate_power(args, &(struct table){print_power, stdout});
}

static int audit_status(enum me_audit_verdict verdict)
{
	switch (verdict) {
	case ME_AUDIT_FASTER: return STATUS_FASTER;
	case ME_AUDIT_DIFFERS: return STATUS_DIFFERS;
	default: return STATUS_SLOW;
	}
}

/* Write one export; "-" is standard output. */
static int
export_to(const char *path, const struct me_audit_opts *opts, const struct me_audit *result,
	  void (*print)(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out))
{
	FILE *out = strcmp(path, "-") ? fopen(path, "we") : stdout;
	int failed;

	if (out) {
		print(opts, result, out);
		failed = fflush(out) || ferror(out);
		if (out != stdout)
			failed |= fclose(out);
		if (!failed)
			return 0;
	}
	fprintf(stderr, "morph-audit: %s: %s\n", path, strerror(errno));
	return -EIO;
}

static void print_json(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	me_audit_print_json(opts, audit, out);
}

/* Export the pairs of an audit that failed or was interrupted, but no result. */
static int export_all(const struct arguments *args, const struct me_audit *result, bool failed)
{
	int ret = 0;

	if (args->csv && (!failed || result->nr_pairs))
		ret = export_to(args->csv, &args->audit, result, me_audit_print_csv);
	if (!ret && args->to_json && !failed)
		ret = export_to(args->to_json, &args->audit, result, print_json);
	if (!ret && args->markdown && !failed)
		ret = export_to(args->markdown, &args->audit, result, me_audit_print_markdown);
	return ret;
}

static int audit(struct arguments *args)
{
	struct me_audit_opts *opts = &args->audit;
	struct me_audit_lines lines = {.out = stderr, .every_s = args->progress_s};
	struct me_audit_pairs earlier = {0};
	struct me_audit result;
	struct mp_err err = {""};
	char *command = NULL;
	sigset_t mask;
	int ret;

	if (args->command) {
		command = find_command(opts->args[0]);
		if (!command) {
			fprintf(stderr, "morph-audit: %s: command not found\n", opts->args[0]);
			return STATUS_FAILED;
		}
		opts->command = command;
	}
	if (args->earlier) {
		if (me_audit_read_csv(args->earlier, &earlier, &err)) {
			fprintf(stderr, "morph-audit: %s\n", err.msg);
			me_audit_pairs_fini(&earlier);
			free(command);
			return STATUS_FAILED;
		}
		opts->earlier = &earlier;
	}
	catch_signals(&mask);
	opts->mask = &mask;
	opts->files = args->files;
	opts->envp = environ;
	/* No timer for the progress line: nothing may run beside the programs. */
	if (mp_progress_start("morph-audit", false))
		opts->progress = me_audit_progress;
	else if (lines.every_s > 0) {
		opts->progress = me_audit_progress_line;
		opts->progress_arg = &lines;
	}
	ret = me_audit_run(opts, &result, &err);
	mp_progress_stop();
	if (ret == -ECANCELED)
		fprintf(stderr, "morph-audit: interrupted after %zu pairs\n", result.nr_pairs);
	else if (ret)
		fprintf(stderr, "morph-audit: %s\n", err.msg);
	else if (args->json)
		ret = me_audit_print_json(opts, &result, stdout);
	else
		me_audit_print(opts, &result, stdout);
	if (export_all(args, &result, ret))
		ret = -EIO;
	ret = ret ? STATUS_FAILED : audit_status(result.verdict);
	me_audit_fini(&result);
	me_audit_pairs_fini(&earlier);
	free(command);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		parse,
		"A [B] [-- ARGS...]",
		"Runs programs A and B (default: A.morph, which morph-optimize writes) in turns under the same name until it is certain which one "
		"is faster, and compares what they write."
		"\vExit status: 0 B is faster, 1 failed, 2 usage, 5 B is not faster, 6 B's output "
		"differs.",
		NULL,
		NULL,
		NULL,
	};
	const char *tmp = getenv("TMPDIR");
	struct arguments args = {
		.audit =
			{
				.parent = tmp && *tmp ? tmp : "/tmp",
				.cpu = -1,
				.alpha = 0.01,
				.indifference = log1p(0.005),
				.warmup = 1,
				.min_pairs = 8,
				.max_pairs = 500,
				.max_seconds = 600,
			},
		.progress_s = 60,
	};
	int own = argc, status, i;

	mp_stdio_init("morph-audit");

	/* everything behind the first `--` is for the programs */
	for (i = 1; i < argc && own == argc; i++)
		if (!strcmp(argv[i], "--"))
			own = i;
	if (own < argc)
		args.audit.args = argv + own + 1;
	argp_err_exit_status = STATUS_USAGE;
	argp_parse(&argp, own, argv, 0, NULL, &args);
	mp_stdio_parsed();
	status = args.simulate ? simulate(&args) : audit(&args);
	free(args.files);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "morph-audit: standard output: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	return status;
}
