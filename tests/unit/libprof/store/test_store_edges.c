// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_edges - edges in the store: read back as written, added up per day, kept small,
 * and damage is found. Similar tests of counts are in test_store.
 */

#include "tests/unit/store_fixture.h"

/* ---- codec --------------------------------------------------------------------------------- */

static bool same(const struct mp_edge_count *a, const struct mp_edge_count *b)
{
	return a->from == b->from && a->to == b->to && a->count == b->count &&
	       a->mispredicted == b->mispredicted;
}

FIXTURE(setup, teardown);

TEST(edge_codec_gives_back_what_it_took)
{
	enum {
		NR = 4000
	};
	static struct mp_edge_count in[NR], out[NR * MP_EDGE_ENTRY_MAX];
	static uint8_t bytes[NR * MP_EDGE_ENTRY_MAX];
	const uint64_t bases[] = {0, 0x400000, 0xffffffff81000000, UINT64_MAX - MP_CHUNK_SIZE + 1};
	uint64_t seed = 4242;

	for (unsigned int round = 0; round < 400; round++) {
		uint64_t base = bases[round % 4], off = 0;
		size_t nr = 0, nr_out = 0, size;

		while (nr < NR && (off += next_random(&seed) % (2 + round)) < MP_CHUNK_SIZE) {
			uint64_t to = next_random(&seed) >> next_random(&seed) % 64;

			/* Several targets: near, far and at both ends of the address space. */
			for (uint64_t k = next_random(&seed) % 3 + 1; k-- && nr < NR;) {
				struct mp_edge_count *edge = &in[nr++];
				uint64_t kind = next_random(&seed) % 7, room;

				edge->from = base + off;
				edge->to = to;
				edge->count = kind < 4 ? kind + 1 : kind == 4 ? UINT64_MAX : 300;
				edge->mispredicted = kind == 6 ? edge->count : kind == 5;
				room = UINT64_MAX - to;
				if (!room)
					break;
				to += 1 + next_random(&seed) % room;
			}
			off++;
		}
		size = mp_edge_encode(base, in, nr, bytes);
		ck_assert_uint_le(size, nr * MP_EDGE_ENTRY_MAX);
		ck_assert_uint_ge(size, nr * MP_EDGE_ENTRY_MIN);
		ck_assert_int_eq(mp_edge_decode(base, bytes, size, out, &nr_out), 0);
		ck_assert_uint_eq(nr_out, nr);
		for (size_t i = 0; i < nr; i++)
			ck_assert(same(&in[i], &out[i]));
	}
}

TEST(edge_codec_refuses_what_it_never_wrote)
{
	static struct mp_edge_count out[64];
	static const struct {
		uint8_t bytes[26];
		size_t size;
	} bad[] = {
		{{0x80}, 1},		       /* token truncated */
		{{0x00}, 1},		       /* no target */
		{{0x03, 0x00}, 2},	       /* count missing */
		{{0x03, 0x00, 0x00}, 3},       /* a count of 0 */
		{{0x05, 0x00}, 2},	       /* mispredicted missing */
		{{0x05, 0x00, 0x00}, 3},       /* marked as mispredicted, but 0 */
		{{0x05, 0x00, 0x02}, 3},       /* 2 of 1 mispredicted */
		{{0x80, 0x80, 0x20, 0x00}, 4}, /* offset 64 KiB in a chunk of 64 KiB */
		{{0x00, 0x01, 0x00, 0x00}, 4}, /* @to is ~0 already, so none can be greater */
		{{0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		 13}, /* to + 1 + to overflows */
		{{0x03, 0x00, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02}, 12},
	};
	size_t nr;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(mp_edge_decode(0, bad[i].bytes, bad[i].size, out, &nr) == -EBADMSG,
			      "number %zu", i);
}

TEST(edge_codec_says_a_short_jump_in_few_bytes)
{
	struct mp_edge_count in[100];
	uint8_t bytes[100 * MP_EDGE_ENTRY_MAX];

	for (unsigned int i = 0; i < 100; i++)
		in[i] = (struct mp_edge_count){i * 12, i * 12 + 50, 777, 0};
	/* Token and target, a byte each; only the first has its count. */
	ck_assert_uint_eq(mp_edge_encode(0, in, 100, bytes), 100 * 2 + 2);
}

/* ---- add, read ----------------------------------------------------------------------------- */

TEST(store_adds_edges_of_one_pair)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_edge_count a[] = {
		{0x401000, 0x401020, 2, 1}, {0x401000, 0x401040, 1, 0}, {0x45fff0, 0x401000, 7, 7}};
	struct mp_edge_count b[] = {{0x400ff0, 0x401020, 1, 0},
				    {0x401000, 0x401010, 5, 0},
				    {0x401000, 0x401040, 4, 2},
				    {0xffffffff81000000, 0xffffffff80ffff00, 3, 0}};
	struct mp_edge_count both[] = {
		{0x400ff0, 0x401020, 1, 0}, {0x401000, 0x401010, 5, 0},
		{0x401000, 0x401020, 2, 1}, {0x401000, 0x401040, 5, 2},
		{0x45fff0, 0x401000, 7, 7}, {0xffffffff81000000, 0xffffffff80ffff00, 3, 0}};
	int64_t module = put(store, 1, 1 << 20), other = put(store, 2, 1 << 20);

	ok(mp_store_begin(store, &err));
	ok(mp_store_add_edges(store, module, NOW, a, 3, &err));
	ok(mp_store_add_edges(store, module, NOW + DAY, b, 4, &err));
	ok(mp_store_add_edges(store, other, NOW, b, 4, &err));
	ok(mp_store_commit(store, &err));
	expect_edges(store, module, 0, both, 6);
	expect_edges(store, module, NOW + DAY, b, 4);
	expect_edges(store, module, NOW + 2 * DAY, NULL, 0);
	expect_edges(store, other, 0, b, 4);
	/* On the same day again: the counts double. */
	ok(mp_store_add_edges(store, other, NOW, b, 4, &err));
	for (int i = 0; i < 4; i++)
		b[i].count *= 2, b[i].mispredicted *= 2;
	expect_edges(store, other, 0, b, 4);
	/* Edges are not samples. */
	expect(store, module, 0, NULL, 0);
	ok(mp_store_check(store, &err));
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	expect_edges(store, module, 0, both, 6);
	ck_assert_int_eq(mp_store_read_edges(store, 99, 0, &(struct mp_edge_count *){0},
					     &(size_t){0}, &err),
			 -ENOENT);
	mp_store_close(store);
}

TEST(store_refuses_edges_that_cannot_be)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_edge_count descending[] = {{2, 9, 1, 0}, {1, 9, 1, 0}};
	struct mp_edge_count twice[] = {{1, 9, 1, 0}, {1, 9, 1, 0}};
	struct mp_edge_count huge[] = {{1, 9, INT64_MAX, 0}, {2, 9, 1, 0}};
	struct mp_edge_count bad[] = {{1, 9, 3, 4}}, one = {1, 9, 1, 0}, none = {1, 9, 0, 0};
	int64_t module = put(store, 1, 0);

	ck_assert_int_eq(mp_store_add_edges(store, module, NOW, descending, 2, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_edges(store, module, NOW, twice, 2, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_edges(store, module, NOW, bad, 1, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_edges(store, module, NOW, huge, 2, &err), -EOVERFLOW);
	ck_assert_int_eq(mp_store_add_edges(store, module, -1, &one, 1, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_edges(store, 77, NOW, &one, 1, &err), -ENOENT);
	ok(mp_store_add_edges(store, module, NOW, &none, 1, &err));
	expect_edges(store, module, 0, NULL, 0);
	/* Each of the two flushes is possible, but their sum overflows. */
	ok(mp_store_add_edges(store, module, NOW, huge, 1, &err));
	ck_assert_int_eq(mp_store_add_edges(store, module, NOW, huge, 1, &err), -EOVERFLOW);
	expect_edges(store, module, 0, huge, 1);
	ok(mp_store_check(store, &err));
}

TEST(store_rolls_edges_back_with_the_rest)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_edge_count edge = {0x1000, 0x1010, 5, 1};
	int64_t module = put(store, 1, 0);

	ok(mp_store_begin(store, &err));
	ok(mp_store_add_edges(store, module, NOW, &edge, 1, &err));
	expect_edges(store, module, 0, &edge, 1);
	mp_store_rollback(store);
	expect_edges(store, module, 0, NULL, 0);
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	ck_assert_int_eq(mp_store_add_edges(store, module, NOW, &edge, 1, &err), -EROFS);
	mp_store_close(store);
}

TEST(store_lists_and_finds_a_module_that_has_edges_only)
{
	struct mp_edge_count few = {0x1000, 0x1010, 5, 1}, many = {0x1000, 0x1010, 50, 1};
	struct mp_ip_count count = {0x1000, 1};
	struct mp_id id = id_of(2);
	struct mp_module *modules, module;
	size_t nr;

	store = open_as(MP_STORE_WRITE);
	ok(mp_store_add_edges(store, put(store, 1, 0), NOW - 2 * DAY, &few, 1, &err));
	ok(mp_store_add_edges(store, put(store, 2, 0), NOW - 2 * DAY, &many, 1, &err));
	ok(mp_store_add_edges(store, put(store, 2, 0), NOW, &few, 1, &err));
	ok(mp_store_add_ip_counts(store, put(store, 3, 0), NOW, &count, 1, &err));
	ok(mp_store_list_modules(store, 0, &modules, &nr, &err));
	/* Sorted by samples, then by transfers. */
	ck_assert_uint_eq(nr, 3);
	ck_assert_str_eq(modules[0].path, "/usr/bin/prog3");
	ck_assert_uint_eq(modules[0].nr_transfers, 0);
	ck_assert_str_eq(modules[1].path, "/usr/bin/prog2");
	ck_assert_uint_eq(modules[1].nr_samples, 0);
	ck_assert_uint_eq(modules[1].nr_transfers, 55);
	ck_assert_uint_eq(modules[2].nr_transfers, 5);
	mp_store_free_modules(modules, nr);
	ok(mp_store_list_modules(store, NOW - DAY, &modules, &nr, &err));
	ck_assert_str_eq(modules[1].path, "/usr/bin/prog2");
	ck_assert_uint_eq(modules[1].nr_transfers, 5);
	ck_assert_uint_eq(modules[2].nr_transfers, 0);
	mp_store_free_modules(modules, nr);
	ok(mp_store_find_module(store, &id, &module, &err));
	ck_assert_uint_eq(module.nr_transfers, 55);
	ck_assert_uint_eq(module.nr_samples, 0);
	free(module.path);
}

TEST(store_folds_days_of_edges_beyond_a_week)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20);
	struct mp_edge_count edge = {0x1234, 0x1240, 2, 1};

	for (int day = 0; day < 30; day++)
		ok(mp_store_add_edges(store, module, NOW + day * DAY, &edge, 1, &err));
	/* Like counts: days 23 to 29 are separate; days 0 to 22 form one bucket. */
	edge.count = 60, edge.mispredicted = 30;
	expect_edges(store, module, 0, &edge, 1);
	expect_edges(store, module, NOW + 22 * DAY, &edge, 1);
	edge.count = 14, edge.mispredicted = 7;
	expect_edges(store, module, NOW + 23 * DAY, &edge, 1);
	edge.count = 2, edge.mispredicted = 1;
	expect_edges(store, module, NOW + 29 * DAY, &edge, 1);
	/* Late data is added to the bucket that contains its day, or to the oldest one. */
	ok(mp_store_add_edges(store, module, NOW + 5 * DAY, &edge, 1, &err));
	ok(mp_store_add_edges(store, module, NOW - 5 * DAY, &edge, 1, &err));
	edge.count = 64, edge.mispredicted = 32;
	expect_edges(store, module, 0, &edge, 1);
	expect_edges(store, module, NOW + 22 * DAY, &edge, 1);
	ok(mp_store_check(store, &err));
}

TEST(store_keeps_edges_below_their_share_of_the_text)
{
	enum {
		NR_MODULES = 4,
		NR_EDGES = 5000,
		TEXT = 1 << 20
	};
	static struct mp_edge_count edges[NR_EDGES];

	store = open_as(MP_STORE_WRITE);
	/* Every day has some common and some different code. */
	for (int day = 0; day < 60; day++) {
		ok(mp_store_begin(store, &err));
		for (unsigned int i = 0; i < NR_MODULES; i++) {
			fill_edges(edges, NR_EDGES, 0x1000, 100, (uint64_t)day % 3 + 1);
			ok(mp_store_add_edges(store, put(store, i, TEXT), NOW + day * DAY, edges,
					      NR_EDGES, &err));
		}
		ok(mp_store_commit(store, &err));
	}
	ok(mp_store_check(store, &err));
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	ck_assert_uint_le(mp_store_size_bytes(store), NR_MODULES * (65536 + TEXT / 10));
	ok(mp_store_check(store, &err));
}

TEST(store_takes_no_chunk_of_edges_that_it_could_not_read_again)
{
	enum {
		NR = 400000
	};
	AUTO_FREE struct mp_edge_count *edges = calloc(NR, sizeof(*edges));
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20);

	/* One jump with 400,000 distant targets and large counts. */
	ck_assert_ptr_nonnull(edges);
	for (uint64_t i = 0; i < NR; i++)
		edges[i] = (struct mp_edge_count){0x1000, i << 40, (1ULL << 44) + i, 1ULL << 42};
	ck_assert_int_eq(mp_store_add_edges(store, module, NOW, edges, NR, &err), -EFBIG);
	ck_assert_ptr_nonnull(strstr(err.msg, "too many transfers"));
	expect_edges(store, module, 0, NULL, 0);
	ok(mp_store_check(store, &err));
}

/* ---- damage -------------------------------------------------------------------------------- */

static void make_store_with_edges(void)
{
	static struct mp_edge_count edges[3000];
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);

	for (unsigned int i = 0; i < 3; i++) {
		fill_edges(edges, 3000, 0x1000, 100, i + 1);
		ok(mp_store_add_edges(store, put(store, i, 1 << 20), NOW, edges, 3000, &err));
	}
}

static void expect_damaged(const char *sql, const char *what, bool seen_by_read)
{
	AUTO(close_store) struct mp_store *store = NULL;
	struct mp_edge_count *edges = NULL;
	size_t nr;
	int r;

	unlink(db);
	make_store_with_edges();
	tamper(sql);
	store = open_as(MP_STORE_READ);
	r = mp_store_read_edges(store, 1, 0, &edges, &nr, &err);
	ck_assert_int_eq(r, seen_by_read ? -EBADMSG : 0);
	if (!r)
		free(edges);
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
	ck_assert_msg(strstr(err.msg, what), "%s: %s", sql, err.msg);
}

TEST(store_believes_no_damaged_edges)
{
	expect_damaged("UPDATE edge_chunk SET data = substr(data, 1, length(data) - 1) ||"
		       " CASE substr(data, -1) WHEN x'04' THEN x'05' ELSE x'04' END WHERE key = 1",
		       "checksum", true);
	expect_damaged("UPDATE edge_chunk SET data = substr(data, 1, 40) WHERE key = 1", "checksum",
		       true);
	expect_damaged("UPDATE edge_bucket SET nr_transfers = nr_transfers + 1 WHERE key = 1",
		       "add up", true);
	expect_damaged("UPDATE edge_bucket SET nr_bytes = nr_bytes + 1 WHERE key = 1", "add up",
		       false);
	expect_damaged("DELETE FROM edge_chunk WHERE key = 2", "add up", true);
	expect_damaged("UPDATE edge_chunk SET bucket = 77 WHERE bucket = 3", "without a day",
		       false);
	expect_damaged("UPDATE edge_bucket SET module = 77 WHERE key = 3", "without a module",
		       false);
	expect_damaged("UPDATE edge_chunk SET chunk = -1 WHERE key = 1", "out of order", true);
}
