// SPDX-License-Identifier: Apache-2.0
/* tool - finds and runs programs: Morph's own and the user's command. Called by refine/ and cli/. */
#ifndef ME_TOOL_H
#define ME_TOOL_H

#include <limits.h>
#include <stdbool.h>

#include "libprof/base/err.h"

struct me_tool {
	char path[PATH_MAX];
};

/* One of Morph's own programs: beside this one, where it was installed, or in $PATH. */
int me_tool_find(const char *name, struct me_tool *out, struct mp_err *err);
/* Return: the wait status, or -errno. @quiet: the output goes nowhere. */
int me_tool_run(char *const *argv, bool quiet);
/* The words of @first, then those of @command. Return: NULL: no memory. Ownership: free(). */
char **me_tool_with_command(char *const *first, char *const *command);

/* One run of a command in which one file's place holds another version. */
struct me_in_place {
	const char *dir;     /* where a copy of the version may lie */
	const char *at;	     /* the file that the command uses */
	const char *version; /* its stand-in; may be @at itself */
	const char *program; /* what is executed */
	char *const *argv;
};

struct me_in_place_result {
	double cpu_s, wall_s;
	int status;	       /* wait status */
	char last_stderr[160]; /* last line of standard error */
};

/*
 * me_in_place_run - runs in a process of its own, whose view of the file system changes. The output
 * goes nowhere, and the input is empty. Return: 0 whatever the program's status; -ECANCELED:
 * interrupted; -errno.
 */
int me_in_place_run(const struct me_in_place *run, struct me_in_place_result *result,
		    struct mp_err *err);

#endif
