// SPDX-License-Identifier: Apache-2.0
/*
 * morph-audit - the command line of the audit: is one program faster than another on this
 * machine?
 *
 * Decides defaults, exit statuses and the handling of signals. audit_options.c reads the
 * options; audit does the rest.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/audit/audit_export.h"
#include "editor/audit/audit_plot.h"
#include "editor/audit/audit_svg.h"
#include "editor/audit/run/audit_run.h"
#include "editor/base/defaults.h"
#include "editor/base/scratch.h"
#include "editor/cli/audit_private.h"
#include "editor/emit/publish.h"
#include "libprof/cli/bus_error.h"
#include "libprof/cli/program.h"
#include "libprof/cli/progress.h"

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
	const char *tmp = getenv("TMPDIR");
	struct me_audit_arguments args = {
		.audit =
			{
				.parent = tmp && *tmp ? tmp : "/tmp",
				.cpu = -1,
				.alpha = MP_ALPHA,
				.indifference = log1p(ME_INDIFFERENCE),
				.warmup = ME_WARMUP_PAIRS,
				.min_pairs = ME_MIN_PAIRS,
				.max_pairs = ME_MAX_PAIRS,
				.max_seconds = ME_MAX_SECONDS,
			},
		.progress_s = ME_PROGRESS_SECONDS,
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
	mp_options_read(&me_audit_usage, own, argv, &args, NULL);
	status = args.compilations ? me_audit_compilations(&args) : audit(&args);
	free(args.files);
	me_metric_fini(&args.audit.metric);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "morph-audit: standard output: %s\n", strerror(errno));
		return MP_EXIT_FAILED;
	}
	return status;
}
