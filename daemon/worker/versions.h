// SPDX-License-Identifier: Apache-2.0
/* versions - writes the versions of a job's file, by its profile. Called by round, and by step_trial, which writes some again. */
#ifndef MD_VERSIONS_H
#define MD_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/worker/worker.h"

/* Words of a command. */
struct md_line {
	char *argv[48]; /* the longest has 34 words */
	size_t nr;
};

void md_line_add(struct md_line *line, const char *word);
/*
 * md_version_optimize - runs morph-optimize with @line. Its report, which has to be asked for in JSON, tells the gain that
 * is predicted. Return: as md_task_run().
 */
int md_version_optimize(struct md_task *task, struct md_line *line, struct md_child_result *result,
			struct md_carried *carried);
/* The words that end a line of morph-optimize which writes @output, with a report for md_version_optimize(). */
void md_line_end(struct md_line *line, const struct md_task *task, const char *output);
/* Writes the new version by the counts in the job's directory. Return: as md_task_run(). */
int md_version_by_counts(struct md_task *task, struct md_child_result *result);
/*
 * md_versions_for_trial - writes @variant, MD_NEW or MD_NEW_RUNNING, by these counts, and if there is a meter, both metered
 * versions, all in one call. Notes the hash of each, without which none is put in place. Return: the same.
 */
int md_versions_for_trial(struct md_task *task, enum md_variant variant,
			  struct md_child_result *result);
/*
 * md_version_verify - proves once more that the version does the same as the original. @variant: MD_NEW, MD_NEW_RUNNING.
 * Return: as md_task_run().
 */
int md_version_verify(struct md_task *task, enum md_variant variant,
		      struct md_child_result *result);
/* Was it written: @ret and *@result are of one of these. */
bool md_version_is_written(int ret, const struct md_child_result *result);

#endif
