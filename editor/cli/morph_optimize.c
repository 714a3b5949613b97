// SPDX-License-Identifier: Apache-2.0
/*
 * morph-optimize - the offline editor. Decides only which command runs; each command is in
 * cli_<command>.c.
 */
#include <argp.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/scratch.h"
#include "editor/cli/cli.h"
#include "editor/cli/answer_confirm.h"
#include "editor/emit/publish.h"
#include "libprof/cli/bus_error.h"
#include "libprof/cli/stdio.h"

#ifndef MORPH_VERSION
#define MORPH_VERSION "unknown"
#endif

const char *argp_program_version = "morph-optimize " MORPH_VERSION;

/* Only the first word is a command: `./train' and `-- train' are files. */
static const struct me_cli_command *find_command(int argc, char **argv)
{
	const struct me_cli_command *command = me_cli_commands;

	while (command->name && (argc < 2 || strcmp(command->name, argv[1])))
		command++;
	return command->name ? command : NULL;
}

/*
 * Arrays of this size are mappings of their own, whatever was freed before. Otherwise malloc() raises
 * the limit to 32 MiB, and large arrays that are filled only in part take the memory of others. Smaller
 * arrays are quicker where memory was used before.
 */
#define LARGE_ARRAY (4 << 20)

/* For a signal handler. */
static void remove_all(void)
{
	me_publish_remove_all();
	me_scratch_remove_all();
}

int main(int argc, char **argv)
{
	struct me_cli cli = {
		.options = {.min_samples = ME_MIN_SAMPLES,
			    .estimator = MP_ESTIMATE_PATHS,
			    .layout = {.block_order = ME_ORDER_PH,
				       .choose_functions = true,
				       .line_log2 = 6,
				       .slots = true,
				       .inline_leaves = true}},
	};
	const struct me_cli_command *command;
	char name[64];

	mallopt(M_MMAP_THRESHOLD, LARGE_ARRAY);
	mallopt(M_TRIM_THRESHOLD, LARGE_ARRAY);
	me_confirm_main(argv);
	mp_stdio_init("morph-optimize");
	mp_bus_error_catch("morph-optimize", remove_all);
	argp_err_exit_status = ME_CLI_USAGE;
	command = find_command(argc, argv);
	if (!command)
		return me_cli_optimize(&cli, argc, argv);
	snprintf(name, sizeof(name), "morph-optimize %s", command->name);
	argv[1] = name;
	return command->run(&cli, argc - 1, argv + 1);
}
