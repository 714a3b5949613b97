// SPDX-License-Identifier: Apache-2.0
/*
 * store_jobs - the files that morph-worker looks after: one job for each path, with its state.
 *
 *	wanted -> profiled -> written -> verified -> audited -> adopted -> kept
 *	  \-> counting -^                  \-> trying -^ \-> advised  \-> undoing -> undone
 *
 * and from any of them refused, failed, gone, and, after an audit, not-faster or undecided. A round
 * leads from wanted to an end. mp_store_advance_job() changes a job's state and adds a row to the
 * history (store_history.h) in one transaction, so a killed program leaves a job in a state that
 * has a name, and a round has each step once.
 *
 * The database may be written by the collector's user. What is read here is therefore no
 * permission: a program with more rights asks its configuration and its own files before it
 * replaces anything. Jobs belong to one machine, and mp_store_merge() does not copy them.
 */
#ifndef MP_STORE_JOBS_H
#define MP_STORE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/store/store.h"

/* Longest texts that are kept; a longer one is cut, except a path, which is refused. */
#define MP_JOB_TEXT_MAX 1024
#define MP_JOB_PATH_MAX 4095
/* A hash of a file or a layout: 32 hex digits of XXH3-128. */
#define MP_JOB_HASH_MAX 40

enum mp_job_state {
	MP_JOB_WANTED,	   /* waits for its turn, or for more samples */
	MP_JOB_COUNTING,   /* a version that counts is in the original's place at times */
	MP_JOB_PROFILED,   /* there are enough samples, or counts */
	MP_JOB_WRITTEN,	   /* an output exists */
	MP_JOB_VERIFIED,   /* and is proved to do the same */
	MP_JOB_AUDITING,   /* a version that times itself is in the original's place for a while */
	MP_JOB_TRYING,	   /* two versions that count their work are in its place in turns */
	MP_JOB_AUDITED,	   /* and was shown to be faster */
	MP_JOB_ADVISED,	   /* end: the output is there, and waits for a user to adopt it */
	MP_JOB_ADOPTED,	   /* the output is in the original's place, on probation */
	MP_JOB_KEPT,	   /* end: probation is over, the output stays */
	MP_JOB_UNDOING,	   /* it was decided to put the original back */
	MP_JOB_UNDONE,	   /* end: the original is back */
	MP_JOB_NOT_FASTER, /* end: the audit said slower, equal, or that the output differs */
	MP_JOB_UNDECIDED,  /* end: the audit could not decide */
	MP_JOB_REFUSED,	   /* end: the file may not be replaced, or nothing in it may move */
	MP_JOB_FAILED,	   /* end of this round: a step failed */
	MP_JOB_GONE,	   /* end: there is no such file any more */
	MP_NR_JOB_STATES
};
/* Return: a name such as "not-faster". */
const char *mp_job_state_name(enum mp_job_state state);
/* Return: the index of @name among the @nr @names; -1: it is none of them. */
int mp_job_find_name(const char *const *names, int nr, const char *name);
/* Return: false if there is no such state. */
bool mp_job_state_find(const char *name, enum mp_job_state *out);
/* Return: the state ends a round; only something new begins the next one. */
bool mp_job_state_ends(enum mp_job_state state);
/* Return: a version of Morph's is in the original's place, or may be. */
bool mp_job_state_in_place(enum mp_job_state state);

enum mp_job_asker {
	MP_JOB_BY_TIMER,   /* the policy: a share of the machine's samples */
	MP_JOB_BY_REQUEST, /* a user, once */
	MP_JOB_BY_WATCH,   /* the policy names the file */
	MP_NR_JOB_ASKERS
};

/* The result of an audit or a prediction; 0: not known. */
struct mp_job_gain {
	double ratio, lowest, highest; /* times as fast */
	double predicted;	       /* taken branches after / before */
};

struct mp_job {
	int64_t key;
	char *path;
	struct mp_id id;		 /* of the original; all zero: nobody has looked yet */
	char file_hash[MP_JOB_HASH_MAX]; /* of all bytes of the original; "": the same */
	enum mp_job_state state;
	int64_t since_s; /* when the state began */
	enum mp_job_asker asked;
	uint32_t uid;		      /* who asked */
	uint32_t round;		      /* from 1 */
	int64_t not_before_s;	      /* not taken up again before; 0: at any time */
	char *detail;		      /* why the state is what it is, in words of a user */
	char *output;		      /* where the output lies; "": none */
	char layout[MP_JOB_HASH_MAX]; /* hash of the output's bytes; "": none */
	struct mp_job_gain gain;
	/*
	 * Set at adoption: when; samples by then in the program itself, and in libraries and the
	 * kernel on its behalf; crashes of the week before. In a refused job, before_samples is the
	 * number of samples by which there was nothing to move (0: refused for another reason).
	 */
	int64_t adopted_s;
	uint64_t before_samples, before_all, before_crashes;
};

/* One step of a round. Texts that are NULL are "". */
struct mp_job_step {
	const char *step;    /* "profile", "write", "verify", "audit", "advise", "adopt", ... */
	const char *verdict; /* one word: "done", "faster", "refused", ... */
	const char *reason;  /* in words of a user; becomes the job's detail */
	int64_t when_s;
};

/*
 * mp_store_want_job - finds or adds the job of @path. A new one is wanted. @again: a job whose
 * round has ended begins a new round; a job that is adopted or kept stays so. Otherwise the job
 * stays as it is. @out may be NULL. Ownership: mp_store_fini_job(@out).
 * Return: 0, -EINVAL (not an absolute path, or too long), -errno.
 */
int mp_store_want_job(struct mp_store *store, const char *path, enum mp_job_asker asked,
		      uint32_t uid, bool again, int64_t now_s, struct mp_job *out,
		      struct mp_err *err);
/* Return: 0, -ENOENT without a message, -EBADMSG (damaged), -errno. Ownership: mp_store_fini_job(). */
int mp_store_find_job(struct mp_store *store, const char *path, struct mp_job *out,
		      struct mp_err *err);
/* All jobs by path. Ownership: mp_store_free_jobs(). */
int mp_store_list_jobs(struct mp_store *store, struct mp_job **out, size_t *nr, struct mp_err *err);
void mp_store_fini_job(struct mp_job *job);
void mp_store_free_jobs(struct mp_job *jobs, size_t nr);

/*
 * mp_store_advance_job - takes @job to the state @to: stores its fields, and @step in the history,
 * with the gain and the layout that @job has now. Both happen or neither does. Sets @job->state,
 * since_s and detail.
 * Return: 0; -ESTALE: the stored job is not in @job's state and round any more, nothing changed;
 * -EEXIST: the round has this step already; -errno.
 */
int mp_store_advance_job(struct mp_store *store, struct mp_job *job, enum mp_job_state to,
			 const struct mp_job_step *step, struct mp_err *err);
/*
 * mp_store_renew_job - begins a new round of @job: state wanted, the output and the gain forgotten,
 * the step in the history of the new round. Set @job->id and file_hash before. Return: as above.
 */
int mp_store_renew_job(struct mp_store *store, struct mp_job *job, const struct mp_job_step *step,
		       struct mp_err *err);
/* Stores the fields of @job without a step: not_before_s, detail, identity. Return: 0, -ESTALE. */
int mp_store_note_job(struct mp_store *store, const struct mp_job *job, struct mp_err *err);

/*
 * Rejected layouts of outputs of @id, which are never tried again: they were not faster, or were
 * undone. @layout: XXH3-128 of the output.
 */
int mp_store_reject_layout(struct mp_store *store, const struct mp_id *id, const char *layout,
			   const char *reason, int64_t now_s, struct mp_err *err);
int mp_store_is_rejected(struct mp_store *store, const struct mp_id *id, const char *layout,
			 bool *rejected, struct mp_err *err);

/* The cost of morph-worker's work, by day. */
struct mp_spent {
	uint64_t cpu_ms, disk_bytes;
};
/* Adds to the day of @when_s; forgets days that are 30 days older. */
int mp_store_add_spent(struct mp_store *store, int64_t when_s, const struct mp_spent *delta,
		       struct mp_err *err);
int mp_store_read_spent(struct mp_store *store, int64_t when_s, struct mp_spent *out,
			struct mp_err *err);

/* For mp_store_check(): all jobs and decisions can be read. */
int mp_store_check_jobs(struct mp_store *store, struct mp_err *err);

#endif
