// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_copies - samples of outputs by their own addresses, and trials: read back as written,
 * merged, and damage is found.
 */
#include <math.h>

#include "libprof/store/store_copies.h"
#include "libprof/store/audits/store_trials.h"
#include "libprof/store/whole/store_merge.h"
#include "tests/unit/store_fixture.h"

static void expect_copies(struct mp_store *store, int64_t output, int64_t since_s,
			  const struct mp_copy_count *want, size_t nr_want)
{
	AUTO_FREE struct mp_copy_count *have = NULL;
	size_t nr = 0;

	ok(mp_store_read_copies(store, output, since_s, &have, &nr, &err));
	ck_assert_uint_eq(nr, nr_want);
	for (size_t i = 0; i < nr; i++) {
		ck_assert_uint_eq(have[i].vaddr, want[i].vaddr);
		ck_assert_uint_eq(have[i].original, want[i].original);
		ck_assert_uint_eq(have[i].count, want[i].count);
	}
}

/* Two copies of one block, and code that was not moved. */
static const struct mp_copy_count sampled[] = {
	{0x401000, 0x401000, 4}, {0x900000, 0x401800, 7}, {0x900100, 0x401800, 2}};
static const struct mp_copy_count twice[] = {
	{0x401000, 0x401000, 8}, {0x900000, 0x401800, 14}, {0x900100, 0x401800, 4}};

FIXTURE(setup, teardown);

TEST(store_keeps_each_copy_apart)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t original = put(store, 1, 1 << 20), output = put(store, 2, 1 << 20);
	struct mp_copied *copied = NULL;
	size_t nr = 0;

	ok(mp_store_add_copies(store, output, original, NOW, sampled, 3, &err));
	ok(mp_store_add_copies(store, output, original, NOW + DAY, sampled, 3, &err));
	expect_copies(store, output, 0, twice, 3);
	expect_copies(store, output, NOW + DAY, sampled, 3);
	expect_copies(store, original, 0, NULL, 0);
	/* They are no samples of either module. */
	expect(store, output, 0, NULL, 0);
	expect(store, original, 0, NULL, 0);
	ok(mp_store_list_copied(store, &copied, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	ck_assert_int_eq(copied[0].output, output);
	ck_assert_int_eq(copied[0].original, original);
	free(copied);
	ok(mp_store_check(store, &err));
}

TEST(store_refuses_copies_that_cannot_be)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t original = put(store, 1, 1 << 20), output = put(store, 2, 1 << 20);
	const struct mp_copy_count equal[] = {{5, 1, 1}, {5, 2, 1}};
	struct mp_copy_count *none;
	size_t nr;

	ck_assert_int_eq(mp_store_add_copies(store, output, original, NOW, equal, 2, &err),
			 -EINVAL);
	ck_assert_int_eq(mp_store_add_copies(store, output, 77, NOW, sampled, 3, &err), -ENOENT);
	ck_assert_int_eq(mp_store_add_copies(store, 77, original, NOW, sampled, 3, &err), -ENOENT);
	ck_assert_int_eq(mp_store_add_copies(store, output, original, -1, sampled, 3, &err),
			 -EINVAL);
	ck_assert_int_eq(mp_store_read_copies(store, 77, 0, &none, &nr, &err), -ENOENT);
	ok(mp_store_add_copies(store, output, original, NOW, NULL, 0, &err));
	expect_copies(store, output, 0, NULL, 0);
	ok(mp_store_check(store, &err));
}

static struct mp_trial a_trial(unsigned int n, const char *machine, const char *adjustments)
{
	return (struct mp_trial){.original = id_of(n),
				 .machine = (char *)machine,
				 .functions = (char *)"f",
				 .adjustments = (char *)adjustments,
				 .verdict = (char *)"faster",
				 .nr_runs = 12,
				 .ratio = 1.25,
				 .lowest = 1.1,
				 .highest = 1.4,
				 .when_s = NOW};
}

TEST(store_lists_the_trials_of_one_file_and_machine)
{
	struct mp_trial a = a_trial(1, "cpu a", "f:start=16"), b = a_trial(1, "cpu b", "f:stay"),
			c = a_trial(2, "cpu a", ""), *list;
	struct mp_id id = id_of(1);
	size_t nr;

	store = open_as(MP_STORE_WRITE);
	ok(mp_store_add_trial(store, &a, &err));
	ok(mp_store_add_trial(store, &b, &err));
	ok(mp_store_add_trial(store, &c, &err));
	ok(mp_store_list_trials(store, &id, "cpu a", &list, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	ck_assert_str_eq(list[0].adjustments, "f:start=16");
	ck_assert_str_eq(list[0].functions, "f");
	ck_assert_str_eq(list[0].verdict, "faster");
	ck_assert_uint_eq(list[0].nr_runs, 12);
	ck_assert_double_eq_tol(list[0].lowest, 1.1, 1e-12);
	ck_assert_int_eq(list[0].when_s, NOW);
	mp_store_free_trials(list, nr);
	ok(mp_store_list_trials(store, NULL, NULL, &list, &nr, &err));
	ck_assert_uint_eq(nr, 3);
	mp_store_free_trials(list, nr);
	a.ratio = NAN;
	ck_assert_int_eq(mp_store_add_trial(store, &a, &err), -EINVAL);
	ok(mp_store_check(store, &err));
}

TEST(merge_adds_copies_and_keeps_trials_once)
{
	char other[256];
	struct mp_store *in = open_as(MP_STORE_WRITE), *out;
	struct mp_trial trial = a_trial(1, "cpu", "f:end"), *trials;
	int64_t original = put(in, 1, 1 << 20), output = put(in, 2, 1 << 20);
	struct mp_merge_stats stats;
	struct mp_copied *copied;
	size_t nr;

	ok(mp_store_add_copies(in, output, original, NOW, sampled, 3, &err));
	ok(mp_store_add_copies(in, output, original, NOW - 30 * DAY, sampled, 3, &err));
	ok(mp_store_add_trial(in, &trial, &err));
	snprintf(other, sizeof(other), "%s/other.db", dir);
	ok(mp_store_open(other, MP_STORE_WRITE, &out, &err));
	put(out, 9, 4096); /* keys differ */
	for (int i = 0; i < 2; i++) {
		ok(mp_store_begin(out, &err));
		ok(mp_store_begin(in, &err));
		ok(mp_store_merge(out, in, true, &stats, &err));
		ok(mp_store_commit(out, &err));
		mp_store_rollback(in);
		if (!i) {
			ok(mp_store_list_copied(out, &copied, &nr, &err));
			ck_assert_uint_eq(nr, 1);
			expect_copies(out, copied[0].output, 0, twice, 3);
			expect_copies(out, copied[0].output, NOW, sampled, 3);
			free(copied);
		}
		ok(mp_store_check(out, &err));
	}
	ok(mp_store_list_trials(out, NULL, NULL, &trials, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	mp_store_free_trials(trials, nr);
	mp_store_close(in);
	mp_store_close(out);
}

/* Tampers a fresh store with @sql: checking must say @what. */
static void expect_damaged(const char *sql, const char *what)
{
	struct mp_trial trial = a_trial(1, "cpu", "f:end");
	struct mp_store *store;
	int64_t original, output;

	unlink(db);
	store = open_as(MP_STORE_WRITE);
	original = put(store, 1, 1 << 20);
	output = put(store, 2, 1 << 20);
	ok(mp_store_add_copies(store, output, original, NOW, sampled, 3, &err));
	ok(mp_store_add_trial(store, &trial, &err));
	mp_store_close(store);
	tamper(sql);
	store = open_as(MP_STORE_READ);
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, what), "%s: %s", sql, err.msg);
	mp_store_close(store);
}

TEST(store_believes_no_damaged_copies_or_trials)
{
	expect_damaged("UPDATE copy_chunk SET data = substr(data, 1, 2)", "checksum");
	expect_damaged("UPDATE copy_bucket SET nr_samples = nr_samples + 1", "add up");
	expect_damaged("UPDATE copy_chunk SET bucket = 77", "without a day");
	expect_damaged("UPDATE copy_bucket SET module = 77", "without a");
	expect_damaged("DELETE FROM copied", "without an original");
	expect_damaged("UPDATE copied SET original = 77", "without an original");
	expect_damaged("UPDATE trial SET runs = -1", "no program wrote");
	expect_damaged("UPDATE trial SET ratio = -1.0", "no program wrote");
	expect_damaged("UPDATE trial SET build_id = zeroblob(1000)", "no program wrote");
	expect_damaged("UPDATE trial SET adjustments = replace(hex(zeroblob(9000)), '0', 'a')",
		       "no program wrote");
}
