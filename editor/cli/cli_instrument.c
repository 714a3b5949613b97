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

enum key {
	KEY_KIND = 0x400,
	KEY_COUNTS,
};

static const struct argp_option options[] = {
	{"kind", KEY_KIND, "KIND", 0,
	 "edges (default): count how often each branch goes which way; in programs with threads "
	 "that is exact with counters for each of the threads (edges,threads: the default where a "
	 "program starts some), or with atomic ones, which take longer (edges,atomic), and not with "
	 "shared ones (edges,plain). pep: keep in a free register by which way control came, for "
	 "morphd --registers; with pep,poll the program is asked for that where paths end, by "
	 "morphd run --polls. audit: two versions of the functions with the most samples, in the "
	 "original's order and in the new order, timed in turns while the program runs, for morphd "
	 "run --audit. calls: the call after a random number of calls is sampled, with its caller, for "
	 "morphd run --calls.",
	 0},
	{"counts", KEY_COUNTS, "PATH", 0,
	 "Where it counts, is asked, or writes times or calls: a file that it maps; %p in it is the process's number "
	 "(default: the output's name with .counts)",
	 0},
	{0}};

static void read_kind(struct argp_state *state, struct me_counting *c, const char *arg)
{
	c->polls = !strcmp(arg, "pep,poll");
	c->paths = c->polls || !strcmp(arg, "pep");
	c->audit = !strcmp(arg, "audit");
	c->calls = !strcmp(arg, "calls");
	c->edges = !c->paths && !c->audit && !c->calls;
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
			   "--kind: '%s' is not edges, edges,plain, edges,atomic, edges,threads, "
			   "pep, pep,poll, calls or audit",
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

static void check(struct argp_state *state, struct me_cli *cli)
{
	const struct me_optimize_options *o = &cli->options;
	bool counts = o->counting.edges || o->counting.polls || o->counting.audit ||
		      o->counting.calls;

	if (!o->input)
		argp_error(state, "which file?");
	if (o->output && cli->dry_run)
		argp_error(state, "-o and --dry-run exclude each other");
	if (o->counting.path && !counts)
		argp_error(
			state,
			"--counts needs --kind=edges, --kind=pep,poll, --kind=calls or --kind=audit");
	if (counts)
		choose_counts(state, cli);
}

static const struct argp_child children[] = {
	{&me_cli_output_argp, 0, NULL, 0},  {&me_cli_report_argp, 0, NULL, 0},
	{&me_cli_profile_argp, 0, NULL, 0}, {&me_cli_functions_argp, 0, NULL, 0},
	{&me_cli_layout_argp, 0, NULL, 0},  {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct me_cli *cli = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		for (size_t i = 0; children[i].argp; i++)
			state->child_inputs[i] = cli;
		return 0;
	case KEY_KIND: read_kind(state, &cli->options.counting, arg); return 0;
	case KEY_COUNTS: cli->options.counting.path = arg; return 0;
	case ARGP_KEY_ARG:
		if (cli->options.input)
			argp_error(state, "one file at a time");
		cli->options.input = arg;
		return 0;
	case ARGP_KEY_END: check(state, cli); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "FILE",
	.doc = "Write a version of an executable or shared object that counts its branches, that "
	       "tells by which path control came, that samples its calls, or that times two layouts of its "
	       "functions.",
	.children = children,
};

int me_cli_instrument(struct me_cli *cli, int argc, char **argv)
{
	cli->options.counting.edges = true;
	me_cli_parse(&argp, cli, argc, argv, cli);
	return me_cli_work(cli, NULL);
}
