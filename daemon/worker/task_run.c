// SPDX-License-Identifier: Apache-2.0
/* task_run - runs a program of Morph for a step, and adds what it took to the day's; see worker.h. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "daemon/worker/worker.h"

static const char *why_stopped(enum md_child_end end)
{
	return end == MD_CHILD_WANTED ? "the machine is wanted" : "told to stop";
}

static int run(struct md_task *t, char *const *argv, const struct md_child *as,
	       const struct md_policy *policy, struct md_child_result *result)
{
	struct md_child child = *as;
	struct mp_spent spent = {0};
	int ret;

	child.argv = argv;
	child.policy = policy;
	ret = md_child_run(&child, result, t->err);
	if (ret)
		return ret;
	spent.cpu_ms = (uint64_t)(1000 * result->cpu_s);
	ret = mp_store_add_spent(t->worker->store, time(NULL), &spent, t->err);
	if (ret)
		return ret;
	if (result->end == MD_CHILD_STOPPED || result->end == MD_CHILD_WANTED) {
		snprintf(t->worker->why, sizeof(t->worker->why), "%s", why_stopped(result->end));
		return -EINTR;
	}
	return 0;
}

int md_task_run(struct md_task *t, char *const *argv, const struct md_child *as,
		struct md_child_result *result)
{
	const struct md_policy *policy = t->worker->policy;
	struct md_child child = *as;

	if (policy->counting && child.priority == MD_CHILD_IDLE)
		child.priority = MD_CHILD_NICE;
	return run(t, argv, &child, t->worker->always || policy->counting ? NULL : policy, result);
}

int md_task_run_beside(struct md_task *t, char *const *argv, const struct md_child *as,
		       struct md_child_result *result)
{
	return run(t, argv, as, NULL, result);
}
