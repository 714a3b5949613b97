// SPDX-License-Identifier: Apache-2.0
/* test_diff - periods, the part of a store that lies in them, and which modules match. */
#include <time.h>

#include "daemon/diff/diff.h"
#include "daemon/diff/diff_period.h"
#include "tests/unit/scratch.h"

#define DAY 86400
#define NOW (20000LL * DAY + 5000)

static char db[256];
static struct mp_store *store;
static struct md_diff diff;
static int nr_notes;

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

static void note(void *ctx, const char *what)
{
	(void)ctx;
	(void)what;
	nr_notes++;
}

static void setup(void)
{
	scratch_make();
	snprintf(db, sizeof(db), "%s/morph.db", dir);
	ok(mp_store_open(db, MP_STORE_WRITE, &store, &err));
	diff = (struct md_diff){.by = MD_BY_MODULE, .note = note};
	nr_notes = 0;
}

static void teardown(void)
{
	md_diff_fini(&diff);
	mp_store_close(store);
	scratch_remove();
}

static void put(unsigned int build, const char *path, int64_t first, int64_t last, uint64_t nr)
{
	struct mp_id id = {.build_id_len = 20, .text_hash = build};
	struct mp_ip_count count = {0x1000, nr};
	struct mp_span span = {first, last, false};
	int64_t key;

	id.build_id[0] = (uint8_t)build;
	ok(mp_store_put_module(store, &id, MP_MODULE_FILE, path, 1000, last * DAY, &key, &err));
	ok(mp_store_add_ip_count_span(store, key, &span, &count, 1, &err));
}

static void compare_at(int64_t day)
{
	ok(md_diff_load(&diff.sides[0], store, &(struct mp_span){0, day - 1, false}, &err));
	ok(md_diff_load(&diff.sides[1], store, &(struct mp_span){day, INT64_MAX, false}, &err));
	ok(md_diff_compare(&diff, &err));
}

static const struct md_diff_row *row_of(const char *path)
{
	for (size_t i = 0; i < diff.nr_rows; i++)
		if (!strcmp(diff.groups[diff.rows[i].group].path, path))
			return &diff.rows[i];
	return NULL;
}

static void expect_period(const char *text, int want, int64_t first, int64_t last)
{
	struct mp_span span = {-1, -1, false};

	ck_assert_msg(md_period_parse(text, NOW, &span) == want, "%s", text);
	if (want)
		return;
	ck_assert_int_eq(span.first_day, first);
	ck_assert_int_eq(span.last_day, last);
}

TEST(period_ends_before_the_day_of_its_end)
{
	expect_period("@1728000..@1814400", 0, 20, 20);
	expect_period("@1728000..", 0, 20, INT64_MAX);
	expect_period("..@1728000", 0, 0, 19);
	expect_period("..@1728001", 0, 0, 19); /* in the middle of a day */
	expect_period("3d..1d", 0, 19997, 19998);
	expect_period("..", -EINVAL, 0, 0);
	expect_period("", -EINVAL, 0, 0);
	expect_period("@1728000", -EINVAL, 0, 0);
	expect_period("@1728000..@1728001", -EINVAL, 0, 0); /* empty */
	expect_period("1d..3d", -EINVAL, 0, 0);
	expect_period("never..", -EINVAL, 0, 0);
	expect_period("..never", -EINVAL, 0, 0);
	expect_period("@1..@2..@3", -EINVAL, 0, 0);
}

TEST(period_has_a_before_and_a_behind)
{
	struct mp_span span = {20, 30, false}, out;

	ck_assert_int_eq(md_period_before(&span, &out), 0);
	ck_assert_int_eq(out.first_day, 0);
	ck_assert_int_eq(out.last_day, 19);
	ck_assert_int_eq(md_period_behind(&span, &out), 0);
	ck_assert_int_eq(out.first_day, 31);
	ck_assert_int_eq(out.last_day, INT64_MAX);
	ck_assert_int_eq(md_period_before(&MD_PERIOD_ALL, &out), -EINVAL);
	ck_assert_int_eq(md_period_behind(&MD_PERIOD_ALL, &out), -EINVAL);
}

FIXTURE(setup, teardown);

TEST(diff_gives_each_day_to_one_side)
{
	put(1, "/bin/a", 100, 100, 10);
	put(1, "/bin/a", 101, 101, 20);
	put(1, "/bin/a", 102, 102, 40);
	compare_at(101);
	ck_assert_uint_eq(diff.sides[0].total, 10);
	ck_assert_uint_eq(diff.sides[1].total, 60);
	ck_assert_uint_eq(diff.sides[0].left_out + diff.sides[1].left_out, 0);
	ck_assert_uint_eq(diff.nr_rows, 1);
	ck_assert_double_eq_tol(diff.rows[0].delta, 0, 1e-9);
	ck_assert(!md_diff_row_is_possible(&diff.rows[0]));
}

TEST(diff_leaves_out_days_that_cannot_be_told_apart)
{
	put(1, "/bin/a", 100, 102, 10);
	put(1, "/bin/a", 99, 99, 1);
	put(1, "/bin/a", 103, 103, 2);
	compare_at(101);
	ck_assert_uint_eq(diff.sides[0].total, 1);
	ck_assert_uint_eq(diff.sides[1].total, 2);
	ck_assert_uint_eq(diff.sides[0].left_out, 10);
	ck_assert_uint_eq(diff.sides[1].left_out, 10);
}

TEST(diff_matches_builds_by_path)
{
	put(1, "/bin/a", 100, 100, 600);
	put(2, "/bin/a", 101, 101, 300); /* an update */
	put(3, "/bin/b", 100, 100, 400);
	put(3, "/bin/moved", 101, 101, 690); /* the same file at another path */
	put(4, "/bin/c", 101, 101, 10);
	compare_at(101);
	ck_assert_uint_eq(diff.nr_groups, 3);
	ck_assert_uint_eq(diff.nr_rows, 3);
	ck_assert_uint_eq(row_of("/bin/a")->samples[0], 600);
	ck_assert_uint_eq(row_of("/bin/a")->samples[1], 300);
	ck_assert_uint_eq(diff.groups[row_of("/bin/a")->group].nr_builds, 2);
	ck_assert(md_diff_row_is_significant(row_of("/bin/a")));
	/* It has its latest name. */
	ck_assert_ptr_null(row_of("/bin/b"));
	ck_assert_uint_eq(row_of("/bin/moved")->samples[0], 400);
	ck_assert_uint_eq(diff.groups[row_of("/bin/moved")->group].nr_builds, 1);
	ck_assert_uint_eq(row_of("/bin/c")->samples[0], 0);
	ck_assert_double_eq_tol(row_of("/bin/c")->delta, 1, 1e-9);
}

TEST(diff_filters_rows_but_not_shares)
{
	put(1, "/bin/a", 100, 100, 50);
	put(1, "/bin/a", 101, 101, 50);
	put(2, "/bin/b", 100, 100, 50);
	put(2, "/bin/b", 101, 101, 150);
	diff.filter.module = "a";
	compare_at(101);
	ck_assert_uint_eq(diff.nr_rows, 1);
	ck_assert_double_eq_tol(diff.rows[0].share[0], 50, 1e-9);
	ck_assert_double_eq_tol(diff.rows[0].share[1], 25, 1e-9);
}

TEST(diff_of_a_file_that_is_gone_is_one_row)
{
	put(1, "/no/such/file", 100, 100, 50);
	put(1, "/no/such/file", 101, 101, 50);
	diff.by = MD_BY_FUNCTION;
	compare_at(101);
	ck_assert_int_eq(nr_notes, 1);
	ck_assert_uint_eq(diff.nr_rows, 1);
	ck_assert_ptr_null(diff.rows[0].function);
	ck_assert_uint_eq(diff.rows[0].samples[0], 50);
	ck_assert_uint_eq(diff.rows[0].samples[1], 50);
}

MORPH_BEFORE_MAIN(use_utc, setenv("TZ", "UTC", 1))
