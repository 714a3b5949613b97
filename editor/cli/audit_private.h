// SPDX-License-Identifier: Apache-2.0
/*
 * audit_private - the command line of morph-audit: its arguments and exit statuses. Only
 * morph_audit.c, audit_options.c and compilations/audit_compilations.c include this header.
 */
#ifndef ME_AUDIT_PRIVATE_H
#define ME_AUDIT_PRIVATE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "editor/audit/audit.h"
#include "editor/audit/audit_report.h"
#include "libprof/base/outfile.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/options.h"

/* Kinds of files that --export writes; the end of the file's name says which. */
enum me_audit_export {
	ME_EXPORT_CSV,
	ME_EXPORT_JSON,
	ME_EXPORT_MARKDOWN,
	ME_EXPORT_SVG,
	ME_NR_AUDIT_EXPORTS
};

/* --better; 0: not given */
enum me_audit_better {
	ME_BETTER_HIGHER = 1,
	ME_BETTER_LOWER
};

struct me_audit_arguments {
	struct me_audit_opts audit;
	char **files;
	size_t nr_files;
	bool command, json, plot, min_given, seconds_given, at_given;
	bool compilations;			  /* A and B are compilations with code markers */
	const char *exports[ME_NR_AUDIT_EXPORTS]; /* files of --export; NULL: none */
	const char *earlier;			  /* of --continue; NULL: none */
	enum me_audit_better better;
	double progress_s;
	char output[PATH_MAX]; /* A's output, if B is not given */
};

/* The options, which go into a struct me_audit_arguments. */
extern const struct mp_usage me_audit_usage;

/* Opens the file of an export; "-" before the suffix is standard output. Return: 0, -errno with a message. */
int me_audit_export_open(const struct me_audit_arguments *args, enum me_audit_export kind,
			 struct mp_outfile *out, struct mp_err *err);

/*
 * Completes @args->audit for runs: files, environment, and @lines, which print the progress.
 * Blocks the signals that end the program: they arrive only while a run waits, so that everything
 * is cleaned up. *@before: the signal mask until now. @lines and @before must live as long as the
 * runs. The caller ends the progress with mp_progress_stop().
 */
void me_audit_begin(struct me_audit_arguments *args, struct me_audit_lines *lines,
		    sigset_t *before);
/* Compares compilations, as @args say. Return: exit status. */
int me_audit_compilations(struct me_audit_arguments *args);

#endif
