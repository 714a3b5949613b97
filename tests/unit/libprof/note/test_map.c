// SPDX-License-Identifier: Apache-2.0
/* test_map - the map note: written and read back, and damaged input refused. */
#include "libprof/note/map.h"
#include "libprof/base/varint.h"

#include <xxhash.h>

#include "tests/unit/suite.h"
#include "tests/support/tiny_elf.h"

static struct mp_map_piece pieces[] = {
	{.new_vaddr = 0x800000, .new_size = 16, .old_size = 16, .old_vaddr = 0x401000},
	{.new_vaddr = 0x800010, .new_size = 10, .old_size = 7, .old_vaddr = 0x401200},
	{.new_vaddr = 0x80001a, .new_size = 5, .old_size = 0, .old_vaddr = 0x401206},
	{.new_vaddr = 0x800040, .new_size = 3, .old_size = 9, .old_vaddr = 0x400100},
	{.new_vaddr = 0x7fffffff0000, .new_size = 0xfff0, .old_size = 0x20000, .old_vaddr = 1},
};

static const struct mp_map sample = {
	.original = {.build_id = {1, 2, 3, 0xff},
		     .build_id_len = 20,
		     .text_hash = 0x123456789abcdef},
	.pieces = pieces,
	.nr_pieces = 5,
};

static int read_note_says(const void *note, size_t size, struct mp_map **out, struct mp_err *err)
{
	struct tiny_section sec = {MP_MAP_SECTION, SHT_NOTE, SHF_ALLOC, 0x400, note, size, 0, 0, 0};
	struct mp_elf *elf = NULL;
	size_t elf_size;
	AUTO_FREE uint8_t *bytes = tiny_elf_build(&sec, 1, NULL, 0, &elf_size);
	int ret;

	ck_assert_int_eq(mp_elf_open_memory("tiny", bytes, elf_size, MP_ELF_ID, &elf, err), 0);
	ret = mp_map_read(elf, out, err);
	if (ret)
		ck_assert_ptr_nonnull(strstr(err->msg, "tiny: "));
	mp_elf_close(elf);
	return ret;
}

static int read_note(const void *note, size_t size, struct mp_map **out)
{
	return read_note_says(note, size, out, &err);
}

static void assert_same(const struct mp_map *a, const struct mp_map *b)
{
	ck_assert(mp_id_equal(&a->original, &b->original));
	ck_assert_uint_eq(a->nr_pieces, b->nr_pieces);
	for (uint32_t i = 0; i < a->nr_pieces; i++) {
		ck_assert_uint_eq(a->pieces[i].new_vaddr, b->pieces[i].new_vaddr);
		ck_assert_uint_eq(a->pieces[i].new_size, b->pieces[i].new_size);
		ck_assert_uint_eq(a->pieces[i].old_vaddr, b->pieces[i].old_vaddr);
		ck_assert_uint_eq(a->pieces[i].old_size, b->pieces[i].old_size);
	}
}

TEST(map_survives_the_round_trip)
{
	struct mp_map *map = NULL;
	AUTO_FREE uint8_t *note = NULL;
	size_t size;

	ck_assert_int_eq(mp_map_encode(&sample, &note, &size, NULL), 0);
	ck_assert_uint_eq(size % 4, 0);
	ck_assert_int_eq(read_note(note, size, &map), 0);
	assert_same(&sample, map);
	mp_map_free(map);
}

/* Blocks of 16 bytes; every third is a stub, and a gap follows every hundredth. */
static struct mp_map *many_pieces(uint32_t nr)
{
	struct mp_map *map = calloc(1, sizeof(*map));
	uint64_t vaddr = 0x10000000;

	map->nr_pieces = nr;
	map->original = sample.original;
	map->pieces = calloc(nr, sizeof(*map->pieces));
	for (uint32_t i = 0; i < nr; i++) {
		map->pieces[i] = (struct mp_map_piece){vaddr, 16, i % 3 ? 16 : 0,
						       0x400000 + (nr - i) * UINT64_C(16)};
		vaddr += i % 100 ? 16 : 80;
	}
	return map;
}

static int read_compact(const void *note, size_t size, struct mp_map **out)
{
	struct tiny_section sec = {MP_MAP_SECTION, SHT_NOTE, SHF_ALLOC, 0x400, note, size, 0, 0, 0};
	struct mp_elf *elf = NULL;
	size_t elf_size;
	AUTO_FREE uint8_t *bytes = tiny_elf_build(&sec, 1, NULL, 0, &elf_size);
	int ret;

	ck_assert_int_eq(mp_elf_open_memory("tiny", bytes, elf_size, MP_ELF_ID, &elf, NULL), 0);
	ret = mp_map_read_compact(elf, out, NULL);
	mp_elf_close(elf);
	return ret;
}

TEST_EACH(map_of_millions_of_pieces_survives_the_round_trip, 2)
{
	static const uint32_t sizes[] = {(1 << 20) + 1, (1 << 22) + 1};
	struct mp_map *map = many_pieces(sizes[_i]), *flat = NULL, *packed = NULL;
	AUTO_FREE uint8_t *note = NULL;
	size_t size;

	ck_assert_int_eq(mp_map_encode(map, &note, &size, NULL), 0);
	ck_assert_int_eq(read_note(note, size, &flat), 0);
	ck_assert_uint_eq(flat->nr_pieces, map->nr_pieces);
	ck_assert_mem_eq(flat->pieces, map->pieces, map->nr_pieces * sizeof(*map->pieces));
	ck_assert_int_eq(read_compact(note, size, &packed), 0);
	ck_assert_ptr_null(packed->pieces);
	ck_assert_uint_lt(mp_map_bytes(packed), mp_map_bytes(flat) / 3);
	for (uint32_t i = 0; i < map->nr_pieces; i += 997) {
		struct mp_map_piece piece = mp_map_piece(packed, i);

		ck_assert_mem_eq(&piece, &map->pieces[i], sizeof(piece));
	}
	for (uint64_t at = 0xfffffff; at < 0x10000000 + 20 * (uint64_t)sizes[_i]; at += 4999) {
		ck_assert_uint_eq(mp_map_original(packed, at), mp_map_original(map, at));
		ck_assert_uint_eq(mp_map_piece_at(packed, at), mp_map_piece_at(map, at));
	}
	mp_map_free(packed);
	mp_map_free(flat);
	mp_map_free(map);
}

/* Empty pieces may share an address: both forms must give the same results. */
TEST(map_packed_agrees_where_pieces_share_an_address)
{
	struct mp_map *map = many_pieces(MP_MAP_FLAT_MAX + 1), *packed = NULL;
	AUTO_FREE uint8_t *note = NULL;
	size_t size;

	for (uint32_t i = 0; i < 40; i++)
		map->pieces[i] = (struct mp_map_piece){0x0fff0000,
						       i < 38	 ? 0
						       : i == 38 ? 0
								 : 16,
						       2, 0x9000 + i};
	ck_assert_int_eq(mp_map_encode(map, &note, &size, NULL), 0);
	ck_assert_int_eq(read_compact(note, size, &packed), 0);
	for (uint64_t at = 0x0ffefff8; at < 0x0fff0020; at++) {
		ck_assert_uint_eq(mp_map_piece_at(packed, at), mp_map_piece_at(map, at));
		ck_assert_uint_eq(mp_map_original(packed, at), mp_map_original(map, at));
	}
	mp_map_free(packed);
	mp_map_free(map);
}

TEST(map_of_too_many_pieces_is_refused_and_the_limit_named)
{
	/* No piece is read. */
	struct mp_map map = {.original = sample.original, .nr_pieces = MP_MAP_PIECES_MAX + 1};
	struct mp_map *got = NULL;
	uint8_t *note;
	size_t size;

	ck_assert_uint_eq(MP_MAP_PIECES_MAX, 1 << 24);
	ck_assert_int_eq(mp_map_encode(&map, &note, &size, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "map: 16777217 pieces of moved code, the limit is 16777216");
	/* A note that announces too many. */
	{
		struct mp_varint_writer w = {0};
		Elf64_Nhdr nhdr = {.n_namesz = sizeof(MP_MAP_NOTE_NAME),
				   .n_type = MP_MAP_NOTE_TYPE};
		static const uint8_t zero[16];
		size_t desc;
		uint64_t sum;

		mp_varint_put_bytes(&w, &nhdr, sizeof(nhdr));
		mp_varint_put_bytes(&w, MP_MAP_NOTE_NAME, sizeof(MP_MAP_NOTE_NAME));
		mp_varint_put_bytes(&w, zero, -w.size & 3);
		desc = w.size;
		mp_varint_put(&w, 1);
		mp_varint_put_bytes(&w, zero, 1 + sizeof(uint64_t)); /* no build-id; the hash */
		mp_varint_put(&w, MP_MAP_PIECES_MAX + 1);
		sum = XXH3_64bits(w.bytes + desc, w.size - desc);
		mp_varint_put_bytes(&w, &sum, sizeof(sum));
		nhdr.n_descsz = (uint32_t)(w.size - desc);
		memcpy(w.bytes, &nhdr, sizeof(nhdr));
		mp_varint_put_bytes(&w, zero, -w.size & 3);
		ck_assert_int_eq(read_note_says(w.bytes, w.size, &got, &err), -EBADMSG);
		free(w.bytes);
	}
	ck_assert_str_eq(err.msg, "tiny: map note of 16777217 pieces, the limit is 16777216");
}

TEST(map_without_pieces_is_valid)
{
	struct mp_map empty = {.original = sample.original}, *map = NULL;
	AUTO_FREE uint8_t *note = NULL;
	size_t size;

	ck_assert_int_eq(mp_map_encode(&empty, &note, &size, NULL), 0);
	ck_assert_int_eq(read_note(note, size, &map), 0);
	ck_assert_uint_eq(map->nr_pieces, 0);
	ck_assert_uint_eq(mp_map_original(map, 0x1234), 0x1234);
	mp_map_free(map);
}

TEST(map_is_found_behind_another_note)
{
	static const uint8_t other[] = {4, 0, 0,   0,	3,   0, 0, 0, 9, 0,
					0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 0};
	struct mp_map *map = NULL;
	uint8_t *note, *both;
	size_t size;

	ck_assert_int_eq(mp_map_encode(&sample, &note, &size, NULL), 0);
	both = malloc(sizeof(other) + size);
	memcpy(both, other, sizeof(other));
	memcpy(both + sizeof(other), note, size);
	ck_assert_int_eq(read_note(both, sizeof(other) + size, &map), 0);
	assert_same(&sample, map);
	mp_map_free(map);
	free(note);
	free(both);
}

TEST(map_translates_addresses)
{
	static const struct {
		uint64_t vaddr, original;
	} cases[] = {
		{0x800000, 0x401000}, /* equal sizes: offsets are kept */
		{0x80000f, 0x40100f},
		{0x800010, 0x401200}, /* longer: clamped to the last byte */
		{0x800016, 0x401206},
		{0x800019, 0x401206},
		{0x80001a, 0x401206}, /* added code */
		{0x80001f, 0x80001f}, /* padding */
		{0x800042, 0x400102}, /* shorter */
		{0x800043, 0x800043},
		{0x401000, 0x401000}, /* not moved */
		{0x7fffffffffef, 0xfff0},
		{0x7ffffffffff0, 0x7ffffffffff0},
		{0, 0},
		{UINT64_MAX, UINT64_MAX},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_uint_eq(mp_map_original(&sample, cases[i].vaddr), cases[i].original);
}

TEST(map_keeps_blocks_whose_only_jump_was_dropped)
{
	struct mp_map_piece list[] = {
		{0x2000, 16, 16, 0x100}, {0x2010, 0, 5, 0x180}, {0x2010, 8, 8, 0x200}};
	struct mp_map in = {.pieces = list, .nr_pieces = 3}, *map = NULL;
	AUTO_FREE uint8_t *note = NULL;
	size_t size;

	ck_assert_int_eq(mp_map_encode(&in, &note, &size, NULL), 0);
	ck_assert_int_eq(read_note(note, size, &map), 0);
	assert_same(&in, map);
	ck_assert_uint_eq(mp_map_original(map, 0x200f), 0x10f);
	ck_assert_uint_eq(mp_map_original(map, 0x2010), 0x200);
	mp_map_free(map);
}

TEST(map_takes_about_four_bytes_a_block)
{
	struct mp_map big = {.nr_pieces = 10000}, *map = NULL;
	uint64_t new_vaddr = 0x800000, old_vaddr = 0x401000;
	uint8_t *note;
	size_t size;

	big.pieces = calloc(big.nr_pieces, sizeof(*big.pieces));
	for (uint32_t i = 0; i < big.nr_pieces; i++) {
		uint32_t len = 4 + i * 7 % 40;

		big.pieces[i] = (struct mp_map_piece){new_vaddr, len, len, old_vaddr};
		new_vaddr += len;
		old_vaddr += i % 3 ? len : 300;
	}
	ck_assert_int_eq(mp_map_encode(&big, &note, &size, NULL), 0);
	ck_assert_uint_lt(size, 5 * big.nr_pieces);
	ck_assert_int_eq(read_note(note, size, &map), 0);
	assert_same(&big, map);
	mp_map_free(map);
	free(note);
	free(big.pieces);
}

TEST(map_refuses_to_write_pieces_out_of_order)
{
	struct mp_map_piece bad[] = {{0x2000, 16, 16, 0x100}, {0x200f, 16, 16, 0x200}};
	struct mp_map map = {.pieces = bad, .nr_pieces = 2};
	uint8_t *note;
	size_t size;

	ck_assert_int_eq(mp_map_encode(&map, &note, &size, &err), -EINVAL);
	bad[1].new_vaddr = 0x1000;
	ck_assert_int_eq(mp_map_encode(&map, &note, &size, &err), -EINVAL);
	bad[1] = (struct mp_map_piece){UINT64_MAX - 3, 16, 16, 0x200};
	ck_assert_int_eq(mp_map_encode(&map, &note, &size, &err), -EINVAL);
}

TEST(map_refuses_every_truncation)
{
	struct mp_map *map = NULL;
	AUTO_FREE uint8_t *note = NULL;
	size_t size;

	ck_assert_int_eq(mp_map_encode(&sample, &note, &size, NULL), 0);
	/* Shorter cuts only remove padding. */
	for (size_t cut = 4; cut <= size; cut++)
		ck_assert_int_eq(read_note(note, size - cut, &map), -EBADMSG);
}

TEST(map_refuses_every_flipped_bit)
{
	struct mp_map *map = NULL;
	uint32_t desc_size;
	AUTO_FREE uint8_t *note = NULL;
	size_t size;

	ck_assert_int_eq(mp_map_encode(&sample, &note, &size, NULL), 0);
	memcpy(&desc_size, note + 4, 4);
	for (size_t bit = 0; bit < (20 + desc_size) * 8; bit++) {
		if (bit / 8 == 18 || bit / 8 == 19)
			continue; /* padding between name and descriptor */
		note[bit / 8] ^= 1 << bit % 8;
		ck_assert_int_eq(read_note(note, size, &map), -EBADMSG);
		note[bit / 8] ^= 1 << bit % 8;
	}
}

TEST(map_refuses_hostile_counts_behind_a_good_checksum)
{
	/* version 1, no build-id, hash, 2^32 pieces */
	uint8_t note[20 + 1 + 1 + 8 + 5 + 8 + 1] = {6, 0, 0, 0,	  23,  0,   0,	 0,  1,
						    0, 0, 0, 'M', 'o', 'r', 'p', 'h'};
	static const uint8_t count[] = {0x80, 0x80, 0x80, 0x80, 0x10};
	struct mp_map *map = NULL;
	uint64_t sum;

	note[20] = 1;
	memcpy(note + 30, count, sizeof(count));
	sum = XXH3_64bits(note + 20, 15);
	memcpy(note + 35, &sum, sizeof(sum));
	ck_assert_int_eq(read_note(note, sizeof(note), &map), -EBADMSG);
	/* With no piece it is valid, which shows that the count was refused. */
	memset(note + 30, 0, 5);
	note[4] = 19;
	sum = XXH3_64bits(note + 20, 11);
	memcpy(note + 31, &sum, sizeof(sum));
	ck_assert_int_eq(read_note(note, sizeof(note), &map), 0);
	mp_map_free(map);
	/* 0 in two bytes: a number has one form only, so that a note holds nothing but the map. */
	note[4] = 20;
	note[30] = 0x80;
	memset(note + 31, 0, 5);
	sum = XXH3_64bits(note + 20, 12);
	memcpy(note + 32, &sum, sizeof(sum));
	map = NULL;
	ck_assert_int_eq(read_note(note, sizeof(note), &map), -EBADMSG);
}

TEST(map_of_a_newer_version_is_named_as_such)
{
	struct tiny_section sec = {
		.name = MP_MAP_SECTION, .type = SHT_NOTE, .flags = SHF_ALLOC, .vaddr = 0x400};
	struct mp_map *map;
	struct mp_elf *elf;
	uint8_t *note, *bytes;
	uint32_t desc_size;
	uint64_t sum;
	size_t size;

	ck_assert_int_eq(mp_map_encode(&sample, &note, &size, NULL), 0);
	memcpy(&desc_size, note + 4, 4);
	note[20] = 2;
	sum = XXH3_64bits(note + 20, desc_size - 8);
	memcpy(note + 20 + desc_size - 8, &sum, 8);
	sec.data = note;
	sec.size = size;
	bytes = tiny_elf_build(&sec, 1, NULL, 0, &size);
	ck_assert_int_eq(mp_elf_open_memory("tiny", bytes, size, MP_ELF_ID, &elf, &err), 0);
	ck_assert_int_eq(mp_map_read(elf, &map, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "version 2"));
	mp_elf_close(elf);
	free(bytes);
	free(note);
}

TEST(map_absent_is_not_damaged)
{
	struct tiny_section sec = {".text", SHT_PROGBITS, SHF_ALLOC, 0x400, "x", 1, 0, 0, 0};
	struct mp_elf *elf;
	struct mp_map *map;
	size_t size;
	AUTO_FREE uint8_t *bytes = tiny_elf_build(&sec, 1, NULL, 0, &size);

	ck_assert_int_eq(mp_elf_open_memory("tiny", bytes, size, MP_ELF_ID, &elf, NULL), 0);
	ck_assert_int_eq(mp_map_read(elf, &map, NULL), -ENOENT);
	mp_elf_close(elf);
}
