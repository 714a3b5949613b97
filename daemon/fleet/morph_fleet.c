// SPDX-License-Identifier: Apache-2.0
/* morph_fleet - the program morph-fleet: finds the command and runs it. Decides only which one runs. */
#include <argp.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "daemon/fleet/command.h"
#include "daemon/stats/interrupt.h"
#include "libprof/cli/args.h"
#include "libprof/cli/bus_error.h"
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
	{"push", "send the counts of this host that the fleet lacks", md_fleet_command_push},
	{"pull", "read the fleet's profile of a module", md_fleet_command_pull},
	{"modules", "which modules the fleet has counts of", md_fleet_command_modules},
	{"hosts", "which hosts have samples of a module, and how many", md_fleet_command_hosts},
	{"versions", "which versions of a file the hosts use", md_fleet_command_versions},
	{"init", "create the fleet's tables in a database", md_fleet_command_init},
	{"upgrade", "bring the tables up to date", md_fleet_command_upgrade},
	{"check", "say what is wrong with the database", md_fleet_command_check},
	{"enrol", "let hosts send their counts", md_fleet_command_enrol},
	{"ban", "leave hosts out of all sums", md_fleet_command_ban},
	{"unban", "take a ban back", md_fleet_command_unban},
	{"forget", "delete the counts of old days", md_fleet_command_forget},
	{"request", "ask for a build of a module", md_fleet_command_request},
	{"builds", "which builds there are, and on how many hosts", md_fleet_command_builds},
	{"build", "make the builds that were asked for", md_fleet_command_build},
	{"install", "put the fleet's build of a file in its place, once it is proved",
	 md_fleet_command_install},
	{"renew", "look after the fleet's builds that are in place here", md_fleet_command_renew},
	{"canary", "show and steer which hosts get a build", md_fleet_command_canary},
	{"report", "write a page about the fleet", md_fleet_command_report},
};

struct line {
	const struct command *command;
	int first; /* index of the command's name in argv */
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct line *line = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		line->command = find_command(arg);
		if (!line->command)
			argp_error(state, "%s: no such command", arg);
		line->first = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS: argp_error(state, "no command given"); return EINVAL;
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
	.doc = "Share the counts of many machines: a host sends its own, and reads the sum of all.\v"
	       "`morph-fleet COMMAND --help' says more. Exit status: 0 done, 1 failed, 2 usage, 3 "
	       "no profile, 4 a build was refused, 75 the server is gone: try again later.",
	.help_filter = help_filter,
};

int main(int argc, char **argv)
{
	struct line line = {0};
	char name[64];

	mp_stdio_init("morph-fleet");
	mp_bus_error_catch("morph-fleet", md_interrupt_remove);
	setlocale(LC_CTYPE, "");
	argp_err_exit_status = MD_FLEET_USAGE;
	/* Stop at the command: later options belong to it. */
	mp_args_parse(&argp, argc, argv, ARGP_IN_ORDER, &line);
	snprintf(name, sizeof(name), "morph-fleet %s", line.command->name);
	argv[line.first] = name;
	return line.command->run(argc - line.first, argv + line.first);
}
