// SPDX-License-Identifier: Apache-2.0
/*
 * queue - decides which files get jobs, and in which order. It finds files that the policy names,
 * and files that have at least the policy's share of the machine's samples. Called by the worker at
 * its start.
 */
#ifndef MD_QUEUE_H
#define MD_QUEUE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/policy/policy.h"
#include "daemon/worker/worker.h"
#include "libprof/store/jobs/store_jobs.h"

/* Adds jobs for files that the policy wants and that have none. Return: 0, -errno. */
int md_queue_fill(struct mp_store *store, const struct md_policy *policy, int64_t now_s,
		  struct mp_err *err);
/*
 * md_queue_drop_gone - drops the profile of each file that no longer exists and had no sample for
 * the policy's retention time. A profile of an older build stays while any file is at its path,
 * since its counts are carried over to the new build. Return: 0, -errno.
 */
int md_queue_drop_gone(const struct md_worker *worker, int64_t now_s,
		       void (*say)(const char *path, const char *text), struct mp_err *err);
/*
 * md_queue_sort - orders @jobs: first those whose version is in use, since it may have to be
 * undone; then in the order of the paths in @order (a JSON array, NULL: none); then by samples.
 * *@nr_ready: number of jobs whose next step costs time. Return: 0, -errno.
 */
int md_queue_sort(struct mp_store *store, const struct md_policy *policy, const json_t *order,
		  struct mp_job *jobs, size_t nr, size_t *nr_ready, struct mp_err *err);

/*
 * Longest wait for estimates, in seconds. Assumption: no measurement chose it. Without an answer in
 * time, the samples of the jobs decide the order. A shorter wait has this effect more often, on
 * machines with many large programs; a longer one spends more of the day's budget on the order.
 */
#define MD_QUEUE_ESTIMATE_S 60
/*
 * md_queue_estimate - asks @morph, the program, for the order of expected gains (md_machine_order), and
 * adds its cost to the day's. *@order: NULL if it did not answer in time. Ownership: json_decref().
 * Return: 0, -errno.
 */
int md_queue_estimate(const struct md_worker *worker, const char *morph, json_t **order,
		      struct mp_err *err);

#endif
