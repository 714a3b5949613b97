// SPDX-License-Identifier: Apache-2.0
/*
 * run_tool - runs another program of Morph for a command that a user typed: in the foreground, with its
 * messages on this terminal, and reads the JSON that it prints. Called by the requests of morph.
 */
#ifndef MD_RUN_TOOL_H
#define MD_RUN_TOOL_H

#include <jansson.h>

#include "libprof/base/err.h"

/*
 * md_run_tool - runs @argv[0], a program beside this one or in PATH. *@out (may be NULL): the JSON
 * object that it printed, or NULL. Return: its exit status, 128 + signal, or -errno with a message.
 * Ownership: json_decref(*@out).
 */
int md_run_tool(char *const *argv, json_t **out, struct mp_err *err);

#endif
