// SPDX-License-Identifier: Apache-2.0
/*
 * morph-optimize - command line of the offline editor. Reads options, prints the report, turns
 * errors into messages and exit statuses; everything else is optimize's.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "editor/advice.h"
#include "editor/confirm.h"
#include "editor/explain.h"
#include "editor/inplace.h"
#include "editor/optimize.h"
#include "editor/output_name.h"
#include "editor/report.h"
#include "editor/train.h"
#include "editor/train_advice.h"
#include "libprof/newfile.h"
#include "libprof/parallel.h"
#include "libprof/progress.h"
#include "libprof/since.h"
#include "libprof/stdio.h"
#include "libprof/store.h"

#ifndef MORPH_VERSION
#define MORPH_VERSION "unknown"
#endif

const char *argp_program_version = "morph-optimize " MORPH_VERSION;

enum {
	EXIT_NO_PROFILE = 3,
	EXIT_REFUSED = 4,
	EXIT_NOT_FASTER = 5,
	EXIT_DIFFERS = 6,
	EXIT_UNDECIDED = 7,
	EXIT_USAGE = 2
};

enum key {
	KEY_DRY_RUN = 'n',
	KEY_DB = 0x100,
	KEY_JSON,
	KEY_REPORT,
	KEY_SINCE,
	KEY_MIN_SAMPLES,
	KEY_BLOCK_ORDER,
	KEY_FUNCTION_ORDER,
	KEY_ESTIMATOR,
	KEY_EXACT,
	KEY_STALE,
	KEY_NO_STALE,
	KEY_KEEP_FLUFF,
	KEY_NO_TAILS,
	KEY_HUGE_PAGES,
	KEY_FETCH_LINE,
	KEY_ALL,
	KEY_STRESS,
	KEY_LIST_PATCHES,
	KEY_IN_PLACE,
	KEY_RESTORE,
	KEY_BACKUP_DIR,
	KEY_BREAK_LINKS,
	KEY_VERIFY,
	KEY_EXPLAIN,
	KEY_THREADS,
	KEY_INSTRUMENT,
	KEY_COUNTS,
	KEY_TRAIN,
	KEY_AUDIT_SECONDS,
	KEY_AUDIT_PAIRS,
	KEY_NO_AUDIT,
	KEY_DEBUG_FILE,
	KEY_DEBUG_OUTPUT,
	KEY_SKIP,
	KEY_ONLY,
};

struct arguments {
	struct me_optimize_options options;
	struct me_inplace_options inplace;
	bool json, quiet, in_place, restore;
	const char *patch_list;
	const char *original; /* --verify */
	struct me_train_options train;
	bool training;
	bool default_output; /* nobody said where: FILE.morph */
	char db[PATH_MAX], counts[PATH_MAX], output[PATH_MAX];
};

static const struct argp_option argp_options[] = {
	{"output", 'o', "FILE", 0, "Write the optimised file here (default: FILE.morph)", 0},
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Do everything, verification too, but keep no file", 0},
	{"in-place", KEY_IN_PLACE, NULL, 0,
	 "Replace FILE, and keep the original in the backup directory", 0},
	{"restore", KEY_RESTORE, NULL, 0,
	 "Put the original of FILE back, and remove the debug file that --in-place wrote", 0},
	{"backup-dir", KEY_BACKUP_DIR, "DIR", 0,
	 "Where originals are kept (default: see FILES in the man page)", 0},
	{"break-links", KEY_BREAK_LINKS, NULL, 0,
	 "Replace FILE even if it has other names (hard links), which keep the old bytes", 0},
	{"verify", KEY_VERIFY, "ORIGINAL", 0,
	 "Write nothing: prove that FILE is what this program may have made of ORIGINAL", 0},
	{"debug-file", KEY_DEBUG_FILE, "PATH|auto", 0,
	 "The debug information of FILE is in this file (auto: where a debugger looks, if anywhere); "
	 "write one for the output, too",
	 0},
	{"debug-output", KEY_DEBUG_OUTPUT, "PATH", 0,
	 "Where to write that (default: the output's name with .debug; not with --in-place)", 0},
	{"explain", KEY_EXPLAIN, NULL, 0, "Say what was verified, how often, and what is assumed",
	 0},
	{"db", KEY_DB, "FILE", 0, "The store to read (default: see FILES in the man page)", 0},
	{"report", KEY_REPORT, "FORMAT", 0, "text (default), json or none", 0},
	{"json", KEY_JSON, NULL, 0, "The same as --report=json", 0},
	{"min-samples", KEY_MIN_SAMPLES, "N", 0, "Refuse to work with fewer samples (default 1000)",
	 0},
	{"since", KEY_SINCE, "WHEN", 0,
	 "Use no counts older than 2h, 3d, 2026-11-20, today, ...; a mere number is of days", 0},
	{"threads", KEY_THREADS, "N", 0,
	 "Work on so many threads (default: as many as there are processors, at most 8); the output "
	 "is the same with any number",
	 0},
	{"skip", KEY_SKIP, "FUNCTION,...|@FILE", 0,
	 "Leave these functions alone: names, patterns (*, ?, []), addresses, @FILE with one a line",
	 1},
	{"only", KEY_ONLY, "FUNCTION,...|@FILE", 0, "Move no functions but these", 1},
	{"block-order", KEY_BLOCK_ORDER, "ORDER", 0, "ph (default), exttsp or original", 1},
	{"function-order", KEY_FUNCTION_ORDER, "ORDER", 0, "ph (default), c3, cds or original", 1},
	{"estimator", KEY_ESTIMATOR, "NAME", 0,
	 "paths (default), poisson or scaled: how samples, and paths that they ended, become counts",
	 1},
	{"exact-profile", KEY_EXACT, NULL, 0,
	 "The counts were counted, not sampled, though the database does not say so (imported from "
	 "BOLT): believe all of them",
	 1},
	{"stale", KEY_STALE, "OLD", 0,
	 "With too few samples of FILE, use those of this other build of it: a file, or a build-id that "
	 "morph-stats remember knows (default: the same path or name, if that is remembered)",
	 1},
	{"no-stale", KEY_NO_STALE, NULL, 0, "Use no samples of other builds", 1},
	{"keep-fluff", KEY_KEEP_FLUFF, NULL, 0, "Copy whole functions, cold blocks too", 1},
	{"no-tail-duplication", KEY_NO_TAILS, NULL, 0,
	 "Never copy a short way out (a return, a dispatch) more than once", 1},
	{"fetch-line", KEY_FETCH_LINE, "BYTES", 0,
	 "Do not cut runs of hot code by boundaries of so many bytes where padding avoids it: 64 "
	 "(default), 32, 0 (never pad)",
	 1},
	{"huge-pages", KEY_HUGE_PAGES, NULL, 0,
	 "Align the new code so that pages of 2 MiB can back it, where the kernel does that", 1},
	{"instrument", KEY_INSTRUMENT, "edges[,atomic|,plain|,threads]|pep[,poll]|none", 0,
	 "edges: write a version that counts how often each branch goes which way; in programs with "
	 "threads it is exact with counters for each of the threads (default: where a program starts "
	 "some), or with atomic ones, which take longer. With --train: count so. pep: write one that "
	 "keeps in a free register by which way control came, for morphd --registers; with poll it is "
	 "asked for that where paths end, by morphd run --polls. none: write the copies that pep "
	 "writes without all that, to measure what that costs",
	 3},
	{"counts", KEY_COUNTS, "PATH", 0,
	 "Where it counts, or is asked: a file that it maps; %p in it is the process's number "
	 "(default: the output's name with .counts)",
	 3},
	{"train", KEY_TRAIN, NULL, 0,
	 "Do it all for a command: sample it, count its branches, optimise what it runs (or FILE, "
	 "given before --), audit. Usage: --train -o OUTPUT [FILE] -- COMMAND ARGS",
	 3},
	{"audit-seconds", KEY_AUDIT_SECONDS, "S", 0,
	 "With --train: the audit takes no longer (default 120, or what 16 pairs need, if that is at "
	 "most 1800)",
	 3},
	{"audit-pairs", KEY_AUDIT_PAIRS, "MIN[:MAX]", 0,
	 "With --train: the audit takes at least MIN pairs of runs, and at most MAX, instead", 3},
	{"no-audit", KEY_NO_AUDIT, NULL, 0, "With --train: keep the output without one", 3},
	{"list-patches", KEY_LIST_PATCHES, "FILE", 0,
	 "Write address and length of each patch of old code here", 2},
	{"all", KEY_ALL, NULL, 0, "Use no profile: copy every function that may be copied", 2},
	{"stress-layout", KEY_STRESS, "SEED", 0,
	 "Use no profile: copy the same in an order that is meant to be hard on this program, for "
	 "tests",
	 2},
	{0}};

static uint64_t parse_number(struct argp_state *state, const char *option, const char *arg)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(arg, &end, 10);
	if (errno || *end || end == arg || *arg == '-')
		argp_error(state, "%s: '%s' is not a number", option, arg);
	return value;
}

/* MIN or MIN:MAX, which morph-audit reads. */
static void parse_pairs(struct argp_state *state, const char *arg)
{
	unsigned long min = 0, max = 0;
	int end = 0, nr = sscanf(arg, "%6lu%n:%6lu%n", &min, &end, &max, &end);

	if (nr < 1 || arg[end] || !min || arg[0] < '0' || arg[0] > '9' || (nr == 2 && max < min))
		argp_error(state, "--audit-pairs: '%s' is not MIN or MIN:MAX", arg);
}

static void parse_since(struct argp_state *state, struct me_optimize_options *o, const char *arg)
{
	char days[32];
	const char *text = arg;

	/* "3" is "3d". */
	if (*arg && !arg[strspn(arg, "0123456789")] && strlen(arg) < sizeof(days) - 1) {
		snprintf(days, sizeof(days), "%sd", arg);
		text = days;
	}
	if (mp_since_parse(text, time(NULL), &o->since_s))
		argp_error(state, "--since: '%s' is not a time: " MP_SINCE_FORMATS, arg);
}

static void parse_report(struct argp_state *state, struct arguments *a, const char *arg)
{
	a->json = !strcmp(arg, "json");
	a->quiet = !strcmp(arg, "none");
	if (!a->json && !a->quiet && strcmp(arg, "text"))
		argp_error(state, "--report: '%s' is not text, json or none", arg);
}

static void parse_estimator(struct argp_state *state, struct me_optimize_options *o,
			    const char *arg)
{
	if (!strcmp(arg, "scaled"))
		o->estimator = MP_ESTIMATE_SCALED;
	else if (!strcmp(arg, "poisson"))
		o->estimator = MP_ESTIMATE_POISSON;
	else if (!strcmp(arg, "paths"))
		o->estimator = MP_ESTIMATE_PATHS;
	else
		argp_error(state, "--estimator: '%s' is none of paths, poisson, scaled", arg);
}

static void parse_line(struct argp_state *state, struct me_optimize_options *o, const char *arg)
{
	if (!strcmp(arg, "0"))
		o->layout.line_log2 = 0;
	else if (!strcmp(arg, "32"))
		o->layout.line_log2 = 5;
	else if (!strcmp(arg, "64"))
		o->layout.line_log2 = 6;
	else
		argp_error(state, "--fetch-line: '%s' is not 0, 32 or 64", arg);
}

static void parse_threads(struct argp_state *state, struct me_optimize_options *o, const char *arg)
{
	uint64_t nr = parse_number(state, "--threads", arg);

	if (nr < 1 || nr > MP_PARALLEL_MAX)
		argp_error(state, "--threads: '%s' is not from 1 to %d", arg, MP_PARALLEL_MAX);
	o->nr_threads = (unsigned int)nr;
}

static void parse_instrument(struct argp_state *state, struct me_counting *c, const char *arg)
{
	c->none = !strcmp(arg, "none");
	c->polls = !strcmp(arg, "pep,poll");
	c->paths = c->polls || !strcmp(arg, "pep");
	c->edges = !c->paths && !c->none;
	if (!c->edges || !strcmp(arg, "edges"))
		c->how = ME_COUNT_AUTO;
	else if (!strcmp(arg, "edges,plain"))
		c->how = ME_COUNT_PLAIN;
	else if (!strcmp(arg, "edges,atomic"))
		c->how = ME_COUNT_ATOMIC;
	else if (!strcmp(arg, "edges,threads"))
		c->how = ME_COUNT_THREADS;
	else
		argp_error(state,
			   "--instrument: '%s' is not edges, edges,plain, edges,atomic, "
			   "edges,threads, pep, pep,poll or none",
			   arg);
}

/* The instrumented program may run anywhere: its path of counts is made absolute. */
static void choose_counts(struct argp_state *state, struct arguments *a)
{
	struct me_optimize_options *o = &a->options;
	const char *path = o->counting.path;
	char *here = NULL;
	int n;

	if (!path && !o->output)
		argp_error(state, "--instrument needs -o FILE or --counts=PATH");
	if ((path ? path : o->output)[0] != '/') {
		here = getcwd(NULL, 0);
		if (!here)
			argp_failure(state, EXIT_FAILURE, errno, "the working directory");
	}
	n = snprintf(a->counts, sizeof(a->counts), "%s%s%s%s", here ? here : "", here ? "/" : "",
		     path ? path : o->output, path ? "" : ".counts");
	free(here);
	if (n < 0 || (size_t)n >= sizeof(a->counts))
		argp_error(state, "--counts: the path is too long");
	o->counting.path = a->counts;
}

/* FILE, if any, stands before the "--", and the command behind it. */
static void check_training(struct argp_state *state, struct arguments *a)
{
	const struct me_optimize_options *o = &a->options;

	if (!o->output)
		argp_error(state, "--train needs -o FILE");
	if (!a->train.command)
		argp_error(state, "--train: which command? Give it behind --");
	if (o->db || o->all || o->exact_profile || o->stale.from || o->stale.never ||
	    o->counting.none || o->counting.paths || o->counting.path || a->in_place ||
	    a->restore || a->original || a->patch_list || a->json || o->debug_output)
		argp_error(state, "--train takes of the other options only those of the layout, "
				  "--debug-file, --threads, --report, "
				  "--instrument=edges and -o");
	a->train.output = o->output;
	a->train.file = o->input;
	if (a->train.audit_pairs && a->train.audit_seconds)
		argp_error(state, "--audit-seconds and --audit-pairs exclude each other");
}

static void check_usage(struct argp_state *state, struct arguments *a, bool dry_run)
{
	const struct me_optimize_options *o = &a->options;

	if (a->training) {
		check_training(state, a);
		return;
	}
	if (a->train.audit_seconds || a->train.audit_pairs || a->train.no_audit)
		argp_error(state, "--audit-seconds, --audit-pairs and --no-audit need --train");
	if (!o->input)
		argp_error(state, "which file?");
	if (!!o->output + a->in_place + a->restore + !!a->original > 1 ||
	    (dry_run && (o->output || a->restore || a->original)))
		argp_error(state, "-o, --in-place, --restore and --verify exclude each other, and "
				  "--dry-run goes with --in-place alone");
	a->inplace.dry_run = dry_run;
	if ((a->inplace.backup_dir || a->inplace.break_links) && !a->in_place && !a->restore)
		argp_error(state, "--backup-dir and --break-links need --in-place or --restore");
	if (a->inplace.backup_dir && !*a->inplace.backup_dir)
		argp_error(state, "--backup-dir: which directory?");
	if (o->counting.path && !o->counting.edges && !o->counting.polls)
		argp_error(state, "--counts needs --instrument=edges or --instrument=pep,poll");
	if (o->debug_output && !o->debug_file)
		argp_error(state, "--debug-output needs --debug-file");
	if (o->debug_file && (a->restore || me_counting_any(&o->counting)))
		argp_error(state, "--debug-file needs -o, --in-place, --dry-run or --verify, and "
				  "no --instrument");
	if (o->debug_output && a->in_place)
		argp_error(state, "--debug-output: with --in-place the debug file's name is the "
				  "build-id");
	if (o->debug_output && o->output && !strcmp(o->debug_output, o->output))
		argp_error(state, "--debug-output: is the output itself");
	if (me_counting_any(&o->counting) && (a->in_place || a->restore || a->original))
		argp_error(state, "--instrument needs -o or --dry-run");
	if (o->stale.from && (o->stale.never || o->all))
		argp_error(state, "--stale does not go with --no-stale, --all or --stress-layout");
	if (o->exact_profile && o->all)
		argp_error(state, "--exact-profile needs a profile, which --all and "
				  "--stress-layout do without");
}

/* With no word on where to: a name beside the input. */
static void choose_output(struct argp_state *state, struct arguments *a)
{
	struct mp_err err = {""};

	if (me_output_name(a->options.input, a->output, sizeof(a->output), &err))
		argp_failure(state, EXIT_FAILURE, 0, "%s", err.msg);
	a->options.output = a->output;
	a->default_output = true;
}

static void parse_words(struct argp_state *state, const char *option, struct me_words *words,
			const char *arg)
{
	struct mp_err err = {""};

	if (me_words_add(words, arg, &err))
		argp_error(state, "%s: %s", option, err.msg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	struct me_optimize_options *o = &a->options;
	static bool dry_run;

	switch (key) {
	case 'o': o->output = arg; return 0;
	case KEY_DRY_RUN: dry_run = true; return 0;
	case KEY_DB: o->db = arg; return 0;
	case KEY_JSON: parse_report(state, a, "json"); return 0;
	case KEY_REPORT: parse_report(state, a, arg); return 0;
	case KEY_MIN_SAMPLES: o->min_samples = parse_number(state, "--min-samples", arg); return 0;
	case KEY_SINCE: parse_since(state, o, arg); return 0;
	case KEY_BLOCK_ORDER:
		if (me_order_parse(arg, &o->layout.block_order))
			argp_error(state, "--block-order: '%s' is not ph, exttsp or original", arg);
		return 0;
	case KEY_FUNCTION_ORDER:
		if (mp_order_parse(arg, &o->layout.function_order))
			argp_error(state, "--function-order: '%s' is not ph, c3, cds or original",
				   arg);
		return 0;
	case KEY_ESTIMATOR: parse_estimator(state, o, arg); return 0;
	case KEY_EXACT: o->exact_profile = true; return 0;
	case KEY_STALE: o->stale.from = arg; return 0;
	case KEY_NO_STALE: o->stale.never = true; return 0;
	case KEY_KEEP_FLUFF: o->layout.keep_fluff = true; return 0;
	case KEY_NO_TAILS: o->layout.no_tails = true; return 0;
	case KEY_FETCH_LINE: parse_line(state, o, arg); return 0;
	case KEY_HUGE_PAGES: o->layout.huge_pages = true; return 0;
	case KEY_LIST_PATCHES: a->patch_list = arg; return 0;
	case KEY_ALL: o->all = true; return 0;
	case KEY_IN_PLACE: a->in_place = true; return 0;
	case KEY_RESTORE: a->restore = true; return 0;
	case KEY_VERIFY: a->original = arg; return 0;
	case KEY_EXPLAIN: o->explain = true; return 0;
	case KEY_THREADS: parse_threads(state, o, arg); return 0;
	case KEY_INSTRUMENT: parse_instrument(state, &o->counting, arg); return 0;
	case KEY_COUNTS: o->counting.path = arg; return 0;
	case KEY_DEBUG_FILE: o->debug_file = arg; return 0;
	case KEY_DEBUG_OUTPUT: o->debug_output = arg; return 0;
	case KEY_SKIP: parse_words(state, "--skip", &o->skip, arg); return 0;
	case KEY_ONLY: parse_words(state, "--only", &o->only, arg); return 0;
	case KEY_TRAIN: a->training = true; return 0;
	case KEY_NO_AUDIT: a->train.no_audit = true; return 0;
	case KEY_AUDIT_SECONDS:
		a->train.audit_seconds = (double)parse_number(state, "--audit-seconds", arg);
		if (!a->train.audit_seconds)
			argp_error(state, "--audit-seconds: 0 is too few");
		return 0;
	case KEY_AUDIT_PAIRS:
		parse_pairs(state, arg);
		a->train.audit_pairs = arg;
		return 0;
	case KEY_BACKUP_DIR: a->inplace.backup_dir = arg; return 0;
	case KEY_BREAK_LINKS: a->inplace.break_links = true; return 0;
	case KEY_STRESS:
		o->all = o->stress = true;
		o->stress_seed = parse_number(state, "--stress-layout", arg);
		if (o->stress_seed > INT64_MAX) /* JSON knows no larger ones */
			argp_error(state, "--stress-layout: '%s' is too large", arg);
		return 0;
	case ARGP_KEY_ARG:
		if (a->training && state->quoted && state->next > state->quoted) {
			a->train.command = &state->argv[state->next - 1];
			state->next = state->argc;
			return 0;
		}
		if (o->input)
			argp_error(state, "one file at a time");
		o->input = arg;
		return 0;
	case ARGP_KEY_END:
		check_usage(state, a, dry_run);
		if (!a->training && !o->output && !dry_run && !a->in_place && !a->restore &&
		    !a->original && !me_counting_any(&o->counting))
			choose_output(state, a);
		if ((o->counting.edges || o->counting.polls) && !a->training)
			choose_counts(state, a);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	argp_options,
	parse,
	"FILE\n--train -o OUTPUT [FILE] -- COMMAND [ARGS...]",
	"Write a faster version of an executable or shared object: hot code, as sampled, is copied "
	"into one dense segment with its likely paths straightened.\v"
	"Exit status: 0 done, 1 failed, 2 usage, 3 no or too little profile, 4 refused as unsafe; with "
	"--train also 5 not faster, 6 output differs, 7 undecided (the new version is "
	"OUTPUT.undecided).",
	NULL,
	NULL,
	NULL};

static int list_patches(const char *path, const struct me_patches *patches, struct mp_err *err)
{
	int failed, fd = mp_newfile_open(path, 0666, err);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (!out)
		return fd < 0 ? fd : mp_err_set(err, ENOMEM, "%s: no memory", path);
	for (uint32_t i = 0; i < patches->nr_patches; i++)
		fprintf(out, "%#" PRIx64 " %" PRIu32 "\n", (uint64_t)patches->patches[i].vaddr,
			(uint32_t)patches->patches[i].size);
	failed = ferror(out);
	return fclose(out) || failed ? mp_err_set(err, EIO, "%s: %s", path, strerror(EIO)) : 0;
}

static int exit_status(int rc)
{
	switch (rc) {
	case 0: return EXIT_SUCCESS;
	case -ENODATA: return EXIT_NO_PROFILE;
	case -EPERM: return EXIT_REFUSED;
	default: return EXIT_FAILURE;
	}
}

/* As morph-audit's where that has the last word. */
static int train_status(int rc)
{
	switch (rc) {
	case -ECANCELED: return EXIT_NOT_FASTER;
	case -EBADE: return EXIT_DIFFERS;
	case -EAGAIN: return EXIT_UNDECIDED;
	case -ESRCH: return EXIT_NO_PROFILE;
	default: return exit_status(rc);
	}
}

static int flush_report(int failed)
{
	if (!failed && fflush(stdout))
		failed = -errno;
	if (failed)
		fprintf(stderr, "morph-optimize: standard output: %s\n", strerror(-failed));
	return failed;
}

static void say_stage(enum me_stage stage)
{
	static const char *const texts[ME_NR_STAGES] = {
		[ME_STAGE_READ] = "reading the file",
		[ME_STAGE_PROFILE] = "reading the profile",
		[ME_STAGE_INFER] = "inferring counts",
		[ME_STAGE_LAYOUT] = "laying out",
		[ME_STAGE_EMIT] = "making the new code",
		[ME_STAGE_DEBUG] = "debug information",
		[ME_STAGE_WRITE] = "writing",
		[ME_STAGE_VERIFY] = "verifying",
	};

	mp_progress_say("%s", texts[stage]);
}

static int restore(const struct arguments *a)
{
	struct me_inplace_report done;
	struct mp_err err = {""};
	int rc = me_restore(a->options.input, &a->inplace, &done, &err);

	if (rc)
		fprintf(stderr, "morph-optimize: %s\n", err.msg);
	else if (!a->quiet)
		rc = flush_report(me_report_restored(stdout, a->json, a->options.input, &done));
	me_inplace_report_fini(&done);
	return rc;
}

/* --verify: two files that are there already. */
static int verify(const struct arguments *a)
{
	struct me_verify_report report = {0};
	struct mp_err err = {""};
	bool relinkable = false;
	int rc = me_verify_files(a->original, &a->options, &report, &relinkable, &err);

	if (rc)
		fprintf(stderr, "morph-optimize: %s\n", err.msg);
	else if (!a->quiet)
		rc = flush_report(me_report_verified(stdout, a->json, a->original, &a->options,
						     &report, relinkable));
	return rc;
}

static void say_step(const char *step)
{
	mp_progress_say("%s", step);
}

static void say_warning(const char *what)
{
	mp_progress_stop();
	fprintf(stderr, "morph-optimize: %s\n", what);
}

static int train(struct arguments *a)
{
	struct me_train_report report;
	struct mp_err err = {""};
	int rc;

	a->train.optimize = a->options;
	if (mp_progress_start("morph-optimize", true))
		a->train.say = say_step;
	a->train.warn = say_warning;
	rc = me_train(&a->train, &report, &err);
	mp_progress_stop();
	if (rc)
		fprintf(stderr, "morph-optimize: %s\n", err.msg);
	if (!a->quiet && report.final.new_size) {
		me_report_train(stdout, &a->train, &report, !rc);
		rc = flush_report(0) ? -EIO : rc;
	}
	me_train_advice(stderr, &a->train, &report, rc);
	me_train_report_fini(&report);
	return rc;
}

int main(int argc, char **argv)
{
	struct arguments a = {
		.options = {.min_samples = ME_MIN_SAMPLES,
			    .estimator = MP_ESTIMATE_PATHS,
			    .layout = {.block_order = ME_ORDER_PH,
				       .function_order = MP_ORDER_PH,
				       .line_log2 = 6}},
	};
	struct me_inplace_report done = {0};
	struct me_optimize_report report;
	const char *named_db;
	struct mp_err err = {""};
	int rc;

	me_confirm_main(argv);
	mp_stdio_init("morph-optimize");
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a);
	mp_stdio_parsed();
	if (!a.options.nr_threads)
		a.options.nr_threads = mp_parallel_cpus();
	if (a.training)
		return train_status(train(&a));
	if (a.restore)
		return exit_status(restore(&a));
	if (a.original)
		return exit_status(verify(&a));
	if (a.default_output && me_output_replaceable(a.options.output, &err)) {
		fprintf(stderr, "morph-optimize: %s\n", err.msg);
		return EXIT_FAILURE;
	}
	named_db = a.options.db;
	/* Counters and numbers stand well enough without a profile. */
	a.options.all |= me_counting_any(&a.options.counting) && !a.options.db;
	if (!a.options.db && !a.options.all) {
		rc = mp_store_default_path(a.db, sizeof(a.db), false, &err);
		if (rc) {
			fprintf(stderr, "morph-optimize: %s\n", err.msg);
			return exit_status(rc);
		}
		/* As morph-stats does: a user without a profile of their own has the service's. */
		if (!getenv("MORPH_DB") && access(a.db, F_OK) &&
		    !access(MP_STORE_SERVICE_PATH, R_OK))
			strcpy(a.db, MP_STORE_SERVICE_PATH);
		a.options.db = a.db;
	}
	if (mp_progress_start("morph-optimize", true)) {
		a.options.progress = say_stage;
		say_stage(ME_STAGE_READ);
	}
	rc = a.in_place ? me_inplace(&a.options, &a.inplace, &report, &done, &err)
			: me_optimize(&a.options, &report, &err);
	mp_progress_stop();
	if (rc)
		fprintf(stderr, "morph-optimize: %s\n", err.msg);
	if (rc == -ENODATA && !report.nothing_to_move && !a.quiet && !a.json)
		me_advice_collect(stderr, &a.options, named_db, &report);
	if (!rc && a.patch_list) {
		rc = list_patches(a.patch_list, &report.emitted.patches, &err);
		if (rc)
			fprintf(stderr, "morph-optimize: %s\n", err.msg);
	}
	if ((!rc || report.nothing_to_move) && !a.quiet) {
		int failed = 0;

		if (a.json)
			failed = me_report_json(stdout, &a.options, &report);
		else
			me_report_text(stdout, &a.options, &report);
		if (!rc && !a.json && a.options.output && !me_counting_any(&a.options.counting))
			me_advice_next(stdout, &a.options, named_db, &report);
		failed = flush_report(failed);
		rc = rc ? rc : failed;
	}
	me_inplace_report_fini(&done);
	me_optimize_report_fini(&report);
	me_words_fini(&a.options.skip);
	me_words_fini(&a.options.only);
	return exit_status(rc);
}
