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
#include "libprof/cli/args.h"
#include "libprof/cli/bus_error.h"
#include "libprof/cli/commands_help.h"
#include "libprof/cli/stdio.h"

#ifndef MORPH_VERSION
#define MORPH_VERSION "unknown"
#endif

const char *argp_program_version = "morph " MORPH_VERSION;

static const struct command {
	const char *name, *doc;
	int (*run)(struct md_stats *stats, int argc, char **argv);
} commands[] = {
	{"top", "what takes the machine's time, live", md_morph_top},
	{"list", "the programs, what became of each, and who still uses an old file",
	 md_morph_list},
	{"explain", "why a program was not optimised", md_morph_explain},
	{"history", "every decision, with its evidence", md_morph_history},
	{"optimize", "write, verify and measure a faster version of a program", md_morph_optimize},
	{"adopt", "put the faster version of a program in its place", md_morph_adopt},
	{"undo", "put the original back", md_morph_undo},
	{"watch", "look after programs from now on", md_morph_watch},
	{"report", "write a page about the machine", md_morph_report},
};

struct line {
	struct md_stats stats;
	const struct command *command;
	const char *other; /* a program morph-OTHER */
	int first;	   /* index of the command's name in argv */
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
	case ARGP_KEY_INIT: state->child_inputs[0] = &line->stats; return 0;
	case ARGP_KEY_ARG:
		line->command = find_command(arg);
		if (!line->command)
			line->other = arg;
		line->first = state->next - 1;
		state->next = state->argc;
		return 0;
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

static const struct argp_child children[] = {{&md_stats_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	.parser = parse,
	.args_doc = "[COMMAND [OPTION...]]",
	.doc = "Say what this machine's time goes to, what Morph made faster, and what is next.\v"
	       "`morph COMMAND --help' says more. Any other COMMAND runs the program "
	       "morph-COMMAND. Exit status: 0 done, 1 failed, 2 usage, 3 no or too little profile, "
	       "4 refused as unsafe, 5 measured and not faster, 7 undecided.",
	.children = children,
	.help_filter = help_filter,
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
		md_stats_fail("%s: no such command; morph --help lists the commands", name);
		return MD_EXIT_USAGE;
	}
	snprintf(program, sizeof(program), "morph-%s", name);
	argv[0] = strdup(program);
	if (!argv[0])
		return md_stats_fail("out of memory");
	mp_child_exec(argv);
	if (errno != ENOENT)
		return md_stats_fail("%s: %s", argv[0], strerror(errno));
	md_stats_fail("%s: no such command, and no program morph-%s; morph --help and morph stats "
		      "--help list the commands",
		      name, name);
	return MD_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	struct line line = {0};
	char name[64];

	mp_stdio_init("morph");
	mp_bus_error_catch("morph", md_interrupt_remove);
	md_stats_set_program("morph");
	md_debuginfod_init();
	setlocale(LC_CTYPE, "");
	argp_err_exit_status = MD_EXIT_USAGE;
	/* Stop at the command: later options belong to it. */
	mp_args_parse(&argp, argc, argv, ARGP_IN_ORDER, &line);
	if (line.other)
		return run_other(line.other, argv + line.first);
	if (!line.command) {
		mp_stdio_parsed();
		return md_morph_overview(&line.stats);
	}
	snprintf(name, sizeof(name), "morph %s", line.command->name);
	argv[line.first] = name;
	return line.command->run(&line.stats, argc - line.first, argv + line.first);
}
