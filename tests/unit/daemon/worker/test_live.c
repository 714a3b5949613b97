// SPDX-License-Identifier: Apache-2.0
/*
 * test_live - what is remembered of a job stays while a step uses it, whatever the store says of the job meanwhile; and a
 * file that somebody else changed is told from what the worker put there.
 */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include "daemon/worker/live.h"

FIXTURE(scratch_make, scratch_remove);

TEST(live_is_not_forgotten_while_a_step_uses_it)
{
	struct mp_job job = {.path = (char *)"/usr/bin/prog", .state = MP_JOB_COUNTING, .round = 1};
	char clock; /* it is not asked */
	struct md_worker worker = {.cpu_time = (struct md_cpu_time *)&clock};
	struct md_task task = {.worker = &worker, .job = &job, .err = &err};
	struct md_live *live, *again;

	ck_assert_int_eq(md_live_of(&task, &live), 0);
	live->busy = true;
	/* A step's child works, and the worker looks at all jobs of the store. */
	job.round = 2;
	ck_assert_int_eq(md_live_of(&task, &again), 0);
	ck_assert_ptr_eq(live, again);
	job.state = MP_JOB_TRYING;
	ck_assert_int_eq(md_live_of(&task, &again), 0);
	ck_assert_ptr_eq(live, again);
	md_live_keep(&worker, &job, 1);
	ck_assert(md_live_any(&worker));
	live->busy = false;
	ck_assert_int_eq(md_live_of(&task, &again), 0);
	ck_assert_int_eq(again->round, 2);
	worker.cpu_time = NULL;
	md_live_fini(&worker);
}

TEST(live_knows_what_the_worker_put_there)
{
	char path[PATH_MAX + 16];
	struct mp_job job = {.path = path, .state = MP_JOB_COUNTING, .round = 1};
	char clock;
	struct md_worker worker = {.cpu_time = (struct md_cpu_time *)&clock};
	struct md_task task = {.worker = &worker, .job = &job, .err = &err};
	enum md_variant there = MD_ORIGINAL;
	struct md_live *live;

	snprintf(path, sizeof(path), "%s/prog", dir);
	write_text(path, "one");
	ck_assert_int_eq(md_live_of(&task, &live), 0);
	ck_assert(!md_live_knows(&task, &there));
	live->there = MD_COUNTING;
	ck_assert(!lstat(path, &live->file));
	ck_assert(md_live_knows(&task, &there) && there == MD_COUNTING);
	ck_assert_int_eq(md_live_check(&task, live), 0);
	ck_assert(!unlink(path));
	ck_assert(!md_live_knows(&task, &there));
	worker.cpu_time = NULL;
	md_live_fini(&worker);
}
