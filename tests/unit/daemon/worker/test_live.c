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

/* `morph undo' does not wait for the worker's step. */
TEST(live_puts_nothing_in_place_for_a_job_that_was_changed)
{
	char path[PATH_MAX], db[PATH_MAX];
	struct mp_job job = {.path = path, .state = MP_JOB_COUNTING, .round = 1};
	char clock;
	struct md_worker worker = {.cpu_time = (struct md_cpu_time *)&clock};
	struct md_task task = {.worker = &worker, .job = &job, .err = &err};
	struct md_child_result result;
	struct md_live *live;

	snprintf(path, sizeof(path), "%s/prog", dir);
	snprintf(db, sizeof(db), "%s/db", dir);
	write_text(path, "one");
	ck_assert(!mp_store_open(db, MP_STORE_WRITE, &worker.store, &err));
	ck_assert_int_eq(md_live_of(&task, &live), 0);
	ck_assert_int_eq(md_live_put(&task, live, MD_COUNTING, &result), -ESTALE);
	ck_assert(
		!mp_store_want_job(worker.store, path, MP_JOB_BY_REQUEST, 0, false, 1, NULL, &err));
	ck_assert_int_eq(md_live_put(&task, live, MD_COUNTING, &result), -ESTALE);
	file_holds(path, "one");
	mp_store_close(worker.store);
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
