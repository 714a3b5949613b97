// SPDX-License-Identifier: Apache-2.0
/* morph_fleet - the commands of the fleet. Decides only which command runs. */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "daemon/fleet/server_command.h"
#include "libprof/cli/commands_help.h"
#include "libprof/cli/stdio.h"

#ifndef MORPH_VERSION
#define MORPH_VERSION "unknown"
#endif

const char *argp_program_version = "morph-fleet " MORPH_VERSION;

static const struct command {
	const char *name, *doc;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"init", "create the fleet's tables in a database", md_fleet_command_init},
	{"upgrade", "bring the tables up to date", md_fleet_command_upgrade},
	{"check", "say what is wrong with the database", md_fleet_command_check},
	{"enrol", "let hosts send their counts", md_fleet_command_enrol},
	{"ban", "leave hosts out of all sums", md_fleet_command_ban},
	{"unban", "take a ban back", md_fleet_command_unban},
	{"forget", "delete the counts of old days", md_fleet_command_forget},
};

struct line {
	const struct command *command;
	int first;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct line *line = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
			if (!strcmp(commands[i].name, arg))
				line->command = &commands[i];
		if (!line->command)
			argp_error(state, "%s: no such command", arg);
		line->first = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS: argp_error(state, "no command given"); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static struct mp_command_help help_of(size_t i)
{
	return i < sizeof(commands) / sizeof(commands[0])
		       ? (struct mp_command_help){commands[i].name, commands[i].doc}
		       : (struct mp_command_help){0};
}

static char *help_filter(int key, const char *text, void *input)
{
	(void)input;
	return mp_commands_help(key, text, help_of, 8);
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "COMMAND [OPTION...]",
	.doc = "Share the counts of many machines.\v"
	       "`morph-fleet COMMAND --help' says more. Exit status: 0 done, 1 failed, 2 usage.",
	.help_filter = help_filter,
};

int main(int argc, char **argv)
{
	struct line line = {0};
	char name[64];

	mp_stdio_init("morph-fleet");
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &line);
	snprintf(name, sizeof(name), "morph-fleet %s", line.command->name);
	argv[line.first] = name;
	return line.command->run(argc - line.first, argv + line.first);
}
