// SPDX-License-Identifier: Apache-2.0
/*
 * morph-audit - the command line of the audit: is one program faster than another on this
 * machine?
 *
 * Decides defaults, exit statuses and the handling of signals. audit_options.c reads the
 * options; audit does the rest.
 */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/audit/audit_export.h"
#include "editor/audit/audit_plot.h"
#include "editor/audit/audit_report.h"
#include "editor/audit/audit_simulate.h"
#include "editor/audit/audit_svg.h"
#include "editor/audit/run/audit_run.h"
#include "editor/base/scratch.h"
#include "editor/cli/audit_private.h"
#include "editor/emit/publish.h"
#include "libprof/base/outfile.h"
#include "libprof/cli/args.h"
#include "libprof/cli/bus_error.h"
#include "libprof/cli/json.h"
#include "libprof/cli/program.h"
#include "libprof/cli/progress.h"
#include "libprof/cli/stdio.h"

extern char **environ;

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

void me_audit_begin(struct me_audit_arguments *args, struct me_audit_lines *lines, sigset_t *before)
{
	struct me_audit_opts *opts = &args->audit;

	catch_signals(before);
	opts->mask = before;
	opts->files = args->files;
	opts->envp = environ;
	/* No timer for the progress line: nothing may run beside the programs. */
	opts->progress_arg = lines;
	if (mp_progress_start("morph-audit", false))
		opts->progress = me_audit_progress;
	else if (lines->every_s > 0)
		opts->progress = me_audit_progress_line;
}

/* Print or store one row of a table. */
struct table {
	void (*row)(const struct me_simulation *sim, void *arg);
	void *arg;
};

static int simulate_row(const struct me_audit_arguments *args, const struct table *table,
			struct me_simulation sim)
{
	sim.alpha = args->audit.alpha;
	sim.nr_audits = args->simulate;
	sim.max_pairs = args->audit.max_pairs;
	sim.seed = 1;
	if (me_simulate(&sim)) {
		fputs("morph-audit: out of memory\n", stderr);
		return MP_EXIT_FAILED;
	}
	table->row(&sim, table->arg);
	return 0;
}

/* Simulate how often an audit is right or wrong with each kind of noise. */
static int simulate_noises(const struct me_audit_arguments *args, const struct table *table)
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
static int simulate_power(const struct me_audit_arguments *args, const struct table *table)
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

static int simulate_json(const struct me_audit_arguments *args)
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
	if (!ret && !mp_json_is_whole(root)) {
		errno = ENOMEM;
		ret = MP_EXIT_FAILED;
	} else if (!ret && json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)))
		ret = MP_EXIT_FAILED; /* main() says why */
	putchar('\n');
	json_decref(root);
	return ret;
}

static int simulate(const struct me_audit_arguments *args)
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
	case ME_AUDIT_FASTER: return MP_EXIT_DONE;
	case ME_AUDIT_DIFFERS: return MP_EXIT_DIFFERS;
	default: return MP_EXIT_NOT_FASTER;
	}
}

static void print_json(const struct me_audit_opts *opts, const struct me_audit *audit, FILE *out)
{
	me_audit_print_json(opts, audit, out);
}

/* An audit that failed has a reason instead of a result, in JSON, for the programs that run it. */
static void tell_failure(const struct me_audit_arguments *args, const struct mp_err *err)
{
	struct mp_outfile out;
	struct mp_err why;

	fprintf(stderr, "morph-audit: %s\n", err->msg);
	if (args->json)
		me_audit_print_failure(err->msg, stdout);
	if (!args->exports[ME_EXPORT_JSON])
		return;
	if (!me_audit_export_open(args, ME_EXPORT_JSON, &out, &why)) {
		me_audit_print_failure(err->msg, out.file);
		if (!mp_outfile_commit(&out, &why))
			return;
	}
	fprintf(stderr, "morph-audit: %s\n", why.msg);
}

/* Before the first run: an audit may take long, and its exports may replace no input. */
static int check_exports(struct me_audit_arguments *args, struct mp_err *err)
{
	const struct me_audit_opts *opts = &args->audit;
	const char *inputs[] = {opts->a, opts->b, opts->stdin_path, opts->command, NULL};
	const char *given[sizeof(inputs) / sizeof(inputs[0])];
	size_t nr = 0;
	int ret = 0;

	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
		if (inputs[i])
			given[nr++] = inputs[i];
	given[nr] = NULL;
	for (size_t i = 0; !ret && i < ME_NR_AUDIT_EXPORTS; i++)
		if (args->exports[i] && strncmp(args->exports[i], "-.", 2))
			ret = mp_outfile_check(args->exports[i], given, err);
	/* The reason does not go there either. */
	if (ret)
		args->exports[ME_EXPORT_JSON] = NULL;
	return ret;
}

/* Export the pairs of an audit that failed or was interrupted, but no result. */
static int export_all(const struct me_audit_arguments *args, const struct me_audit *result,
		      bool failed)
{
	static void (*const print[ME_NR_AUDIT_EXPORTS])(const struct me_audit_opts *opts,
							const struct me_audit *audit, FILE *out) = {
		[ME_EXPORT_CSV] = me_audit_print_csv,
		[ME_EXPORT_JSON] = print_json,
		[ME_EXPORT_MARKDOWN] = me_audit_print_markdown,
		[ME_EXPORT_SVG] = me_audit_print_svg};
	struct mp_outfile out;
	struct mp_err err;
	int ret = 0;

	for (int i = 0; !ret && i < ME_NR_AUDIT_EXPORTS; i++) {
		if (!args->exports[i] || (failed && (i != ME_EXPORT_CSV || !result->nr_pairs)))
			continue;
		ret = me_audit_export_open(args, (enum me_audit_export)i, &out, &err);
		if (!ret) {
			print[i](&args->audit, result, out.file);
			ret = mp_outfile_commit(&out, &err);
		}
		if (ret)
			fprintf(stderr, "morph-audit: %s\n", err.msg);
	}
	return ret;
}

/* Finds the command and reads the earlier pairs before the first run. @command: to be freed. Return: 0, -errno. */
static int prepare(struct me_audit_arguments *args, char **command, struct me_audit_pairs *earlier,
		   struct mp_err *err)
{
	struct me_audit_opts *opts = &args->audit;

	if (args->command) {
		*command = find_command(opts->args[0]);
		if (!*command)
			return mp_err_set(err, ENOENT, "%s: command not found", opts->args[0]);
		opts->command = *command;
	}
	if (args->earlier) {
		int ret = me_audit_read_csv(args->earlier, earlier, err);

		opts->earlier = earlier;
		if (ret)
			return ret;
	}
	return check_exports(args, err);
}

static int audit(struct me_audit_arguments *args)
{
	struct me_audit_opts *opts = &args->audit;
	struct me_audit_lines lines = {.no_speed = opts->metric.kind == ME_METRIC_PATTERN,
				       .out = stderr,
				       .every_s = args->progress_s};
	struct me_audit_pairs earlier = {0};
	struct me_audit result = {0};
	struct mp_err err = {""};
	char *command = NULL;
	sigset_t mask;
	int ret = prepare(args, &command, &earlier, &err);

	if (!ret) {
		me_audit_begin(args, &lines, &mask);
		ret = me_audit_run(opts, &result, &err);
		mp_progress_stop();
	}
	if (ret == -ECANCELED)
		mp_err_set(&err, ECANCELED, "interrupted after %zu pairs", result.nr_pairs);
	if (ret)
		tell_failure(args, &err);
	else if (args->json)
		ret = me_audit_print_json(opts, &result, stdout);
	else
		me_audit_print(opts, &result, stdout);
	if (!ret && args->plot && !args->json)
		me_audit_plot(opts, &result, stdout);
	if (export_all(args, &result, ret))
		ret = -EIO;
	ret = ret ? MP_EXIT_FAILED : audit_status(result.verdict);
	me_audit_fini(&result);
	me_audit_pairs_fini(&earlier);
	free(command);
	return ret;
}

/* For a signal handler. */
static void remove_all(void)
{
	me_publish_remove_all();
	me_scratch_remove_all();
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		me_audit_options,
		me_audit_parse,
		"A [B] [-- ARGS...]",
		"Runs programs A and B (default: A.morph, which morph-optimize writes) in pairs under the same name until it is certain which one "
		"is faster, and compares what they write."
		"\vExit status: 0 B is faster, 1 failed, 2 usage, 3 too few samples (--compilations), "
		"5 B is not faster, 6 B's output differs.",
		NULL,
		NULL,
		NULL,
	};
	const char *tmp = getenv("TMPDIR");
	struct me_audit_arguments args = {
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

	mp_program_init("morph-audit");
	mp_bus_error_catch("morph-audit", remove_all);

	/* everything behind the first `--` is for the programs */
	for (i = 1; i < argc && own == argc; i++)
		if (!strcmp(argv[i], "--"))
			own = i;
	if (own < argc)
		args.audit.args = argv + own + 1;
	mp_args_parse(&argp, own, argv, 0, &args);
	mp_stdio_parsed();
	status = args.simulate	     ? simulate(&args)
		 : args.compilations ? me_audit_compilations(&args)
				     : audit(&args);
	free(args.files);
	me_metric_fini(&args.audit.metric);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "morph-audit: standard output: %s\n", strerror(errno));
		return MP_EXIT_FAILED;
	}
	return status;
}
