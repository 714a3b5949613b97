// SPDX-License-Identifier: Apache-2.0
/* options - the command lines of morphd; see options.h. */
#include "daemon/morphd/options.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/defaults.h"
#include "libprof/cli/options.h"
#include "libprof/note/call_file.h"

#define CONFIG_PATH "/etc/morph/morphd.conf"

#define MP_OPTIONS struct md_options

static void set_config(const struct mp_option *option, void *options, char *arg,
		       struct argp_state *state)
{
	struct md_options *o = options;
	const char *value = arg ? arg : "yes";
	struct mp_err err = {{0}};

	if (option->at == MD_CONFIG_DATABASE && !*value)
		argp_error(state, "--db: the name is empty");
	if (md_config_set(&o->line, (enum md_config_key)option->at, value, &err))
		argp_error(state, "--%s %s: %s", option->name, value, err.msg);
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

/* From 1 to option->high. */
static void set_whole(const struct mp_option *option, void *options, char *arg,
		      struct argp_state *state)
{
	*(uint32_t *)((char *)options + option->at) =
		(uint32_t)whole_number(state, option->name, arg, (long)option->high);
}

static void set_json(const struct mp_option *option, void *options, char *arg,
		     struct argp_state *state)
{
	struct md_options *o = options;

	(void)option, (void)arg, (void)state;
	o->json = o->stats = true;
}

/* ---- --pid, --unit, --user ------------------------------------------------------------------ */

bool md_options_select(const struct md_options *o)
{
	return o->selection.nr_pids || o->selection.nr_units || o->selection.nr_uids;
}

static void add_selection(const struct mp_option *option, void *options, char *arg,
			  struct argp_state *state)
{
	struct md_options *o = options;
	struct md_sample_selection *s = &o->selection;
	struct passwd *user;
	unsigned long uid;
	char *end;

	if (s->nr_pids == MD_SELECTED_MAX || s->nr_units == MD_SELECTED_MAX ||
	    s->nr_uids == MD_SELECTED_MAX)
		argp_error(state, "more than %d processes, units or users", MD_SELECTED_MAX);
	s->pids = o->pids;
	s->units = o->units;
	s->uids = o->uids;
	if (!strcmp(option->name, "pid")) {
		o->pids[s->nr_pids++] = (pid_t)whole_number(state, option->name, arg, INT32_MAX);
	} else if (!strcmp(option->name, "unit")) {
		if (!*arg)
			argp_error(state, "--unit: the name is empty");
		o->units[s->nr_units++] = arg;
	} else {
		uid = strtoul(arg, &end, 10);
		user = getpwnam(arg);
		if (!user && (*end || end == arg || *arg == '-' || uid >= UINT32_MAX))
			argp_error(state, "--user %s: no such user", arg);
		o->uids[s->nr_uids++] = user ? user->pw_uid : (uint32_t)uid;
	}
}

/* ---- tables --------------------------------------------------------------------------------- */

#define CONFIG(name_, letter_, key_, value_, doc_)                                                 \
	{                                                                                          \
		.name = name_, .letter = letter_, .value = value_, .doc = doc_,                    \
		.kind = MP_OPTION_SET, .at = MD_CONFIG_##key_, .set = set_config                   \
	}
#define WHOLE(name_, field, most, value_, doc_)                                                    \
	{                                                                                          \
		.name = name_, .value = value_, .doc = doc_, .kind = MP_OPTION_SET,                \
		.at = MP_AT(field), .high = most, .set = set_whole                                 \
	}

/* clang-format off */
/* The options that both the daemon and `morphd run' have. */
#define SHARED                                                                                     \
	CONFIG("db", 'd', DATABASE, "FILE",                                                        \
	       "the database (default: see morphd(8); none with --record)"),                       \
	CONFIG("interval", 'i', INTERVAL, "SECONDS",                                               \
	       "seconds between two writes to the database (default: 10)"),                        \
	MP_VALUE(TEXT, "record", 'o', record, "FILE", "write the stream of records to FILE"),      \
	CONFIG("no-kernel", 0, NO_KERNEL, NULL, "sample user code only"),                          \
	CONFIG("registers", 0, REGISTERS, "WHAT",                                                  \
	       "take registers with each sample of user code; paths: in programs that number "     \
	       "their paths, they tell the path; branches: they tell the way of the next "         \
	       "branches; no; or auto (default): branches, where the source gives registers"),     \
	{.name = "stacks", .value = "WHEN", .kind = MP_OPTION_SET, .at = MD_CONFIG_STACKS,         \
	 .set = set_config, .optional = true,                                                      \
	 .doc = "find the callers of each sample: yes (as without WHEN), no (default), or auto: "  \
		"at rates at which that costs below 0.4 % of a CPU"},                              \
	MP_FLAG("stats", stats, "at the end, print where time and samples went"),                  \
	MP_SET("json", 0, set_json, NULL, "as --stats, but print JSON")
/* clang-format on */

static const struct mp_option daemon_options[] = {
	MP_VALUE(TEXT, "config", 'c', config, "FILE",
		 "read settings from FILE; command-line options override them"),
	MP_FLAG("check-config", check_config,
		"only check the configuration, and say what is wrong with it"),
	CONFIG("source", 's', SOURCE, "NAME",
	       "kmod, bpf, perf, replay, or auto (replay with --input, else the best)"),
	CONFIG("rate", 'r', RATE, "HZ",
	       "samples per second and CPU (default: measured, below 0.3 %)"),
	MP_VALUE(TEXT, "input", 'I', input, "FILE", "the recording to replay"),
	WHOLE("repeat", nr_repeats, 1e6, "N", NULL),
	MP_FLAG("wait", wait,
		"if sampling is not possible, say what to do, and start once it is; for services"),
	SHARED,
	MP_OPTIONS_END};

static const struct mp_option run_options[] = {
	MP_SET("pid", 0, add_selection, "PID",
	       "sample this running process and all that it starts; may be given again"),
	MP_SET("unit", 0, add_selection, "NAME",
	       "sample a systemd unit, a container (by id), or a /CGROUP with all below it; may be "
	       "given again"),
	MP_SET("user", 0, add_selection, "USER",
	       "sample a user's processes, by name or number; may be given again"),
	CONFIG("source", 's', SOURCE, "NAME",
	       "kmod, bpf, perf, or auto (the best that works here)"),
	CONFIG("rate", 'r', RATE, "HZ", "samples per second of CPU time (default: 4000)"),
	MP_VALUE(
		TEXT, "polls", 0, polls.path, "FILE",
		"ask a polling program which paths it takes; FILE is the one that its --counts named"),
	WHOLE("poll-rate", polls.rate_hz, 10000, "HZ",
	      "with --polls: ask at most HZ times per second (default: 500)"),
	MP_VALUE(TEXT, "calls", 0, calls.path, "FILE",
		 "take the calls that programs with a clock of calls sample; FILE is the one that their "
		 "--counts named"),
	WHOLE("call-period", calls.period, MP_CALL_PERIOD_MAX, "CALLS",
	      "with --calls: one sample for CALLS calls on average (default: 1000)"),
	MP_VALUE(
		TEXT, "audit", 0, audit.path, "FILE",
		"find out which version of each function of an audited program is faster, and let it run "
		"from then on; FILE is the one that its --counts named; without COMMAND: no sampling"),
	MP_NUMBER("alpha", 0, audit.alpha, 1e-9, 0.5, "P",
		  "with --audit: the chance of any wrong verdict is at most P (default: 0.01)"),
	SHARED,
	MP_OPTIONS_END};

/* Do the options fit together? */
static void check(void *options, struct argp_state *state)
{
	struct md_options *o = options;

	if (o->is_run && !o->command && !md_options_select(o) && !o->audit.path)
		argp_error(state, "no command given");
	if (o->audit.path && !o->command && !md_options_select(o) &&
	    (o->record || o->stats || o->polls.path || o->calls.path))
		argp_error(state, "without COMMAND, --audit samples nothing: do not give "
				  "--record, --stats, --json, --polls or --calls");
	if (o->is_run && !strcmp(o->line.source, "replay"))
		argp_error(state, "--source replay: morphd run cannot replay a recording");
	if (o->input && strcmp(o->line.source, "auto") && strcmp(o->line.source, "replay"))
		argp_error(state, "--input is for --source=replay");
	if (!o->input && !strcmp(o->line.source, "replay"))
		argp_error(state, "--source=replay needs --input FILE");
	if (md_options_select(o) && o->polls.path)
		argp_error(state, "--polls asks COMMAND: do not give --pid, --unit or --user");
	if (md_options_select(o) && o->calls.path)
		argp_error(state, "--calls is for COMMAND: do not give --pid, --unit or --user");
	if (o->check_config && !o->config)
		o->config = CONFIG_PATH;
}

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct md_options *o = options;

	if (!o->is_run)
		argp_error(state, "%s: unexpected argument", arg);
	o->command = &state->argv[state->next - 1];
	state->next = state->argc;
}

static const struct mp_usage daemon_usage = {
	.options = daemon_options,
	.arguments = "\nrun [OPTION...] -- COMMAND [ARGUMENT...]",
	.word = take_word,
	.check = check,
	.doc = "Collect samples of what runs, attribute them to modules, store the "
	       "counts.\v`morphd run --help` says how to sample one command. Exit status: 0 "
	       "done, 1 failed, 2 usage; with run, that of the command."};

static const struct mp_usage run_usage = {
	.options = run_options,
	.arguments =
		"-- COMMAND [ARGUMENT...]\n--pid=PID|--unit=NAME|--user=USER [-- COMMAND [ARGUMENT...]]\n--audit=FILE",
	.word = take_word,
	.check = check,
	.in_order = true, /* later options belong to the command */
	.doc = "Sample COMMAND and all that it starts; exit as it does.\v"
	       "With --pid, --unit or --user: sample these, until COMMAND ends, or without one until "
	       "SIGINT, SIGTERM or the end of all processes of --pid."};

void md_options_parse(int argc, char **argv, struct md_options *out)
{
	*out = (struct md_options){.polls = {NULL, MD_PATH_REQUESTS_SAMPLES,
					     MD_PATH_REQUESTS_STRIDE, MD_PATH_REQUESTS_RATE_HZ},
				   .calls = {NULL, MD_CALL_SAMPLES_PERIOD},
				   .audit.alpha = MP_ALPHA};
	md_config_init(&out->line);
	out->is_run = argc > 1 && !strcmp(argv[1], "run");
	if (out->is_run)
		argv[1] = "morphd run";
	mp_options_read(out->is_run ? &run_usage : &daemon_usage, argc - out->is_run,
			argv + out->is_run, out, NULL);
}
