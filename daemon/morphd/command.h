// SPDX-License-Identifier: Apache-2.0
/*
 * command - the program of `morphd run`: starts it, holds it until sampling is ready, lets it
 * go, and waits for it. Signals sent to morphd are passed on to it. Called by morphd's main.
 */
#ifndef MD_COMMAND_H
#define MD_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "libprof/base/err.h"

struct md_command {
	pid_t pid;
	int go;	    /* write end of a pipe: a byte lets the program start */
	int failed; /* read end of a pipe: carries the errno of a failed exec */
	bool ended;
	int status; /* as waitpid() gives it */
};

/* Creates the process; the program does not run yet. Return: 0 or -errno. */
int md_command_start(char **argv, struct md_command *out, struct mp_err *err);
/* Lets the program run. Return: 0, or -errno of the exec. */
int md_command_go(struct md_command *command, const char *name, struct mp_err *err);
/* True once the program has ended. Never waits. */
bool md_command_has_ended(struct md_command *command);
/* Return: the exit status; 128 + signal if a signal ended the program. */
int md_command_status(const struct md_command *command);
/* Ends the process without running the program. */
void md_command_abandon(struct md_command *command);

#endif
