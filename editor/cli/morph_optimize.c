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
#include "editor/base/defaults.h"
#include "libprof/cli/bus_error.h"
#include "libprof/cli/program.h"

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
		.options = {.min_samples = MP_MIN_SAMPLES,
			    .estimator = MP_ESTIMATE_PATHS,
			    .layout = {.block_order = ME_ORDER_PH,
				       .choose_functions = true,
				       .line_log2 = ME_LINE_LOG2,
				       .slots = true,
				       .inline_leaves = true}},
	};
	const struct mp_command *command;

	mallopt(M_MMAP_THRESHOLD, LARGE_ARRAY);
	mallopt(M_TRIM_THRESHOLD, LARGE_ARRAY);
	me_confirm_main(argv);
	mp_program_init("morph-optimize");
	mp_bus_error_catch("morph-optimize", remove_all);
	if (argc > 1 && !strcmp(argv[1], ME_CLI_EACH))
		return me_cli_several(&cli, argc, argv);
	/* Only the first word is a command: `./train' and `-- train' are files. */
	command = mp_commands_find(&me_cli_commands, argc > 1 ? argv[1] : "");
	if (!command)
		return me_cli_optimize(&cli, argc, argv);
	mp_commands_enter(&me_cli_commands, command, 1, &argc, &argv);
	return ((const struct me_cli_command *)command)->run(&cli, argc, argv);
}
