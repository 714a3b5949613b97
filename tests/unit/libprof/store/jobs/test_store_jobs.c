// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_jobs - morph-worker's jobs: a step changes the state and adds its decision, or neither;
 * a round has each step once; another process's change is noticed; rounds, rejected layouts, costs;
 * damage is found.
 */

#include "libprof/store/jobs/store_history.h"
#include "tests/unit/store_fixture.h"

static const char prog[] = "/usr/bin/prog";

static struct mp_job_step step_of(const char *name, const char *verdict)
{
	return (struct mp_job_step){name, verdict, "because", NOW + 60};
}

static struct mp_job want(struct mp_store *store, bool again)
{
	struct mp_job job;

	ok(mp_store_want_job(store, prog, MP_JOB_BY_WATCH, 1000, again, NOW, &job, &err));
	return job;
}

static void advance(struct mp_store *store, struct mp_job *job, enum mp_job_state to,
		    const char *name)
{
	struct mp_job_step step = step_of(name, "done");

	ok(mp_store_advance_job(store, job, to, &step, &err));
}

static size_t nr_decisions(struct mp_store *store)
{
	struct mp_decision *list;
	size_t nr;

	ok(mp_store_list_history(store, NULL, 0, &list, &nr, &err));
	mp_store_free_history(list, nr);
	return nr;
}

FIXTURE(setup, teardown);

TEST(store_reads_a_job_back_as_it_was_written)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_job job = want(store, false), back;

	ck_assert_int_eq(job.state, MP_JOB_WANTED);
	ck_assert_uint_eq(job.round, 1);
	ck_assert_uint_eq(job.uid, 1000);
	job.id = id_of(7);
	strcpy(job.file_hash, "00112233445566778899aabbccddeeff");
	strcpy(job.layout, "ffeeddccbbaa99887766554433221100");
	free(job.output);
	job.output = strdup("/var/lib/x/output");
	job.gain = (struct mp_job_gain){1.05, 1.02, 1.08, 0.75};
	job.adopted_s = NOW + 5;
	job.before_samples = 10;
	job.before_all = 100;
	job.before_crashes = 3;
	job.not_before_s = NOW + 900;
	advance(store, &job, MP_JOB_PROFILED, "profile");
	ck_assert_int_eq(job.state, MP_JOB_PROFILED);
	ck_assert_str_eq(job.detail, "because");
	ok(mp_store_find_job(store, prog, &back, &err));
	ck_assert_int_eq(back.key, job.key);
	ck_assert_str_eq(back.path, prog);
	ck_assert(mp_id_equal(&back.id, &job.id));
	ck_assert_str_eq(back.file_hash, job.file_hash);
	ck_assert_str_eq(back.layout, job.layout);
	ck_assert_str_eq(back.output, job.output);
	ck_assert_str_eq(back.detail, "because");
	ck_assert_int_eq(back.state, MP_JOB_PROFILED);
	ck_assert_int_eq(back.since_s, NOW + 60);
	ck_assert_int_eq(back.asked, MP_JOB_BY_WATCH);
	ck_assert_int_eq(back.not_before_s, NOW + 900);
	ck_assert_double_eq(back.gain.lowest, 1.02);
	ck_assert_double_eq(back.gain.predicted, 0.75);
	ck_assert_int_eq(back.adopted_s, NOW + 5);
	ck_assert_uint_eq(back.before_samples, 10);
	ck_assert_uint_eq(back.before_all, 100);
	ck_assert_uint_eq(back.before_crashes, 3);
	mp_store_fini_job(&back);
	mp_store_fini_job(&job);
	ok(mp_store_check(store, &err));
}

TEST(store_says_what_was_decided_in_the_order_of_events)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	AUTO(mp_store_fini_job) struct mp_job job = want(store, false);
	struct mp_decision *list;
	size_t nr;

	job.gain.ratio = 1.1;
	advance(store, &job, MP_JOB_PROFILED, "profile");
	advance(store, &job, MP_JOB_WRITTEN, "write");
	ok(mp_store_list_history(store, prog, 0, &list, &nr, &err));
	ck_assert_uint_eq(nr, 3);
	ck_assert_str_eq(list[0].step, "ask");
	ck_assert_str_eq(list[0].verdict, "watch");
	ck_assert_str_eq(list[1].step, "profile");
	ck_assert_str_eq(list[2].step, "write");
	ck_assert_int_eq(list[2].state, MP_JOB_WRITTEN);
	ck_assert_str_eq(list[2].reason, "because");
	ck_assert_double_eq(list[2].gain.ratio, 1.1);
	ck_assert_uint_eq(list[2].round, 1);
	mp_store_free_history(list, nr);
	ok(mp_store_list_history(store, "/another", 0, &list, &nr, &err));
	ck_assert_uint_eq(nr, 0);
	mp_store_free_history(list, nr);
	ok(mp_store_list_history(store, NULL, NOW + 60, &list, &nr, &err));
	ck_assert_uint_eq(nr, 2);
	mp_store_free_history(list, nr);
}

TEST(store_takes_a_step_once_and_changes_nothing_else_then)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_job job = want(store, false), late = want(store, false);
	struct mp_job_step step = step_of("profile", "done");

	advance(store, &job, MP_JOB_PROFILED, "profile");
	/* Somebody who still holds the job as wanted. */
	ck_assert_int_eq(mp_store_advance_job(store, &late, MP_JOB_FAILED, &step, &err), -ESTALE);
	ck_assert_int_eq(late.state, MP_JOB_WANTED);
	ck_assert_int_eq(mp_store_note_job(store, &late, &err), -ESTALE);
	/* The same step again in this round. */
	ck_assert_int_eq(mp_store_advance_job(store, &job, MP_JOB_FAILED, &step, &err), -EEXIST);
	ck_assert_int_eq(job.state, MP_JOB_PROFILED);
	mp_store_fini_job(&late);
	ok(mp_store_find_job(store, prog, &late, &err));
	ck_assert_int_eq(late.state, MP_JOB_PROFILED);
	ck_assert_uint_eq(nr_decisions(store), 2);
	mp_store_fini_job(&late);
	mp_store_fini_job(&job);
}

TEST(store_begins_a_new_round_only_when_asked_again)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_job job = want(store, false);
	struct mp_job_step step = step_of("upgrade", "changed");

	free(job.output);
	job.output = strdup("/some/output");
	strcpy(job.layout, "abc");
	advance(store, &job, MP_JOB_NOT_FASTER, "audit");
	mp_store_fini_job(&job);
	job = want(store, false);
	ck_assert_int_eq(job.state, MP_JOB_NOT_FASTER);
	mp_store_fini_job(&job);
	job = want(store, true);
	ck_assert_int_eq(job.state, MP_JOB_WANTED);
	ck_assert_uint_eq(job.round, 2);
	ck_assert_str_eq(job.output, "");
	ck_assert_str_eq(job.layout, "");
	mp_store_fini_job(&job);
	/* Not while a round goes on. */
	job = want(store, true);
	ck_assert_uint_eq(job.round, 2);
	advance(store, &job, MP_JOB_ADOPTED, "adopt");
	job.id = id_of(9);
	ok(mp_store_renew_job(store, &job, &step, &err));
	ck_assert_int_eq(job.state, MP_JOB_WANTED);
	ck_assert_uint_eq(job.round, 3);
	mp_store_fini_job(&job);
	ck_assert_uint_eq(nr_decisions(store), 5);
}

TEST(store_keeps_neither_half_of_a_step_that_is_rolled_back)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_job job = want(store, false), back;

	ok(mp_store_begin(store, &err));
	advance(store, &job, MP_JOB_PROFILED, "profile");
	mp_store_rollback(store);
	ok(mp_store_find_job(store, prog, &back, &err));
	ck_assert_int_eq(back.state, MP_JOB_WANTED);
	ck_assert_uint_eq(nr_decisions(store), 1);
	mp_store_fini_job(&back);
	mp_store_fini_job(&job);
}

TEST(store_refuses_paths_and_cuts_long_reasons)
{
	struct mp_job job;
	char text[5000];
	struct mp_job_step step = {"profile", "done", text, NOW};

	store = open_as(MP_STORE_WRITE);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(mp_store_want_job(store, "prog", MP_JOB_BY_TIMER, 0, false, NOW, &job,
					   &err),
			 -EINVAL);
	text[0] = '/';
	ck_assert_int_eq(mp_store_want_job(store, text, MP_JOB_BY_TIMER, 0, false, NOW, &job, &err),
			 -EINVAL);
	job = want(store, false);
	ok(mp_store_advance_job(store, &job, MP_JOB_PROFILED, &step, &err));
	ck_assert_uint_eq(strlen(job.detail), MP_JOB_TEXT_MAX);
	mp_store_fini_job(&job);
	ok(mp_store_check(store, &err));
}

TEST(store_remembers_layouts_that_are_never_tried_again)
{
	struct mp_id id = id_of(1), other = id_of(2), none = {.text_hash = 5};
	bool rejected;

	store = open_as(MP_STORE_WRITE);
	ok(mp_store_reject_layout(store, &id, "aa", "slower", NOW, &err));
	ok(mp_store_reject_layout(store, &id, "aa", "slower still", NOW, &err));
	ok(mp_store_reject_layout(store, &none, "aa", "crashed", NOW, &err));
	ok(mp_store_is_rejected(store, &id, "aa", &rejected, &err));
	ck_assert(rejected);
	ok(mp_store_is_rejected(store, &none, "aa", &rejected, &err));
	ck_assert(rejected);
	ok(mp_store_is_rejected(store, &id, "bb", &rejected, &err));
	ck_assert(!rejected);
	ok(mp_store_is_rejected(store, &other, "aa", &rejected, &err));
	ck_assert(!rejected);
	ck_assert_int_eq(mp_store_reject_layout(store, &id, "", "", NOW, &err), -EINVAL);
}

TEST(store_adds_up_what_a_day_has_cost)
{
	struct mp_spent spent, some = {1500, 4096};

	store = open_as(MP_STORE_WRITE);
	ok(mp_store_add_spent(store, NOW, &some, &err));
	ok(mp_store_add_spent(store, NOW + 60, &some, &err));
	ok(mp_store_read_spent(store, NOW, &spent, &err));
	ck_assert_uint_eq(spent.cpu_ms, 3000);
	ck_assert_uint_eq(spent.disk_bytes, 8192);
	ok(mp_store_read_spent(store, NOW + DAY, &spent, &err));
	ck_assert_uint_eq(spent.cpu_ms, 0);
	ok(mp_store_add_spent(store, NOW + 40 * DAY, &some, &err));
	ok(mp_store_read_spent(store, NOW, &spent, &err));
	ck_assert_uint_eq(spent.cpu_ms, 0);
}

TEST(store_names_states)
{
	for (int s = 0; s < MP_NR_JOB_STATES; s++) {
		enum mp_job_state found;

		ck_assert_ptr_nonnull(mp_job_state_name((enum mp_job_state)s));
		ck_assert(mp_job_state_find(mp_job_state_name((enum mp_job_state)s), &found));
		ck_assert_int_eq(found, s);
	}
	ck_assert(!mp_job_state_find("strange", &(enum mp_job_state){0}));
}

static const char *const damages[] = {
	"UPDATE job SET state = 'strange'",
	"UPDATE job SET asked = 'nobody'",
	"UPDATE job SET path = 'relative'",
	"UPDATE job SET round = 0",
	"UPDATE job SET uid = -1",
	"UPDATE job SET ratio = 9e999",
	"UPDATE job SET lowest = -1",
	"UPDATE job SET layout = 'this is much longer than the hash of any layout'",
	"UPDATE job SET build_id = zeroblob(99)",
	"UPDATE job SET detail = zeroblob(0)||hex(zeroblob(3000))",
	"UPDATE history SET state = 'strange'",
	"UPDATE history SET round = 0",
	"UPDATE history SET build_id = zeroblob(99)",
	"UPDATE history SET predicted = -1",
	"UPDATE history SET reason = hex(zeroblob(3000))",
};

TEST_EACH(store_check_finds_impossible_jobs, sizeof(damages) / sizeof(damages[0]))
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_job job = want(store, false);

	mp_store_fini_job(&job);
	mp_store_close(store);
	tamper(damages[_i]);
	store = open_as(MP_STORE_READ);
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "impossible"));
	mp_store_close(store);
}
