// SPDX-License-Identifier: Apache-2.0
/*
 * morphd - samples what runs, attributes the samples to modules and stores the counts.
 *
 * This file has command lines, signals and messages; the pipeline does the work. Exit status: 0
 * done, 1 failed, 2 usage; `morphd run` exits as its command did.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "daemon/morphd/source_wait.h"
#include "daemon/morphd/choose.h"
#include "daemon/record/clock.h"
#include "daemon/morphd/command.h"
#include "daemon/morphd/config.h"
#include "daemon/morphd/lock.h"
#include "daemon/module/modread.h"
#include "daemon/morphd/notify.h"
#include "daemon/attribute/pipeline.h"
#include "daemon/module/sandbox.h"
#include "daemon/source/source.h"
#include "daemon/morphd/watchdog.h"
#include "daemon/attribute/sample_owner.h"
#include "libprof/note/polls.h"
#include "libprof/cli/rate.h"
#include "libprof/cli/stdio.h"
#include "libprof/store/store.h"

#ifndef MORPH_VERSION
#define MORPH_VERSION "unknown"
#endif

#define UNMEASURED_RATE_HZ 101	/* used if the cost of a sample could not be measured */
#define SELECT_RATE_HZ	   1000 /* on every CPU, of which most samples are dropped */
#define NR_SELECTED_MAX	   64
#define CONFIG_PATH	   "/etc/morph/morphd.conf"

/* Time to read one file. A large file on a slow disk takes seconds. */
#define READ_DEADLINE_MS 10000

/* Time between two checks whether sampling has become possible. */
#define LOOK_NS UINT64_C(5000000000)

/* Exit status that makes systemd restart the unit, so that the device can be opened. */
#define EXIT_START_AGAIN 75

/* Schema of the JSON of --json; it grows if a field changes its meaning. */
#define JSON_SCHEMA 1

const char *argp_program_version = "morphd " MORPH_VERSION;

enum option_key {
	OPT_STATS = 256,
	OPT_JSON,
	OPT_REPEAT,
	OPT_FOREGROUND,
	OPT_NO_KERNEL,
	OPT_REGISTERS,
	OPT_POLLS,
	OPT_POLL_WINDOW,
	OPT_POLL_RATE,
	OPT_CHECK_CONFIG,
	OPT_WAIT,
	OPT_PID,
	OPT_UNIT,
	OPT_USER
};

struct options {
	struct md_config line; /* settings from the command line */
	const char *config, *record, *input;
	struct md_path_requests_config polls; /* @path NULL: no program is polled */
	uint32_t nr_repeats;
	bool stats, json, check_config, wait;
	bool is_run;
	char **command;
	/* --pid, --unit, --user: the samples to keep */
	struct md_sample_selection selection;
	pid_t pids[NR_SELECTED_MAX];
	const char *units[NR_SELECTED_MAX];
	uint32_t uids[NR_SELECTED_MAX];
};

static const struct argp_option daemon_options[] = {
	{"config", 'c', "FILE", 0, "read settings from FILE; command-line options override them",
	 0},
	{"check-config", OPT_CHECK_CONFIG, NULL, 0,
	 "only check the configuration, and say what is wrong with it", 0},
	{"source", 's', "NAME", 0,
	 "kmod, bpf, perf, replay, or auto (replay with --input, else the best)", 0},
	{"db", 'd', "FILE", 0, "the database (default: see morphd(8); none with --record)", 0},
	{"rate", 'r', "HZ", 0, "samples per second and CPU (default: measured, below 0.3 %)", 0},
	{"interval", 'i', "SECONDS", 0, "seconds between two writes to the database (default: 10)",
	 0},
	{"record", 'o', "FILE", 0, "write the stream of records to FILE", 0},
	{"input", 'I', "FILE", 0, "the recording to replay", 0},
	{"repeat", OPT_REPEAT, "N", 0, "replay the recording N times, each under new process ids",
	 0},
	{"no-kernel", OPT_NO_KERNEL, NULL, 0, "sample user code only", 0},
	{"registers", OPT_REGISTERS, "WHAT", 0,
	 "paths: record registers with each sample of user code; in programs that number their "
	 "paths, they tell the path; or no (default)",
	 0},
	{"wait", OPT_WAIT, NULL, 0,
	 "if sampling is not possible, say what to do, and start once it is; for services", 0},
	{"foreground", OPT_FOREGROUND, NULL, 0, "do not detach (morphd never does)", 0},
	{"stats", OPT_STATS, NULL, 0, "at the end, print where time and samples went", 0},
	{"json", OPT_JSON, NULL, 0, "as --stats, but print JSON", 0},
	{0}};

static const struct argp_option run_options[] = {
	{"pid", OPT_PID, "PID", 0,
	 "sample this running process and all that it starts; may be given again", 0},
	{"unit", OPT_UNIT, "NAME", 0,
	 "sample a systemd unit, a container (by id), or a /CGROUP with all below it; may be "
	 "given again",
	 0},
	{"user", OPT_USER, "USER", 0,
	 "sample a user's processes, by name or number; may be given again", 0},
	{"source", 's', "NAME", 0, "kmod, bpf, perf, or auto (the best that works here)", 0},
	{"db", 'd', "FILE", 0, "the database (default: see morphd(8); none with --record)", 0},
	{"rate", 'r', "HZ", 0, "samples per second of CPU time (default: 4000)", 0},
	{"interval", 'i', "SECONDS", 0, "seconds between two writes to the database (default: 10)",
	 0},
	{"record", 'o', "FILE", 0, "write the stream of records to FILE", 0},
	{"no-kernel", OPT_NO_KERNEL, NULL, 0, "sample user code only", 0},
	{"registers", OPT_REGISTERS, "WHAT", 0,
	 "paths: record registers with each sample of user code; in programs that number their "
	 "paths, they tell the path; or no (default)",
	 0},
	{"polls", OPT_POLLS, "FILE", 0,
	 "ask a polling program which paths it takes; FILE is the one that its --counts named", 0},
	{"poll-window", OPT_POLL_WINDOW, "SAMPLES,STRIDE", 0,
	 "with --polls: skip up to STRIDE - 1 paths, then take SAMPLES paths (default: 64,17)", 0},
	{"poll-rate", OPT_POLL_RATE, "HZ", 0,
	 "with --polls: ask at most HZ times per second (default: 500)", 0},
	{"stats", OPT_STATS, NULL, 0, "at the end, print where time and samples went", 0},
	{"json", OPT_JSON, NULL, 0, "as --stats, but print JSON", 0},
	{0}};

static void set(struct argp_state *state, enum md_config_key key, const char *value)
{
	static const char *const names[MD_NR_CONFIG] = {"source",    "rate", "interval",
							"no-kernel", "db",   "registers"};
	struct options *o = state->input;
	struct mp_err err = {{0}};

	if (md_config_set(&o->line, key, value, &err))
		argp_error(state, "--%s %s: %s", names[key], value, err.msg);
}

static long whole_number(struct argp_state *state, const char *option, const char *text, long most)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < 1 || value > most)
		argp_error(state, "--%s %s: not a whole number from 1 to %ld", option, text, most);
	return value;
}

static void set_window(struct argp_state *state, const char *text)
{
	struct options *o = state->input;
	unsigned int samples, stride;
	int end = 0;

	if (sscanf(text, "%4u,%4u%n", &samples, &stride, &end) != 2 || text[end] || !samples ||
	    !stride || samples + stride - 1 > MP_POLLS_MAX)
		argp_error(state, "--poll-window %s: not two numbers, at most %d paths in all",
			   text, MP_POLLS_MAX);
	o->polls.samples = samples;
	o->polls.stride = stride;
}

/* Return: true if --pid, --unit or --user was given. */
static bool selects(const struct options *o)
{
	return o->selection.nr_pids || o->selection.nr_units || o->selection.nr_uids;
}

static void add_selection(struct argp_state *state, int key, const char *arg)
{
	struct options *o = state->input;
	struct md_sample_selection *s = &o->selection;
	struct passwd *user;
	char *end;

	if (s->nr_pids == NR_SELECTED_MAX || s->nr_units == NR_SELECTED_MAX ||
	    s->nr_uids == NR_SELECTED_MAX)
		argp_error(state, "more than %d processes, units or users", NR_SELECTED_MAX);
	s->pids = o->pids;
	s->units = o->units;
	s->uids = o->uids;
	if (key == OPT_PID) {
		o->pids[s->nr_pids++] = (pid_t)whole_number(state, "pid", arg, INT32_MAX);
	} else if (key == OPT_UNIT) {
		if (!*arg)
			argp_error(state, "--unit: the name is empty");
		o->units[s->nr_units++] = arg;
	} else {
		unsigned long uid = strtoul(arg, &end, 10);

		user = getpwnam(arg);
		if (!user && (*end || end == arg || *arg == '-' || uid >= UINT32_MAX))
			argp_error(state, "--user %s: no such user", arg);
		o->uids[s->nr_uids++] = user ? user->pw_uid : (uint32_t)uid;
	}
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 's':
		set(state, MD_CONFIG_SOURCE, arg);
		if (o->is_run && !strcmp(arg, "replay"))
			argp_error(state, "--source replay: morphd run cannot replay a recording");
		return 0;
	case 'c': o->config = arg; return 0;
	case 'd': set(state, MD_CONFIG_DATABASE, arg); return 0;
	case 'r': set(state, MD_CONFIG_RATE, arg); return 0;
	case 'i': set(state, MD_CONFIG_INTERVAL, arg); return 0;
	case 'o': o->record = arg; return 0;
	case 'I': o->input = arg; return 0;
	case OPT_REPEAT: o->nr_repeats = whole_number(state, "repeat", arg, 1000000); return 0;
	case OPT_NO_KERNEL: set(state, MD_CONFIG_NO_KERNEL, "yes"); return 0;
	case OPT_REGISTERS: set(state, MD_CONFIG_REGISTERS, arg); return 0;
	case OPT_POLLS: o->polls.path = arg; return 0;
	case OPT_POLL_WINDOW: set_window(state, arg); return 0;
	case OPT_POLL_RATE:
		o->polls.rate_hz = whole_number(state, "poll-rate", arg, 10000);
		return 0;
	case OPT_PID:
	case OPT_UNIT:
	case OPT_USER: add_selection(state, key, arg); return 0;
	case OPT_CHECK_CONFIG: o->check_config = true; return 0;
	case OPT_WAIT: o->wait = true; return 0;
	case OPT_FOREGROUND: return 0;
	case OPT_JSON: o->json = true; /* fall through */
	case OPT_STATS: o->stats = true; return 0;
	case ARGP_KEY_ARG:
		if (!o->is_run)
			argp_error(state, "%s: unexpected argument", arg);
		o->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (o->is_run && !o->command && !selects(o))
			argp_error(state, "no command given");
		if (o->input && strcmp(o->line.source, "auto") && strcmp(o->line.source, "replay"))
			argp_error(state, "--input is for --source=replay");
		if (!o->input && !strcmp(o->line.source, "replay"))
			argp_error(state, "--source=replay needs --input FILE");
		if (selects(o) && o->polls.path)
			argp_error(state,
				   "--polls asks COMMAND: do not give --pid, --unit or --user");
		if (o->check_config && !o->config)
			o->config = CONFIG_PATH;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp daemon_argp = {
	.options = daemon_options,
	.parser = parse_option,
	.args_doc = "\nrun [OPTION...] -- COMMAND [ARGUMENT...]",
	.doc = "Collect samples of what runs, attribute them to modules, store the "
	       "counts.\v`morphd run --help` says how to sample one command. Exit status: 0 "
	       "done, 1 failed, 2 usage; with run, that of the command.",
};

static const struct argp run_argp = {
	.options = run_options,
	.parser = parse_option,
	.args_doc =
		"-- COMMAND [ARGUMENT...]\n--pid=PID|--unit=NAME|--user=USER [-- COMMAND [ARGUMENT...]]",
	.doc = "Sample COMMAND and all that it starts; exit as it does.\v"
	       "With --pid, --unit or --user: sample these, until COMMAND ends, or without one until "
	       "SIGINT, SIGTERM or the end of all processes of --pid.",
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
	printf("  between modules    %12" PRIu64 "\n", b->cross_module);
	printf("  in no module       %12" PRIu64 "\n", b->unmapped);
	printf("  no memory          %12" PRIu64 "\n", b->table_full);
	printf("not in the original  %12" PRIu64 "\n", b->moved);
}

static uint64_t nr_with_registers(const struct mp_ledger *ledger)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < MP_NR_PATH_FATES; i++)
		sum += ledger->paths[i];
	return sum;
}

static void print_paths(const struct mp_ledger *ledger)
{
	int i;

	printf("with path numbers    %12" PRIu64 "\n", nr_with_registers(ledger));
	for (i = 0; i < MP_NR_PATH_FATES; i++)
		printf("  %-18s %12" PRIu64 "\n", mp_path_fate_name(i), ledger->paths[i]);
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
	int i;

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
		printf(" \"paths\": {");
		for (i = 0; i < MP_NR_PATH_FATES; i++)
			printf("%s\"%s\": %" PRIu64, i ? ", " : "", mp_path_fate_name(i),
			       t->paths[i]);
		printf("},\n");
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
	if (nr_with_registers(t))
		print_paths(t);
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

/* ---- signals ------------------------------------------------------------------------------ */

static volatile sig_atomic_t stop_asked, reload_asked;

static void on_stop(int sig)
{
	(void)sig;
	stop_asked = 1;
}

static void on_reload(int sig)
{
	(void)sig;
	reload_asked = 1;
}

static void catch_signals(void)
{
	struct sigaction stop = {.sa_handler = on_stop};
	struct sigaction reload = {.sa_handler = on_reload};
	struct sigaction now;

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	/* A SIGHUP that nohup ignores stays ignored. */
	if (!sigaction(SIGHUP, NULL, &now) && now.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &reload, NULL);
}

/* ---- the database ------------------------------------------------------------------------- */

struct database {
	char path[4096]; /* "": nothing is stored */
	struct md_lock lock;
	struct mp_store *store;
};

/* The service has the default database open, so root's commands use another one. */
static int open_beside(struct database *db, struct mp_err *err)
{
	char service[sizeof(db->path)];
	int ret;

	memcpy(service, db->path, sizeof(service));
	ret = mp_store_own_path(db->path, sizeof(db->path), true, err);
	/* Ordinary users have their own default database. */
	if (!ret && !strcmp(db->path, service))
		return md_lock_take(db->path, true, &db->lock, err);
	if (!ret)
		ret = md_lock_take(db->path, true, &db->lock, err);
	if (!ret)
		fprintf(stderr,
			"morphd: the running service uses %s: the samples go to another "
			"database; see them with: morph-stats query --db=%s\n",
			service, db->path);
	return ret;
}

static int open_database(const struct options *o, const struct md_config *config,
			 struct database *db, struct mp_err *err)
{
	int ret = 0;

	*db = (struct database){.lock.fd = -1};
	if (!config->database[0] && o->record)
		return 0;
	if (config->database[0])
		memcpy(db->path, config->database, sizeof(db->path));
	else
		ret = mp_store_default_path(db->path, sizeof(db->path), true, err);
	if (!ret)
		ret = md_lock_take(db->path, o->is_run, &db->lock, err);
	if (ret == -EBUSY && o->is_run && !config->database[0] && !getenv("MORPH_DB"))
		ret = open_beside(db, err);
	if (!ret)
		ret = mp_store_open(db->path, MP_STORE_WRITE, &db->store, err);
	return ret;
}

static void close_database(struct database *db)
{
	mp_store_close(db->store);
	md_lock_release(&db->lock);
}

static void format_time(int64_t when_s, char *text, size_t size)
{
	time_t when = when_s;
	struct tm tm;

	if (!gmtime_r(&when, &tm) || !strftime(text, size, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(text, size, "%" PRId64, when_s);
}

/* Logs whether the last run ended properly, and what the database contains. */
static int say_found(const struct database *db, struct mp_err *err)
{
	struct mp_session *sessions;
	char first[32], last[32];
	size_t nr;
	int ret;

	if (!db->store)
		return 0;
	ret = mp_store_list_sessions(db->store, &sessions, &nr, err);
	if (ret)
		return ret;
	if (!nr) {
		fprintf(stderr, "morphd: %s: the database is empty\n", db->path);
	} else {
		format_time(sessions[0].start_s, first, sizeof(first));
		format_time(sessions[0].last_s, last, sizeof(last));
		fprintf(stderr,
			"morphd: %s: session %zu begins; the last one, by %s, from %s to %s UTC, "
			"has %" PRIu64 " samples\n",
			db->path, nr + 1, sessions[0].collector, first, last,
			sessions[0].ledger.emitted);
		if (db->lock.unclean_pid)
			fprintf(stderr,
				"morphd: the last morphd (process %d) did not shut down "
				"properly: its samples after %s UTC are lost\n",
				(int)db->lock.unclean_pid, last);
	}
	free(sessions);
	return 0;
}

/* ---- sources ------------------------------------------------------------------------------ */

/* Return: the source; NULL for "auto": the best one that works. */
static const struct md_source_ops *asked_source(const char *input, const char *source)
{
	if (input)
		return &md_source_replay;
	return strcmp(source, "auto") ? md_source_find(source) : NULL;
}

static int open_source(const char *source, const struct md_source_config *config,
		       struct md_source **out, struct mp_err *err)
{
	const struct md_source_ops *ops = asked_source(config->input, source);

	return ops ? ops->open(config, out, err) : md_choose_source(config, out, err);
}

/*
 * Chooses a rate whose cost is negligible. The cost of a sample is measured first, on this
 * process, with the source that will collect.
 */
static int open_unnoticed(const char *source, struct md_source_config *config,
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
	if (open_source(source, &mine, &probe, err))
		/* its error message says what is missing */
		return open_source(source, config, out, err);
	ret = md_choose_measure(probe, &cost, err);
	if (ret) {
		snprintf(choice, sizeof(choice), "%s", probe->choice);
		fprintf(stderr, "morphd: what a sample costs cannot be measured: %s\n", err->msg);
	} else {
		config->rate_hz = probe->fixed_hz ? probe->fixed_hz : md_choose_rate(&cost);
		md_choose_describe(&cost, config->rate_hz, probe->choice, choice, sizeof(choice));
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

static int open_daemon_source(const struct options *o, const struct md_config *config,
			      struct md_source **out, struct mp_err *err)
{
	struct md_source_config asked = {
		.rate_hz = config->rate_hz,
		.no_kernel = config->no_kernel,
		.registers = config->registers,
		.input = o->input,
		.nr_repeats = o->nr_repeats,
	};

	return o->input || config->rate_hz ? open_source(config->source, &asked, out, err)
					   : open_unnoticed(config->source, &asked, out, err);
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
 * A live source's files are read in a sandbox. root must have one, else morphd does not start.
 * For an ordinary user, whose own files are no more dangerous here than elsewhere, it is
 * optional.
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

/*
 * Does everything between opening the source and the last flush. @work: runs the pipeline, with
 * pl->arg. The caller closes pl->source, which @work may have replaced.
 */
static int collect(const struct options *o, struct md_pipeline *pl, const struct database *db,
		   int (*work)(struct md_pipeline *pl, struct mp_err *err), struct mp_err *err)
{
	struct mp_err unconfined = {{0}};
	struct md_recfile_info info;
	const char *remark;
	int ret, close_ret;

	pl->store = db->store;
	md_source_describe(pl->source, &info);
	ret = open_sandbox(pl, &unconfined, err);
	if (!ret && o->record)
		ret = md_recwriter_open(o->record, &info, &pl->writer, err);
	if (!ret)
		ret = md_pipeline_init(pl, err);
	if (!ret) {
		ret = work(pl, err);
		remark = pl->source ? pl->source->ops->remark(pl->source) : NULL;
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
		report(pl, db->path, o->record);
	md_pipeline_fini(pl);
	md_sandbox_close(pl->sandbox);
	return ret;
}

/* ---- the daemon --------------------------------------------------------------------------- */

struct daemon {
	const struct options *o;
	struct md_config config; /* in force */
	struct md_config next;	 /* read at SIGHUP, to be used if @change */
	/* the source or the rate changes: store the collected samples first */
	bool change;
	bool restart;		   /* only a restart can open the device that appeared */
	char missing[MP_ERR_SIZE]; /* why sampling is impossible, while morphd waits */
	struct md_watchdog watchdog;
	struct md_pipeline pl;
};

static int load_config(const struct options *o, struct md_config *out, struct mp_err *err)
{
	int ret = 0;

	md_config_init(out);
	if (o->config)
		ret = md_config_read(o->config, out, err);
	if (!ret)
		md_config_override(out, &o->line);
	return ret;
}

static void notify_status(const struct daemon *d, const char *state)
{
	const struct md_pipeline *pl = &d->pl;
	struct md_recfile_info info;

	if (!pl->source) {
		md_notify("%sSTATUS=not collecting: %s", state, d->missing);
		return;
	}
	md_source_describe(pl->source, &info);
	md_notify("%sSTATUS=%s, %u Hz: %" PRIu64 " samples of %zu modules, %" PRIu64 " lost", state,
		  pl->source->ops->name, info.rate_hz,
		  pl->total.emitted - md_ledger_lost(&pl->total), md_pipeline_nr_modules(pl),
		  md_ledger_lost(&pl->total));
}

static void daemon_warn(void *arg, const char *message)
{
	char line[256];
	size_t i;

	(void)arg;
	complain(message);
	/* A file name may contain a newline, and systemd would interpret the text behind it. */
	snprintf(line, sizeof(line), "%s", message);
	for (i = 0; line[i]; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = '?';
	md_notify("STATUS=%s", line);
}

static void daemon_flushed(void *arg)
{
	notify_status(arg, "");
}

static void daemon_step(void *arg)
{
	struct daemon *d = arg;

	md_watchdog_step(&d->watchdog);
}

/* Takes over the new configuration as a whole, or keeps the old one. */
static void reload(struct daemon *d)
{
	const struct options *o = d->o;
	struct mp_err err = {{0}};
	int ret = 0;

	md_notify("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, md_clock_now_ns() / 1000);
	if (!o->config)
		ret = mp_err_set(&err, ENOENT,
				 "SIGHUP: without --config there is no "
				 "configuration to read again");
	if (!ret)
		ret = load_config(o, &d->next, &err);
	if (!ret && strcmp(d->next.database, d->config.database))
		ret = mp_err_set(&err, EBUSY,
				 "%.100s: the database cannot change while morphd runs", o->config);
	if (!ret && d->pl.source && md_config_needs_source(&d->config, &d->next)) {
		if (o->record || o->input)
			ret = mp_err_set(&err, EBUSY,
					 "%.100s: source and rate cannot change within a recording",
					 o->config);
		else
			d->change = true;
	}
	if (ret) {
		complain(err.msg);
		complain("the old settings stay in force");
		notify_status(d, "READY=1\n");
	} else if (!d->change) {
		d->config = d->next;
		d->pl.interval_s = d->config.interval_s;
		fprintf(stderr, "morphd: %s: read again\n", o->config);
		notify_status(d, "READY=1\n");
	}
}

static bool daemon_should_stop(void *arg)
{
	struct daemon *d = arg;

	if (reload_asked && !stop_asked) {
		reload_asked = 0;
		reload(d);
	}
	return stop_asked || d->change;
}

/*
 * The promised share excludes the start: reading all processes takes a second of processor time
 * per thousand processes with many mappings each.
 */
static void say_start(void)
{
	fprintf(stderr,
		"morphd: starting took %.2f s of processor time, not counted in that share: to "
		"measure the cost of a sample and to look at running processes\n",
		(double)md_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
}

/* Sleeps until the next check. A signal ends it, even one that came just before. */
static void nap(const struct daemon *d)
{
	uint64_t ns = LOOK_NS;
	struct timespec left;
	sigset_t stop, before;

	if (d->watchdog.pause_ns && d->watchdog.pause_ns < ns)
		ns = d->watchdog.pause_ns;
	left = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGHUP);
	sigprocmask(SIG_BLOCK, &stop, &before);
	if (!stop_asked && !reload_asked)
		ppoll(NULL, 0, &left, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Reports a reason only once. */
static void say_missing(struct daemon *d, const char *why)
{
	if (strcmp(d->missing, why)) {
		snprintf(d->missing, sizeof(d->missing), "%s", why);
		fprintf(stderr, "morphd: not collecting: %s\n", why);
		fprintf(stderr, "morphd: collecting starts by itself once it is possible\n");
	}
	notify_status(d, "READY=1\n");
}

/*
 * With --wait, tries again until a source opens. Return: 0 with d->pl.source, or without one if
 * morphd is to end; -errno without --wait.
 */
static int open_or_wait(struct daemon *d, struct mp_err *err)
{
	struct md_source_wait wait;
	int ret = open_daemon_source(d->o, &d->config, &d->pl.source, err);

	if (!ret || !d->o->wait || d->o->input)
		return ret;
	md_source_wait_start(&wait);
	say_missing(d, err->msg);
	while (!stop_asked) {
		bool reloaded = reload_asked;

		reload_asked = 0;
		if (reloaded)
			reload(d);
		if (reloaded || md_source_wait_is_due(&wait)) {
			ret = open_daemon_source(d->o, &d->config, &d->pl.source, err);
			d->restart = ret && md_source_wait_needs_restart(&wait);
			if (!ret || d->restart)
				break;
			md_source_wait_failed(&wait);
			say_missing(d, err->msg);
		}
		md_watchdog_step(&d->watchdog);
		nap(d);
	}
	if (!d->pl.source)
		md_notify("STOPPING=1");
	d->missing[0] = 0;
	return 0;
}

/*
 * The old source's counts are in the database. Close it first, because a device may have only
 * one reader.
 */
static int change_source(struct daemon *d, struct mp_err *err)
{
	const char *remark = d->pl.source->ops->remark(d->pl.source);
	int ret;

	if (remark)
		complain(remark);
	d->pl.source->ops->close(d->pl.source);
	d->pl.source = NULL;
	ret = open_daemon_source(d->o, &d->next, &d->pl.source, err);
	if (ret) {
		complain(err->msg);
		complain("the old source stays in use");
		ret = open_or_wait(d, err);
	} else {
		d->config = d->next;
		fprintf(stderr, "morphd: %s: read again; the source is new\n", d->o->config);
	}
	if (ret || !d->pl.source)
		return ret;
	d->pl.interval_s = d->config.interval_s;
	ret = md_pipeline_change(&d->pl, d->pl.source, err);
	if (!ret)
		notify_status(d, "READY=1\n");
	return ret;
}

static int daemon_work(struct md_pipeline *pl, struct mp_err *err)
{
	struct daemon *d = pl->arg;
	int ret;

	notify_status(d, "READY=1\n");
	for (;;) {
		ret = md_pipeline_run(pl, err);
		if (stop_asked || !d->change)
			break;
		d->change = false;
		if (!ret) {
			ret = change_source(d, err);
		} else if (ret == -ENOSPC || ret == -EBUSY || ret == -ENOMEM) {
			/*
			 * A temporary failure, such as a full disk: keep the counts and the old
			 * source.
			 */
			complain(err->msg);
			complain("the old settings stay in force");
			notify_status(d, "READY=1\n");
			ret = 0;
		}
		if (ret || !pl->source)
			break;
	}
	md_notify("STOPPING=1");
	return ret;
}

static int daemon_main(const struct options *o, int *status, struct mp_err *err)
{
	struct daemon *d = calloc(1, sizeof(*d));
	struct database db = {.lock.fd = -1};
	int ret;

	if (!d)
		return mp_err_set(err, ENOMEM, "no memory");
	catch_signals();
	d->o = o;
	ret = load_config(o, &d->config, err);
	if (ret || o->check_config) {
		*status = ret ? 2 : 0;
		free(d);
		return ret;
	}
	md_watchdog_init(&d->watchdog);
	ret = open_database(o, &d->config, &db, err);
	if (!ret && !o->input)
		ret = say_found(&db, err);
	if (!ret)
		ret = open_or_wait(d, err);
	if (!ret && d->pl.source) {
		if (!o->input && !d->config.rate_hz)
			say_start();
		d->pl.interval_s = d->config.interval_s;
		d->pl.should_stop = daemon_should_stop;
		d->pl.warn = daemon_warn;
		d->pl.flushed = daemon_flushed;
		d->pl.step = daemon_step;
		d->pl.arg = d;
		ret = collect(o, &d->pl, &db, daemon_work, err);
	}
	if (d->pl.source)
		d->pl.source->ops->close(d->pl.source);
	if (!ret && d->restart)
		*status = EXIT_START_AGAIN;
	free(d);
	close_database(&db);
	return ret;
}

/* ---- one command -------------------------------------------------------------------------- */

struct run {
	struct md_command command;
	const char *name;
	const struct md_path_requests_config *polls; /* without a path: no polling */
	const struct options *o;
	const struct md_pipeline *pl;
};

static bool run_should_stop(void *arg)
{
	struct run *run = arg;

	if (run->name)
		return md_command_has_ended(&run->command);
	return stop_asked ||
	       (run->o->selection.nr_pids && !run->o->selection.nr_units &&
		!run->o->selection.nr_uids && !md_sample_owner_any_alive(run->pl->flush.owner));
}

static int run_work(struct md_pipeline *pl, struct mp_err *err)
{
	struct run *run = pl->arg;
	int ret = run->polls->path ? md_path_requests_start(run->polls, &pl->polls, err) : 0;
	const char *remark;

	if (!ret && run->name)
		ret = md_command_go(&run->command, run->name, err);
	if (!ret)
		ret = md_pipeline_run(pl, err);
	remark = !ret && pl->polls ? md_path_requests_remark(pl->polls) : NULL;
	if (remark)
		complain(remark);
	md_path_requests_stop(pl->polls);
	pl->polls = NULL;
	return ret;
}

/* A process of --pid must exist. A unit of --unit may start later. */
static int check_pids(const struct options *o, struct mp_err *err)
{
	for (size_t i = 0; i < o->selection.nr_pids; i++)
		if (kill(o->pids[i], 0) && errno == ESRCH)
			return mp_err_set(err, ESRCH, "--pid %d: no such process", (int)o->pids[i]);
	return 0;
}

/* Samples the whole machine; samples that were not selected are dropped later. */
static int open_selecting(const struct options *o, struct md_source_config *config,
			  struct md_source **out, struct mp_err *err)
{
	struct mp_err inner = {{0}};
	int ret = open_source(o->line.source, config, out, &inner);

	if (!ret)
		return 0;
	return mp_err_set(err, -ret, "--pid, --unit and --user sample the whole machine: %s",
			  inner.msg);
}

static int run_main(const struct options *o, int *status, struct mp_err *err)
{
	bool selecting = selects(o);
	struct md_source_config config = {
		.rate_hz = o->line.rate_hz ? o->line.rate_hz
			   : selecting	   ? SELECT_RATE_HZ
					   : MP_RUN_RATE_HZ,
		.no_kernel = o->line.no_kernel,
		.registers = o->line.registers,
	};
	struct md_pipeline *pl = calloc(1, sizeof(*pl));
	struct run run = {
		.name = o->command ? o->command[0] : NULL, .polls = &o->polls, .o = o, .pl = pl};
	struct database db = {.lock.fd = -1};
	int ret;

	ret = pl ? check_pids(o, err) : mp_err_set(err, ENOMEM, "no memory");
	if (!ret)
		ret = open_database(o, &o->line, &db, err);
	if (ret)
		goto out;
	if (run.name)
		ret = md_command_start(o->command, &run.command, err);
	else
		catch_signals();
	if (ret)
		goto out;
	if (!selecting)
		config.command = run.command.pid;
	ret = selecting ? open_selecting(o, &config, &pl->source, err)
			: open_source(o->line.source, &config, &pl->source, err);
	if (!ret) {
		pl->interval_s = o->line.interval_s;
		pl->should_stop = run_should_stop;
		pl->selection = selecting ? &o->selection : NULL;
		pl->warn = warn;
		pl->arg = &run;
		ret = collect(o, pl, &db, run_work, err);
	}
	if (run.name) {
		md_command_abandon(&run.command);
		*status = md_command_status(&run.command);
	}
out:
	if (pl && pl->source)
		pl->source->ops->close(pl->source);
	free(pl);
	close_database(&db);
	return ret;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct mp_err err = {{0}};
	int status = 0, ret;

	md_sandbox_reader(argv, md_modread_file);
	mp_stdio_init("morphd");
	argp_err_exit_status = 2;
	md_config_init(&o.line);
	o.polls = (struct md_path_requests_config){
		NULL, MD_PATH_REQUESTS_SAMPLES, MD_PATH_REQUESTS_STRIDE, MD_PATH_REQUESTS_RATE_HZ};
	o.is_run = argc > 1 && !strcmp(argv[1], "run");
	if (o.is_run) {
		argv[1] = "morphd run";
		/* Stop at the command's name: later options belong to the command. */
		argp_parse(&run_argp, argc - 1, argv + 1, ARGP_IN_ORDER, NULL, &o);
		mp_stdio_parsed();
		ret = run_main(&o, &status, &err);
	} else {
		argp_parse(&daemon_argp, argc, argv, 0, NULL, &o);
		mp_stdio_parsed();
		ret = daemon_main(&o, &status, &err);
	}
	if (fflush(stdout) && !ret)
		ret = mp_err_set(&err, errno, "standard output: %s", strerror(errno));
	if (ret)
		complain(err.msg);
	return status ? status : ret ? 1 : 0;
}
