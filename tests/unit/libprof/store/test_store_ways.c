// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_ways - ways of branches: read back as written, folded, merged, forgotten with their module,
 * and damage is found.
 */
#include <xxhash.h>

#include "libprof/store/store_codec.h"
#include "libprof/store/store_drop.h"
#include "libprof/store/store_ways.h"
#include "libprof/store/whole/store_merge.h"
#include "tests/unit/store_fixture.h"

static void expect_ways(struct mp_store *store, int64_t module, int64_t since_s,
			const struct mp_way_count *want, size_t nr_want)
{
	AUTO_FREE struct mp_way_count *have = NULL;
	size_t nr = 0;

	ok(mp_store_read_ways(store, module, since_s, &have, &nr, &err));
	ck_assert_uint_eq(nr, nr_want);
	ck_assert(nr || !have);
	for (size_t i = 0; i < nr; i++) {
		ck_assert_uint_eq(have[i].vaddr, want[i].vaddr);
		ck_assert_uint_eq(have[i].taken, want[i].taken);
		ck_assert_uint_eq(have[i].fell, want[i].fell);
	}
}

/* Both ways, one way, the other way, in two chunks of text; and twice as much. */
static const struct mp_way_count seen[] = {{0x401000, 4, 9}, {0x401008, 7, 0}, {0x900100, 0, 300}};
static const struct mp_way_count twice[] = {
	{0x401000, 8, 18}, {0x401008, 14, 0}, {0x900100, 0, 600}};

FIXTURE(setup, teardown);

TEST(store_adds_up_ways_by_day)
{
	const struct mp_way_count more[] = {{0x401004, 1, 1}, {0x401008, 0, 2}};
	const struct mp_way_count all[] = {
		{0x401000, 8, 18}, {0x401004, 1, 1}, {0x401008, 14, 2}, {0x900100, 0, 600}};
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20), other = put(store, 2, 1 << 20);
	uint64_t nr = 99;

	ok(mp_store_sum_ways(store, &nr, &err));
	ck_assert_uint_eq(nr, 0);
	ok(mp_store_add_ways(store, module, NOW, seen, 3, &err));
	ok(mp_store_add_ways(store, module, NOW + DAY, seen, 3, &err));
	expect_ways(store, module, 0, twice, 3);
	expect_ways(store, module, NOW + DAY, seen, 3);
	expect_ways(store, other, 0, NULL, 0);
	ok(mp_store_add_ways(store, module, NOW, more, 2, &err));
	expect_ways(store, module, 0, all, 4);
	ok(mp_store_sum_ways(store, &nr, &err));
	ck_assert_uint_eq(nr, 2 * 320 + 4);
	/* They are no samples of the module. */
	expect(store, module, 0, NULL, 0);
	ok(mp_store_check(store, &err));
}

TEST(store_folds_old_days_of_ways)
{
	struct mp_way_count sum = {0x401000, 0, 0};
	struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20);

	for (int64_t day = 0; day < 20; day++) {
		struct mp_way_count way = {0x401000, (uint64_t)day, 1};

		ok(mp_store_add_ways(store, module, NOW + day * DAY, &way, 1, &err));
		sum.taken += way.taken;
		sum.fell += way.fell;
	}
	expect_ways(store, module, 0, &sum, 1);
	sum = (struct mp_way_count){0x401000, 18 + 19, 2};
	expect_ways(store, module, NOW + 18 * DAY, &sum, 1);
	ok(mp_store_check(store, &err));
	mp_store_close(store);
	tamper("CREATE TEMP TABLE t(n CHECK(n <= 8));"
	       "INSERT INTO t SELECT count(*) FROM way_bucket");
}

TEST(store_refuses_ways_that_cannot_be)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20);
	const struct mp_way_count equal[] = {{5, 1, 1}, {5, 2, 1}};
	const struct mp_way_count none[] = {{5, 0, 0}, {6, 0, 0}};
	const struct mp_way_count many[] = {{5, INT64_MAX, 1}, {6, UINT64_MAX, 1}};
	const struct mp_way_count most = {5, INT64_MAX, 0}, one = {5, 0, 1};
	struct mp_way_count *ways;
	size_t nr;

	ck_assert_int_eq(mp_store_add_ways(store, module, NOW, equal, 2, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_ways(store, 77, NOW, seen, 3, &err), -ENOENT);
	ck_assert_int_eq(mp_store_add_ways(store, module, -1, seen, 3, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_ways(store, module, NOW, many, 1, &err), -EOVERFLOW);
	ck_assert_int_eq(mp_store_add_ways(store, module, NOW, many + 1, 1, &err), -EOVERFLOW);
	ck_assert_int_eq(mp_store_read_ways(store, 77, 0, &ways, &nr, &err), -ENOENT);
	ok(mp_store_add_ways(store, module, NOW, NULL, 0, &err));
	ok(mp_store_add_ways(store, module, NOW, none, 2, &err));
	expect_ways(store, module, 0, NULL, 0);
	ok(mp_store_add_ways(store, module, NOW, &most, 1, &err));
	ck_assert_int_eq(mp_store_add_ways(store, module, NOW, &one, 1, &err), -EOVERFLOW);
	expect_ways(store, module, 0, &most, 1);
	ok(mp_store_check(store, &err));
}

TEST(branch_with_no_way_beside_others_is_left_out)
{
	const struct mp_way_count with[] = {{5, 0, 0}, {6, 0, 3}, {9, 0, 0}};
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20);

	ok(mp_store_add_ways(store, module, NOW, with, 3, &err));
	expect_ways(store, module, 0, &with[1], 1);
	ok(mp_store_check(store, &err));
}

TEST(merge_adds_ways)
{
	char other[256];
	struct mp_store *in = open_as(MP_STORE_WRITE), *out;
	int64_t module = put(in, 1, 1 << 20), to;
	struct mp_module found;
	struct mp_merge_stats stats;
	struct mp_id id = id_of(1);

	for (int64_t day = 0; day < 10; day++)
		ok(mp_store_add_ways(in, module, NOW + day * DAY, seen, 3, &err));
	snprintf(other, sizeof(other), "%s/other.db", dir);
	ok(mp_store_open(other, MP_STORE_WRITE, &out, &err));
	put(out, 9, 4096); /* keys differ */
	to = put(out, 1, 1 << 20);
	ck_assert_int_ne(to, module);
	ok(mp_store_add_ways(out, to, NOW + 9 * DAY, seen, 3, &err));
	ok(mp_store_begin(out, &err));
	ok(mp_store_begin(in, &err));
	ok(mp_store_merge(out, in, true, &stats, &err));
	ok(mp_store_commit(out, &err));
	mp_store_rollback(in);
	ck_assert_uint_eq(stats.nr_ways, 10 * 320);
	ok(mp_store_find_module(out, &id, &found, &err));
	free(found.path);
	ck_assert_int_eq(found.key, to);
	expect_ways(out, to, NOW + 9 * DAY, twice, 3);
	ok(mp_store_check(out, &err));
	mp_store_close(in);
	mp_store_close(out);
}

TEST(module_is_dropped_with_its_ways)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20), stays = put(store, 2, 1 << 20);
	uint64_t nr = 99;

	ok(mp_store_add_ways(store, module, NOW, seen, 3, &err));
	ok(mp_store_add_ways(store, stays, NOW, seen, 1, &err));
	ok(mp_store_drop_module(store, module, &err));
	ok(mp_store_sum_ways(store, &nr, &err));
	ck_assert_uint_eq(nr, 13);
	ok(mp_store_check(store, &err));
}

/* Tampers a fresh store with @sql: checking must say @what, and so must reading, if @reading. */
static void expect_damaged(const char *sql, const char *what, bool reading)
{
	struct mp_way_count *ways = NULL;
	struct mp_store *store;
	int64_t module;
	size_t nr = 0;

	unlink(db);
	store = open_as(MP_STORE_WRITE);
	module = put(store, 1, 1 << 20);
	ok(mp_store_add_ways(store, module, NOW, seen, 3, &err));
	mp_store_close(store);
	tamper(sql);
	store = open_as(MP_STORE_READ);
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, what), "%s: %s", sql, err.msg);
	if (reading) {
		ck_assert_int_eq(mp_store_read_ways(store, module, 0, &ways, &nr, &err), -EBADMSG);
		ck_assert_msg(strstr(err.msg, what), "%s: %s", sql, err.msg);
		ck_assert_ptr_null(ways);
	}
	mp_store_close(store);
}

TEST(store_believes_no_damaged_ways)
{
	expect_damaged("UPDATE way_chunk SET data = substr(data, 1, 2) WHERE key = 1", "checksum",
		       true);
	expect_damaged("UPDATE way_bucket SET nr_ways = nr_ways + 1", "add up", true);
	expect_damaged("UPDATE way_bucket SET nr_bytes = nr_bytes + 1", "add up", false);
	expect_damaged("DELETE FROM way_chunk WHERE key = 2", "add up", true);
	expect_damaged("UPDATE way_chunk SET chunk = -1 WHERE key = 1", "out of order", true);
	expect_damaged("UPDATE way_chunk SET bucket = 77", "without a day", false);
	expect_damaged("UPDATE way_bucket SET module = 77", "without a module", false);
}

/* Well-formed as an edge, but no way: the edge leads to another address. */
TEST(store_believes_no_way_between_two_branches)
{
	const struct mp_edge_count edge = {0x401000, 0x401008, 320, 0};
	uint8_t data[MP_EDGE_ENTRY_MAX];
	size_t size = mp_edge_encode(0x400000, &edge, 1, data);
	char sql[400], hex[2 * MP_EDGE_ENTRY_MAX + 1];

	for (size_t i = 0; i < size; i++)
		snprintf(hex + 2 * i, 3, "%02x", data[i]);
	snprintf(sql, sizeof(sql),
		 "DELETE FROM way_chunk WHERE key = 2;"
		 "UPDATE way_chunk SET checksum = %u, data = x'%s'",
		 (uint32_t)XXH3_64bits(data, size), hex);
	expect_damaged(sql, "malformed counts", true);
}
