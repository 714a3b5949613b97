// SPDX-License-Identifier: Apache-2.0
/* worker - what the steps of a round share. */
#ifndef MD_WORKER_H
#define MD_WORKER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/policy/policy.h"
#include "daemon/worker/child.h"
#include "daemon/worker/file_state.h"
#include "daemon/worker/work_dir.h"
#include "libprof/store/jobs/store_jobs.h"

struct md_worker {
	const struct md_policy *policy;
	struct mp_store *store;
	const char *db, *state_dir;
	const char *backup_dir;	 /* NULL: morph-optimize's default */
	bool always;		 /* somebody waits: do not ask whether the machine is idle */
	char why[256];		 /* why work stopped */
	char optimize[PATH_MAX]; /* Morph's programs */
	char audit[PATH_MAX];
};

/* A job, and all that its steps need. */
struct md_task {
	struct md_worker *worker;
	struct mp_job *job;
	const struct md_rule *rule; /* NULL: none */
	struct md_file_state now;   /* the file at the job's path */
	struct md_work_dir dir;
	struct mp_err *err;
};

/*
 * md_task_advance - the end of a step: the new state and the decision, in one transaction. @fmt: the
 * reason. Return: 1, -errno.
 */
int md_task_advance(struct md_task *task, enum mp_job_state to, const char *step,
		    const char *verdict, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Was @step done in this round? Return: 1, 0, -errno. */
int md_task_has_step(struct md_task *task, const char *step);
/*
 * md_task_run - runs a program of Morph with @argv, and adds its cost to the day's. @as: the
 * user, the directory, the file for standard output and the limit; the rest is filled in. Return: 0:
 * it ended by itself; -EINTR: it was stopped, @worker->why says why; -errno.
 */
int md_task_run(struct md_task *task, char *const *argv, const struct md_child *as,
		struct md_child_result *result);
/* Whose rights commands of the rule get; NULL: this process's. */
const char *md_task_user(const struct md_task *task);

/* Restarts the rule's unit, once in a round and step; without one it does nothing. Return: 0, -errno. */
int md_task_restart(struct md_task *task, const char *step);
/*
 * md_task_begin_again - a new round: forgets what was made, and takes the file that is there now for the
 * original. Return: 1, -errno.
 */
int md_task_begin_again(struct md_task *task, const char *step, const char *reason);
/* Looks at the file. Return: 0: the job's step may follow; 1: that was the step; -errno. */
int md_step_look(struct md_task *task);
/* Replaces the file by the audited output. Return: as md_round_step(). */
int md_step_adopt(struct md_task *task);
/* Audits the output. Return: as md_round_step(). */
int md_step_audit(struct md_task *task);
/* Looks at a version in use: keeps, or decides to undo. Return: as md_round_step(). */
int md_step_probation(struct md_task *task);
/* Puts the original back. Return: as md_round_step(). */
int md_step_undo(struct md_task *task);
/* Samples of a program in its own code, and elsewhere on its behalf; and crashes. For adoption. */
int md_probation_begin(struct md_task *task);

/*
 * md_round_step - takes one step of @job. Return: 1: it was taken; 0: there is nothing to do now;
 * -EINTR: work must stop, @worker->why says why; -errno.
 */
int md_round_step(struct md_worker *worker, struct mp_job *job, struct mp_err *err);

#endif
