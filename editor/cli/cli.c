// SPDX-License-Identifier: Apache-2.0
/*
 * cli - the list of commands. cli_common says how each of them starts and ends. Called by the commands in
 * cli_<command>.c.
 */
#include "editor/cli/cli.h"

static const struct me_cli_command commands[] = {
	{{"train", "sample, count, optimise and audit a command"}, me_cli_train},
	{{"refine", "find the fastest version by a profile and a command"}, me_cli_refine},
	{{"instrument", "write a version that counts branches or tells paths"}, me_cli_instrument},
	{{"verify", "prove that a file is what Morph may have made of another"}, me_cli_verify},
	{{"adopt", "put an output that was written earlier in the place of its original"},
	 me_cli_adopt},
	{{"restore", "put the original back that adopt or --in-place replaced"}, me_cli_restore},
};

const struct mp_commands me_cli_commands = {.program = "morph-optimize", MP_COMMANDS(commands)};
