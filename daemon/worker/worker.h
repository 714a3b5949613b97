// SPDX-License-Identifier: Apache-2.0
/* worker - what the steps of a round share. */
#ifndef MD_WORKER_H
#define MD_WORKER_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/everyday/windows.h"
#include "daemon/policy/policy.h"
#include "daemon/worker/child.h"
#include "daemon/worker/file_state.h"
#include "daemon/worker/variants.h"
#include "daemon/worker/work_dir.h"
#include "libprof/store/jobs/store_jobs.h"

struct md_live;
struct md_cpu_time;

struct md_worker {
	const struct md_policy *policy;
	struct mp_store *store;
	const char *db, *state_dir;
	const char *backup_dir;	 /* NULL: morph-optimize's default */
	bool always;		 /* somebody waits: do not ask whether the machine is idle */
	char why[256];		 /* why work stopped */
	char optimize[PATH_MAX]; /* Morph's programs */
	char audit[PATH_MAX];
	char stats[PATH_MAX];	      /* "": there is none */
	char collector[PATH_MAX];     /* "": there is none */
	char morph[PATH_MAX];	      /* "": there is none */
	struct md_live *live;	      /* jobs whose versions are put in place in turns */
	struct md_cpu_time *cpu_time; /* NULL: not opened yet */
	struct md_budget budget;      /* of all versions that count */
	const char *coredumps;	      /* NULL: MD_COREDUMPS */
	double pace; /* times of versions in turns are so much shorter; 1 but in tests */
	bool beside; /* another step waits for its child: nothing that takes long may begin */
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
 * reason. If the file was upgraded during the step, a new state would be about another file: then a new
 * round begins instead. Return: 1, -errno.
 */
int md_task_advance(struct md_task *task, enum mp_job_state to, const char *step,
		    const char *verdict, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Records, for users, what the job waits for or how far it is. Return: 0, -errno. */
int md_task_note(struct md_task *task, const char *text);
/* Was @step done in this round? Return: 1, 0, -errno. */
int md_task_has_step(struct md_task *task, const char *step);
/* The same, with this verdict. */
int md_task_has_verdict(struct md_task *task, const char *step, const char *verdict);
/*
 * md_task_run - runs a program of Morph with @argv, and adds its cost to the day's. @as: the
 * user, the directory, the file for standard output and the limit; the rest is filled in. Return: 0:
 * it ended by itself; -EINTR: it was stopped, @worker->why says why; -errno.
 */
int md_task_run(struct md_task *task, char *const *argv, const struct md_child *as,
		struct md_child_result *result);
/* The same for a child that looks at programs in use: it is not stopped because the machine is wanted. */
int md_task_run_beside(struct md_task *task, char *const *argv, const struct md_child *as,
		       struct md_child_result *result);
/*
 * md_task_take - copies @from, which another user may have written, to @to in the job's directory,
 * by one rename. Its contents are not trusted. Return: 0, -errno.
 */
#define MD_COUNTS_MAX (256u << 20) /* of counts that another user wrote, in bytes */
int md_task_take(struct md_task *task, const char *from, const char *to, uint64_t most);
/* The version was just written into the job's directory: it may be put in place. Return: 0, -errno. */
int md_task_note_variant(struct md_task *task, enum md_variant variant);
/*
 * Puts the version, or the original back, in the file's place. Return: 0, -errno.
 */
int md_task_replace(struct md_task *task, enum md_variant variant, struct md_child_result *r);
int md_task_restore(struct md_task *task, struct md_child_result *result);
/*
 * Puts the original back unless it is there, and takes versions out of running processes; that it could not be is an error. Return:
 * 0, -errno.
 */
int md_task_put_back(struct md_task *task);
/* The user whose rights commands of the rule get; NULL: this process's. */
const char *md_task_user(const struct md_task *task);

/* Restarts the rule's unit, once in a round and step; without one it does nothing. Return: 0, -errno. */
int md_task_restart(struct md_task *task, const char *step);
#define MD_UPGRADED "the file changed: it was upgraded"
/*
 * md_task_begin_again - a new round: forgets what was made, and takes the file that is there now for the
 * original. Return: 1, -errno.
 */
int md_task_begin_again(struct md_task *task, const char *step, const char *reason);
/*
 * md_step_carry - a file with only @nr_own samples goes on with those of the version before, if the store
 * has enough of them, once in a round. Return: as md_round_step().
 */
int md_step_carry(struct md_task *task, uint64_t nr_own);
/* How much of the earlier version's profile was carried over, as morph-optimize reports it. */
struct md_carried {
	bool used;
	uint64_t samples, samples_matched, funcs, funcs_matched;
};
void md_carried_read(json_t *report, struct md_carried *out);
/* Records it. Return: 0: the output may be used; 1: too little, the job waits for samples; -errno. */
int md_step_matched(struct md_task *task, const struct md_carried *carried);
/*
 * morph-optimize refused for @reason. Return: 1: a carried profile was to blame, and the job waits for
 * samples; 0: there was none; -errno.
 */
int md_step_unmatched(struct md_task *task, const char *reason);
/*
 * Keeps a fingerprint of the original for the next upgrade, at most once a day. Return: 0; 1: it could
 * not, and the history says so; -EINTR; -errno.
 */
int md_step_remember(struct md_task *task);
/*
 * Looks at the file. Return: 0: the job's next step may follow; 1: the look itself was a step;
 * -errno.
 */
int md_step_look(struct md_task *task);
/* Replaces the file by the audited output. Return: as md_round_step(). */
int md_step_adopt(struct md_task *task);
/* Audits the output. Return: as md_round_step(). */
int md_step_audit(struct md_task *task);
/* Puts a version in place that times its functions. Return: as md_round_step(). */
int md_step_instrument(struct md_task *task);
/* Audits that version beside its processes, and writes the version that won. Return: the same. */
int md_step_in_process(struct md_task *task);
/* May the job's file be counted, and be tried in everyday use, instead of being audited? */
bool md_count_may(const struct md_task *task);
bool md_trial_may(struct md_task *task);
/*
 * Writes a version that counts. Return: as md_round_step(); 0: it cannot be counted, and the round goes on with
 * samples.
 */
int md_step_count_begin(struct md_task *task);
/* Puts the version that counts in place, takes it away, ends counting. Return: as md_round_step(). */
int md_step_count(struct md_task *task);
/*
 * md_count_windows - ends the windows of versions that count now, if they are long enough; call it some times a second. Return:
 * such a version is in place.
 */
bool md_count_windows(struct md_worker *worker);
/* The same of the trial: its beginning, and its blocks. */
int md_step_trial_begin(struct md_task *task);
int md_step_trial(struct md_task *task);
/* Looks at a version in use: keeps, or decides to undo. Return: as md_round_step(). */
int md_step_probation(struct md_task *task);
/* Names of steps that later steps look up in the history. */
#define MD_STEP_AGE  "age"  /* the version in place is out of date */
#define MD_STEP_AGED "aged" /* so this round began */
/* Looks whether a kept version is out of date. Return: as md_round_step(). */
int md_step_age(struct md_task *task);
/* Return: the time from which samples show how the program is used today. */
int64_t md_age_since(const struct md_task *task);
/*
 * Ends a round in which there was nothing to write, for @reason, and says when the next one begins.
 * Return: as md_round_step().
 */
int md_step_nothing(struct md_task *task, const char *reason);
/* The round has ended: begins another one if it is time. Return: as md_round_step(). */
int md_step_again(struct md_task *task);
/* Puts the original back. Return: as md_round_step(). */
int md_step_undo(struct md_task *task);
/*
 * Notes, at adoption, a program's samples in its own code and elsewhere on its behalf, and its
 * crashes.
 */
int md_probation_begin(struct md_task *task);
/*
 * Crashes after the change are compared with those of so long before it: a program may crash with its
 * original, too.
 */
#define MD_PROBATION_BEFORE_S (MP_KEEP_DAYS * MP_SECONDS_PER_DAY)
struct md_work_samples;
/* All samples of the program in the store, of the original and of outputs. Return: 0, -errno. */
int md_task_samples(struct md_task *task, struct md_work_samples *out);
/* Return: crashes of the program since @since_s, from all sources. */
uint64_t md_task_crashes(struct md_task *task, int64_t since_s);

/*
 * md_round_step - takes one step of @job. Return: 1: it was taken; 0: there is nothing to do now;
 * -EINTR: work must stop, @worker->why says why; -errno.
 */
int md_round_step(struct md_worker *worker, struct mp_job *job, struct mp_err *err);

/* The worker ends: puts the original of a job back whose versions are in place in turns. Return: 0, -errno. */
int md_round_leave(struct md_worker *worker, struct mp_job *job, struct mp_err *err);

#endif
