// SPDX-License-Identifier: Apache-2.0
/*
 * test_live - what is remembered of a job stays while a step uses it, whatever the store says of the job meanwhile; and a
 * file that somebody else changed is told from what the worker put there.
 */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include "daemon/worker/live.h"
#include "daemon/worker/running.h"

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

/* The CPU time of old processes would be missing, or count for one version for good. */
TEST(live_notices_that_a_librarys_program_was_replaced)
{
	char path[PATH_MAX], program[PATH_MAX + 8], note[PATH_MAX], text[2 * PATH_MAX];
	struct mp_job job = {.path = path, .state = MP_JOB_TRYING, .round = 1};
	char clock;
	struct md_worker worker = {.cpu_time = (struct md_cpu_time *)&clock};
	struct md_task task = {.worker = &worker, .job = &job, .err = &err};
	struct md_live *live;
	struct stat st;

	snprintf(path, sizeof(path), "%s/lib.so", dir);
	snprintf(program, sizeof(program), "%s/prog", dir);
	snprintf(note, sizeof(note), "%s/running", dir);
	snprintf(task.dir.path, sizeof(task.dir.path), "%s", dir);
	ck_assert_str_eq(md_running_program(&task).path, path);
	ck_assert(!md_running_is_replaced(&task));
	write_text(path, "one");
	write_text(program, "one");
	ck_assert(!lstat(program, &st));
	snprintf(text, sizeof(text),
		 "{\"places\": [1, 2, 3, 4], \"program\": \"%s\", \"file\": [%llu, %lld, %ld]}",
		 program, (unsigned long long)st.st_ino, (long long)st.st_mtim.tv_sec,
		 st.st_mtim.tv_nsec);
	write_text(note, text);
	ck_assert_str_eq(md_running_program(&task).path, program);
	ck_assert_int_eq(md_live_of(&task, &live), 0);
	ck_assert(live->running);
	ck_assert(!md_running_is_replaced(&task));
	ck_assert(!chmod(program, 0700));
	ck_assert(!md_running_is_replaced(&task));
	/* The old one, under another name, has its number as long as it is there. */
	snprintf(text, sizeof(text), "%s.old", program);
	ck_assert(!rename(program, text));
	ck_assert(md_running_is_replaced(&task));
	write_text(program, "two");
	ck_assert(md_running_is_replaced(&task));
	worker.cpu_time = NULL;
	md_live_fini(&worker);
}

/* Crashes and CPU time are those of the program, whichever of its files a version is of. */
TEST(live_waits_for_another_job_of_the_same_program)
{
	char prog[] = "/usr/bin/prog", lib[] = "/usr/lib/lib.so", other[] = "/usr/bin/other";
	struct mp_job jobs[] = {{.path = lib, .state = MP_JOB_COUNTING, .round = 1},
				{.path = prog, .state = MP_JOB_TRYING, .round = 1},
				{.path = other, .state = MP_JOB_TRYING, .round = 1}};
	char clock, note[PATH_MAX];
	struct md_worker worker = {.cpu_time = (struct md_cpu_time *)&clock};
	struct md_task task = {.worker = &worker, .err = &err};
	struct md_live *live[3];

	snprintf(note, sizeof(note), "%s/running", dir);
	write_text(note, "{\"places\": [1, 2, 3, 4], \"program\": \"/usr/bin/prog\"}");
	for (int i = 0; i < 3; i++) {
		task.job = &jobs[i];
		snprintf(task.dir.path, sizeof(task.dir.path), "%s", i ? "" : dir);
		ck_assert_int_eq(md_live_of(&task, &live[i]), 0);
	}
	ck_assert(!md_live_waits(live[0]));
	ck_assert(md_live_waits(live[1]));
	ck_assert(!md_live_waits(live[2]));
	/* The library's turns are over. */
	md_live_keep(&worker, jobs + 1, 2);
	ck_assert(!md_live_waits(live[1]));
	worker.cpu_time = NULL;
	md_live_fini(&worker);
}

/* Whatever the policy says of the library, its versions go into processes of a program. */
TEST(live_asks_the_policy_for_the_program_of_a_library)
{
	char path[PATH_MAX], program[PATH_MAX + 8], note[PATH_MAX], text[2 * PATH_MAX];
	char *excludes[] = {program, NULL};
	struct mp_job job = {.path = path, .state = MP_JOB_TRYING, .round = 1};
	struct md_policy policy = {.dir = (char *)"etc", .live = true};
	struct md_worker worker = {.policy = &policy, .morph = "/bin/false"};
	struct md_task task = {.worker = &worker, .job = &job, .err = &err};
	struct md_child_result r;

	snprintf(path, sizeof(path), "%s/lib.so", dir);
	snprintf(program, sizeof(program), "%s/prog", dir);
	snprintf(note, sizeof(note), "%s/running", dir);
	snprintf(task.dir.path, sizeof(task.dir.path), "%s", dir);
	write_text(program, "one");
	write_text(note, "{");
	ck_assert_int_eq(md_running_put(&task, MD_COUNTING, &r), 0);
	ck_assert_int_ne(r.status, 0);
	ck_assert_str_eq(r.reason, "it is not known which program has loaded it");
	snprintf(text, sizeof(text), "{\"places\": [1, 2, 3, 4], \"program\": \"%s\"}", program);
	write_text(note, text);
	policy.live = false;
	ck_assert_int_eq(md_running_put(&task, MD_NEW_RUNNING, &r), 0);
	ck_assert_int_ne(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.reason, "left alone: `live = no'"));
	policy.live = true;
	policy.excludes = excludes;
	ck_assert_int_eq(md_running_put(&task, MD_NEW_RUNNING, &r), 0);
	ck_assert_int_ne(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.reason, "left alone: excluded by"));
}

/* A step that fails is tried each second. */
TEST(live_tells_of_a_failing_step_once)
{
	char path[] = "/usr/bin/prog";
	struct mp_job job = {.path = path, .state = MP_JOB_COUNTING, .round = 1};
	char clock;
	struct md_worker worker = {.cpu_time = (struct md_cpu_time *)&clock};
	struct md_task task = {.worker = &worker, .job = &job, .err = &err};
	struct md_live *live;

	ck_assert(md_live_is_news(&worker, path, "no job is live yet"));
	ck_assert_int_eq(md_live_of(&task, &live), 0);
	ck_assert(md_live_is_news(&worker, path, "the disk is full"));
	ck_assert(!md_live_is_news(&worker, path, "the disk is full"));
	ck_assert(md_live_is_news(&worker, path, "no backup"));
	ck_assert(!md_live_is_news(&worker, path, "no backup"));
	/* It went on, and fails again. */
	ck_assert(md_live_is_news(&worker, path, ""));
	ck_assert(!md_live_is_news(&worker, path, ""));
	ck_assert(md_live_is_news(&worker, path, "no backup"));
	worker.cpu_time = NULL;
	md_live_fini(&worker);
}
