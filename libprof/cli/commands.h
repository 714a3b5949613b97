// SPDX-License-Identifier: Apache-2.0
/*
 * commands - programs with commands: which command runs, and the list in --help. A program's table of
 * commands is its only list. Called by main() of such programs.
 */
#ifndef MP_COMMANDS_H
#define MP_COMMANDS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

/* The beginning of each row of a program's table; what runs the command follows. */
struct mp_command {
	const char *name, *doc;
};

struct mp_commands {
	const char *program;
	const struct mp_command *first; /* of the first row */
	size_t row_bytes, nr;
	bool goes_on; /* without a command, and with an unknown one: neither is a usage error */
	/* Do the options before @command go with it? If not, argp_error(). NULL: they do. */
	void (*check)(struct argp_state *state, const struct mp_command *command, void *input);
};

/* Of the rows of @table, which begin with a field `command'. */
#define MP_COMMANDS(table)                                                                         \
	.first = &(table)[0].command, .row_bytes = sizeof((table)[0]),                             \
	.nr = sizeof(table) / sizeof((table)[0])

/* Return: the row of @name, which begins with this; NULL: there is none. */
const struct mp_command *mp_commands_find(const struct mp_commands *commands, const char *name);

/*
 * mp_commands_parse - reads the options before the command, by the first child of @argp, whose input is @input, and
 * stops at the command: later options belong to it. @argp has no parser. *@argc, *@argv: on return those of the
 * command; argv[0] is "PROGRAM COMMAND".
 * Return: the command's row; NULL, with goes_on: argv[0] is no command, or NULL.
 */
const struct mp_command *mp_commands_parse(const struct mp_commands *commands,
					   const struct argp *argp, int *argc, char ***argv,
					   void *input);
/* Makes argv[@at] the beginning of the arguments of @command, as above. */
void mp_commands_enter(const struct mp_commands *commands, const struct mp_command *command, int at,
		       int *argc, char ***argv);
/*
 * help_filter of a program's argp: puts the list of commands before the text behind the options. Of the
 * commands that are found or parsed last.
 */
char *mp_commands_help(int key, const char *text, void *input);

#endif
