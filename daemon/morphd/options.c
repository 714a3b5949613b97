// SPDX-License-Identifier: Apache-2.0
/* options - the command lines of morphd; see options.h. */
#include "daemon/morphd/options.h"

#include <argp.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/audit/program_audit.h"
#include "libprof/cli/args.h"
#include "libprof/cli/stdio.h"
#include "libprof/note/call_file.h"
#include "libprof/note/polls.h"

#define CONFIG_PATH "/etc/morph/morphd.conf"

enum option_key {
	OPT_STATS = 256,
	OPT_JSON,
	OPT_REPEAT,
	OPT_NO_KERNEL,
	OPT_REGISTERS,
	OPT_STACKS,
	OPT_POLLS,
	OPT_POLL_WINDOW,
	OPT_POLL_RATE,
	OPT_CALLS,
	OPT_CALL_PERIOD,
	OPT_AUDIT,
	OPT_ALPHA,
	OPT_CHECK_CONFIG,
	OPT_WAIT,
	OPT_PID,
	OPT_UNIT,
	OPT_USER
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
	{"repeat", OPT_REPEAT, "N", OPTION_HIDDEN, NULL, 0},
	{"no-kernel", OPT_NO_KERNEL, NULL, 0, "sample user code only", 0},
	{"registers", OPT_REGISTERS, "WHAT", 0,
	 "take registers with each sample of user code; paths: in programs that number their paths, "
	 "they tell the path; branches: they tell the way of the next branches; no; or auto "
	 "(default): branches, where the source gives registers",
	 0},
	{"stacks", OPT_STACKS, "WHEN", OPTION_ARG_OPTIONAL,
	 "find the callers of each sample: yes (as without WHEN), no (default), or auto: at rates "
	 "at which that costs below 0.4 % of a CPU",
	 0},
	{"wait", OPT_WAIT, NULL, 0,
	 "if sampling is not possible, say what to do, and start once it is; for services", 0},
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
	 "take registers with each sample of user code; paths: in programs that number their paths, "
	 "they tell the path; branches: they tell the way of the next branches; no; or auto "
	 "(default): branches, where the source gives registers",
	 0},
	{"stacks", OPT_STACKS, "WHEN", OPTION_ARG_OPTIONAL,
	 "find the callers of each sample: yes (as without WHEN), no (default), or auto: at rates "
	 "at which that costs below 0.4 % of a CPU",
	 0},
	{"polls", OPT_POLLS, "FILE", 0,
	 "ask a polling program which paths it takes; FILE is the one that its --counts named", 0},
	{"poll-window", OPT_POLL_WINDOW, "SAMPLES,STRIDE", 0,
	 "with --polls: skip up to STRIDE - 1 paths, then take SAMPLES paths (default: 64,17)", 0},
	{"poll-rate", OPT_POLL_RATE, "HZ", 0,
	 "with --polls: ask at most HZ times per second (default: 500)", 0},
	{"calls", OPT_CALLS, "FILE", 0,
	 "take the calls that programs with a clock of calls sample; FILE is the one that their "
	 "--counts named",
	 0},
	{"call-period", OPT_CALL_PERIOD, "CALLS", 0,
	 "with --calls: one sample for CALLS calls on average (default: 1000)", 0},
	{"audit", OPT_AUDIT, "FILE", 0,
	 "find out which version of each function of an audited program is faster, and let it run "
	 "from then on; FILE is the one that its --counts named; without COMMAND: no sampling",
	 0},
	{"alpha", OPT_ALPHA, "P", 0,
	 "with --audit: the chance of any wrong verdict is at most P (default: 0.01)", 0},
	{"stats", OPT_STATS, NULL, 0, "at the end, print where time and samples went", 0},
	{"json", OPT_JSON, NULL, 0, "as --stats, but print JSON", 0},
	{0}};

static void set(struct argp_state *state, enum md_config_key key, const char *value)
{
	static const char *const names[MD_NR_CONFIG] = {
		"source", "rate", "interval", "no-kernel", "db", "registers", "stacks"};
	struct md_options *o = state->input;
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
	struct md_options *o = state->input;
	unsigned int samples, stride;
	int end = 0;

	if (sscanf(text, "%4u,%4u%n", &samples, &stride, &end) != 2 || text[end] || !samples ||
	    !stride || samples + stride - 1 > MP_POLLS_MAX)
		argp_error(state, "--poll-window %s: not two numbers, at most %d paths in all",
			   text, MP_POLLS_MAX);
	o->polls.samples = samples;
	o->polls.stride = stride;
}

static double chance(struct argp_state *state, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 1e-9 && value <= 0.5))
		argp_error(state, "--alpha %s: not a number from 1e-9 to 0.5", text);
	return value;
}

bool md_options_select(const struct md_options *o)
{
	return o->selection.nr_pids || o->selection.nr_units || o->selection.nr_uids;
}

static void add_selection(struct argp_state *state, int key, const char *arg)
{
	struct md_options *o = state->input;
	struct md_sample_selection *s = &o->selection;
	struct passwd *user;
	char *end;

	if (s->nr_pids == MD_SELECTED_MAX || s->nr_units == MD_SELECTED_MAX ||
	    s->nr_uids == MD_SELECTED_MAX)
		argp_error(state, "more than %d processes, units or users", MD_SELECTED_MAX);
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

/* Do the options fit together? */
static void check_together(struct argp_state *state, struct md_options *o)
{
	if (o->is_run && !o->command && !md_options_select(o) && !o->audit.path)
		argp_error(state, "no command given");
	if (o->audit.path && !o->command && !md_options_select(o) &&
	    (o->record || o->stats || o->polls.path || o->calls.path))
		argp_error(state, "without COMMAND, --audit samples nothing: do not give "
				  "--record, --stats, --json, --polls or --calls");
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

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct md_options *o = state->input;

	switch (key) {
	case 's':
		set(state, MD_CONFIG_SOURCE, arg);
		if (o->is_run && !strcmp(arg, "replay"))
			argp_error(state, "--source replay: morphd run cannot replay a recording");
		return 0;
	case 'c': o->config = arg; return 0;
	case 'd':
		if (!*arg)
			argp_error(state, "--db: the name is empty");
		set(state, MD_CONFIG_DATABASE, arg);
		return 0;
	case 'r': set(state, MD_CONFIG_RATE, arg); return 0;
	case 'i': set(state, MD_CONFIG_INTERVAL, arg); return 0;
	case 'o': o->record = arg; return 0;
	case 'I': o->input = arg; return 0;
	case OPT_REPEAT: o->nr_repeats = whole_number(state, "repeat", arg, 1000000); return 0;
	case OPT_NO_KERNEL: set(state, MD_CONFIG_NO_KERNEL, "yes"); return 0;
	case OPT_REGISTERS: set(state, MD_CONFIG_REGISTERS, arg); return 0;
	case OPT_STACKS: set(state, MD_CONFIG_STACKS, arg ? arg : "yes"); return 0;
	case OPT_POLLS: o->polls.path = arg; return 0;
	case OPT_POLL_WINDOW: set_window(state, arg); return 0;
	case OPT_POLL_RATE:
		o->polls.rate_hz = whole_number(state, "poll-rate", arg, 10000);
		return 0;
	case OPT_CALLS: o->calls.path = arg; return 0;
	case OPT_CALL_PERIOD:
		o->calls.period =
			(uint32_t)whole_number(state, "call-period", arg, MP_CALL_PERIOD_MAX);
		return 0;
	case OPT_AUDIT: o->audit.path = arg; return 0;
	case OPT_ALPHA: o->audit.alpha = chance(state, arg); return 0;
	case OPT_PID:
	case OPT_UNIT:
	case OPT_USER: add_selection(state, key, arg); return 0;
	case OPT_CHECK_CONFIG: o->check_config = true; return 0;
	case OPT_WAIT: o->wait = true; return 0;
	case OPT_JSON: o->json = true; /* fall through */
	case OPT_STATS: o->stats = true; return 0;
	case ARGP_KEY_ARG:
		if (!o->is_run)
			argp_error(state, "%s: unexpected argument", arg);
		o->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END: check_together(state, o); return 0;
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
		"-- COMMAND [ARGUMENT...]\n--pid=PID|--unit=NAME|--user=USER [-- COMMAND [ARGUMENT...]]\n--audit=FILE",
	.doc = "Sample COMMAND and all that it starts; exit as it does.\v"
	       "With --pid, --unit or --user: sample these, until COMMAND ends, or without one until "
	       "SIGINT, SIGTERM or the end of all processes of --pid.",
};

void md_options_parse(int argc, char **argv, struct md_options *out)
{
	*out = (struct md_options){.polls = {NULL, MD_PATH_REQUESTS_SAMPLES,
					     MD_PATH_REQUESTS_STRIDE, MD_PATH_REQUESTS_RATE_HZ},
				   .calls = {NULL, MD_CALL_SAMPLES_PERIOD},
				   .audit.alpha = MP_PROGRAM_AUDIT_ALPHA};
	md_config_init(&out->line);
	out->is_run = argc > 1 && !strcmp(argv[1], "run");
	if (out->is_run) {
		argv[1] = "morphd run";
		/* Stop at the command's name: later options belong to the command. */
		mp_args_parse(&run_argp, argc - 1, argv + 1, ARGP_IN_ORDER, out);
	} else {
		mp_args_parse(&daemon_argp, argc, argv, 0, out);
	}
	mp_stdio_parsed();
}
