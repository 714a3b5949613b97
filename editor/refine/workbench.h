// SPDX-License-Identifier: Apache-2.0
/*
 * workbench - the runner of refine with real programs: versions are files in one directory, morphd
 * samples them, morph-audit compares them. Called by the commands train and refine.
 */
#ifndef ME_WORKBENCH_H
#define ME_WORKBENCH_H

#include "editor/optimize/optimize.h"
#include "editor/refine/refine.h"

struct me_workbench_options {
	const char *dir;      /* of all files, which are the caller's to remove */
	const char *file;     /* the original, which the command uses */
	const char *program;  /* what the command runs */
	char *const *command; /* argv, NULL-terminated */
	/* Options for making a version; workbench adds adjustments and names. */
	const struct me_optimize_options *optimize;
	const char *debug_output;      /* of versions that may be kept; NULL: none */
	void (*say)(const char *what); /* NULL: nothing is said */
};

struct me_workbench;

/* Return: 0, -errno with a message. Ownership: me_workbench_close(), which takes NULL. */
int me_workbench_open(const struct me_workbench_options *options, struct me_workbench **out,
		      struct mp_err *err);
void me_workbench_close(struct me_workbench *bench);

/* The runner that refine calls; valid until @bench is closed. */
struct me_runner me_workbench_runner(struct me_workbench *bench);
/* The functions of the original; valid until @bench is closed. */
const struct me_refine_func *me_workbench_funcs(const struct me_workbench *bench, size_t *nr);

#endif
