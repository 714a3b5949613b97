// SPDX-License-Identifier: Apache-2.0
/* task - what all steps need: the end of a step, running a program; see worker.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/worker/worker.h"
#include "libprof/store/jobs/store_history.h"

int md_task_advance(struct md_task *t, enum mp_job_state to, const char *step, const char *verdict,
		    const char *fmt, ...)
{
	char reason[MP_JOB_TEXT_MAX + 1];
	struct mp_job_step s = {step, verdict, reason, time(NULL)};
	va_list args;
	int ret;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	ret = mp_store_advance_job(t->worker->store, t->job, to, &s, t->err);
	return ret ? ret : 1;
}

int md_task_has_step(struct md_task *t, const char *step)
{
	struct mp_decision *list;
	size_t nr;
	int found = 0,
	    ret = mp_store_list_history(t->worker->store, t->job->path, 0, &list, &nr, t->err);

	if (ret)
		return ret;
	for (size_t i = 0; i < nr; i++)
		found |= list[i].round == t->job->round && !strcmp(list[i].step, step);
	mp_store_free_history(list, nr);
	return found;
}

static const char *why_stopped(enum md_child_end end)
{
	return end == MD_CHILD_WANTED ? "the machine is wanted" : "told to stop";
}

int md_task_run(struct md_task *t, char *const *argv, const struct md_child *as,
		struct md_child_result *result)
{
	struct md_work_path messages = md_work_path(&t->dir, "messages");
	struct md_child child = *as;
	struct mp_spent spent = {0};
	int ret;

	child.argv = argv;
	child.messages = messages.text;
	child.policy = t->worker->always ? NULL : t->worker->policy;
	ret = md_child_run(&child, result, t->err);
	unlink(messages.text);
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

const char *md_task_user(const struct md_task *t)
{
	if (t->rule && t->rule->user)
		return t->rule->user;
	/* Commands of the policy train and audit without root's rights. */
	return geteuid() ? NULL : "nobody";
}
