// SPDX-License-Identifier: Apache-2.0
/*
 * work_dir - the files of one job while it is worked on: DIR/HASH-OF-PATH/. Only this user may
 * write there, so the worker trusts these files. It does not trust the store, which others may
 * write.
 *
 *	output		the version that was made
 *	evidence	JSON: the audit's verdict, and of which bytes
 *	audit.csv	the pairs of an audit that was stopped, to go on with
 *	train/		belongs to the user who trains
 */
#ifndef MD_WORK_DIR_H
#define MD_WORK_DIR_H

#include <limits.h>
#include <stdbool.h>

#include "libprof/base/err.h"
#include "libprof/store/jobs/store_jobs.h"

struct md_work_dir {
	char path[PATH_MAX - 64];
};
struct md_work_path {
	char text[PATH_MAX];
};

/* The state directory: $STATE_DIRECTORY, /var/lib/morph-worker for root, else below the user's state. */
int md_state_default_dir(char *buf, size_t size, struct mp_err *err);
/*
 * Makes @dir, 0755, and takes its lock: there is one worker. Return: a descriptor that holds the
 * lock; -EBUSY: another worker has it; -EPERM: others can write there; -errno.
 */
int md_state_lock(const char *dir, struct mp_err *err);

/* Makes the directory of the job at @path. Return: 0, -errno. */
int md_work_dir_open(const char *state_dir, const char *path, struct md_work_dir *out,
		     struct mp_err *err);
/*
 * The same for somebody who only reads: makes nothing. Return: 0; -EPERM: others can write in @state_dir;
 * -ENOENT; -errno.
 */
int md_work_dir_find(const char *state_dir, const char *path, struct md_work_dir *out,
		     struct mp_err *err);
struct md_work_path md_work_path(const struct md_work_dir *dir, const char *name);
/*
 * Writes the names of the job's files to the disk, before the store says that the files are there. Errors do
 * not count: without a file that a power cut took away, the round fails and is tried again later.
 */
void md_work_dir_flush(const struct md_work_dir *dir);
/* Makes the directory train/ for @user (NULL: this user), empty. */
int md_work_dir_train(const struct md_work_dir *dir, const char *user, struct mp_err *err);
/* Removes all files of the job, and the directory. */
void md_work_dir_remove(const struct md_work_dir *dir);

/* The result of an audit, and the two files that it compared. */
struct md_evidence {
	char original[MP_JOB_HASH_MAX], output[MP_JOB_HASH_MAX]; /* hashes of the bytes */
	char verdict[32];
	struct mp_job_gain gain;
	unsigned long pairs;
	/* Logarithms of e-values: evidence that the output is faster, and that it is slower. 0: not known. */
	double log_faster, log_slower;
};
/* Writes it completely or not at all. Return: 0, -errno. */
int md_evidence_save(const struct md_work_dir *dir, const struct md_evidence *evidence,
		     struct mp_err *err);
/* Return: false: there is none, or it is damaged. */
bool md_evidence_load(const struct md_work_dir *dir, struct md_evidence *out);
/* Reads what `morph-audit --json' printed to @path. Return: false: no verdict. */
bool md_evidence_read_audit(const char *path, struct md_evidence *out);
/* The reason of an audit that failed, from the same file. Return: false: none; @reason is not changed. */
bool md_evidence_read_failure(const char *path, char *reason, size_t size);

#endif
