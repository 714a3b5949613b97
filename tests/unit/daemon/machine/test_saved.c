// SPDX-License-Identifier: Apache-2.0
/* test_saved - seconds that versions of Morph saved, from samples by day, uses of versions and rates. */
#include "daemon/machine/saved.h"
#include "libprof/store/jobs/store_history.h"
#include "tests/unit/store_fixture.h"

/* NOW is 5,000 s into the day 20000. */
#define NOON(day) ((day) * (int64_t)DAY + DAY / 2)

static struct md_machine machine;
static struct md_saved saved;
static int64_t key;

static void add_samples(int64_t module, int64_t day, uint64_t nr)
{
	struct mp_ip_count count = {0x1000, nr};

	ok(mp_store_add_ip_counts(store, module, day * DAY + 100, &count, 1, &err));
}

/* 100 samples a second since @start_s; program 1 has 1,000 on each day from @first. */
static void setup_days(int64_t start_s, int64_t first)
{
	struct mp_session session = {
		.start_s = start_s, .collector = "replay", .event = "cpu-clock", .rate_hz = 100};
	struct mp_ledger delta = {.emitted = 1000, .attributed = 1000};

	setup();
	store = open_as(MP_STORE_WRITE);
	ok(mp_store_start_session(store, &session, &err));
	ok(mp_store_add_ledger(store, session.key, NOW, &delta, &err));
	key = put(store, 1, 4096);
	for (int64_t day = first; day <= 20000; day++)
		add_samples(key, day, 1000);
}

static void setup_week(void)
{
	setup_days(19990LL * DAY, 19990);
}

/* A job of program @n that is adopted at @when_s and gains a quarter. */
static struct mp_job adopt(unsigned int n, int64_t when_s, uint64_t before)
{
	const struct mp_job_step step = {"adopt", "done", "it is faster", when_s};
	struct mp_job job;
	char path[32];

	snprintf(path, sizeof(path), "/usr/bin/prog%u", n);
	ok(mp_store_want_job(store, path, MP_JOB_BY_TIMER, 0, false, when_s - 10, &job, &err));
	job.id = id_of(n);
	job.gain = (struct mp_job_gain){1.25, 1.1, 1.5, 0};
	job.adopted_s = when_s;
	job.before_samples = before;
	ok(mp_store_advance_job(store, &job, MP_JOB_ADOPTED, &step, &err));
	return job;
}

static void load(void)
{
	ok(md_machine_load(store, 0, &machine, &err));
	ok(md_saved_load(store, &machine, NOW, &saved, &err));
}

static void fini(void)
{
	md_saved_fini(&saved);
	md_machine_fini(&machine);
	teardown();
}

static void is_near(double value, double want)
{
	ck_assert_double_eq_tol(value, want, 1e-6);
}

FIXTURE(setup_week, fini);

TEST(saved_is_nothing_without_a_version)
{
	load();
	ck_assert_uint_eq(saved.nr_programs, 0);
	ck_assert(saved.whole && saved.has_rate);
	ck_assert_int_eq(saved.since_s, 19994LL * DAY);
	is_near(saved.all.used, 70);
	is_near(saved.all.saved, 0);
	is_near(saved.days[0].used, 10);
}

TEST(saved_counts_from_the_adoption)
{
	struct mp_job job = adopt(1, NOON(19998), 0);

	/* Another program's samples are the machine's, too. */
	add_samples(put(store, 2, 4096), 20000, 3000);
	load();
	ck_assert_uint_eq(saved.nr_programs, 1);
	ck_assert_uint_eq(saved.nr_measured, 1);
	ck_assert_str_eq(saved.programs[0].path, "/usr/bin/prog1");
	ck_assert(saved.programs[0].in_use);
	/* Half a day, yesterday, and today. */
	is_near(saved.programs[0].time.used, 25);
	is_near(saved.all.used, 100);
	is_near(saved.all.saved, 6.25);
	is_near(saved.all.least, 2.5);
	is_near(saved.all.most, 12.5);
	is_near(md_saved_percent(&saved.all, saved.all.saved), 100 * 6.25 / 106.25);
	is_near(saved.days[MD_SAVED_DAYS - 3].saved, 1.25);
	is_near(saved.days[MD_SAVED_DAYS - 1].saved, 2.5);
	is_near(saved.days[MD_SAVED_DAYS - 4].saved, 0);
	mp_store_fini_job(&job);
}

TEST(saved_knows_samples_before_the_adoption)
{
	const struct mp_activity activity = {.app = 11000};
	struct mp_job job = adopt(1, NOON(19998), 8900);

	ok(mp_store_add_activity(store, key, NOW, &activity, &err));
	load();
	/* 2,100 samples since then: 2,000 yesterday and today, so 100 on the first day. */
	is_near(saved.programs[0].time.used, 21);
	mp_store_fini_job(&job);
}

TEST(saved_ends_with_the_undoing)
{
	const struct mp_job_step undoing = {"probation", "slower", "it is slower", NOON(19999)};
	const struct mp_job_step undone = {"undo", "done", "the original is back", NOON(19999) + 5};
	struct mp_job job = adopt(1, NOON(19998), 0);

	ok(mp_store_advance_job(store, &job, MP_JOB_UNDOING, &undoing, &err));
	ok(mp_store_advance_job(store, &job, MP_JOB_UNDONE, &undone, &err));
	load();
	ck_assert_uint_eq(saved.nr_programs, 1);
	ck_assert(!saved.programs[0].in_use);
	is_near(saved.programs[0].time.used, 10);
	is_near(saved.all.saved, 2.5);
	mp_store_fini_job(&job);
}

TEST(saved_forgets_what_ended_before_the_period)
{
	const struct mp_job_step undoing = {"probation", "slower", "", NOON(19993)};
	struct mp_job job = adopt(1, NOON(19992), 0);

	ok(mp_store_advance_job(store, &job, MP_JOB_UNDOING, &undoing, &err));
	load();
	ck_assert_uint_eq(saved.nr_programs, 0);
	mp_store_fini_job(&job);
}

TEST(saved_says_who_was_not_measured)
{
	struct mp_job job = adopt(1, NOON(19998), 0);

	job.gain = (struct mp_job_gain){0};
	ok(mp_store_note_job(store, &job, &err));
	mp_store_fini_job(&job);
	job = adopt(3, NOON(19998), 0);
	add_samples(put(store, 3, 4096), 20000, 400);
	ok(sqlite3_exec(store->db,
			"UPDATE job SET ratio = 0, lowest = 0, highest = 0 WHERE path LIKE '%1'; "
			"UPDATE history SET ratio = 0, lowest = 0, highest = 0 WHERE path LIKE '%1'",
			NULL, NULL, NULL));
	load();
	ck_assert_uint_eq(saved.nr_programs, 2);
	ck_assert_uint_eq(saved.nr_measured, 1);
	is_near(saved.all.saved, 1);
	mp_store_fini_job(&job);
}

TEST(saved_counts_one_build_at_two_places_once)
{
	struct mp_job job = adopt(1, NOON(19998), 0), copy;
	const struct mp_job_step step = {"adopt", "done", "", NOON(19998)};

	ok(mp_store_want_job(store, "/opt/copy", MP_JOB_BY_TIMER, 0, false, NOW, &copy, &err));
	copy.id = id_of(1);
	copy.adopted_s = NOON(19998);
	copy.gain = job.gain;
	ok(mp_store_advance_job(store, &copy, MP_JOB_ADOPTED, &step, &err));
	load();
	ck_assert_uint_eq(saved.nr_programs, 1);
	is_near(saved.all.saved, 6.25);
	mp_store_fini_job(&job);
	mp_store_fini_job(&copy);
}

TEST(saved_without_a_rate_counts_samples)
{
	struct mp_job job = adopt(1, NOON(19998), 0);

	ok(sqlite3_exec(store->db, "UPDATE session SET rate_hz = 0", NULL, NULL, NULL));
	load();
	ck_assert(!saved.has_rate);
	is_near(saved.all.used, 7000);
	is_near(saved.all.saved, 625);
	mp_store_fini_job(&job);
}

TEST(saved_begins_with_the_samples)
{
	struct mp_job job;

	teardown();
	/* Collecting began at noon, and the version was put in place six hours later. */
	setup_days(NOON(19999), 19999);
	job = adopt(1, NOON(19999) + DAY / 4, 0);
	load();
	ck_assert(!saved.whole);
	ck_assert_int_eq(saved.since_s, NOON(19999));
	/* Half of the samples of that day, and today's. */
	is_near(saved.programs[0].time.used, 15);
	is_near(saved.all.used, 20);
	mp_store_fini_job(&job);
}
