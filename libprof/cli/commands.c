// SPDX-License-Identifier: Apache-2.0
/* commands - see commands.h. */
#include "libprof/cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "libprof/cli/args.h"

/* For argp, which passes nothing of ours to help_filter. */
static const struct mp_commands *known;

static const struct mp_command *row(const struct mp_commands *commands, size_t i)
{
	return (const struct mp_command *)((const char *)commands->first + i * commands->row_bytes);
}

const struct mp_command *mp_commands_find(const struct mp_commands *commands, const char *name)
{
	known = commands;
	for (size_t i = 0; i < commands->nr; i++)
		if (!strcmp(row(commands, i)->name, name))
			return row(commands, i);
	return NULL;
}

/* ---- the words before the command ---------------------------------------------------------- */

struct line {
	const struct mp_commands *commands;
	void *input;
	const struct mp_command *command;
	int at; /* index of the command in argv; argc: there is none */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct line *line = state->input;
	const struct mp_commands *commands = line->commands;

	switch (key) {
	case ARGP_KEY_INIT:
		if (line->input)
			state->child_inputs[0] = line->input;
		return 0;
	case ARGP_KEY_ARG:
		line->command = mp_commands_find(commands, arg);
		if (!line->command && !commands->goes_on)
			argp_error(state, "%s: no such command", arg);
		line->at = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		if (!commands->goes_on)
			argp_error(state, "no command given");
		return 0;
	case ARGP_KEY_SUCCESS:
		if (commands->check)
			commands->check(state, line->command, line->input);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct mp_command *mp_commands_parse(const struct mp_commands *commands,
					   const struct argp *argp, int *argc, char ***argv,
					   void *input)
{
	struct argp whole = *argp;
	struct line line = {commands, input, NULL, *argc};

	known = commands;
	whole.parser = parse;
	whole.help_filter = mp_commands_help;
	mp_args_parse(&whole, *argc, *argv, ARGP_IN_ORDER, &line);
	mp_commands_enter(commands, line.command, line.at, argc, argv);
	return line.command;
}

void mp_commands_enter(const struct mp_commands *commands, const struct mp_command *command, int at,
		       int *argc, char ***argv)
{
	static char name[64];

	*argc -= at;
	*argv += at;
	if (!command)
		return;
	snprintf(name, sizeof(name), "%s %s", commands->program, command->name);
	(*argv)[0] = name;
}

/* ---- --help -------------------------------------------------------------------------------- */

char *mp_commands_help(int key, const char *text, void *input)
{
	size_t width = 0, size;
	char *out = NULL;
	FILE *file;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	file = open_memstream(&out, &size);
	if (!file)
		return (char *)text;
	for (size_t i = 0; i < known->nr; i++)
		if (strlen(row(known, i)->name) > width)
			width = strlen(row(known, i)->name);
	fputs("Commands:\n", file);
	for (size_t i = 0; i < known->nr; i++)
		fprintf(file, "  %-*s  %s\n", (int)width, row(known, i)->name, row(known, i)->doc);
	fputs(text, file);
	return fclose(file) ? (char *)text : out;
}
