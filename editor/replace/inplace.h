// SPDX-License-Identifier: Apache-2.0
/*
 * inplace - optimises a file in place, and restores the original. Decides the order of
 * backup, replace and optimize. Called by morph_optimize.c.
 */
#ifndef ME_INPLACE_H
#define ME_INPLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/optimize/optimize.h"
#include "libprof/base/err.h"

struct me_inplace_options {
	const char *backup_dir; /* NULL: the default (see backup) */
	bool break_links;	/* replace only this one of the file's hard links */
	bool no_symlinks;	/* refuse a path that leads through a symbolic link */
	bool dry_run;		/* do everything except saving and replacing */
	/* me_adopt(): a bit for each enum me_kind that the output may be; 0: a layout alone */
	unsigned int kinds;
	bool proved; /* me_adopt(): do not prove again what this user's programs noted as proved */
};

struct me_inplace_report {
	char *path;   /* file that was replaced, after following symbolic links */
	char *backup; /* path of the original's bytes; NULL: nothing was replaced */
	bool through_link;
	bool was_output;	 /* the file was an output already; made again from its backup */
	bool unchanged;		 /* the new output equals the file: nothing was replaced */
	bool dry_run;		 /* it would have been replaced, but was not */
	bool known;		 /* me_adopt(): it was proved earlier, and not again */
	const char *kind;	 /* me_adopt(): name of the output's kind; NULL: not known */
	uint64_t nr_other_names; /* hard links that still lead to the replaced file */
};

/*
 * me_inplace - optimise @options->input in place. The original is in the backup, on
 * disk, before the file is replaced: if the process is killed, either file is there,
 * complete. An output is made again from its original in the backup. With
 * @options->debug_file, the output's debug file is written where debuggers look for it,
 * before the output is; the original's stays.
 * Return: as me_optimize(); also -EPERM the file may not be replaced, -EBUSY it was
 * changed meanwhile. Ownership: me_optimize_report_fini(), me_inplace_report_fini(),
 * after an error too.
 */
int me_inplace(const struct me_optimize_options *options, const struct me_inplace_options *inplace,
	       struct me_optimize_report *report, struct me_inplace_report *done,
	       struct mp_err *err);
/*
 * me_adopt - replace the file @path by the bytes of @output, which was made of it earlier, after
 * @output was verified against the original. What was audited is then exactly what is in place. The file may be the
 * original or any output of it: each of them can take the place of each other one, by one rename. An output of a kind
 * that @inplace->kinds does not name is refused.
 * @inplace->proved: an output is not verified if this user's programs noted (own_output.h) that these bytes were
 * proved against the original's bytes, both by SHA-256; any other output is.
 * Return: as me_inplace(); -EPERM also: @output does not verify. Ownership: me_inplace_report_fini(),
 * after an error too.
 */
int me_adopt(const char *path, const char *output, const struct me_inplace_options *inplace,
	     unsigned int nr_threads, struct me_inplace_report *done, struct mp_err *err);
/*
 * me_restore - replace the output @path by its original, and remove its debug file.
 * Return: 0; -EPERM @path is not an output (it was upgraded, say), or its backup is
 * missing or damaged; else -errno.
 */
int me_restore(const char *path, const struct me_inplace_options *inplace,
	       struct me_inplace_report *done, struct mp_err *err);
void me_inplace_report_fini(struct me_inplace_report *done);

#endif
