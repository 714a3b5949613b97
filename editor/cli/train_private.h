// SPDX-License-Identifier: Apache-2.0
/*
 * train_private - one training: its state, and what its steps share. Only train*.c include this
 * header.
 */
#ifndef ME_TRAIN_PRIVATE_H
#define ME_TRAIN_PRIVATE_H

#include <limits.h>
#include <stdbool.h>

#include "editor/cli/train.h"

struct me_trainer {
	const struct me_train_options *options;
	struct me_train_report *report;
	struct mp_err *err;
	char dir[PATH_MAX];	/* all intermediate files */
	char program[PATH_MAX]; /* what the command runs */
	char file[PATH_MAX];	/* what is optimised */
};

struct me_train_path {
	char text[PATH_MAX];
};

/* The path of an intermediate file. */
struct me_train_path me_train_path(const struct me_trainer *t, const char *name);

/* ---- programs (train_tool.c) ---- */

/* As the shell finds a command. @out: PATH_MAX bytes. */
bool me_train_find_program(const char *name, char *out);
/* One of Morph's own programs: beside this one, where it was installed, or in $PATH. */
int me_train_find_tool(const struct me_trainer *t, const char *name, struct me_train_path *out);
/* Return: the wait status, or -errno. @quiet: the output goes nowhere. */
int me_train_run_tool(char *const *argv, bool quiet);
/* @first, then the command. Ownership: free(). */
char **me_train_with_command(const struct me_trainer *t, char *const *first);
/* Runs the command with @in_place at the path of the file, in a process of its own. */
int me_train_run(struct me_trainer *t, const char *in_place, double *cpu_s, double *wall_s);

/* ---- the end (train_keep.c) ---- */

/* The new version's debug file, under the name that it keeps, until it is kept. */
struct me_train_path me_train_final_debug(const struct me_trainer *t);
/* Audits the new version. Return: 0: faster; else as me_train(). */
int me_train_audit(struct me_trainer *t);
/* Gives the new version the output's name. */
int me_train_keep(struct me_trainer *t);

#endif
