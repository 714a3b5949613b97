// SPDX-License-Identifier: Apache-2.0
/* test_map_calls - the note of replaced calls: written and read back, found by address, and damaged input refused. */
#include "libprof/note/map_calls.h"

#include <xxhash.h>

#include "tests/unit/suite.h"

/*
 * Block 0x1000 ends in a call of 0x5000, whose blocks are 0x5004, 0x5020 and, apart, 0x5040. Block 0x1100 is only a
 * call of 0x6000, which does nothing.
 */
static struct mp_map_piece pieces[] = {
	{0x9000, 0x0b, 0x10, 0x1000}, {0x900b, 0x08, 0x08, 0x5004}, {0x9013, 0x06, 0x07, 0x5020},
	{0x9019, 0x10, 0x10, 0x1010}, {0x9029, 0x00, 0x05, 0x1100}, {0x9029, 0x00, 0x01, 0x6000},
	{0x9029, 0x20, 0x20, 0x1105}, {0x9080, 0x10, 0x10, 0x5040},
};
#define NR_PIECES (sizeof(pieces) / sizeof(pieces[0]))

static struct mp_map_call calls[] = {
	{1, 2, 0x1010, 0x5000},
	{5, 1, 0x1105, 0x6000},
	{7, 1, 0x1010, 0x5000},
};
#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

static const struct mp_map sample = {.original = {.build_id_len = 20, .text_hash = 7},
				     .pieces = pieces,
				     .nr_pieces = NR_PIECES,
				     .calls = calls,
				     .nr_calls = NR_CALLS};

static int read_section(uint8_t *bytes, size_t size, bool compact, struct mp_map **out)
{
	struct mp_elf elf = {.path = (char *)"tiny", .map_note = bytes, .map_note_size = size};
	struct mp_err err = {{0}};
	int r = compact ? mp_map_read_compact(&elf, out, &err) : mp_map_read(&elf, out, &err);

	if (r)
		ck_assert_ptr_nonnull(strstr(err.msg, "tiny: "));
	return r;
}

static size_t encode(const struct mp_map *map, uint8_t **out)
{
	size_t size;

	ck_assert_int_eq(mp_map_encode(map, out, &size, NULL), 0);
	return size;
}

/* Size of the section without the second note. */
static size_t first_note(void)
{
	struct mp_map without = sample;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	without.nr_calls = 0;
	size = encode(&without, &bytes);
	return size;
}

TEST(calls_survive_the_round_trip)
{
	struct mp_map *map;
	uint8_t *bytes, *again;
	size_t size = encode(&sample, &bytes);

	ck_assert_uint_eq(size % 4, 0);
	/* The header, three calls of 4 to 7 bytes, and the checksum */
	ck_assert_uint_le(size - first_note(), 20 + 2 + 3 * 7 + 8 + 3);
	ck_assert_int_eq(read_section(bytes, size, false, &map), 0);
	ck_assert_uint_eq(map->nr_calls, NR_CALLS);
	ck_assert_mem_eq(map->calls, calls, sizeof(calls));
	ck_assert(mp_map_same_calls(map, &sample));
	ck_assert_uint_eq(encode(map, &again), size);
	ck_assert_mem_eq(bytes, again, size);
	map->calls[1].back++;
	ck_assert(!mp_map_same_calls(map, &sample));
	mp_map_free(map);
	free(again);
	free(bytes);
}

TEST(code_in_place_of_a_call_is_found_by_its_address)
{
	static const struct {
		uint64_t vaddr;
		int call; /* -1: none */
	} cases[] = {
		{0x8fff, -1}, {0x9000, -1}, {0x900a, -1},     {0x900b, 0},  {0x9012, 0},
		{0x9013, 0},  {0x9018, 0},  {0x9019, -1},     {0x9028, -1}, {0x9029, -1},
		{0x9048, -1}, {0x9049, -1}, {0x907f, -1},     {0x9080, 2},  {0x908f, 2},
		{0x9090, -1}, {0x5004, -1}, {UINT64_MAX, -1},
	};
	struct mp_map without = sample;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_ptr_eq(mp_map_call_at(&sample, cases[i].vaddr),
				 cases[i].call < 0 ? NULL : &calls[cases[i].call]);
	for (uint32_t i = 0; i < NR_PIECES; i++)
		ck_assert_ptr_eq(mp_map_call_of_piece(&sample, i), i == 1 || i == 2 ? &calls[0]
								   : i == 5	    ? &calls[1]
								   : i == 7	    ? &calls[2]
										    : NULL);
	without.nr_calls = 0;
	ck_assert_ptr_null(mp_map_call_at(&without, 0x900b));
}

/* In a packed map, the piece before a call's is in another group for every 16th one. */
TEST(calls_of_a_packed_map_are_the_same)
{
	const uint32_t nr = MP_MAP_FLAT_MAX + 2;
	struct mp_map big = {.nr_pieces = nr, .nr_calls = nr / 2}, *map;
	uint8_t *bytes;
	size_t size;

	big.pieces = calloc(nr, sizeof(*big.pieces));
	big.calls = calloc(nr / 2, sizeof(*big.calls));
	for (uint32_t i = 0; i < nr; i += 2) {
		big.pieces[i] = (struct mp_map_piece){0x100000 + 32 * (uint64_t)i, 16, 21,
						      0x900000 + 64 * (uint64_t)i};
		big.pieces[i + 1] =
			(struct mp_map_piece){0x100010 + 32 * (uint64_t)i, 8, 9, 0x5000 + i % 4096};
		big.calls[i / 2] = (struct mp_map_call){i + 1, 1, 0x900015 + 64 * (uint64_t)i,
							0x5000 + i % 4096};
	}
	size = encode(&big, &bytes);
	ck_assert_int_eq(read_section(bytes, size, true, &map), 0);
	ck_assert_ptr_null(map->pieces);
	ck_assert(mp_map_same_calls(map, &big));
	for (uint32_t i = 0; i < nr; i += 498)
		ck_assert_ptr_eq(mp_map_call_at(map, big.pieces[i + 1].new_vaddr + 3),
				 &map->calls[i / 2]);
	mp_map_free(map);
	free(bytes);
	free(big.pieces);
	free(big.calls);
}

TEST(calls_that_overlap_are_not_written)
{
	static const struct mp_map_call bad[][2] = {
		{{1, 2, 0, 0}, {2, 1, 0, 0}},
		{{2, 1, 0, 0}, {1, 1, 0, 0}},
		{{1, 0, 0, 0}, {2, 1, 0, 0}},
		{{1, 1, 0, 0}, {NR_PIECES, 1, 0, 0}},
		{{1, 1, 0, 0}, {2, NR_PIECES - 1, 0, 0}},
		{{1, 1, 0, 0}, {2, UINT32_MAX, 0, 0}},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mp_map map = sample;
		uint8_t *bytes;
		size_t size;

		map.calls = (struct mp_map_call *)bad[i];
		map.nr_calls = 2;
		ck_assert_int_eq(mp_map_encode(&map, &bytes, &size, &err), -EINVAL);
	}
}

/* A section with @desc as the second descriptor, and a good checksum. */
static int read_desc(const uint8_t *desc, size_t nr, struct mp_map **out)
{
	struct mp_map without = sample;
	Elf64_Nhdr nhdr = {6, (uint32_t)nr + 8, MP_MAP_CALLS_NOTE_TYPE};
	uint64_t sum = XXH3_64bits(desc, nr);
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;
	int r;

	without.nr_calls = 0;
	size = encode(&without, &bytes);
	bytes = realloc(bytes, size + 20 + nr + 8 + 3);
	memcpy(bytes + size, &nhdr, sizeof(nhdr));
	memcpy(bytes + size + 12, "Morph\0\0", 8);
	memcpy(bytes + size + 20, desc, nr);
	memcpy(bytes + size + 20 + nr, &sum, 8);
	memset(bytes + size + 20 + nr + 8, 0, 3);
	r = read_section(bytes, (size + 20 + nr + 8 + 3) & ~(size_t)3, false, out);
	return r;
}

TEST(hostile_calls_behind_a_good_checksum_are_refused)
{
	static const struct {
		uint8_t desc[20];
		size_t nr;
	} bad[] = {
		{{1}, 1},				    /* no number */
		{{1, 1}, 2},				    /* no call */
		{{1, 1, 1, 2, 0}, 5},			    /* half a call */
		{{1, 1, 1, 2, 0, 0, 0}, 7},		    /* a byte more */
		{{1, 1, 1, 0, 0, 0}, 6},		    /* a call of no pieces */
		{{1, 1, 8, 1, 0, 0}, 6},		    /* behind the last piece */
		{{1, 1, 1, 8, 0, 0}, 6},		    /* up to behind the last piece */
		{{1, 9, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}, 12}, /* more calls than pieces */
		{{1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 0, 0}, 11},
		{{1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0}, 11},
		{{1, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0, 0, 2, 1, 0, 0}, 14},
		{{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 12},
	};
	static const uint8_t good[] = {1, 1, 1, 2, 0, 0};
	struct mp_map *map;

	ck_assert_int_eq(read_desc(good, sizeof(good), &map), 0);
	ck_assert_uint_eq(map->nr_calls, 1);
	ck_assert_uint_eq(map->calls[0].back, 0x1010);
	ck_assert_uint_eq(map->calls[0].callee, 0x5004);
	mp_map_free(map);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(read_desc(bad[i].desc, bad[i].nr, &map) == -EBADMSG, "%zu", i);
		ck_assert_ptr_null(map);
	}
}

TEST(another_version_of_the_note_is_ignored)
{
	static const uint8_t newer[] = {2, 1, 1, 2, 0, 0, 9};
	struct mp_map *map;

	ck_assert_int_eq(read_desc(newer, sizeof(newer), &map), 0);
	ck_assert_uint_eq(map->nr_calls, 0);
	ck_assert_uint_eq(map->nr_pieces, NR_PIECES);
	ck_assert_uint_eq(mp_map_original(map, 0x900b), 0x5004);
	mp_map_free(map);
}

/* Readers of before looked at the first note of type 1 only. */
TEST(first_note_is_that_of_a_map_without_calls)
{
	struct mp_map without = sample;
	uint8_t *with, *bare;
	size_t size = encode(&sample, &with), less;

	without.nr_calls = 0;
	less = encode(&without, &bare);
	ck_assert_uint_gt(size, less);
	ck_assert_mem_eq(with, bare, less);
	free(with);
	free(bare);
}

TEST(every_flipped_bit_of_the_note_is_noticed)
{
	struct mp_map *map;
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size = encode(&sample, &bytes), from = first_note();
	uint32_t desc_size;
	int r;

	memcpy(&desc_size, bytes + from + 4, 4);
	for (size_t bit = 8 * from; bit < 8 * (from + 20 + desc_size); bit++) {
		if (bit / 8 == from + 18 || bit / 8 == from + 19)
			continue; /* padding between name and descriptor */
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		r = read_section(bytes, size, false, &map);
		/* Header and version: it is another note, which is skipped. */
		ck_assert_int_eq(r, bit / 8 > from + 20 ? -EBADMSG : r);
		if (!r) {
			ck_assert_uint_eq(map->nr_calls, 0);
			ck_assert_uint_eq(map->nr_pieces, NR_PIECES);
			mp_map_free(map);
		}
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t cut = from; cut < size; cut++) {
		r = read_section(bytes, cut, false, &map);
		ck_assert_int_eq(r, cut < from + 20 + desc_size ? 0 : r);
		if (!r)
			mp_map_free(map);
	}
}
