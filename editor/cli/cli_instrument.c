// SPDX-License-Identifier: Apache-2.0
/*
 * cli_instrument - `morph-optimize instrument': write a version that counts branches, that keeps
 * path numbers, that samples calls, or that audits two layouts of its functions.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/cli/cli.h"

#define MP_OPTIONS struct me_cli

static void set_kind(const struct mp_option *o, void *options, char *arg, struct argp_state *state)
{
	struct me_cli *cli = options;
	struct me_counting *c = &cli->options.counting;

	(void)o;
	c->polls = !strcmp(arg, "pep,poll");
	c->paths = c->polls || !strcmp(arg, "pep");
	c->audit = !strcmp(arg, "audit");
	c->calls = !strcmp(arg, "calls");
	cli->meters = !strcmp(arg, "meter") || !strncmp(arg, "meter,", 6);
	c->edges = !c->paths && !c->audit && !c->calls && !cli->meters;
	if (!strcmp(arg, "meter") || (!c->edges && !cli->meters) || !strcmp(arg, "edges"))
		c->how = ME_COUNT_AUTO;
	else if (!strcmp(arg, "meter,plain"))
		c->how = ME_COUNT_PLAIN;
	else if (!strcmp(arg, "meter,atomic"))
		c->how = ME_COUNT_ATOMIC;
	else if (!strcmp(arg, "edges,plain"))
		c->how = ME_COUNT_PLAIN;
	else if (!strcmp(arg, "edges,atomic"))
		c->how = ME_COUNT_ATOMIC;
	else if (!strcmp(arg, "edges,threads"))
		c->how = ME_COUNT_THREADS;
	else
		argp_error(state,
			   "--kind: '%s' is not edges, edges,plain, edges,atomic, edges,threads, "
			   "meter, meter,plain, meter,atomic, pep, pep,poll, calls or audit",
			   arg);
}

/* The instrumented program may run anywhere, so the path of its counts is made absolute. */
static void choose_counts(struct argp_state *state, struct me_cli *cli)
{
	struct me_optimize_options *o = &cli->options;
	const char *path = o->counting.path;
	char *here = NULL;
	int n;

	if (!path && !o->output)
		argp_error(state, "-o FILE or --counts=PATH is needed");
	if ((path ? path : o->output)[0] != '/') {
		here = getcwd(NULL, 0);
		if (!here)
			argp_failure(state, EXIT_FAILURE, errno, "the working directory");
	}
	n = snprintf(cli->counts, sizeof(cli->counts), "%s%s%s%s", here ? here : "",
		     here ? "/" : "", path ? path : o->output, path ? "" : ".counts");
	free(here);
	if (n < 0 || (size_t)n >= sizeof(cli->counts))
		argp_error(state, "--counts: the path is too long");
	o->counting.path = cli->counts;
}

static void check(void *options, struct argp_state *state)
{
	struct me_cli *cli = options;
	const struct me_optimize_options *o = &cli->options;
	bool counts = o->counting.edges || o->counting.polls || o->counting.audit ||
		      o->counting.calls || cli->meters;

	me_cli_check_profile(state, cli);
	if (cli->meters != (o->counting.meter != NULL))
		argp_error(state, "--kind=meter and --meter=FILE go together");
	if (o->layout.original && (!cli->meters || o->db || cli->fleet))
		argp_error(state, "--layout=original is for --kind=meter, without a profile");
	if (o->live_at && (o->counting.paths || o->counting.audit || o->counting.calls ||
			   o->counting.how == ME_COUNT_THREADS || o->layout.huge_pages))
		argp_error(state,
			   "--live-at is for --kind=edges and --kind=meter, without counters for "
			   "each thread, and not for huge-pages");
	if (!o->input)
		argp_error(state, "which file?");
	if (o->output && cli->dry_run)
		argp_error(state, "-o and --dry-run exclude each other");
	if (o->counting.path && !counts)
		argp_error(
			state,
			"--counts needs --kind=edges, --kind=meter, --kind=pep,poll, --kind=calls or --kind=audit");
	if (counts)
		choose_counts(state, cli);
}

static const struct mp_option options[] = {
	MP_SET("kind", 0, set_kind, "KIND",
	       "edges (default): count how often each branch goes which way; in programs with threads "
	       "that is exact with counters for each of the threads (edges,threads: the default where a "
	       "program starts some), or with atomic ones, which take longer (edges,atomic), and not with "
	       "shared ones (edges,plain). meter: count at the places of --meter alone, with atomic counters in the same cases "
	       "(meter,atomic, meter,plain). pep: keep in a free register by which way control came, for "
	       "morphd --registers; with pep,poll the program is asked for that where paths end, by "
	       "morphd run --polls. audit: two versions of the functions with the most samples, in the "
	       "original's order and in the new order, timed in turns while the program runs, for morphd "
	       "run --audit. calls: the call after a random number of calls is sampled, with its caller, for "
	       "morphd run --calls."),
	MP_VALUE(
		TEXT, "meter", 0, options.counting.meter, "FILE",
		"meter: where to count, at most eight places, one a line: the address of a block, as 0x401230; "
		"0x401230<outside counts only what comes from outside of its function, 0x401230<0x401200 only what "
		"comes from that block"),
	MP_VALUE(TEXT, "counts", 0, options.counting.path, "PATH",
		 "Where it counts, is asked, or writes times or calls: a file that it maps; %p in it is the process's number, %u its effective user's, who alone then may use the file "
		 "(default: the output's name with .counts)"),
	MP_OPTIONS_END};

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct me_cli *cli = options;

	if (cli->options.input)
		argp_error(state, "one file at a time");
	cli->options.input = arg;
}

static const struct mp_option *const more[] = {me_cli_output_options,  me_cli_report_options,
					       me_cli_profile_options, me_cli_functions_options,
					       me_cli_layout_options,  NULL};

static const struct mp_usage usage = {
	.options = options,
	.more = more,
	.arguments = "FILE",
	.word = take_word,
	.check = check,
	.doc = "Write a version of an executable or shared object that counts its branches, that "
	       "tells by which path control came, that samples its calls, or that times two layouts of its "
	       "functions."};

void me_cli_parse_instrument(struct me_cli *cli, int argc, char **argv)
{
	cli->options.counting.edges = true;
	me_cli_parse(&usage, cli, argc, argv);
}

int me_cli_instrument(struct me_cli *cli, int argc, char **argv)
{
	me_cli_parse_instrument(cli, argc, argv);
	return me_cli_work(cli, NULL);
}
