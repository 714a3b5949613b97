// SPDX-License-Identifier: Apache-2.0
/*
 * cli_object - `morph-optimize FILE.o --program=PROGRAM -o OUT.o', the same for archives, and
 * `morph-optimize verify' of both.
 */
#include <stdio.h>

#include "editor/cli/cli.h"
#include "editor/cli/object/report_object.h"

int me_cli_object(struct me_cli *cli, const char *program)
{
	struct me_object_report report = {0};
	struct mp_err err = {""};
	int failed = 0, rc = me_cli_choose_db(cli, &err);

	if (!rc)
		rc = me_cli_check_output(cli, cli->options.output, program, &err);
	if (!rc)
		rc = me_object_optimize(&cli->options, program, &report, &err);
	if (rc)
		me_cli_complain(&err);
	else if (!cli->quiet)
		failed = me_cli_flush(
			me_report_object(stdout, cli->json, &cli->options, program, &report));
	me_object_report_fini(&report);
	me_words_fini(&cli->options.skip);
	me_words_fini(&cli->options.only);
	me_words_fini(&cli->options.adjust_words);
	return me_cli_exit_status(rc ? rc : failed);
}

int me_cli_verify_object(struct me_cli *cli, const char *original)
{
	struct me_verify_object_report report = {0};
	struct mp_err err = {""};
	int rc = me_verify_object_files(original, cli->options.input, &report, &err);

	if (rc)
		me_cli_complain(&err);
	else if (!cli->quiet)
		rc = me_cli_flush(me_report_object_verified(stdout, cli->json, cli->options.input,
							    original, &report));
	return me_cli_exit_status(rc);
}
