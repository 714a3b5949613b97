// SPDX-License-Identifier: Apache-2.0
/*
 * store_history - every decision of morph-worker with its evidence. Rows are added by
 * mp_store_advance_job() and mp_store_renew_job() alone.
 */
#ifndef MP_STORE_HISTORY_H
#define MP_STORE_HISTORY_H

#include "libprof/store/jobs/store_jobs.h"

/* The newest rows that are kept. */
#define MP_HISTORY_KEPT 20000

struct mp_decision {
	int64_t key; /* ascending in the order of events */
	int64_t when_s;
	char *path;
	struct mp_id id; /* of the original at that time */
	uint32_t round;
	char *step;		 /* "audit", "adopt", ... */
	enum mp_job_state state; /* of the job, after the step */
	char *verdict, *reason;
	struct mp_job_gain gain;
	char layout[MP_JOB_HASH_MAX];
};

/*
 * mp_store_list_history - decisions about @path (NULL: all) since @since_s (0: all), oldest first.
 * Ownership: mp_store_free_history(). Return: 0, -EBADMSG, -errno.
 */
int mp_store_list_history(struct mp_store *store, const char *path, int64_t since_s,
			  struct mp_decision **out, size_t *nr, struct mp_err *err);
void mp_store_free_history(struct mp_decision *decisions, size_t nr);

/* For store_jobs: adds a row. Return: 0, -EEXIST: the round has the step, -errno. */
int mp_store_add_decision(struct mp_store *store, const struct mp_job *job, enum mp_job_state state,
			  const struct mp_job_step *step, struct mp_err *err);

#endif
