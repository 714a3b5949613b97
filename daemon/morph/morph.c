// SPDX-License-Identifier: Apache-2.0
/*
 * morph - one command for all of Morph. Decides only which command runs: its own, or the program
 * morph-COMMAND, as git does.
 */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/code/debuginfod.h"
#include "daemon/morph/morph.h"
#include "daemon/stats/interrupt.h"
#include "libprof/base/child.h"
#include "libprof/cli/bus_error.h"
#include "libprof/cli/commands.h"
#include "libprof/cli/program.h"
#include "libprof/cli/stdio.h"

static const struct command {
	struct mp_command command;
	int (*run)(struct md_cli *cli, int argc, char **argv);
} commands[] = {
	{{"top", "what takes the machine's time, live"}, md_morph_top},
	{{"list", "the programs, what became of each, and who still uses an old file"},
	 md_morph_list},
	{{"explain", "why a program was not optimised"}, md_morph_explain},
	{{"history", "every decision, with its evidence"}, md_morph_history},
	{{"optimize", "write, verify and measure a faster version of a program"},
	 md_morph_optimize},
	{{"adopt", "put the faster version of a program in its place"}, md_morph_adopt},
	{{"undo", "put the original back"}, md_morph_undo},
	{{"watch", "look after programs from now on"}, md_morph_watch},
	{{"on", "make this machine's programs faster from now on"}, md_morph_on},
	{{"off", "stop that, and put every original back"}, md_morph_off},
	{{"live", "put faster code into running processes, or take it back"}, md_morph_live},
	{{"report", "write a page about the machine"}, md_morph_report},
};

static const struct mp_commands program = {
	.program = "morph", MP_COMMANDS(commands), .goes_on = true};

static const struct argp_child children[] = {{&md_cli_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	.args_doc = "[COMMAND [OPTION...]]",
	.doc = "Say what this machine's time goes to, what Morph made faster, and what is next.\v"
	       "`morph COMMAND --help' says more. Any other COMMAND runs the program "
	       "morph-COMMAND. Exit status: 0 done, 1 failed, 2 usage, 3 no or too little profile, "
	       "4 refused as unsafe, 5 measured and not faster, 7 undecided, 75 try again "
	       "later (live).",
	.children = children,
};

static bool is_word(const char *name)
{
	return *name && *name != '-' &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")];
}

/* Runs morph-NAME from morph's own folder, else from PATH. Returns only if there is none. */
static int run_other(const char *name, char **argv)
{
	char program[300];

	if (!is_word(name) || strlen(name) > 200) {
		md_cli_fail("%s: no such command; morph --help lists the commands", name);
		return MP_EXIT_USAGE;
	}
	snprintf(program, sizeof(program), "morph-%s", name);
	argv[0] = strdup(program);
	if (!argv[0])
		return md_cli_fail("out of memory");
	mp_child_exec(argv);
	if (errno != ENOENT)
		return md_cli_fail("%s: %s", argv[0], strerror(errno));
	md_cli_fail("%s: no such command, and no program morph-%s; morph --help and morph stats "
		    "--help list the commands",
		    name, name);
	return MP_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command;
	struct md_cli cli = {0};

	mp_program_init("morph");
	mp_bus_error_catch("morph", md_interrupt_remove);
	md_cli_set_program("morph");
	md_debuginfod_init();
	setlocale(LC_CTYPE, "");
	command = (const struct command *)mp_commands_parse(&program, &argp, &argc, &argv, &cli);
	if (command)
		return command->run(&cli, argc, argv);
	if (argc)
		return run_other(argv[0], argv);
	mp_stdio_parsed();
	return md_morph_overview(&cli);
}
