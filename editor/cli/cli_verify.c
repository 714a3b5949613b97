// SPDX-License-Identifier: Apache-2.0
/* cli_verify - `morph-optimize verify': two files that exist, and nothing is written. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "editor/cli/cli.h"
#include "editor/cli/explain.h"
#include "editor/cli/report.h"

#define MP_OPTIONS struct me_cli

static const struct mp_option options[] = {
	MP_VALUE(TEXT, "debug-file", 0, options.debug_file, "PATH|auto",
		 "The debug information of ORIGINAL is in this file (auto: where a debugger looks, if "
		 "anywhere): prove that of FILE, too"),
	MP_VALUE(TEXT, "debug-output", 0, options.debug_output, "PATH",
		 "Where that of FILE is (default: where the link in FILE leads to, beside it)"),
	MP_FLAG("explain", options.explain,
		"Say what was verified, how often, and what is assumed"),
	ME_CLI_KIND("FILE must be of such a kind: " ME_CLI_KINDS
		    "; may be given several times (default: any)"),
	ME_CLI_THREADS_SHORT,
	MP_OPTIONS_END};

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct me_cli *cli = options;

	if (cli->options.input)
		argp_error(state, "two files at a time");
	if (cli->original)
		cli->options.input = arg;
	else
		cli->original = arg;
}

static void check(void *options, struct argp_state *state)
{
	const struct me_optimize_options *o = &((struct me_cli *)options)->options;

	if (!o->input)
		argp_error(state, "which files? The original, and what was made of it");
	if (o->debug_output && !o->debug_file)
		argp_error(state, "--debug-output needs --debug-file");
}

static const struct mp_option *const more[] = {me_cli_report_options, NULL};

static const struct mp_usage usage = {
	.options = options,
	.more = more,
	.arguments = "ORIGINAL FILE",
	.word = take_word,
	.check = check,
	.doc = "Prove that FILE is what morph-optimize may have made of ORIGINAL. Nothing is written."};

int me_cli_verify(struct me_cli *cli, int argc, char **argv)
{
	struct me_verify_report report = {0};
	enum me_object_kind kind;
	struct mp_err err = {""};
	bool relinkable = false;
	int rc;

	me_cli_parse(&usage, cli, argc, argv);
	rc = me_object_kind(cli->original, &kind, &err);
	if (!rc && kind != ME_OBJECT_NONE)
		return me_cli_verify_object(cli, cli->original);
	if (!rc)
		rc = me_verify_files(cli->original, &cli->options, &report, &relinkable, &err);
	if (!rc && cli->kinds && !(cli->kinds & 1u << report.kind))
		rc = mp_err_set(&err, EPERM, "%s: is of another kind: %s", cli->options.input,
				me_kind_name(report.kind));
	if (rc)
		me_cli_complain(&err);
	else if (!cli->quiet)
		rc = me_cli_flush(me_report_verified(stdout, cli->json, cli->original,
						     &cli->options, &report, relinkable));
	return me_cli_exit_status(rc);
}
