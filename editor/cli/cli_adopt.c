// SPDX-License-Identifier: Apache-2.0
/* cli_adopt - `morph-optimize adopt': put an output that exists in the place of its original. */
#include <argp.h>
#include <stdio.h>

#include "editor/cli/cli.h"
#include "editor/cli/report.h"

#define MP_OPTIONS struct me_cli

static const struct mp_option options[] = {
	ME_CLI_KIND("OUTPUT may be of such a kind: " ME_CLI_KINDS
		    "; may be given several times (default: layout)"),
	MP_FLAG("proved", inplace.proved,
		"Do not verify again an OUTPUT that your own morph-optimize noted as proved against this original, by the "
		"hashes of both; verify any other one"),
	MP_LETTER_FLAG("dry-run", 'n', inplace.dry_run,
		       "Do everything, verification too, but replace no file"),
	ME_CLI_THREADS_SHORT, MP_OPTIONS_END};

static void take_word(void *options, char *arg, struct argp_state *state)
{
	struct me_cli *cli = options;

	if (cli->adopted)
		argp_error(state, "two files at a time");
	if (cli->options.input)
		cli->adopted = arg;
	else
		cli->options.input = arg;
}

static void check(void *options, struct argp_state *state)
{
	if (!((struct me_cli *)options)->adopted)
		argp_error(state, "which files? FILE, and what was made of it");
}

static const struct mp_option *const more[] = {me_cli_report_options, me_cli_backup_options, NULL};

static const struct mp_usage usage = {
	.options = options,
	.more = more,
	.arguments = "FILE OUTPUT",
	.word = take_word,
	.check = check,
	.doc = "Put OUTPUT, which morph-optimize made of FILE and which verifies, in the place of FILE, and "
	       "keep the original in the backup directory."};

int me_cli_adopt(struct me_cli *cli, int argc, char **argv)
{
	struct me_inplace_report done;
	struct mp_err err = {""};
	int rc;

	me_cli_parse(&usage, cli, argc, argv);
	cli->inplace.kinds = cli->kinds;
	rc = me_adopt(cli->options.input, cli->adopted, &cli->inplace, cli->options.nr_threads,
		      &done, &err);
	if (rc)
		me_cli_complain(&err);
	else if (!cli->quiet)
		rc = me_cli_flush(me_report_adopted(stdout, cli->json, cli->options.input,
						    cli->adopted, &done));
	me_inplace_report_fini(&done);
	return me_cli_exit_status(rc);
}
