// SPDX-License-Identifier: Apache-2.0
/*
 * queue - which files are looked after, and in which order: finds files that the policy names, or that
 * take more than its share of the machine's samples. Called by the worker at its start.
 */
#ifndef MD_QUEUE_H
#define MD_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/policy/policy.h"
#include "libprof/store/jobs/store_jobs.h"

/* Adds jobs for files that the policy wants and that have none. Return: 0, -errno. */
int md_queue_fill(struct mp_store *store, const struct md_policy *policy, int64_t now_s,
		  struct mp_err *err);
/*
 * All jobs: first those in use, which may have to be undone; then by worth. Ownership:
 * mp_store_free_jobs(). Return: 0, -errno.
 */
int md_queue_list(struct mp_store *store, struct mp_job **out, size_t *nr, struct mp_err *err);

#endif
