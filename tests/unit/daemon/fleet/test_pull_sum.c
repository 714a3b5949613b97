// SPDX-License-Identifier: Apache-2.0
/*
 * test_pull_sum - sums over hosts: exact without a cap, rounded to the nearest with one, and no row that
 * is not sound counts.
 */

#include "daemon/fleet/pull/pull_sum.h"
#include "libprof/store/store_codec.h"
#include "tests/unit/suite.h"

static struct md_pull_sum *sum;
static struct md_pull_result result;
static uint8_t bytes[4096];

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

static void start(enum mp_fleet_kind kind)
{
	ok(md_pull_sum_new(kind, NULL, false, &sum, &err));
}

static void finish(void)
{
	ok(md_pull_sum_finish(sum, &result, &err));
	md_pull_sum_free(sum);
	sum = NULL;
}

static void teardown(void)
{
	md_pull_sum_free(sum);
	sum = NULL;
	free(result.entries);
	memset(&result, 0, sizeof(result));
}

static struct md_pull_row row_of(int64_t chunk, const struct mp_ip_count *ips, size_t nr,
				 int32_t weight)
{
	struct md_pull_row row = {.chunk = chunk, .last_day = 7, .weight = weight, .exact = true};

	row.data = bytes;
	row.size = mp_chunk_encode((uint64_t)chunk << MP_CHUNK_SHIFT, ips, nr, bytes);
	for (size_t i = 0; i < nr; i++)
		row.total += (int64_t)ips[i].count;
	return row;
}

static int add(int64_t chunk, uint64_t vaddr, uint64_t count, int32_t weight)
{
	struct mp_ip_count ip = {vaddr, count};
	struct md_pull_row row = row_of(chunk, &ip, 1, weight);

	return md_pull_sum_add(sum, &row, &err);
}

static int add_of(int32_t host, uint64_t vaddr, uint64_t count)
{
	struct mp_ip_count ip = {vaddr, count};
	struct md_pull_row row = row_of(1, &ip, 1, MD_PULL_WHOLE);

	row.host = host;
	return md_pull_sum_add(sum, &row, &err);
}

FIXTURE(NULL, teardown);

TEST(confirmed_sum_has_nothing_that_one_host_invents)
{
	ok(md_pull_sum_new(MP_FLEET_COUNTS, NULL, true, &sum, &err));
	for (int32_t host = 1; host <= 20; host++) {
		ok(add_of(host, 0x10010, 5));
		if (host == 7) { /* It has two rows of the chunk. */
			ok(add_of(host, 0x10020, 1000));
			ok(add_of(host, 0x10030, 300));
			ok(add_of(host, 0x10030, 300));
		}
		if (host == 9)
			ok(add_of(host, 0x10030, 400));
	}
	ck_assert_int_eq(add_of(19, 0x10010, 1), -EPROTO);
	finish();
	ck_assert_uint_eq(result.nr, 2);
	ck_assert_uint_eq(result.counts[0].vaddr, 0x10010);
	ck_assert_uint_eq(result.counts[0].count, 100);
	/* 600 and 400: the second one is the limit. */
	ck_assert_uint_eq(result.counts[1].vaddr, 0x10030);
	ck_assert_uint_eq(result.counts[1].count, 800);
	ck_assert(!result.exact);
}

TEST(sum_of_hosts_is_exact)
{
	start(MP_FLEET_COUNTS);
	for (int host = 0; host < 1000; host++)
		ok(add(1, 0x10010, (uint64_t)host, MD_PULL_WHOLE));
	ok(add(1, 0x10008, 3, MD_PULL_WHOLE));
	ok(add(3, 0x30000, 4, MD_PULL_WHOLE));
	finish();
	ck_assert_uint_eq(result.nr, 3);
	ck_assert_uint_eq(result.counts[0].vaddr, 0x10008);
	ck_assert_uint_eq(result.counts[1].vaddr, 0x10010);
	ck_assert_uint_eq(result.counts[1].count, 999 * 500);
	ck_assert_uint_eq(result.counts[2].vaddr, 0x30000);
	ck_assert_uint_eq(result.total, 999 * 500 + 7);
	ck_assert_int_eq(result.last_day, 7);
	/* The host with a count of 0 has an empty row, which is not sound. */
	ck_assert_uint_eq(result.nr_bad, 1);
	ck_assert(result.exact);
}

TEST(sum_is_rounded_once)
{
	start(MP_FLEET_COUNTS);
	/* Three thirds of a sample, each rounded down by the server's weight. */
	for (int i = 0; i < 3; i++)
		ok(add(0, 0x10, 1, MD_PULL_WHOLE / 3));
	ok(add(0, 0x11, 1, MD_PULL_WHOLE / 2));
	ok(add(0, 0x12, 1, MD_PULL_WHOLE / 2 - 1));
	finish();
	ck_assert_uint_eq(result.nr, 2);
	ck_assert_uint_eq(result.counts[0].count, 1);
	ck_assert_uint_eq(result.counts[1].vaddr, 0x11);
	ck_assert(!result.exact);
}

TEST(sum_leaves_out_rows_that_are_not_sound)
{
	struct mp_ip_count ips[] = {{0x10, 5}, {0x20, 6}};
	struct md_pull_row row;

	start(MP_FLEET_COUNTS);
	for (int i = 0; i < 7; i++) {
		row = row_of(0, ips, 2, MD_PULL_WHOLE);
		switch (i) {
		case 0: row.total = 12; break; /* the cap relies on it */
		case 1: row.weight = MD_PULL_WHOLE + 1; break;
		case 2: row.weight = 0; break;
		case 3: row.size = 0; break;
		case 4: row.size = MP_FLEET_ROW_BYTES_MAX + 1; break;
		case 5: bytes[0] = 0xff; break;
		case 6: row.last_day = -1; break;
		}
		ok(md_pull_sum_add(sum, &row, &err));
	}
	row = row_of(0, ips, 2, MD_PULL_WHOLE);
	ok(md_pull_sum_add(sum, &row, &err));
	finish();
	ck_assert_uint_eq(result.nr_rows, 8);
	ck_assert_uint_eq(result.nr_bad, 7);
	ck_assert_uint_eq(result.total, 11);
}

TEST(sum_refuses_chunks_out_of_order)
{
	start(MP_FLEET_COUNTS);
	ok(add(3, 0x30000, 1, MD_PULL_WHOLE));
	ck_assert_int_eq(add(2, 0x20000, 1, MD_PULL_WHOLE), -EPROTO);
	ck_assert_int_eq(add(-1, 0, 1, MD_PULL_WHOLE), -EPROTO);
}

TEST(sum_beyond_63_bits_is_refused)
{
	start(MP_FLEET_COUNTS);
	for (int i = 0; i < 4; i++)
		ok(add(0, 0x10, INT64_MAX, MD_PULL_WHOLE));
	ck_assert_int_eq(md_pull_sum_finish(sum, &result, &err), -EOVERFLOW);
}

TEST(sum_of_two_rows_with_one_overflow_keeps_the_other)
{
	struct mp_ip_count ips[] = {{0x10, UINT64_MAX}, {0x20, 6}};
	struct md_pull_row row = row_of(0, ips, 2, MD_PULL_WHOLE);

	start(MP_FLEET_COUNTS);
	row.total = 5; /* what the sum wraps to */
	ok(md_pull_sum_add(sum, &row, &err));
	ok(add(0, 0x10, 2, MD_PULL_WHOLE));
	finish();
	ck_assert_uint_eq(result.nr_bad, 1);
	ck_assert_uint_eq(result.total, 2);
}

TEST(sum_of_transfers_ascends)
{
	struct md_pull_row row = {.last_day = 1, .weight = MD_PULL_WHOLE, .data = bytes};
	struct mp_edge_count edge = {.count = 3, .mispredicted = 2};

	start(MP_FLEET_EDGES);
	for (uint32_t i = 0; i < 20000; i++) {
		edge.from = i * 7919 % 10000;
		edge.to = 5;
		row.size = mp_edge_encode(0, &edge, 1, bytes);
		row.total = 3;
		ok(md_pull_sum_add(sum, &row, &err));
	}
	finish();
	ck_assert_uint_eq(result.nr, 10000);
	ck_assert_uint_eq(result.total, 60000);
	for (size_t i = 0; i < result.nr; i++) {
		ck_assert_uint_eq(result.edges[i].from, i);
		ck_assert_uint_eq(result.edges[i].count, 6);
		ck_assert_uint_eq(result.edges[i].mispredicted, 4);
	}
}
