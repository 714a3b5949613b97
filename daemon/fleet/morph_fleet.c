// SPDX-License-Identifier: Apache-2.0
/* morph_fleet - the program morph-fleet: finds the command and runs it. Decides only which one runs. */
#include <argp.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "daemon/fleet/command.h"
#include "daemon/stats/interrupt.h"
#include "libprof/cli/bus_error.h"
#include "libprof/cli/commands.h"
#include "libprof/cli/program.h"

static const struct command {
	struct mp_command command;
	int (*run)(int argc, char **argv);
} commands[] = {
	{{"push", "send the counts of this host that the fleet lacks"}, md_fleet_command_push},
	{{"pull", "read the fleet's profile of a module"}, md_fleet_command_pull},
	{{"modules", "which modules the fleet has counts of"}, md_fleet_command_modules},
	{{"hosts", "which hosts have samples of a module, and how many"}, md_fleet_command_hosts},
	{{"versions", "which versions of a file the hosts use"}, md_fleet_command_versions},
	{{"init", "create the fleet's tables in a database"}, md_fleet_command_init},
	{{"upgrade", "bring the tables up to date"}, md_fleet_command_upgrade},
	{{"check", "say what is wrong with the database"}, md_fleet_command_check},
	{{"enrol", "let hosts send their counts"}, md_fleet_command_enrol},
	{{"ban", "leave hosts out of all sums"}, md_fleet_command_ban},
	{{"unban", "take a ban back"}, md_fleet_command_unban},
	{{"forget", "delete the counts of old days"}, md_fleet_command_forget},
	{{"request", "ask for a build of a module"}, md_fleet_command_request},
	{{"builds", "which builds there are, and on how many hosts"}, md_fleet_command_builds},
	{{"build", "make the builds that were asked for"}, md_fleet_command_build},
	{{"install", "put the fleet's build of a file in its place, once it is proved"},
	 md_fleet_command_install},
	{{"renew", "look after the fleet's builds that are in place here"}, md_fleet_command_renew},
	{{"canary", "show and steer which hosts get a build"}, md_fleet_command_canary},
	{{"report", "write a page about the fleet"}, md_fleet_command_report},
};

static const struct mp_commands program = {.program = "morph-fleet", MP_COMMANDS(commands)};

static const struct argp argp = {
	.args_doc = "COMMAND [OPTION...]",
	.doc = "Share the counts of many machines: a host sends its own, and reads the sum of all.\v"
	       "`morph-fleet COMMAND --help' says more. Exit status: 0 done, 1 failed, 2 usage, 3 "
	       "no profile, 4 a build was refused, 75 the server is gone: try again later.",
};

int main(int argc, char **argv)
{
	const struct command *command;

	mp_program_init("morph-fleet");
	mp_bus_error_catch("morph-fleet", md_interrupt_remove);
	setlocale(LC_CTYPE, "");
	command = (const struct command *)mp_commands_parse(&program, &argp, &argc, &argv, NULL);
	return command->run(argc, argv);
}
