// SPDX-License-Identifier: Apache-2.0
/*
 * cli_several - several command lines in one call, so that a file of which several outputs are wanted is analysed once:
 *
 *	morph-optimize --each -o NEW FILE --each instrument --kind=meter --meter=PLACES -o METERED FILE
 *
 * Decides which lines go together. Called by main().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/cli/cli.h"

#define LINES_MAX 4

static void refuse(const char *why)
{
	fprintf(stderr, "morph-optimize: %s\n", why);
	exit(MP_EXIT_USAGE);
}

/* Lines that do more than to write an output have to stand alone. */
static bool is_simple(const struct me_cli *cli)
{
	return cli->options.output && !cli->default_output && !cli->in_place && !cli->printing &&
	       !cli->fleet && !cli->patch_list && cli->kind == ME_OBJECT_NONE;
}

static void parse(struct me_cli *cli, int argc, char **argv)
{
	const struct mp_command *command =
		mp_commands_find(&me_cli_commands, argc > 1 ? argv[1] : "");

	if (command && ((const struct me_cli_command *)command)->run != me_cli_instrument)
		refuse("behind " ME_CLI_EACH " stands `instrument' or no command");
	if (command) {
		mp_commands_enter(&me_cli_commands, command, 1, &argc, &argv);
		me_cli_parse_instrument(cli, argc, argv);
	} else {
		me_cli_parse_optimize(cli, argc, argv);
	}
	if (!is_simple(cli))
		refuse("a command line behind " ME_CLI_EACH
		       " needs -o, and may only write this output");
}

/* No line's output replaces an input or the output of another line: they are made in another order than they stand in. */
static int check_outputs(const struct me_cli *lines, uint32_t nr, struct mp_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t k = 0; k < nr && !rc; k++)
			if (i != k)
				rc = me_cli_check_output(&lines[k], lines[i].options.output,
							 lines[k].options.output, err);
	return rc;
}

int me_cli_several(const struct me_cli *defaults, int argc, char **argv)
{
	static struct me_cli lines[LINES_MAX];
	struct me_optimize_options more[LINES_MAX];
	struct mp_err err = {""};
	char *program = argv[0];
	uint32_t nr = 0;
	int rc;

	for (int first = 1, end; first < argc; first = end) {
		for (end = first + 1; end < argc && strcmp(argv[end], ME_CLI_EACH) != 0; end++)
			;
		if (nr == LINES_MAX)
			refuse("at most 4 command lines go into one call");
		/* The word before a line becomes the program's name, and ends the line before. */
		argv[first] = program;
		if (end < argc)
			argv[end] = NULL;
		lines[nr] = *defaults;
		parse(&lines[nr++], end - first, argv + first);
	}
	for (uint32_t i = 1; i < nr; i++) {
		rc = me_cli_prepare(&lines[i], &err);
		if (rc) {
			me_cli_complain(&err);
			return me_cli_exit_status(rc);
		}
		more[i - 1] = lines[i].options;
	}
	rc = check_outputs(lines, nr, &err);
	if (rc) {
		me_cli_complain(&err);
		return me_cli_exit_status(rc);
	}
	lines[0].options.then = more;
	lines[0].options.nr_then = nr - 1;
	return me_cli_work(&lines[0], NULL);
}
