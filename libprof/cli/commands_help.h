// SPDX-License-Identifier: Apache-2.0
/*
 * commands_help - the list of commands in a program's --help. The program's table of commands is
 * the only list, so that --help names all of them.
 */
#ifndef MP_COMMANDS_HELP_H
#define MP_COMMANDS_HELP_H

#include <stddef.h>

struct mp_command_help {
	const char *name, *doc;
};

/*
 * mp_commands_help - for argp's help_filter. If @key is that of the text behind the options, puts
 * the list of commands before @text. @get: entry number @i; its name is NULL behind the last one.
 * @width: columns of the longest name.
 * Return: @text, or new memory that argp frees.
 */
char *mp_commands_help(int key, const char *text, struct mp_command_help (*get)(size_t i),
		       int width);

#endif
