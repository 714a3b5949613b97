// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_span - counts, edges and activity by spans of days: sums stay exact when spans
 * overlap.
 */

#include "libprof/store/store_private.h"
#include "libprof/store/store_span.h"
#include "tests/unit/scratch.h"

#define DAY MP_SECONDS_PER_DAY

static char db[256];
static struct mp_store *store;
static int64_t module;

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

static void setup(void)
{
	struct mp_id id = {.build_id_len = 20, .text_hash = 7};

	scratch_make();
	snprintf(db, sizeof(db), "%s/morph.db", dir);
	ok(mp_store_open(db, MP_STORE_WRITE, &store, &err));
	ok(mp_store_put_module(store, &id, MP_MODULE_FILE, "/bin/x", 1 << 20, DAY, &module, &err));
}

static void teardown(void)
{
	mp_store_close(store);
	scratch_remove();
}

static void add(int64_t first, int64_t last, uint64_t vaddr, uint64_t count)
{
	struct mp_ip_count counts = {vaddr, count};
	struct mp_span span = {first, last, false};

	ok(mp_store_add_ip_count_span(store, module, &span, &counts, 1, &err));
}

static void add_edge(int64_t first, int64_t last, uint64_t from, uint64_t count)
{
	struct mp_edge_count edge = {from, 0x99, count, 0};
	struct mp_span span = {first, last, false};

	ok(mp_store_add_edge_span(store, module, &span, &edge, 1, &err));
}

static uint64_t sum_in(int64_t first, int64_t last)
{
	struct mp_span span = {first, last, false};
	AUTO_FREE struct mp_ip_count *counts = NULL;
	uint64_t sum = 0;
	size_t nr = 0;

	ok(mp_store_read_ip_count_span(store, module, &span, &counts, &nr, &err));
	for (size_t i = 0; i < nr; i++)
		sum += counts[i].count;
	return sum;
}

/* Return: the spans, such as "10-12 13-13". */
static const char *spans(void)
{
	static char text[400];
	AUTO_FREE struct mp_span *list = NULL;
	size_t nr = 0, n = 0;

	ok(mp_store_list_ip_count_spans(store, module, &list, &nr, &err));
	text[0] = '\0';
	for (size_t i = 0; i < nr; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%lld-%lld", i ? " " : "",
				      (long long)list[i].first_day, (long long)list[i].last_day);
	return text;
}

FIXTURE(setup, teardown);

TEST(spans_apart_stay_apart)
{
	add(100, 102, 0x10, 1);
	add(103, 103, 0x10, 2);
	add(104, 104, 0x20000, 4);
	ck_assert_str_eq(spans(), "100-102 103-103 104-104");
	ck_assert_uint_eq(sum_in(100, 102), 1);
	ck_assert_uint_eq(sum_in(103, 104), 6);
	/* Stored together with other days, so they cannot be separated. */
	ck_assert_uint_eq(sum_in(101, 104), 6);
	ck_assert_uint_eq(sum_in(0, INT64_MAX), 7);
}

TEST(span_that_overlaps_becomes_one_with_what_it_touches)
{
	for (int64_t day = 100; day < 106; day++)
		add(day, day, 0x10 + (uint64_t)day, 1);
	add(102, 104, 0x10, 10);
	ck_assert_str_eq(spans(), "100-100 101-101 102-104 105-105");
	ck_assert_uint_eq(sum_in(102, 104), 13);
	add(99, 101, 0x10, 100);
	ck_assert_str_eq(spans(), "99-101 102-104 105-105");
	/* A span that overlaps two others. */
	add(101, 102, 0x10, 1000);
	ck_assert_str_eq(spans(), "99-104 105-105");
	/* A span that covers all. */
	add(90, 106, 0x10, 10000);
	ck_assert_str_eq(spans(), "90-106");
	ck_assert_uint_eq(sum_in(90, 106), 11116);
	/* A day inside a span. */
	add(95, 95, 0x10, 1);
	ck_assert_str_eq(spans(), "90-106");
	ck_assert_uint_eq(sum_in(0, 200), 11117);
}

TEST(span_keeps_each_address_its_count)
{
	struct mp_span all = {0, 1000, false};
	AUTO_FREE struct mp_ip_count *counts = NULL;
	size_t nr = 0;

	add(100, 100, 0x10, 1);
	add(101, 101, 0x10, 2);
	add(101, 101, 0x50000, 3);
	add(100, 103, 0x20, 5);
	ok(mp_store_read_ip_count_span(store, module, &all, &counts, &nr, &err));
	ck_assert_uint_eq(nr, 3);
	ck_assert_uint_eq(counts[0].vaddr, 0x10);
	ck_assert_uint_eq(counts[0].count, 3);
	ck_assert_uint_eq(counts[1].count, 5);
	ck_assert_uint_eq(counts[2].vaddr, 0x50000);
}

TEST(span_of_edges_is_kept_like_one_of_counts)
{
	struct mp_span all = {0, 1000, false}, part = {100, 100, false};
	struct mp_edge_count *edges = NULL;
	struct mp_span *list = NULL;
	size_t nr = 0;

	add_edge(100, 100, 0x10, 1);
	add_edge(102, 104, 0x10, 2);
	ok(mp_store_read_edge_span(store, module, &part, &edges, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	ck_assert_uint_eq(edges[0].count, 1);
	free(edges);
	add_edge(100, 102, 0x20, 4);
	ok(mp_store_list_edge_spans(store, module, &list, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	ck_assert_int_eq(list[0].first_day, 100);
	ck_assert_int_eq(list[0].last_day, 104);
	free(list);
	ok(mp_store_read_edge_span(store, module, &all, &edges, &nr, &err));
	ck_assert_uint_eq(nr, 2);
	ck_assert_uint_eq(edges[0].count, 3);
	ck_assert_uint_eq(edges[1].count, 4);
	free(edges);
	/* Edges are not counts. */
	ck_assert_str_eq(spans(), "");
}

static bool is_exact(int64_t since_s)
{
	bool exact = false;

	ok(mp_store_is_exact(store, module, since_s, &exact, &err));
	return exact;
}

static void add_as(bool exact, int64_t first, int64_t last)
{
	struct mp_ip_count counts = {0x10, 3};
	struct mp_span span = {first, last, exact};

	ok(mp_store_add_ip_count_span(store, module, &span, &counts, 1, &err));
}

static void add_edge_as(bool exact, int64_t day)
{
	struct mp_edge_count edge = {0x10, 0x20, 3, 0};
	struct mp_span span = {day, day, exact};

	ok(mp_store_add_edge_span(store, module, &span, &edge, 1, &err));
}

TEST(span_is_exact_while_all_in_it_was_counted)
{
	/* Without counts, or with edges only, nothing is exact. */
	ck_assert(!is_exact(0));
	add_edge_as(true, 105);
	ck_assert(!is_exact(0));
	add_as(true, 105, 105);
	add_as(true, 105, 105);
	ck_assert(is_exact(0));
	/* Samples of another day do not matter. */
	add_as(false, 104, 104);
	ck_assert(!is_exact(0));
	ck_assert(is_exact(105 * DAY));
	/* Exact counts added to samples stay inexact, and so do samples added to exact counts. */
	add_as(true, 104, 104);
	ck_assert(!is_exact(104 * DAY));
	add_edge_as(false, 105);
	ck_assert(!is_exact(105 * DAY));
	add_as(true, 106, 106);
	add_edge_as(true, 106);
	ck_assert(is_exact(106 * DAY));
	add_as(false, 106, 106);
	ck_assert(!is_exact(106 * DAY));
}

TEST(span_that_is_folded_is_exact_if_both_were)
{
	add_as(true, 100, 100);
	add_as(true, 102, 102);
	add_as(true, 99, 103);
	ck_assert_str_eq(spans(), "99-103");
	ck_assert(is_exact(0));
	add_as(false, 105, 105);
	add_as(true, 104, 106);
	ck_assert(!is_exact(104 * DAY));
	/* Both days are merged with earlier ones, so it is not known which counts were samples. */
	add_as(true, 103, 104);
	ck_assert(!is_exact(0));
	/* Data older than a week is merged automatically. */
	add_as(true, 120, 120);
	ck_assert(is_exact(120 * DAY));
	ck_assert(!is_exact(0));
}

TEST(span_that_is_none_is_refused)
{
	struct mp_ip_count counts = {1, 1};
	struct mp_span bad[] = {{5, 4, false}, {-1, 4, false}, {0, INT64_MAX, false}};

	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(mp_store_add_ip_count_span(store, module, &bad[i], &counts, 1,
							    &err),
				 -EINVAL);
	ck_assert_str_eq(spans(), "");
}

TEST(activity_that_overlaps_adds_up)
{
	struct mp_activity one = {.app = 1, .lib = 2, .kernel = 3, .other = 4};
	struct mp_activity_span *list = NULL;
	struct mp_span days[] = {{100, 100, false},
				 {102, 102, false},
				 {101, 103, false},
				 {99, 99, false},
				 {103, 105, false}};
	AUTO_FREE struct mp_program_activity *programs = NULL;
	size_t nr = 0;

	for (size_t i = 0; i < 5; i++)
		ok(mp_store_add_activity_span(store, module, &days[i], &one, &err));
	ok(mp_store_list_activity_spans(store, &list, &nr, &err));
	ck_assert_uint_eq(nr, 3);
	ck_assert_int_eq(list[2].span.first_day, 101);
	ck_assert_int_eq(list[2].span.last_day, 105);
	ck_assert_uint_eq(list[2].activity.app, 3);
	ck_assert_uint_eq(list[2].activity.other, 12);
	free(list);
	ok(mp_store_list_activity(store, 0, &programs, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	ck_assert_uint_eq(programs[0].activity.kernel, 15);
}

/* Compares with a simple model: which counts were added to which day. */
TEST(spans_at_random_never_lose_a_sample)
{
	uint64_t state = 88172645463325252ull, total = 0;

	for (int i = 0; i < 300; i++) {
		struct mp_span *list = NULL;
		int64_t first, last;
		size_t nr = 0;
		uint64_t sum = 0;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		first = 1000 + (int64_t)(state % 40);
		last = first + (int64_t)(state >> 20) % 6;
		add(first, last, (state >> 30) % 200000, 1 + (state >> 50) % 5);
		total += 1 + (state >> 50) % 5;
		ok(mp_store_list_ip_count_spans(store, module, &list, &nr, &err));
		for (size_t k = 0; k < nr; k++) {
			ck_assert(list[k].first_day <= list[k].last_day);
			ck_assert(!k || list[k].first_day > list[k - 1].last_day);
			sum += sum_in(list[k].first_day, list[k].last_day);
		}
		free(list);
		ck_assert_uint_eq(sum, total);
	}
}
