// SPDX-License-Identifier: Apache-2.0
/* queue - candidates and order; see queue.h. */
#include "daemon/worker/queue.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/policy/deny.h"
#include "libprof/store/fleet/fleet_base.h"
#include "libprof/store/store_drop.h"

/* ---- candidates ---------------------------------------------------------------------------- */

/* Adds a job for the file, if the policy names the file or its share of the samples is large. */
static int consider(struct mp_store *store, const struct md_policy *policy, const char *path,
		    double share, int64_t now_s, struct mp_err *err)
{
	char real[PATH_MAX], why[600];

	if (path[0] != '/' || !realpath(path, real))
		return 0;
	if (md_policy_rule(policy, real))
		return mp_store_want_job(store, real, MP_JOB_BY_WATCH, (uint32_t)geteuid(), false,
					 now_s, NULL, err);
	if (policy->share <= 0 || share < policy->share || md_deny(policy, real, why, sizeof(why)))
		return 0;
	return mp_store_want_job(store, real, MP_JOB_BY_TIMER, (uint32_t)geteuid(), false, now_s,
				 NULL, err);
}

static int consider_modules(struct mp_store *store, const struct md_policy *policy, int64_t now_s,
			    struct mp_err *err)
{
	struct mp_module *modules;
	uint64_t all = 0;
	size_t nr;
	int ret = mp_store_list_modules(store, 0, &modules, &nr, err);

	if (ret)
		return ret;
	/* Samples that were pulled from a fleet are not time of this machine. */
	ret = mp_fleet_keep_own(store, 0, modules, nr, err);
	for (size_t i = 0; i < nr; i++)
		all += modules[i].nr_samples;
	/* A few samples do not show a program's share. */
	for (size_t i = 0; !ret && i < nr && all >= policy->min_samples; i++) {
		const struct mp_module *m = &modules[i];

		if (m->kind == MP_MODULE_FILE && m->path && m->nr_samples)
			ret = consider(store, policy, m->path, (double)m->nr_samples / (double)all,
				       now_s, err);
	}
	mp_store_free_modules(modules, nr);
	return ret;
}

/* Files that a rule names without a pattern need no samples: a command may train them. */
static int consider_names(struct mp_store *store, const struct md_policy *policy, int64_t now_s,
			  struct mp_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < policy->nr_rules; i++)
		for (char **p = policy->rules[i].programs; !ret && p && *p; p++)
			if (!strpbrk(*p, "*?[\\"))
				ret = consider(store, policy, *p, 0, now_s, err);
	return ret;
}

int md_queue_fill(struct mp_store *store, const struct md_policy *policy, int64_t now_s,
		  struct mp_err *err)
{
	int ret = consider_names(store, policy, now_s, err);

	return ret ? ret : consider_modules(store, policy, now_s, err);
}

/* ---- retention ----------------------------------------------------------------------------- */

/* Is there surely no file at the path? */
static bool is_gone(const char *path)
{
	struct stat st;

	return path[0] == '/' && lstat(path, &st) && (errno == ENOENT || errno == ENOTDIR);
}

int md_queue_drop_gone(const struct md_worker *worker, int64_t now_s,
		       void (*say)(const char *path, const char *text), struct mp_err *err)
{
	int64_t since_s = now_s - (int64_t)worker->policy->retention_s;
	struct mp_module *modules = NULL;
	size_t nr = 0;
	int ret;

	/* One transaction: no sample of a module may arrive between the check and the drop. */
	ret = mp_store_begin(worker->store, err);
	if (ret)
		return ret;
	ret = mp_store_list_modules(worker->store, since_s, &modules, &nr, err);
	if (!ret)
		ret = mp_fleet_keep_own(worker->store, since_s, modules, nr, err);
	for (size_t i = 0; !ret && i < nr; i++) {
		const struct mp_module *m = &modules[i];

		if (m->kind != MP_MODULE_FILE || m->last_s >= since_s || m->nr_samples ||
		    m->nr_transfers || !is_gone(m->path))
			continue;
		ret = mp_store_drop_module(worker->store, m->key, err);
		if (!ret)
			say(m->path, "gone: its profile was dropped");
		else if (ret == -EBUSY || ret == -ENOENT)
			ret = 0;
	}
	mp_store_free_modules(modules, nr);
	if (!ret)
		return mp_store_commit(worker->store, err);
	mp_store_rollback(worker->store);
	return ret;
}

/* ---- order --------------------------------------------------------------------------------- */

struct entry {
	struct mp_job job;
	int used;    /* 2: may have to be undone; 1: is in place for an audit */
	size_t rank; /* in the order of expected gains; SIZE_MAX: no estimate */
	uint64_t nr_samples;
};

static int use_of(enum mp_job_state state)
{
	return state == MP_JOB_ADOPTED || state == MP_JOB_UNDOING ? 2
								  : mp_job_state_in_place(state);
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->used != y->used)
		return y->used - x->used;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->nr_samples != y->nr_samples)
		return x->nr_samples < y->nr_samples ? 1 : -1;
	return strcmp(x->job.path, y->job.path);
}

/* @present: samples of the present build alone, if the job knows which build that is. */
static uint64_t samples_of(const struct mp_job *job, bool present, const struct mp_module *modules,
			   size_t nr)
{
	uint64_t sum = 0;

	present = present && (job->id.build_id_len || job->id.text_hash);
	for (size_t i = 0; i < nr; i++)
		if (mp_id_equal(&modules[i].id, &job->id) ||
		    (!present && modules[i].path && !strcmp(modules[i].path, job->path)))
			sum += modules[i].nr_samples;
	return sum;
}

static size_t rank_of(const char *path, const json_t *order)
{
	for (size_t i = 0; i < json_array_size(order); i++) {
		const char *text = json_string_value(json_array_get(order, i));

		if (text && !strcmp(text, path))
			return i;
	}
	return SIZE_MAX;
}

/* Will the job's next step cost time? */
static bool is_ready(const struct mp_job *job, const struct md_policy *policy, uint64_t nr_samples)
{
	const struct md_rule *rule;

	switch (job->state) {
	case MP_JOB_WANTED:
		rule = md_policy_rule(policy, job->path);
		return (rule && rule->train) || nr_samples >= policy->min_samples;
	case MP_JOB_PROFILED:
	case MP_JOB_WRITTEN:
	case MP_JOB_VERIFIED:
	case MP_JOB_AUDITED: return true;
	default: return false;
	}
}

int md_queue_sort(struct mp_store *store, const struct md_policy *policy, const json_t *order,
		  struct mp_job *jobs, size_t nr, size_t *nr_ready, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	size_t nr_modules = 0;
	struct entry *entries;
	int ret = mp_store_list_modules(store, 0, &modules, &nr_modules, err);

	if (ret)
		return ret;
	entries = calloc(nr + 1, sizeof(*entries));
	if (!entries)
		ret = mp_err_set(err, ENOMEM, "out of memory");
	*nr_ready = 0;
	/* A profile that was pulled from a fleet is a profile, and says nothing about the order. */
	for (size_t i = 0; !ret && i < nr; i++)
		*nr_ready +=
			is_ready(&jobs[i], policy, samples_of(&jobs[i], true, modules, nr_modules));
	if (!ret)
		ret = mp_fleet_keep_own(store, 0, modules, nr_modules, err);
	for (size_t i = 0; !ret && i < nr; i++) {
		const struct mp_job *job = &jobs[i];

		entries[i] = (struct entry){*job, use_of(job->state), rank_of(job->path, order),
					    samples_of(job, false, modules, nr_modules)};
	}
	if (!ret && nr) {
		qsort(entries, nr, sizeof(*entries), compare);
		for (size_t i = 0; i < nr; i++)
			jobs[i] = entries[i].job;
	}
	free(entries);
	mp_store_free_modules(modules, nr_modules);
	return ret;
}

/*
 * A process of its own reads the programs' code. A large program then does not make the worker
 * large, and a program that cannot be read costs nothing but the estimates.
 */
int md_queue_estimate(const struct md_worker *worker, const char *morph, json_t **order,
		      struct mp_err *err)
{
	char db[PATH_MAX + 8], out[PATH_MAX];
	char *argv[] = {(char *)morph, db, (char *)"--json", NULL};
	struct md_child child = {.argv = argv,
				 .out = out,
				 .limit_s = MD_QUEUE_ESTIMATE_S,
				 .policy = worker->always ? NULL : worker->policy};
	struct md_child_result r;
	struct mp_spent spent = {0};
	json_t *page = NULL;
	int ret;

	*order = NULL;
	snprintf(db, sizeof(db), "--db=%s", worker->db);
	if (snprintf(out, sizeof(out), "%s/order", worker->state_dir) >= (int)sizeof(out))
		return mp_err_set(err, ENAMETOOLONG, "%s: too long", worker->state_dir);
	ret = md_child_run(&child, &r, err);
	if (!ret && r.end == MD_CHILD_EXITED && !r.status)
		page = json_load_file(out, 0, NULL);
	unlink(out);
	if (ret)
		return ret;
	*order = json_incref(json_object_get(page, "next"));
	json_decref(page);
	spent.cpu_ms = (uint64_t)(1000 * r.cpu_s);
	return mp_store_add_spent(worker->store, time(NULL), &spent, err);
}
