// SPDX-License-Identifier: Apache-2.0
/* commands_help - writes the list of commands; see commands_help.h. */
#include "libprof/cli/commands_help.h"

#include <argp.h>
#include <stdio.h>

char *mp_commands_help(int key, const char *text, struct mp_command_help (*get)(size_t i),
		       int width)
{
	struct mp_command_help command;
	char *out = NULL;
	size_t size;
	FILE *file;

	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	file = open_memstream(&out, &size);
	if (!file)
		return (char *)text;
	fputs("Commands:\n", file);
	for (size_t i = 0; command = get(i), command.name; i++)
		fprintf(file, "  %-*s  %s\n", width, command.name, command.doc);
	fputs(text, file);
	return fclose(file) ? (char *)text : out;
}
