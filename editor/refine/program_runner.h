// SPDX-License-Identifier: Apache-2.0
/*
 * program_runner - the runner of refine with real programs: versions are files in one directory, morphd
 * samples them, morph-audit compares them. Called by the commands train and refine.
 */
#ifndef ME_PROGRAM_RUNNER_H
#define ME_PROGRAM_RUNNER_H

#include "editor/optimize/optimize.h"
#include "editor/refine/refine.h"

struct me_program_runner_options {
	const char *dir;      /* of all files, which are the caller's to remove */
	const char *file;     /* the original, which the command uses */
	const char *program;  /* what the command runs */
	char *const *command; /* argv, NULL-terminated */
	/* Options for making a version; program_runner adds adjustments and names. */
	const struct me_optimize_options *optimize;
	const char *filter;	       /* of the output before it is compared; NULL: none */
	const char *debug_output;      /* of versions that may be kept; NULL: none */
	void (*say)(const char *what); /* NULL: nothing is said */
};

struct me_program_runner;

/* Return: 0, -errno with a message. Ownership: me_program_runner_close(), which takes NULL. */
int me_program_runner_open(const struct me_program_runner_options *options,
			   struct me_program_runner **out, struct mp_err *err);
void me_program_runner_close(struct me_program_runner *programs);

/* The runner that refine calls; valid until @programs is closed. */
struct me_runner me_program_runner_callbacks(struct me_program_runner *programs);
/* The functions of the original; valid until @programs is closed. */
const struct me_refine_func *me_program_runner_funcs(const struct me_program_runner *programs,
						     size_t *nr);

#endif
