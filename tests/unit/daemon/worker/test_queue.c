// SPDX-License-Identifier: Apache-2.0
/* test_queue - a file gets a job by its share of this machine's time, whatever a fleet's other machines do. */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include <sys/stat.h>

#include "daemon/worker/queue.h"
#include "libprof/store/fleet/fleet_base.h"

#define DAY	MP_SECONDS_PER_DAY
#define NOW	(20000 * DAY)
#define SAMPLES 1000

static char db[256], files[2][256];
static struct mp_store *store;

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

static struct mp_id id_of(int file)
{
	return (struct mp_id){.build_id_len = 1, .build_id = {(uint8_t)(1 + file)}};
}

static void setup(void)
{
	scratch_make();
	snprintf(db, sizeof(db), "%s/morph.db", dir);
	ok(mp_store_open(db, MP_STORE_WRITE, &store, &err));
	for (int i = 0; i < 2; i++) {
		snprintf(files[i], sizeof(files[i]), "%s/program%d", dir, i);
		write_text(files[i], "");
		ck_assert_int_eq(chmod(files[i], 0755), 0);
	}
}

static void teardown(void)
{
	mp_store_close(store);
	scratch_remove();
}

static void sample(int file, uint64_t nr)
{
	struct mp_ip_count count = {0x1000, nr};
	struct mp_id id = id_of(file);
	int64_t key;

	ok(mp_store_put_module(store, &id, MP_MODULE_FILE, files[file], 1 << 20, NOW, &key, &err));
	ok(mp_store_add_ip_counts(store, key, NOW, &count, 1, &err));
}

static void pull(int file, uint64_t nr)
{
	struct mp_ip_count count = {0x1000, nr};
	struct mp_fleet_profile profile = {.id = id_of(file),
					   .path = files[file],
					   .text_size = 1 << 20,
					   .day = NOW / DAY,
					   .counts = &count,
					   .nr_counts = 1};

	ok(mp_fleet_put_pulled(store, &profile, NOW, &err));
}

/* Return: jobs for files with half of the samples. */
static size_t fill(struct mp_job **jobs)
{
	struct md_policy policy = {.dir = dir, .share = 0.5, .min_samples = SAMPLES};
	size_t nr;

	ok(md_queue_fill(store, &policy, NOW, &err));
	ok(mp_store_list_jobs(store, jobs, &nr, &err));
	return nr;
}

FIXTURE(setup, teardown);

TEST(queue_counts_this_machines_time)
{
	struct mp_job *jobs;

	sample(0, SAMPLES);
	pull(1, 100 * SAMPLES);
	ck_assert_uint_eq(fill(&jobs), 1);
	ck_assert_str_eq(jobs[0].path, files[0]);
	mp_store_free_jobs(jobs, 1);
}

TEST(queue_waits_for_samples_of_this_machine)
{
	struct mp_job *jobs;

	sample(0, SAMPLES - 1);
	pull(0, 100 * SAMPLES);
	ck_assert_uint_eq(fill(&jobs), 0);
	mp_store_free_jobs(jobs, 0);
}

TEST(queue_is_in_the_order_of_this_machines_samples)
{
	struct md_policy policy = {.min_samples = SAMPLES};
	struct mp_job *jobs;
	size_t nr, nr_ready;

	sample(0, 7);
	pull(1, 100 * SAMPLES);
	for (int i = 0; i < 2; i++)
		ok(mp_store_want_job(store, files[i], MP_JOB_BY_WATCH, 0, false, NOW, NULL, &err));
	ok(mp_store_list_jobs(store, &jobs, &nr, &err));
	ck_assert_uint_eq(nr, 2);
	ok(md_queue_sort(store, &policy, NULL, jobs, nr, &nr_ready, &err));
	ck_assert_str_eq(jobs[0].path, files[0]);
	/* A pulled profile suffices for a round. */
	ck_assert_uint_eq(nr_ready, 1);
	mp_store_free_jobs(jobs, nr);
}
