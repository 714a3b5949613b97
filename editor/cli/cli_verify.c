// SPDX-License-Identifier: Apache-2.0
/* cli_verify - `morph-optimize verify': two files that exist, and nothing is written. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "editor/cli/cli.h"
#include "editor/cli/explain.h"
#include "editor/cli/report.h"
#include "editor/object/object.h"

enum key {
	KEY_DEBUG_FILE = 0x600,
	KEY_DEBUG_OUTPUT,
	KEY_EXPLAIN,
	KEY_KIND,
	KEY_THREADS,
};

static const struct argp_option options[] = {
	{"debug-file", KEY_DEBUG_FILE, "PATH|auto", 0,
	 "The debug information of ORIGINAL is in this file (auto: where a debugger looks, if "
	 "anywhere): prove that of FILE, too",
	 0},
	{"debug-output", KEY_DEBUG_OUTPUT, "PATH", 0,
	 "Where that of FILE is (default: where the link in FILE leads to, beside it)", 0},
	{"explain", KEY_EXPLAIN, NULL, 0, "Say what was verified, how often, and what is assumed",
	 0},
	{"kind", KEY_KIND, "KIND", 0,
	 "FILE must be of this kind: layout, or a KIND of `instrument' (edges for all kinds of edges); may be given "
	 "several times (default: any)",
	 0},
	{"threads", KEY_THREADS, "N", 0,
	 "Work on so many threads (default: as many as there are processors, at most 8)", 0},
	{0}};

struct verification {
	struct me_cli *cli;
	const char *original;
	unsigned int kinds; /* a bit for each enum me_kind that FILE may be; 0: all */
};

static unsigned int read_kind(struct argp_state *state, const char *name)
{
	int kind = me_kind_find(name);

	if (kind < 0)
		argp_error(state, "--kind=%s: there is no such kind", name);
	return 1u << kind;
}

static void check(struct argp_state *state, const struct me_optimize_options *o)
{
	if (!o->input)
		argp_error(state, "which files? The original, and what was made of it");
	if (o->debug_output && !o->debug_file)
		argp_error(state, "--debug-output needs --debug-file");
}

static const struct argp_child children[] = {{&me_cli_report_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct verification *a = state->input;
	struct me_optimize_options *o = &a->cli->options;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = a->cli; return 0;
	case KEY_DEBUG_FILE: o->debug_file = arg; return 0;
	case KEY_DEBUG_OUTPUT: o->debug_output = arg; return 0;
	case KEY_EXPLAIN: o->explain = true; return 0;
	case KEY_KIND: a->kinds |= read_kind(state, arg); return 0;
	case KEY_THREADS: me_cli_threads(state, a->cli, arg); return 0;
	case ARGP_KEY_ARG:
		if (o->input)
			argp_error(state, "two files at a time");
		if (a->original)
			o->input = arg;
		else
			a->original = arg;
		return 0;
	case ARGP_KEY_END: check(state, o); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "ORIGINAL FILE",
	.doc = "Prove that FILE is what morph-optimize may have made of ORIGINAL. Nothing is "
	       "written.",
	.children = children,
};

int me_cli_verify(struct me_cli *cli, int argc, char **argv)
{
	struct verification a = {.cli = cli};
	struct me_verify_report report = {0};
	enum me_object_kind kind;
	struct mp_err err = {""};
	bool relinkable = false;
	int rc;

	me_cli_parse(&argp, cli, argc, argv, &a);
	rc = me_object_kind(a.original, &kind, &err);
	if (!rc && kind != ME_OBJECT_NONE)
		return me_cli_verify_object(cli, a.original);
	if (!rc)
		rc = me_verify_files(a.original, &cli->options, &report, &relinkable, &err);
	if (!rc && a.kinds && !(a.kinds & 1u << report.kind))
		rc = mp_err_set(&err, EPERM, "%s: is of another kind: %s", cli->options.input,
				me_kind_name(report.kind));
	if (rc)
		me_cli_complain(&err);
	else if (!cli->quiet)
		rc = me_cli_flush(me_report_verified(stdout, cli->json, a.original, &cli->options,
						     &report, relinkable));
	return me_cli_exit_status(rc);
}
