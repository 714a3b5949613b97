/* SPDX-License-Identifier: Apache-2.0 */
/* eligible_tool - the main function of tools that print what they find in the functions of a file. */
#ifndef TESTS_ELIGIBLE_TOOL_H
#define TESTS_ELIGIBLE_TOOL_H

#include "editor/evidence/eligible.h"
#include "libprof/cfg/cfg.h"

typedef void eligible_tool_print(const struct mp_cfg *cfg, const struct me_eligible *eligible);

/*
 * eligible_tool - analyses FILE, the only argument of the tool @name, and calls @print.
 * Return: the exit status. Prints a message on an error.
 */
int eligible_tool(int argc, char **argv, const char *name, eligible_tool_print *print);

#endif
