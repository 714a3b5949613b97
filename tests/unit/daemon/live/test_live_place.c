// SPDX-License-Identifier: Apache-2.0
/* test_live_place - free places for copies, in one process and in several. */
#include "daemon/live/place.h"
#include "tests/unit/suite.h"

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

static char none[] = "", heap[] = "[heap]", stack[] = "[stack]";
static struct md_place place;

/* The place of a file at [0x400000, 0x500000) in a process with @maps. */
static void add(struct md_mapping *maps, size_t nr, uint64_t bias)
{
	const struct md_process p = {.maps = maps, .nr_maps = nr};

	place.low = 0x400000;
	place.high = 0x500000;
	place.code_size = MIB;
	ck_assert_int_eq(md_place_add_maps(&place, &p, bias), 0);
}

static uint64_t find(struct md_mapping *maps, size_t nr, uint64_t size)
{
	uint64_t at;

	md_place_fini(&place);
	add(maps, nr, 0);
	at = md_place_find(&place, size);
	md_place_fini(&place);
	return at;
}

TEST(a_free_range_is_within_reach_and_leaves_room_for_the_heap)
{
	struct md_mapping maps[] = {
		{.start = 0x400000, .end = 0x500000, .path = none},
		{.start = 0x600000, .end = 0x700000, .path = heap},
		{.start = GIB, .end = GIB + 0x1000, .path = none},
	};
	uint64_t at = find(maps, 3, MIB);

	/* The highest place within 2 GiB. */
	ck_assert_uint_gt(at, GIB);
	ck_assert_uint_le(at + MIB, 0x400000 + 2 * GIB);
	ck_assert_uint_eq(at % 4096, 0);
	/* Only between the heap and the next mapping. */
	maps[2].end = 4 * GIB;
	at = find(maps, 3, MIB);
	ck_assert_uint_ge(at, 0x700000 + GIB / 2);
	ck_assert_uint_le(at + MIB, GIB);
	/* There the heap needs all. */
	maps[2].start = 0x700000 + GIB / 2;
	at = find(maps, 3, MIB);
	ck_assert_uint_ge(at, 0x500000);
	ck_assert_uint_le(at + MIB, 0x600000);
	/* Nothing is as large as this. */
	ck_assert_uint_eq(find(maps, 3, 2 * MIB), 0);
}

TEST(a_stack_has_room_below)
{
	struct md_mapping maps[] = {
		{.start = 0x400000, .end = 0x500000, .path = none},
		{.start = GIB, .end = 4 * GIB, .path = stack},
	};

	ck_assert_uint_le(find(maps, 2, MIB) + MIB, GIB / 2);
}

/* Two processes that have loaded the file elsewhere, and have other things around it. */
TEST(a_place_is_free_in_all_processes)
{
	const uint64_t bias[] = {0x550000000000, 0x560000000000};
	struct md_mapping a[] = {
		{.start = 0, .end = 0x1000, .path = none},
		{.start = bias[0] + 0x400000, .end = bias[0] + 0x500000, .path = none},
		{.start = bias[0] + GIB, .end = bias[0] + 4 * GIB, .path = none}};
	struct md_mapping b[] = {
		{.start = bias[1] + 0x400000, .end = bias[1] + 0x500000, .path = none},
		{.start = bias[1] + GIB / 2, .end = bias[1] + GIB - 3 * MIB, .path = none}};
	uint64_t out[2];

	md_place_fini(&place);
	add(a, 3, bias[0]);
	add(b, 2, bias[1]);
	/* Between the end of what the second has and the beginning of what the first has. */
	ck_assert_uint_eq(md_place_find(&place, 3 * MIB), GIB - 3 * MIB);
	ck_assert_uint_lt(md_place_find(&place, 4 * MIB), GIB / 2);
	/* Two whole versions do not overlap. */
	ck_assert_int_eq(md_place_choose(&place, 2, true, out, &err), 0);
	ck_assert_uint_ge(out[0], 0x500000);
	ck_assert_uint_ge(out[1], out[0] + 2 * MIB);
	ck_assert_uint_le(out[1] + 2 * MIB, GIB / 2);
	ck_assert_int_eq(md_place_choose(&place, 300, true, out, &err), -ENOSPC);
	md_place_fini(&place);
}
