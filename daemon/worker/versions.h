// SPDX-License-Identifier: Apache-2.0
/* versions - writes the versions of a job's file, by its profile. Called by round, and by step_trial, which writes some again. */
#ifndef MD_VERSIONS_H
#define MD_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/worker/worker.h"

/* Words of a command. */
struct md_line {
	char *argv[16]; /* the longest has 14 words */
	size_t nr;
};

void md_line_add(struct md_line *line, const char *word);
/*
 * md_version_optimize - writes the version @output of the job's file; the words of @line say by which profile. Notes the gain that is
 * predicted. Return: as md_task_run().
 */
int md_version_optimize(struct md_task *task, struct md_line *line, const char *output,
			struct md_child_result *result, struct md_carried *carried);
/* The same by the counts in the job's directory. @variant: MD_NEW, or MD_NEW_RUNNING. */
int md_version_by_counts(struct md_task *task, enum md_variant variant, const char *output,
			 struct md_child_result *result);
/*
 * md_versions_in_turns - writes what takes turns in a trial: two metered versions, if there is a meter; and for running
 * processes the new one. Return: the same.
 */
int md_versions_in_turns(struct md_task *task, struct md_child_result *result);
/* Was it written: @ret and *@result are of one of these. */
bool md_version_is_written(int ret, const struct md_child_result *result);

#endif
