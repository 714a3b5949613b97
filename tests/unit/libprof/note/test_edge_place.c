// SPDX-License-Identifier: Apache-2.0
/* test_edge_place - places of counters as text, there and back, and text that is no place. */
#include "libprof/note/edge_place.h"

#include "tests/unit/suite.h"

TEST(edge_place_is_the_same_as_text)
{
	static const struct {
		struct mp_edge_place place;
		const char *text;
	} all[] = {
		{{0x401230, MP_PLACE_ALL}, "0x401230"},
		{{0x401230, MP_PLACE_OUTSIDE}, "0x401230<outside"},
		{{0x401230, 0x401200}, "0x401230<0x401200"},
		{{0, 0}, "0x0<0x0"},
		{{MP_PLACE_OUTSIDE - 1, MP_PLACE_OUTSIDE - 1},
		 "0xfffffffffffffffd<0xfffffffffffffffd"},
	};
	char text[MP_EDGE_PLACE_TEXT];
	struct mp_edge_place out;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		mp_edge_place_format(&all[i].place, text);
		ck_assert_str_eq(text, all[i].text);
		ck_assert(mp_edge_place_parse(text, &out));
		ck_assert_uint_eq(out.block, all[i].place.block);
		ck_assert_uint_eq(out.from, all[i].place.from);
	}
}

TEST(edge_place_refuses_other_text)
{
	static const char *const bad[] = {
		"",
		"x",
		"401230",
		"0x",
		"0x ",
		"0xg",
		"0x1 ",
		" 0x1",
		"0x1<",
		"0x1<outsid",
		"0x1<outside ",
		"0x1<0x",
		"0x1<1",
		"0x1<0x2<0x3",
		"-0x1",
		"0x-1",
		"0x+1",
		"0x1<0x-1",
		"0xfffffffffffffffe",
		"0xffffffffffffffff",
		"0x10000000000000000",
		"0x1<0xffffffffffffffff",
	};
	struct mp_edge_place out;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!mp_edge_place_parse(bad[i], &out), "'%s'", bad[i]);
}

TEST(edge_place_is_that_of_the_counter)
{
	struct mp_counted_block blocks[] = {{0x1000, 16, 14}, {0x1010, 8, 8}};
	struct mp_counted_edge edges[] = {{MP_NONE, 0, 2, MP_EDGE_OUTSIDE, false},
					  {0, 1, 0, MP_EDGE_FALL, false},
					  {1, 0, MP_NONE, MP_EDGE_JUMP, false},
					  {1, MP_NONE, 1, MP_EDGE_OUTSIDE, true}};
	struct mp_edge_table table = {
		.blocks = blocks, .nr_blocks = 2, .edges = edges, .nr_edges = 4, .nr_counters = 3};
	static const char *const want[] = {"0x1010<0x1000", "0x1010", "0x1000<outside"};
	char text[MP_EDGE_PLACE_TEXT];
	struct mp_edge_place place;

	for (uint32_t i = 0; i < 3; i++) {
		ck_assert(mp_edge_place_of(&table, i, &place));
		mp_edge_place_format(&place, text);
		ck_assert_str_eq(text, want[i]);
	}
	ck_assert(!mp_edge_place_of(&table, 3, &place));
	ck_assert(!mp_edge_place_of(&table, MP_NONE, &place));
}
