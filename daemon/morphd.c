// SPDX-License-Identifier: Apache-2.0
/*
 * morphd - collects samples of what runs, attributes them to modules, stores the counts.
 *
 * Command lines, signals and messages; the work is the pipeline's. Exit: 0 done,
 * 1 failed, 2 usage; `morphd run` exits as its command did.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/choose.h"
#include "daemon/command.h"
#include "daemon/modread.h"
#include "daemon/notify.h"
#include "daemon/pipeline.h"
#include "daemon/sandbox.h"
#include "daemon/source.h"
#include "libprof/stdio.h"
#include "libprof/store.h"

#ifndef MORPH_VERSION
#define MORPH_VERSION "unknown"
#endif

#define RUN_RATE_HZ	   4000
#define UNMEASURED_RATE_HZ 101 /* where what a sample costs could not be measured */

/* For reading a file that nobody has read yet; a large one on a slow disk takes seconds. */
#define READ_DEADLINE_MS 10000

/* Of the JSON of --json; grows when a field changes its meaning. */
#define JSON_SCHEMA 1

const char *argp_program_version = "morphd " MORPH_VERSION;

enum option_key {
	OPT_STATS = 256,
	OPT_JSON,
	OPT_REPEAT,
	OPT_FOREGROUND,
	OPT_NO_KERNEL
};

struct options {
	const char *source, *db, *record, *input;
	uint32_t rate_hz, nr_repeats;
	double interval_s;
	bool stats, json, no_kernel;
	bool is_run;
	char **command;
};

static const struct argp_option daemon_options[] = {
	{"source", 's', "NAME", 0,
	 "kmod, bpf, perf, replay, or auto (replay with --input, else the best)", 0},
	{"db", 'd', "FILE", 0, "the database (default: see morphd(8); none with --record)", 0},
	{"rate", 'r', "HZ", 0, "samples per second and CPU (default: measured, below 0.3 %)", 0},
	{"interval", 'i', "SECONDS", 0, "between two writes to the database (default: 10)", 0},
	{"record", 'o', "FILE", 0, "write the stream of records to FILE", 0},
	{"input", 'I', "FILE", 0, "the recording to replay", 0},
	{"repeat", OPT_REPEAT, "N", 0, "replay it N times, each under new process ids", 0},
	{"no-kernel", OPT_NO_KERNEL, NULL, 0, "sample user code only", 0},
	{"foreground", OPT_FOREGROUND, NULL, 0, "do not detach (morphd never does)", 0},
	{"stats", OPT_STATS, NULL, 0, "at the end, print where time and samples went", 0},
	{"json", OPT_JSON, NULL, 0, "the same as JSON", 0},
	{0}};

static const struct argp_option run_options[] = {
	{"source", 's', "NAME", 0, "kmod, bpf, perf, or auto (the best that works here)", 0},
	{"db", 'd', "FILE", 0, "the database (default: see morphd(8); none with --record)", 0},
	{"rate", 'r', "HZ", 0, "samples per second of CPU time (default: 4000)", 0},
	{"interval", 'i', "SECONDS", 0, "between two writes to the database (default: 10)", 0},
	{"record", 'o', "FILE", 0, "write the stream of records to FILE", 0},
	{"no-kernel", OPT_NO_KERNEL, NULL, 0, "sample user code only", 0},
	{"stats", OPT_STATS, NULL, 0, "at the end, print where time and samples went", 0},
	{"json", OPT_JSON, NULL, 0, "the same as JSON", 0},
	{0}};

static double parse_number(struct argp_state *state, const char *name, const char *text, double low,
			   double high)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (errno || end == text || *end || !(value >= low && value <= high))
		argp_error(state, "--%s %s: not a number from %g to %g", name, text, low, high);
	return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 's':
		o->source = arg;
		if (strcmp(arg, "auto") && !md_source_find(arg))
			argp_error(state, "--source %s: there are kmod, bpf, perf, replay and auto",
				   arg);
		if (o->is_run && !strcmp(arg, "replay"))
			argp_error(state, "--source replay: a command is run, not replayed");
		return 0;
	case 'd': o->db = arg; return 0;
	case 'r': o->rate_hz = parse_number(state, "rate", arg, 1, 100000); return 0;
	case 'i': o->interval_s = parse_number(state, "interval", arg, 0.001, 86400); return 0;
	case 'o': o->record = arg; return 0;
	case 'I': o->input = arg; return 0;
	case OPT_REPEAT: o->nr_repeats = parse_number(state, "repeat", arg, 1, 1e6); return 0;
	case OPT_NO_KERNEL: o->no_kernel = true; return 0;
	case OPT_FOREGROUND: return 0;
	case OPT_JSON: o->json = true; /* fall through */
	case OPT_STATS: o->stats = true; return 0;
	case ARGP_KEY_ARG:
		if (!o->is_run)
			argp_error(state, "%s: there is nothing to do with it", arg);
		o->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (o->is_run && !o->command)
			argp_error(state, "which command?");
		if (o->input && o->source && strcmp(o->source, "auto") &&
		    strcmp(o->source, "replay"))
			argp_error(state, "--input is for --source=replay");
		if (!o->input && o->source && !strcmp(o->source, "replay"))
			argp_error(state, "--source=replay needs --input FILE");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp daemon_argp = {
	.options = daemon_options,
	.parser = parse_option,
	.args_doc = "\nrun [OPTION...] -- COMMAND [ARGUMENT...]",
	.doc = "Collect samples of what runs, attribute them to modules, store the counts.\v"
	       "`morphd run --help` tells of sampling one command. Exit status: 0 done, 1 failed, "
	       "2 usage; that of the command with run.",
};

static const struct argp run_argp = {
	.options = run_options,
	.parser = parse_option,
	.args_doc = "-- COMMAND [ARGUMENT...]",
	.doc = "Sample COMMAND and all that it starts; exit as it does.",
};

/* ---- messages ----------------------------------------------------------------------------- */

static void complain(const char *message)
{
	fprintf(stderr, "morphd: %s\n", message);
}

static void warn(void *arg, const char *message)
{
	(void)arg;
	complain(message);
}

static void print_ledger(const struct mp_ledger *ledger, const char *format)
{
	int i;

	for (i = 0; i < MP_NR_UNATTR; i++)
		printf(format, mp_unattributed_name(i), ledger->unattributed[i]);
	for (i = 0; i < MP_NR_LOST; i++)
		printf(format, mp_lost_name(i), ledger->lost[i]);
}

static void print_branches(const struct md_branch_ledger *b)
{
	printf("branches seen        %12" PRIu64 "\n", b->seen);
	printf("  counted            %12" PRIu64 "\n", b->counted);
	printf("  in the kernel      %12" PRIu64 "\n", b->kernel);
	printf("  between modules    %12" PRIu64 "\n", b->between);
	printf("  in no module       %12" PRIu64 "\n", b->unmapped);
	printf("  no memory          %12" PRIu64 "\n", b->no_room);
	printf("not in the original  %12" PRIu64 "\n", b->moved);
}

static void print_stats(const struct md_pipeline *pl, bool json, const char *command)
{
	const struct mp_ledger *t = &pl->total;
	const struct md_branch_ledger *b = &pl->at.branches;
	double total_s = pl->time_ns / 1e9;
	double analysis_s = md_modcache_analysis_ns(pl->at.modcache) / 1e9;
	double flush_s = pl->flush.time_ns / 1e9;
	uint64_t here = t->emitted - md_ledger_lost(t);
	uint64_t written = pl->writer ? md_recwriter_size_bytes(pl->writer) : 0;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	if (json) {
		printf("{\"schema\": %d, \"command\": \"%s\",\n ", JSON_SCHEMA, command);
		printf("\"emitted\": %" PRIu64 ", \"attributed\": %" PRIu64
		       ", \"unattributed\": %" PRIu64 ", \"lost\": %" PRIu64 ",\n \"reasons\": {",
		       t->emitted, t->attributed, md_ledger_unattributed(t), md_ledger_lost(t));
		print_ledger(t, "\"%s\": %" PRIu64 ", ");
		printf("\"all\": %" PRIu64 "},\n", md_ledger_unattributed(t) + md_ledger_lost(t));
		printf(" \"modules\": %zu, \"processes\": %" PRIu64 ", \"addresses\": %" PRIu64
		       ",\n \"records\": %" PRIu64 ", \"batches\": %" PRIu64 ", \"bytes\": %" PRIu64
		       ", \"recorded_bytes\": %" PRIu64 ", \"branches\": %" PRIu64
		       ", \"branches_counted\": %" PRIu64 ",\n",
		       md_pipeline_nr_modules(pl), pl->at.nr_processes, pl->max_addresses,
		       pl->nr_records, pl->nr_batches, pl->nr_bytes, written, b->seen, b->counted);
		printf(" \"seconds\": %.6f, \"analysis_seconds\": %.6f, \"flush_seconds\": %.6f, "
		       "\"flushes\": %" PRIu64 ", \"cpu_seconds\": %.6f, \"max_rss_kib\": %ld}\n",
		       total_s, analysis_s, flush_s, pl->flush.nr,
		       usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
			       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
		       usage.ru_maxrss);
		return;
	}
	printf("samples emitted      %12" PRIu64 "\n", t->emitted);
	printf("  attributed         %12" PRIu64 "\n", t->attributed);
	print_ledger(t, "  %-18s %12" PRIu64 "\n");
	if (b->seen)
		print_branches(b);
	printf("modules sampled      %12zu\n", md_pipeline_nr_modules(pl));
	printf("processes sampled    %12" PRIu64 "\n", pl->at.nr_processes);
	printf("addresses at a flush %12" PRIu64 "\n", pl->max_addresses);
	printf("bytes per sample     %12.2f\n", here ? (double)pl->nr_bytes / here : 0);
	printf("samples per batch    %12.2f\n", pl->nr_batches ? (double)here / pl->nr_batches : 0);
	printf("seconds              %12.3f\n", total_s);
	printf("  analysing modules  %12.3f\n", analysis_s);
	printf("  writing counts     %12.3f in %" PRIu64 " transactions\n", flush_s, pl->flush.nr);
	printf("samples per second   %12.0f\n", total_s > 0 ? here / total_s : 0);
	printf("max resident KiB     %12ld\n", usage.ru_maxrss);
}

/* ---- stopping ----------------------------------------------------------------------------- */

static volatile sig_atomic_t stop_asked;

static void on_stop(int sig)
{
	(void)sig;
	stop_asked = 1;
}

static void catch_stop(void)
{
	struct sigaction stop = {.sa_handler = on_stop};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGHUP, &ignore, NULL); /* reserved */
}

static bool daemon_should_stop(void *arg)
{
	(void)arg;
	return stop_asked;
}

static bool run_should_stop(void *arg)
{
	return md_command_has_ended(arg);
}

/* ---- the database ------------------------------------------------------------------------- */

/*
 * A daemon wants the database for itself, since another would count the same
 * samples again; several `morphd run` may share one. Kept until the process ends.
 */
static int lock_store(const char *db, bool shared, struct mp_err *err)
{
	char path[4200], pid[32] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s.lock", db);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return mp_err_set(err, errno, "%s: cannot create: %s", path, strerror(errno));
	if (!flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB)) {
		n = shared ? 0 : snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
		if (ftruncate(fd, 0) || pwrite(fd, pid, n, 0) != n)
			return mp_err_set(err, errno, "%s: cannot write: %s", path,
					  strerror(errno));
		return 0;
	}
	if (errno != EWOULDBLOCK)
		return mp_err_set(err, errno, "%s: cannot lock: %s", path, strerror(errno));
	n = pread(fd, pid, sizeof(pid) - 1, 0);
	pid[n > 0 ? strcspn(pid, "\n") : 0] = 0;
	close(fd);
	return mp_err_set(err, EBUSY, "%s: in use by another morphd%s%s; name another with --db",
			  db, pid[0] ? ", process " : "", pid);
}

static int open_store(const struct options *o, char *db, size_t size, struct mp_store **out,
		      struct mp_err *err)
{
	int ret = 0;

	db[0] = 0;
	if (!o->db && o->record)
		return 0;
	if (o->db)
		snprintf(db, size, "%s", o->db);
	else
		ret = mp_store_default_path(db, size, true, err);
	if (!ret)
		ret = lock_store(db, o->is_run, err);
	if (!ret)
		ret = mp_store_open(db, MP_STORE_WRITE, out, err);
	return ret;
}

/* ---- collecting --------------------------------------------------------------------------- */

static void report(const struct md_pipeline *pl, const char *db, const char *record)
{
	fprintf(stderr,
		"morphd: captured %" PRIu64 " samples of %zu modules, %" PRIu64 " lost -> %s%s%s\n",
		pl->total.emitted - md_ledger_lost(&pl->total), md_pipeline_nr_modules(pl),
		md_ledger_lost(&pl->total), db, db[0] && record ? ", " : "", record ? record : "");
}

/*
 * Files of a live source are read in a sandbox. Without one root reads none, and does not start:
 * an ordinary user's own files are no more dangerous here than elsewhere.
 */
static int open_sandbox(struct md_pipeline *pl, struct mp_err *unconfined, struct mp_err *err)
{
	const struct md_sandbox_config config = {
		.deadline_ms = READ_DEADLINE_MS,
		.reply_max = MD_MODREAD_REPLY_MAX,
	};
	int ret;

	if (!pl->source->ops->is_live)
		return 0;
	ret = md_sandbox_open(&config, &pl->sandbox, unconfined);
	if (!ret)
		return 0;
	if (md_sandbox_is_needed())
		return mp_err_set(err, -ret, "no sandbox for reading files: %s", unconfined->msg);
	fprintf(stderr, "morphd: files are read without a sandbox: %s\n", unconfined->msg);
	pl->unconfined = unconfined->msg;
	return 0;
}

/* Everything between an open source and the last flush. @command: NULL, or to be let go. */
static int collect(const struct options *o, struct md_source *source, struct md_command *command,
		   const char *db, struct mp_store *store, struct mp_err *err)
{
	struct md_pipeline *pl = calloc(1, sizeof(*pl));
	struct mp_err unconfined = {{0}};
	struct md_recfile_info info;
	const char *remark;
	int ret, close_ret;

	if (!pl)
		return mp_err_set(err, ENOMEM, "no memory");
	pl->source = source;
	pl->store = store;
	pl->interval_s = o->interval_s;
	pl->warn = warn;
	pl->should_stop = command ? run_should_stop : daemon_should_stop;
	pl->arg = command;
	md_source_describe(source, &info);
	ret = open_sandbox(pl, &unconfined, err);
	if (!ret && o->record)
		ret = md_recwriter_open(o->record, &info, &pl->writer, err);
	if (!ret)
		ret = md_pipeline_init(pl, err);
	if (!ret && command)
		ret = md_command_go(command, o->command[0], err);
	if (!ret) {
		md_notify("READY=1");
		ret = md_pipeline_run(pl, err);
		md_notify("STOPPING=1");
		remark = source->ops->remark(source);
		if (remark)
			complain(remark);
		if (!ret && o->stats)
			print_stats(pl, o->json, o->is_run ? "run" : "collect");
	}
	close_ret = md_recwriter_close(pl->writer, ret ? NULL : err);
	pl->writer = NULL;
	if (!ret)
		ret = close_ret;
	if (!ret)
		report(pl, db, o->record);
	md_pipeline_fini(pl);
	md_sandbox_close(pl->sandbox);
	free(pl);
	return ret;
}

/* "auto" means the best one that works. */
static const struct md_source_ops *asked_source(const struct options *o)
{
	if (o->input)
		return &md_source_replay;
	return o->source && strcmp(o->source, "auto") ? md_source_find(o->source) : NULL;
}

static int open_source(const struct options *o, const struct md_source_config *config,
		       struct md_source **out, struct mp_err *err)
{
	const struct md_source_ops *ops = asked_source(o);

	return ops ? ops->open(config, out, err) : md_choose_source(config, out, err);
}

/*
 * A daemon takes so many samples that nobody notices: what one costs is measured first, on
 * ourselves and with the source that is going to collect.
 */
static int open_unnoticed(const struct options *o, struct md_source_config *config,
			  struct md_source **out, struct mp_err *err)
{
	struct md_source_config mine = *config;
	const struct md_source_ops *ops;
	struct md_source *probe;
	struct md_cost cost;
	char choice[sizeof(probe->choice)];
	int ret;

	config->rate_hz = UNMEASURED_RATE_HZ;
	mine.rate_hz = MD_MEASURING_HZ;
	mine.command = getpid();
	mine.is_probe = true;
	if (open_source(o, &mine, &probe, err))
		return open_source(o, config, out, err); /* says what is not allowed */
	ret = md_choose_measure(probe, &cost, err);
	if (ret) {
		snprintf(choice, sizeof(choice), "%s", probe->choice);
		fprintf(stderr, "morphd: what a sample costs cannot be measured: %s\n", err->msg);
	} else {
		config->rate_hz = probe->fixed_hz ? probe->fixed_hz : md_choose_rate(&cost);
		md_choose_say(&cost, config->rate_hz, probe->choice, choice, sizeof(choice));
		fprintf(stderr, "morphd: %s\n", choice);
	}
	ops = probe->ops;
	if (ops->is_exclusive)
		ops->close(probe);
	ret = ops->open(config, out, err);
	if (!ret)
		memcpy((*out)->choice, choice, sizeof(choice));
	if (!ops->is_exclusive)
		ops->close(probe);
	return ret;
}

static int daemon_main(const struct options *o, struct mp_err *err)
{
	struct md_source_config config = {
		.rate_hz = o->rate_hz,
		.no_kernel = o->no_kernel,
		.input = o->input,
		.nr_repeats = o->nr_repeats,
	};
	struct md_source *source = NULL;
	struct mp_store *store = NULL;
	char db[4096];
	int ret;

	catch_stop();
	ret = open_store(o, db, sizeof(db), &store, err);
	if (!ret)
		ret = o->input || o->rate_hz ? open_source(o, &config, &source, err)
					     : open_unnoticed(o, &config, &source, err);
	if (!ret)
		ret = collect(o, source, NULL, db, store, err);
	if (source)
		source->ops->close(source);
	mp_store_close(store);
	return ret;
}

static int run_main(const struct options *o, int *status, struct mp_err *err)
{
	struct md_source_config config = {
		.rate_hz = o->rate_hz ? o->rate_hz : RUN_RATE_HZ,
		.no_kernel = o->no_kernel,
	};
	struct md_source *source = NULL;
	struct mp_store *store = NULL;
	struct md_command command;
	char db[4096];
	int ret;

	ret = open_store(o, db, sizeof(db), &store, err);
	if (ret)
		return ret;
	ret = md_command_start(o->command, &command, err);
	if (ret)
		goto out;
	config.command = command.pid;
	ret = open_source(o, &config, &source, err);
	if (!ret)
		ret = collect(o, source, &command, db, store, err);
	md_command_abandon(&command);
	*status = md_command_status(&command);
out:
	if (source)
		source->ops->close(source);
	mp_store_close(store);
	return ret;
}

int main(int argc, char **argv)
{
	struct options o = {.interval_s = 10};
	struct mp_err err = {{0}};
	int status = 0, ret;

	md_sandbox_reader(argv, md_modread_file);
	mp_stdio_init("morphd");
	argp_err_exit_status = 2;
	o.is_run = argc > 1 && !strcmp(argv[1], "run");
	if (o.is_run) {
		argv[1] = "morphd run";
		/* In order: what follows the command's name is the command's. */
		argp_parse(&run_argp, argc - 1, argv + 1, ARGP_IN_ORDER, NULL, &o);
		mp_stdio_parsed();
		ret = run_main(&o, &status, &err);
	} else {
		argp_parse(&daemon_argp, argc, argv, 0, NULL, &o);
		mp_stdio_parsed();
		ret = daemon_main(&o, &err);
	}
	if (fflush(stdout) && !ret)
		ret = mp_err_set(&err, errno, "standard output: %s", strerror(errno));
	if (ret)
		complain(err.msg);
	return status ? status : ret ? 1 : 0;
}
