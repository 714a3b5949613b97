// SPDX-License-Identifier: Apache-2.0
/*
 * command - the program of `morphd run`: started, held back until sampling is ready,
 * let go, and waited for. Signals sent to morphd go on to it.
 */
#ifndef MD_COMMAND_H
#define MD_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "libprof/err.h"

struct md_command {
	pid_t pid;
	int go;	    /* write end: a byte lets the program start */
	int failed; /* read end: the errno of an exec that failed */
	bool ended;
	int status; /* as waitpid() gives it */
};

/* Return: 0 or -errno. The process exists, the program has not started. */
int md_command_start(char **argv, struct md_command *out, struct mp_err *err);
/* Return: 0, or -errno of the exec: the program cannot be run. */
int md_command_go(struct md_command *command, const char *name, struct mp_err *err);
/* True once the program has ended. Never waits. */
bool md_command_has_ended(struct md_command *command);
/* Its exit status, 128 + signal where a signal ended it. */
int md_command_status(const struct md_command *command);
/* It is not to start after all. */
void md_command_abandon(struct md_command *command);

#endif
