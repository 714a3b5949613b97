// SPDX-License-Identifier: Apache-2.0
/*
 * step_probation - the step from adopted to kept, or to undoing: measures what the version does in use, and
 * lets probation judge.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/everyday/probation.h"
#include "daemon/worker/running.h"
#include "daemon/worker/worker.h"
#include "libprof/store/jobs/store_crashes.h"

int md_task_samples(struct md_task *t, struct md_work_samples *out)
{
	struct mp_program_activity *list;
	struct mp_module module = {0};
	size_t nr;
	int ret = mp_store_find_module(t->worker->store, &t->job->id, &module, t->err);

	*out = (struct md_work_samples){0};
	free(module.path);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	ret = mp_store_list_activity(t->worker->store, 0, &list, &nr, t->err);
	for (size_t i = 0; !ret && i < nr; i++)
		if (list[i].module == module.key) {
			out->own += list[i].activity.app;
			out->elsewhere += list[i].activity.lib + list[i].activity.kernel;
		}
	if (!ret)
		free(list);
	return ret;
}

/* Crashes that the collector saw, of all builds of the program that has loaded the library. */
static uint64_t seen_crashes_of(struct md_task *t, const char *program, int64_t since_s)
{
	struct mp_module *modules = NULL;
	struct mp_err unknown;
	size_t nr_modules = 0;
	uint64_t all = 0, nr;

	if (mp_store_list_modules(t->worker->store, 0, &modules, &nr_modules, &unknown))
		return 0;
	for (size_t i = 0; i < nr_modules; i++)
		if (modules[i].path && !strcmp(modules[i].path, program) &&
		    !mp_store_count_crashes(t->worker->store, modules[i].key, since_s, &nr,
					    &unknown))
			all += nr;
	mp_store_free_modules(modules, nr_modules);
	return all;
}

/* The same of the job's file. Versions of Morph are counted under their original. */
static uint64_t seen_crashes(struct md_task *t, int64_t since_s)
{
	struct mp_module module = {0};
	struct mp_err unknown;
	uint64_t nr = 0;

	if (!mp_store_find_module(t->worker->store, &t->job->id, &module, &unknown) &&
	    mp_store_count_crashes(t->worker->store, module.key, since_s, &nr, &unknown))
		nr = 0;
	free(module.path);
	return nr;
}

uint64_t md_task_crashes(struct md_task *t, int64_t since_s)
{
	const char *dir = t->worker->coredumps ? t->worker->coredumps : MD_COREDUMPS;
	struct md_running_program program = md_running_program(t);
	bool library = strcmp(program.path, t->job->path) != 0;
	uint64_t cores = md_probation_crashes(dir, basename(program.path), since_s),
		 seen = library ? seen_crashes_of(t, program.path, since_s)
				: seen_crashes(t, since_s);

	/* Both sources may know one crash. */
	return cores > seen ? cores : seen;
}

int md_probation_begin(struct md_task *t)
{
	struct mp_job *job = t->job;
	struct md_work_samples now;
	int ret = md_task_samples(t, &now);

	if (ret)
		return ret;
	job->adopted_s = time(NULL);
	job->before_samples = now.own;
	job->before_all = now.elsewhere;
	job->before_crashes = md_task_crashes(t, job->adopted_s - MD_PROBATION_BEFORE_S);
	return 0;
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

int md_step_probation(struct md_task *t)
{
	const struct md_policy *policy = t->worker->policy;
	struct mp_job *job = t->job;
	struct md_work_samples now, before = {job->before_samples, job->before_all}, after;
	enum md_probation_verdict verdict;
	uint64_t crashes;
	double ratio;
	int ret = md_task_restart(t, "restart");

	if (!ret)
		ret = md_task_samples(t, &now);
	if (ret)
		return ret;
	crashes = md_task_crashes(t, job->adopted_s);
	if (crashes > job->before_crashes)
		return md_task_advance(t, MP_JOB_UNDOING, "probation", "crashed",
				       "it crashed %llu times since it was put in place, and %llu "
				       "times in the week before",
				       (unsigned long long)crashes,
				       (unsigned long long)job->before_crashes);
	after = (struct md_work_samples){since(now.own, before.own),
					 since(now.elsewhere, before.elsewhere)};
	verdict = md_probation_judge(&before, &after, policy->worse_by, &ratio);
	if (verdict == MD_PROBATION_SLOWER)
		return md_task_advance(t, MP_JOB_UNDOING, "probation", "slower",
				       "it takes %.2f times the time for the same work", ratio);
	if ((double)(time(NULL) - job->adopted_s) < policy->probation_s)
		return 0;
	if (verdict == MD_PROBATION_FINE)
		return md_task_advance(t, MP_JOB_KEPT, "probation", "kept",
				       "it takes %.2f times the time for the same work, and does "
				       "not crash",
				       ratio);
	return md_task_advance(t, MP_JOB_KEPT, "probation", "kept",
			       "it does not crash; too few samples tell how fast it is in use");
}
