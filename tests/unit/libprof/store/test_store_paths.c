// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_paths - paths in the store: read back as written, added up per day, kept small
 * without losing samples, and damage is found.
 */

#include "libprof/store/store_paths.h"
#include "libprof/base/varint.h"
#include "tests/unit/store_fixture.h"

/* All keys of a test; tidy() frees them. */
static uint8_t *keys[1 << 18];
static size_t nr_keys;

static void tidy(void)
{
	while (nr_keys)
		free(keys[--nr_keys]);
	teardown();
}

static struct mp_path_count path_of(const uint64_t *vaddrs, size_t nr, uint64_t count)
{
	struct mp_varint_writer w = {0};

	mp_varint_put(&w, vaddrs[0]);
	for (size_t i = 1; i < nr; i++)
		mp_varint_put_signed(&w, (int64_t)(vaddrs[i] - vaddrs[i - 1]));
	ck_assert(!w.failed && nr_keys < sizeof(keys) / sizeof(keys[0]));
	keys[nr_keys++] = w.bytes;
	return (struct mp_path_count){w.bytes, (uint32_t)w.size, count};
}

#define path(count, ...)                                                                           \
	path_of((const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8, count)

static uint64_t total_of(const struct mp_path_count *paths, size_t nr)
{
	uint64_t total = 0;

	for (size_t i = 0; i < nr; i++)
		total += paths[i].count;
	return total;
}

static const struct mp_path_count *find(const struct mp_path_count *paths, size_t nr,
					const struct mp_path_count *path)
{
	for (size_t i = 0; i < nr; i++)
		if (paths[i].key_size == path->key_size &&
		    !memcmp(paths[i].key, path->key, path->key_size))
			return &paths[i];
	return NULL;
}

/* Expects exactly these paths, in any order. */
static void expect_paths(struct mp_store *store, int64_t module, int64_t since_s,
			 const struct mp_path_count *want, size_t nr_want)
{
	AUTO_FREE struct mp_path_count *have = NULL;
	size_t nr = 0;

	ok(mp_store_read_paths(store, module, since_s, &have, &nr, &err));
	ck_assert_uint_eq(nr, nr_want);
	for (size_t i = 0; i < nr; i++) {
		const struct mp_path_count *found = find(have, nr, &want[i]);

		ck_assert_ptr_nonnull(found);
		ck_assert_uint_eq(found->count, want[i].count);
	}
}

/* Makes ledger and stored counts agree, like a flush. */
static void account(struct mp_store *store, int64_t module, uint64_t nr)
{
	struct mp_session session = start(store);
	struct mp_ip_count count = {0x401000, nr};
	struct mp_ledger delta = {.emitted = nr, .attributed = nr};

	delta.paths[MP_PATH_DECODED] = nr;
	ok(mp_store_add_ip_counts(store, module, NOW, &count, 1, &err));
	ok(mp_store_add_ledger(store, session.key, NOW, &delta, &err));
}

FIXTURE(setup, tidy);

TEST(store_adds_paths_of_one_name)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_path_count a[] = {path(2, 0x401000, 0x401020, 0x401040), path(3, 0, 0x401000),
				    path(1, 0x401040)};
	struct mp_path_count b[] = {path(5, 0x401000, 0x401020, 0x401040),
				    path(7, 0x401020, 0x401000)};
	struct mp_path_count both[] = {a[0], a[1], a[2], b[1]};
	int64_t module = put(store, 1, 1 << 20), other = put(store, 2, 1 << 20);

	both[0].count = 7;
	ok(mp_store_begin(store, &err));
	ok(mp_store_add_paths(store, module, NOW, a, 3, &err));
	ok(mp_store_add_paths(store, module, NOW + DAY, b, 2, &err));
	ok(mp_store_add_paths(store, other, NOW, b, 2, &err));
	ok(mp_store_add_paths(store, other, NOW, b, 2, &err));
	ok(mp_store_commit(store, &err));
	expect_paths(store, module, 0, both, 4);
	expect_paths(store, module, NOW + DAY, b, 2);
	expect_paths(store, module, NOW + 2 * DAY, NULL, 0);
	b[0].count = 10, b[1].count = 14;
	expect_paths(store, other, 0, b, 2);
	/* The same key twice in one call is added up. */
	b[1] = b[0];
	ok(mp_store_add_paths(store, put(store, 3, 0), NOW, b, 2, &err));
	b[0].count = 20;
	expect_paths(store, put(store, 3, 0), 0, b, 1);
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	expect_paths(store, module, 0, both, 4);
	ck_assert_int_eq(mp_store_read_paths(store, 99, 0, &(struct mp_path_count *){0},
					     &(size_t){0}, &err),
			 -ENOENT);
	mp_store_close(store);
}

TEST(store_refuses_paths_that_cannot_be)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_path_count one = path(1, 0x401000), none = path(0, 0x401000), huge, bad;
	int64_t module = put(store, 1, 0);

	bad = (struct mp_path_count){(const uint8_t *)"\x80", 1, 1}; /* a number without an end */
	ck_assert_int_eq(mp_store_add_paths(store, module, NOW, &bad, 1, &err), -EINVAL);
	bad = (struct mp_path_count){(const uint8_t *)"", 0, 1};
	ck_assert_int_eq(mp_store_add_paths(store, module, NOW, &bad, 1, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_paths(store, module, -1, &one, 1, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_paths(store, 77, NOW, &one, 1, &err), -ENOENT);
	ok(mp_store_add_paths(store, module, NOW, &none, 1, &err));
	expect_paths(store, module, 0, NULL, 0);
	huge = path(INT64_MAX, 0x401000);
	ok(mp_store_add_paths(store, module, NOW, &huge, 1, &err));
	ck_assert_int_eq(mp_store_add_paths(store, module, NOW, &one, 1, &err), -EOVERFLOW);
	one = path(1, 0x401020);
	ck_assert_int_eq(mp_store_add_paths(store, module, NOW, &one, 1, &err), -EOVERFLOW);
	expect_paths(store, module, 0, &huge, 1);
	module = put(store, 2, 0);
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	ck_assert_int_eq(mp_store_add_paths(store, module, NOW, &one, 1, &err), -EROFS);
	mp_store_close(store);
}

TEST(store_rolls_paths_back_with_the_rest)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_path_count one = path(5, 0x401000, 0x401020);
	int64_t module = put(store, 1, 0);

	ok(mp_store_begin(store, &err));
	ok(mp_store_add_paths(store, module, NOW, &one, 1, &err));
	expect_paths(store, module, 0, &one, 1);
	mp_store_rollback(store);
	expect_paths(store, module, 0, NULL, 0);
}

TEST(store_check_wants_the_paths_of_the_ledger)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_path_count one = path(5, 0x401000, 0x401020);
	int64_t module = put(store, 1, 0);
	AUTO_FREE struct mp_session *sessions = NULL;
	size_t nr;

	account(store, module, 5);
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "0 samples have paths, the ledgers say 5"));
	ok(mp_store_add_paths(store, module, NOW, &one, 1, &err));
	ok(mp_store_check(store, &err));
	ok(mp_store_list_sessions(store, &sessions, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	ck_assert_uint_eq(sessions[0].ledger.paths[MP_PATH_DECODED], 5);
}

TEST(store_folds_days_of_paths_beyond_a_week)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20);
	struct mp_path_count one = path(2, 0x401000, 0x401020);

	for (int day = 0; day < 30; day++)
		ok(mp_store_add_paths(store, module, NOW + day * DAY, &one, 1, &err));
	/* Like counts: days 23 to 29 are separate; days 0 to 22 form one bucket. */
	one.count = 60;
	expect_paths(store, module, 0, &one, 1);
	expect_paths(store, module, NOW + 22 * DAY, &one, 1);
	one.count = 14;
	expect_paths(store, module, NOW + 23 * DAY, &one, 1);
	one.count = 2;
	expect_paths(store, module, NOW + 29 * DAY, &one, 1);
	/* Late data is added to the bucket that contains its day. */
	ok(mp_store_add_paths(store, module, NOW + 5 * DAY, &one, 1, &err));
	ok(mp_store_add_paths(store, module, NOW - 5 * DAY, &one, 1, &err));
	one.count = 64;
	expect_paths(store, module, 0, &one, 1);
	account(store, module, 64);
	ok(mp_store_check(store, &err));
}

TEST(span_of_paths_is_kept_like_one_of_counts)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20), day = NOW / DAY;
	struct mp_path_count one = path(1, 0x401000, 0x401020), *have;
	struct mp_span wide = {day - 3, day - 1, false}, *spans, all = {0, day + 9, false};
	size_t nr;

	for (int i = 0; i < 3; i++)
		ok(mp_store_add_paths(store, module, NOW - 2 * i * DAY, &one, 1, &err));
	/* Days 0, -2, -4; the span -3 to -1 absorbs the day that it overlaps. */
	one.count = 10;
	ok(mp_store_add_path_span(store, module, &wide, &one, 1, &err));
	ok(mp_store_list_path_spans(store, module, &spans, &nr, &err));
	ck_assert_uint_eq(nr, 3);
	ck_assert_int_eq(spans[1].first_day, day - 3);
	ck_assert_int_eq(spans[1].last_day, day - 1);
	ok(mp_store_read_path_span(store, module, &spans[1], &have, &nr, &err));
	ck_assert_uint_eq(total_of(have, nr), 11);
	free(have);
	free(spans);
	ok(mp_store_read_path_span(store, module, &all, &have, &nr, &err));
	ck_assert_uint_eq(total_of(have, nr), 13);
	free(have);
	wide = (struct mp_span){day, day - 1, false};
	ck_assert_int_eq(mp_store_add_path_span(store, module, &wide, &one, 1, &err), -EINVAL);
}

/*
 * Paths of twelve blocks, starting at any of 200, with two successors each; every hundredth
 * path is frequent.
 */
static size_t fill_paths(struct mp_path_count *out, size_t nr, uint64_t seed)
{
	uint64_t vaddrs[12], block;

	for (size_t i = 0; i < nr; i++) {
		block = next_random(&seed) % 200;
		for (size_t k = 0; k < 12; k++) {
			vaddrs[k] = 0x401000 + 16 * block;
			block = (2 * block + 1 + next_random(&seed) % 2) % 200;
		}
		out[i] = path_of(vaddrs, 12, i % 100 ? 1 : 1000);
	}
	return nr;
}

TEST(store_keeps_paths_below_their_share_and_every_sample)
{
	enum {
		NR = 6000,
		DAYS = 10,
		NR_EDGES = 60000,
		TEXT = 1 << 18
	};
	static struct mp_path_count paths[NR_EDGES];
	struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, TEXT), tiny = put(store, 2, 0);
	struct mp_path_count *have = NULL;
	uint64_t total = 0;
	size_t nr, frequent = 0;

	for (int day = 0; day < DAYS; day++) {
		fill_paths(paths, NR, (uint64_t)day + 1);
		total += total_of(paths, NR);
		ok(mp_store_add_paths(store, module, NOW + day * DAY, paths, NR, &err));
	}
	account(store, module, total);
	ok(mp_store_check(store, &err));
	ok(mp_store_read_paths(store, module, 0, &have, &nr, &err));
	ck_assert_uint_eq(total_of(have, nr), total);
	/* Frequent paths are kept in full. */
	for (size_t i = 0; i < NR; i += 100)
		frequent += find(have, nr, &paths[i]) != NULL;
	ck_assert_uint_eq(frequent, NR / 100);
	ck_assert_uint_lt(nr, NR * DAYS / 2);
	free(have);
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	/* and a page for each of the other tables and indexes */
	ck_assert_uint_le(mp_store_size_bytes(store), (1 << 20) + 65536 + TEXT / 2);
	mp_store_close(store);
	/* If even edges are too many, only blocks are kept. */
	store = open_as(MP_STORE_WRITE);
	for (size_t i = 0; i < NR_EDGES; i++)
		paths[i] = path(1, 0x500000 + 0x10000 * i, 0x401000 + 16 * (i % 100));
	ok(mp_store_add_paths(store, tiny, NOW, paths, NR_EDGES, &err));
	account(store, tiny, NR_EDGES);
	ok(mp_store_check(store, &err));
	ok(mp_store_read_paths(store, tiny, 0, &have, &nr, &err));
	ck_assert_uint_eq(total_of(have, nr), NR_EDGES);
	ck_assert_uint_lt(nr, NR_EDGES);
	paths[0] = path(1, 0x401000);
	ck_assert_ptr_nonnull(find(have, nr, &paths[0]));
	free(have);
	mp_store_close(store);
}

TEST(store_full_disk_leaves_paths_as_they_were)
{
	static struct mp_path_count paths[5000];
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_path_count one = path(1, 0x401000, 0x401020);
	int64_t module = put(store, 1, 64 << 20);

	ok(mp_store_add_paths(store, module, NOW, &one, 1, &err));
	account(store, module, 1);
	ck_assert_int_eq(sqlite3_exec(store->db, "PRAGMA max_page_count=1", NULL, NULL, NULL), 0);
	fill_paths(paths, 5000, 7);
	ok(mp_store_begin(store, &err));
	ck_assert_int_eq(mp_store_add_paths(store, module, NOW, paths, 5000, &err), -ENOSPC);
	ck_assert_ptr_nonnull(strstr(err.msg, "No space left"));
	mp_store_rollback(store);
	ok(mp_store_check(store, &err));
	expect_paths(store, module, 0, &one, 1);
	ck_assert_int_eq(sqlite3_exec(store->db, "PRAGMA max_page_count=100000", NULL, NULL, NULL),
			 0);
	ok(mp_store_add_paths(store, module, NOW, paths, 5000, &err));
	account(store, module, total_of(paths, 5000));
	ok(mp_store_check(store, &err));
}

/* ---- damage -------------------------------------------------------------------------------- */

static void expect_damaged(const char *sql, const char *what, bool seen_by_read)
{
	struct mp_path_count paths[3] = {path(5, 0x401000, 0x401020, 0x401040),
					 path(6, 0x401000, 0x401030), path(7, 0, 0x401000)};
	struct mp_path_count *have = NULL;
	struct mp_store *store;
	size_t nr;
	int r;

	unlink(db);
	store = open_as(MP_STORE_WRITE);
	for (unsigned int i = 1; i <= 3; i++)
		ok(mp_store_add_paths(store, put(store, i, 1 << 20), NOW, paths, 3, &err));
	account(store, 1, 54);
	ok(mp_store_check(store, &err));
	mp_store_close(store);
	tamper(sql);
	store = open_as(MP_STORE_READ);
	r = mp_store_read_paths(store, 1, 0, &have, &nr, &err);
	ck_assert_msg(r == (seen_by_read ? -EBADMSG : 0), "%s: %d %s", sql, r, err.msg);
	free(have);
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, what), "%s: %s", sql, err.msg);
	mp_store_close(store);
}

TEST(store_believes_no_damaged_paths)
{
	expect_damaged("UPDATE path SET nr = nr + 1 WHERE bucket = 1 AND nr = 5", "add up", true);
	/* A correct sum does not help. */
	expect_damaged("UPDATE path SET nr = 18 - nr WHERE bucket = 1 AND nr <> 6;"
		       "UPDATE path_bucket SET nr_samples = nr_samples + 6 WHERE key = 1",
		       "add up", true);
	expect_damaged("UPDATE path SET nr = 12 - nr WHERE bucket = 1 AND nr <> 6", "checksum",
		       true);
	expect_damaged("UPDATE path SET path = x'81a08002' WHERE bucket = 1 AND nr = 6", "add up",
		       true);
	expect_damaged("UPDATE path SET path = x'808080808001' WHERE bucket = 1 AND nr = 6", "",
		       true);
	expect_damaged("UPDATE path SET path = x'8080' WHERE bucket = 1 AND nr = 6",
		       "malformed paths", true);
	expect_damaged("UPDATE path SET path = '' WHERE bucket = 1 AND nr = 6", "malformed paths",
		       true);
	expect_damaged("UPDATE path SET nr = -nr WHERE bucket = 1", "malformed paths", true);
	expect_damaged("UPDATE path_bucket SET checksum = checksum + 1 WHERE key = 1", "checksum",
		       true);
	expect_damaged("UPDATE path_bucket SET nr_bytes = nr_bytes + 1 WHERE key = 1", "add up",
		       true);
	expect_damaged("UPDATE path_bucket SET first_day = last_day + 1 WHERE key = 1", "overlap",
		       true);
	expect_damaged("UPDATE path SET bucket = 77 WHERE bucket = 3", "without a day", false);
	expect_damaged("UPDATE path_bucket SET module = 77 WHERE key = 3", "without a module",
		       false);
	expect_damaged("DELETE FROM path WHERE bucket = 3; DELETE FROM path_bucket WHERE key = 3",
		       "36 samples have paths, the ledgers say 54", false);
}
