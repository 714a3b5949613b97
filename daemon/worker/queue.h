// SPDX-License-Identifier: Apache-2.0
/*
 * queue - which files are looked after, and in which order: finds files that the policy names, or that
 * take more than its share of the machine's samples. Called by the worker at its start.
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
 * md_queue_drop_gone - drops profiles of files that are gone, and of which no sample came, for the time
 * retention. A profile of an older build stays while any file is at its path: it is carried over.
 * Return: 0, -errno.
 */
int md_queue_drop_gone(const struct md_worker *worker, int64_t now_s,
		       void (*say)(const char *path, const char *text), struct mp_err *err);
/*
 * md_queue_sort - orders @jobs: first those in use, which may have to be undone; then as the paths of
 * @order (a JSON array, NULL: none); then by samples. *@nr_ready: jobs whose next step costs time.
 * Return: 0, -errno.
 */
int md_queue_sort(struct mp_store *store, const struct md_policy *policy, const json_t *order,
		  struct mp_job *jobs, size_t nr, size_t *nr_ready, struct mp_err *err);

/* Longest wait for estimates. Without them, the samples of the jobs decide the order. */
#define MD_QUEUE_ESTIMATE_S 60
/*
 * md_queue_estimate - asks @morph, the program, for the order of expected gains (md_machine_order), and
 * adds its cost to the day's. *@order: NULL if it did not answer in time. Ownership: json_decref().
 * Return: 0, -errno.
 */
int md_queue_estimate(const struct md_worker *worker, const char *morph, json_t **order,
		      struct mp_err *err);

#endif
