// SPDX-License-Identifier: Apache-2.0
/* queue - candidates and order; see queue.h. */
#include "daemon/worker/queue.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/policy/deny.h"

/* ---- candidates ---------------------------------------------------------------------------- */

/* Asks for the file, if the policy names it or it has a large share. */
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
	for (size_t i = 0; i < nr; i++)
		all += modules[i].nr_samples;
	/* Of few samples nobody knows a share. */
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

/* ---- order --------------------------------------------------------------------------------- */

struct entry {
	struct mp_job job;
	uint64_t worth;
	bool used;
};

static int by_worth(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->used != y->used)
		return y->used - x->used;
	if (x->worth != y->worth)
		return x->worth < y->worth ? 1 : -1;
	return strcmp(x->job.path, y->job.path);
}

static uint64_t worth_of(const struct mp_job *job, const struct mp_module *modules, size_t nr)
{
	uint64_t worth = 0;

	for (size_t i = 0; i < nr; i++)
		if (mp_id_equal(&modules[i].id, &job->id) ||
		    (modules[i].path && !strcmp(modules[i].path, job->path)))
			worth += modules[i].nr_samples;
	return worth;
}

int md_queue_list(struct mp_store *store, struct mp_job **out, size_t *nr, struct mp_err *err)
{
	struct mp_module *modules = NULL;
	struct entry *entries = NULL;
	size_t nr_modules = 0;
	int ret = mp_store_list_jobs(store, out, nr, err);

	if (ret)
		return ret;
	ret = mp_store_list_modules(store, 0, &modules, &nr_modules, err);
	entries = calloc(*nr + 1, sizeof(*entries));
	if (!ret && !entries)
		ret = mp_err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; !ret && i < *nr; i++)
		entries[i] = (struct entry){(*out)[i], worth_of(&(*out)[i], modules, nr_modules),
					    (*out)[i].state == MP_JOB_ADOPTED ||
						    (*out)[i].state == MP_JOB_UNDOING};
	if (!ret) {
		qsort(entries, *nr, sizeof(*entries), by_worth);
		for (size_t i = 0; i < *nr; i++)
			(*out)[i] = entries[i].job;
	}
	free(entries);
	mp_store_free_modules(modules, nr_modules);
	if (ret)
		mp_store_free_jobs(*out, *nr);
	return ret;
}
