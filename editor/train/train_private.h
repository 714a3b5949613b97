// SPDX-License-Identifier: Apache-2.0
/*
 * train_private - one training: its state, and what its steps share. Only train*.c include this
 * header.
 */
#ifndef ME_TRAIN_PRIVATE_H
#define ME_TRAIN_PRIVATE_H

#include <limits.h>
#include <stdbool.h>

#include "editor/train/train.h"

struct me_trainer {
	const struct me_train_options *options;
	struct me_train_report *report;
	struct mp_err *err;
	char dir[PATH_MAX];	 /* all intermediate files */
	char program[PATH_MAX];	 /* what the command runs */
	char file[PATH_MAX];	 /* what is optimised */
	struct me_wishes wishes; /* adjustments of the final version */
	bool without_words;	 /* @wishes hold the user's adjustments, too */
	char version[32];	 /* name of the version that was audited last for the result */
};

struct me_train_path {
	char text[PATH_MAX];
};

/* The options of a final version, and the paths that they point to. */
struct me_train_final {
	struct me_optimize_options options;
	struct me_train_path db, samples, output, debug;
};

/* The path of an intermediate file. */
struct me_train_path me_train_path(const struct me_trainer *t, const char *name);

/* Sets @final; it must not be moved. */
void me_train_final_options(const struct me_trainer *t, struct me_train_final *final);
/* Makes the final version, with @t->wishes. */
int me_train_write_final(struct me_trainer *t);

/* ---- refining (train_refine.c) ---- */

/* How long refining may take, in seconds. */
double me_train_budget_s(const struct me_trainer *t);
/* Adjustments that earlier trials found good become @t->wishes. */
int me_train_read_trials(struct me_trainer *t);
/* Looks for a faster version than the one that was audited. The report then has the best. */
int me_train_refine(struct me_trainer *t);

/* ---- the end (train_keep.c) ---- */

/* The new version's debug file, under the name that it keeps, until it is kept. */
struct me_train_path me_train_final_debug(const struct me_trainer *t);
/* Audits the new version. Return: 0 with a verdict, -errno. */
int me_train_audit(struct me_trainer *t);
/* Decides what becomes of the version. Return: 0: the output; else as me_train(). */
int me_train_judge(struct me_trainer *t);
/* Gives the new version the output's name. */
int me_train_keep(struct me_trainer *t);

#endif
