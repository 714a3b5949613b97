// SPDX-License-Identifier: Apache-2.0
/*
 * inplace - optimises a file where it is, and brings the original back: backup, replace and optimize
 * in the right order. Called by morph-optimize.
 */
#ifndef ME_INPLACE_H
#define ME_INPLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/optimize.h"
#include "libprof/err.h"

struct me_inplace_options {
	const char *backup_dir; /* NULL: the default (backup) */
	bool break_links;	/* replace one of a file's several names */
	bool dry_run;		/* do all of it, but neither keep nor replace anything */
};

struct me_inplace_report {
	char *path;   /* what was replaced: symbolic links are followed */
	char *backup; /* where the original's bytes are; NULL: nothing was replaced */
	bool through_link;
	bool again;		 /* the file was an output already, made anew from the backup */
	bool unchanged;		 /* the new output is what is there already: nothing was replaced */
	bool dry_run;		 /* it would be replaced: nothing was */
	uint64_t nr_other_names; /* hard links that still lead to the file that was replaced */
};

/*
 * me_inplace - optimise @options->input in place. The original is in the backup, on disk, before the
 * file is replaced; killed at any moment, one of the two is there, whole. An output is made
 * anew from its backed-up original. With @options->debug_file the output's debug file is where debuggers
 * look for it before the output is in place, beside the original's, which stays.
 * Return: as me_optimize(), also -EPERM where the file may not be replaced, -EBUSY where it was
 * changed meanwhile. Ownership: me_optimize_report_fini(), me_inplace_report_fini(), always.
 */
int me_inplace(const struct me_optimize_options *options, const struct me_inplace_options *inplace,
	       struct me_optimize_report *report, struct me_inplace_report *done,
	       struct mp_err *err);
/*
 * me_restore - put the original back in the place of the output @path, and remove its debug file.
 * Return: 0, -EPERM: @path is not an output that was put in place from a backup that is there and
 * whole (the file was upgraded since, say), else -errno.
 */
int me_restore(const char *path, const struct me_inplace_options *inplace,
	       struct me_inplace_report *done, struct mp_err *err);
void me_inplace_report_fini(struct me_inplace_report *done);

#endif
