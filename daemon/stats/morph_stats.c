// SPDX-License-Identifier: Apache-2.0
/*
 * morph-stats - reports what the store has collected. Decides only which command runs; each
 * command is in stats_<command>.c.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/debuginfod.h"
#include "daemon/stats/interrupt.h"
#include "daemon/stats/stats.h"
#include "libprof/cli/args.h"
#include "libprof/cli/bus_error.h"
#include "libprof/cli/commands_help.h"
#include "libprof/cli/stdio.h"

#ifndef MORPH_VERSION
#define MORPH_VERSION "unknown"
#endif

const char *argp_program_version = "morph-stats " MORPH_VERSION;

static const struct command {
	const char *name, *doc;
	int (*run)(struct md_stats *stats, int argc, char **argv);
	bool reads_fleet; /* with --fleet */
} commands[] = {
	{"status", "what was collected, how, and what became of it", md_stats_status, false},
	{"query", "samples by module, function or basic block", md_stats_query, true},
	{"annotate", "a function's instructions with the samples of each", md_stats_annotate, true},
	{"diff", "what became slower or faster between two databases or periods", md_stats_diff,
	 false},
	{"heat", "a picture: where the code that runs lies, before and after", md_stats_heat, true},
	{"flame", "a picture: the samples of modules, functions and blocks", md_stats_flame, true},
	{"calls", "the call graph: which call site called which function, how often",
	 md_stats_call_graph, false},
	{"activity", "share of application, library and kernel per program", md_stats_activity,
	 false},
	{"audit", "which versions of functions were faster, by audits inside programs",
	 md_stats_audit, false},
	{"import", "add callgrind's counts, BOLT's fdata, the text of perf script, ...",
	 md_stats_import, false},
	{"merge", "add databases up into one", md_stats_merge, false},
	{"remember", "keep fingerprints of files, so that samples serve later builds",
	 md_stats_remember, false},
	{"trials", "which versions of files refining audited", md_stats_trials, false},
	{"export", "samples and counts for other tools: BOLT, pprof, linkers, ...", md_stats_export,
	 true},
};

struct line {
	struct md_stats stats;
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
	case ARGP_KEY_INIT: state->child_inputs[0] = &line->stats; return 0;
	case ARGP_KEY_ARG:
		line->command = find_command(arg);
		if (!line->command)
			argp_error(state, "%s: no such command", arg);
		line->first = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS: argp_error(state, "no command given"); return EINVAL;
	case ARGP_KEY_SUCCESS:
		if (line->stats.fleet && !line->command->reads_fleet)
			argp_error(state,
				   "--fleet goes with query, annotate, heat, flame and export");
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

static const struct argp_child children[] = {{&md_stats_fleet_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	.parser = parse,
	.args_doc = "COMMAND [OPTION...]",
	.doc = "Ask Morph's database what was collected.\v"
	       "`morph-stats COMMAND --help' says more. Exit status: 0 done, 1 failed, 2 usage, "
	       "3 no profile.",
	.children = children,
	.help_filter = help_filter,
};

int main(int argc, char **argv)
{
	struct line line = {0};
	char name[64];

	mp_stdio_init("morph-stats");
	mp_bus_error_catch("morph-stats", md_interrupt_remove);
	md_debuginfod_init();
	setlocale(LC_CTYPE, "");
	argp_err_exit_status = MD_EXIT_USAGE;
	/* Stop at the command: later options belong to it. */
	mp_args_parse(&argp, argc, argv, ARGP_IN_ORDER, &line);
	snprintf(name, sizeof(name), "morph-stats %s", line.command->name);
	argv[line.first] = name;
	return line.command->run(&line.stats, argc - line.first, argv + line.first);
}
