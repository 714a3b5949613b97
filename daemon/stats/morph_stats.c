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
#include "libprof/cli/bus_error.h"
#include "libprof/cli/commands.h"
#include "libprof/cli/program.h"

static const struct command {
	struct mp_command command;
	int (*run)(struct md_cli *cli, int argc, char **argv);
	bool reads_fleet; /* with --fleet */
} commands[] = {
	{{"status", "what was collected, how, and what became of it"}, md_stats_status, false},
	{{"query", "samples by module, function or basic block"}, md_stats_query, true},
	{{"annotate", "a function's instructions with the samples of each"},
	 md_stats_annotate,
	 true},
	{{"diff", "what became slower or faster between two databases or periods"},
	 md_stats_diff,
	 false},
	{{"heat", "a picture: where the code that runs lies, before and after"},
	 md_stats_heat,
	 true},
	{{"flame", "a picture: the samples of modules, functions and blocks"}, md_stats_flame, true},
	{{"calls", "the call graph: which call site called which function, how often"},
	 md_stats_call_graph,
	 false},
	{{"activity", "share of application, library and kernel per program"},
	 md_stats_activity,
	 false},
	{{"audit", "which versions of functions were faster, by audits inside programs"},
	 md_stats_audit,
	 false},
	{{"import", "add callgrind's counts, BOLT's fdata, the text of perf script, ..."},
	 md_stats_import,
	 false},
	{{"merge", "add databases up into one"}, md_stats_merge, false},
	{{"remember", "keep fingerprints of files, so that samples serve later builds"},
	 md_stats_remember,
	 false},
	{{"trials", "which versions of files refining audited"}, md_stats_trials, false},
	{{"export", "samples and counts for other tools: BOLT, pprof, linkers, ..."},
	 md_stats_export,
	 true},
};

static void check(struct argp_state *state, const struct mp_command *command, void *input)
{
	const struct md_cli *cli = input;

	if (cli->fleet && !((const struct command *)command)->reads_fleet)
		argp_error(state, "--fleet goes with query, annotate, heat, flame and export");
}

static const struct mp_commands program = {
	.program = "morph-stats", MP_COMMANDS(commands), .check = check};

static const struct argp_child children[] = {{&md_cli_fleet_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
	.args_doc = "COMMAND [OPTION...]",
	.doc = "Ask Morph's database what was collected.\v"
	       "`morph-stats COMMAND --help' says more. Exit status: 0 done, 1 failed, 2 usage, "
	       "3 no profile.",
	.children = children,
};

int main(int argc, char **argv)
{
	const struct command *command;
	struct md_cli cli = {0};

	mp_program_init("morph-stats");
	mp_bus_error_catch("morph-stats", md_interrupt_remove);
	md_debuginfod_init();
	setlocale(LC_CTYPE, "");
	command = (const struct command *)mp_commands_parse(&program, &argp, &argc, &argv, &cli);
	return command->run(&cli, argc, argv);
}
