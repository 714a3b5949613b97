// SPDX-License-Identifier: Apache-2.0
/*
 * request - does at once what a user asks for one program: write, verify and measure a faster version;
 * put it in place; put the original back. Each step is in the program's job and history, so the
 * worker, which does the same by itself, continues where a request ended. Called by morph_request.
 */
#ifndef MD_REQUEST_H
#define MD_REQUEST_H

#include "daemon/machine/machine.h"

struct md_request {
	struct mp_store *store; /* open for writing; NULL: undo only */
	const char *db, *backup_dir;
	const char *path;
	char **command; /* uses the program, for the audit; its words; NULL: none */
	int nr_command;
	const char *filter; /* as morph-audit's --filter; NULL: none */
	/* results */
	int64_t changes_s; /* since when the file may have been changed; 0: it was not */
	struct mp_job job;
	bool has_job;
	char why[512]; /* the last reason */
};

/*
 * md_request_by_worker - the policy has a rule for the program: its worker does the round, with the
 * rule's training and audit. Return: as below.
 */
int md_request_by_worker(struct md_request *r, struct mp_err *err);
/* Return: exit status, with a reason in @why or a message in @err. Ownership: md_request_fini(). */
int md_request_optimize(struct md_request *r, struct mp_err *err);
int md_request_adopt(struct md_request *r, struct mp_err *err);
int md_request_undo(struct md_request *r, struct mp_err *err);
/*
 * In the state of @job another file may lie at the path, and yet the original does: somebody who put it back was
 * killed before the job said so.
 */
bool md_request_was_restored(const struct mp_job *job);

/*
 * md_request_take - begins a new round with a version that was made elsewhere and proved here: @output, at
 * md_request_name_output() or in the worker's directory of the job. @why: from where. @to: MP_JOB_ADVISED,
 * so that md_request_adopt() may follow, or MP_JOB_WRITTEN, so that the worker goes on.
 * Return: 0; -EALREADY: an optimised version is in use; -errno.
 */
int md_request_take(struct md_request *r, const struct mp_id *id, const char *output,
		    enum mp_job_state to, const char *why, struct mp_err *err);
/* The verdict of the step "write" of such a round. */
#define MD_REQUEST_FLEET "fleet"
/*
 * Where a version of the file @r->path with the identity @id is written: DIR/outputs/NAME.BUILD-ID, below the
 * directory of backups, which others cannot write. Makes the directories. Return: 0, -errno.
 */
int md_request_name_output(const struct md_request *r, const struct mp_id *id, char *buf,
			   size_t size, struct mp_err *err);
void md_request_fini(struct md_request *r);

#endif
