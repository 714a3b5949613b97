// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_wait - padding that control runs through, and stubs that only wait: verify takes nops
 * and nothing else, and no branch into their middle.
 */
#include "tests/unit/suite.h"

#include "tests/unit/verify_pair.h"

#define TIGHT	"gcc -O2 tests/data/tight.c"
#define CONTROL "gcc -O2 tests/data/control.c"

/* Every form of file: with relocations or stripped. */
static void build(struct pair *p, const char *command, uint64_t seed, bool stock,
		  const char *adjust)
{
	char line[512];

	snprintf(line, sizeof(line), "%s %s", command, stock ? "-s" : "-Wl,--emit-relocs");
	pair_make_adjusted(p, line, seed, PAIR_PLAIN, adjust);
}

static bool accepted(struct pair *p)
{
	struct mp_err err;
	int rc = pair_verify(p, p->size, &err);

	ck_assert(rc == 0 || rc == -EBADMSG);
	return !rc;
}

static void ck_refused(struct pair *p, uint64_t vaddr, uint8_t now)
{
	uint8_t *at = pair_at(p, vaddr), was = *at;

	*at = now;
	ck_assert_msg(!accepted(p), "%#llx: %02x instead of %02x", (unsigned long long)vaddr, now,
		      was);
	*at = was;
}

static bool is_stub(const struct mp_map_piece *piece)
{
	return piece->new_size && !piece->old_size;
}

TEST(verify_refuses_every_changed_byte_of_a_stub_that_waits)
{
	for (int stock = 0; stock < 2; stock++) {
		uint32_t nr = 0;
		struct pair p;

		build(&p, TIGHT, 0, stock, "*:wait=9");
		for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
			const struct mp_map_piece *piece = &p.map->pieces[i];

			if (!is_stub(piece))
				continue;
			ck_assert(piece->new_size == 9 || piece->new_size == 13);
			ck_assert_uint_eq(piece[1].new_vaddr, piece->new_vaddr + piece->new_size);
			ck_assert_uint_eq(piece[1].old_vaddr, piece->old_vaddr);
			for (uint32_t k = 0; k < piece->new_size; k++)
				for (unsigned int bit = 0; bit < 8; bit++)
					ck_refused(&p, piece->new_vaddr + k,
						   *pair_at(&p, piece->new_vaddr + k) ^
							   (uint8_t)(1 << bit));
			/* A nop that is longer, an early way out, another trap. */
			*pair_at(&p, piece->new_vaddr + 5) = 0x66;
			ck_assert(!accepted(&p));
			pair_restore(&p);
			ck_refused(&p, piece->new_vaddr + piece->new_size - 1, 0xc3);
			ck_refused(&p, piece->new_vaddr + piece->new_size - 1, 0xcc);
			nr++;
		}
		ck_assert_uint_ge(nr, 2);
		pair_free(&p);
	}
}

/* Does control run through the gap behind piece @i? Such a gap holds nops, others int3. */
static bool is_run_through(struct pair *p, uint32_t i)
{
	const struct mp_map_piece *piece = &p->map->pieces[i];
	uint64_t end = piece->new_vaddr + piece->new_size;

	return i + 1 < p->map->nr_pieces && piece[1].new_vaddr > end && *pair_at(p, end) != 0xcc;
}

TEST(verify_refuses_padding_that_is_not_made_of_nops)
{
	for (int stock = 0; stock < 2; stock++) {
		uint32_t nr = 0;
		struct pair p;

		build(&p, CONTROL, 0, stock, "*:loop=41,*:start=3");
		for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
			const struct mp_map_piece *piece = &p.map->pieces[i];
			uint64_t end = piece->new_vaddr + piece->new_size;

			if (!is_run_through(&p, i))
				continue;
			for (uint64_t at = end; at < piece[1].new_vaddr; at++)
				for (unsigned int bit = 0; bit < 8; bit++)
					ck_refused(&p, at, *pair_at(&p, at) ^ (uint8_t)(1 << bit));
			/* A trap, a return, an instruction of one byte, a jump over the rest. */
			ck_refused(&p, end, 0xcc);
			ck_refused(&p, end, 0xc3);
			ck_refused(&p, end, 0x50);
			ck_refused(&p, piece[1].new_vaddr - 1, 0xf4);
			if (piece[1].new_vaddr - end >= 2) {
				*pair_at(&p, end) = 0xeb;
				*pair_at(&p, end + 1) = (uint8_t)(piece[1].new_vaddr - end - 2);
				ck_assert(!accepted(&p));
				pair_restore(&p);
			}
			nr++;
		}
		ck_assert_uint_gt(nr, 0);
		pair_free(&p);
	}
}

/* Leads every short branch at the end of a copy to @piece to all bytes from @from to @to. */
static uint32_t try_branches(struct pair *p, const struct mp_map_piece *piece, uint64_t from,
			     uint64_t to)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < p->map->nr_pieces; i++) {
		const struct mp_map_piece *by = &p->map->pieces[i];
		uint64_t end = by->new_vaddr + by->new_size;
		const uint8_t *b = by->new_size >= 2 ? pair_at(p, end - 2) : NULL;

		if (!b || ((b[0] & 0xf0) != 0x70 && b[0] != 0xeb) ||
		    end + (uint64_t)(int64_t)(int8_t)b[1] != piece->new_vaddr)
			continue;
		for (uint64_t at = from; at < to; at++)
			if (at != piece->new_vaddr && (int64_t)(at - end) >= INT8_MIN &&
			    (int64_t)(at - end) <= INT8_MAX) {
				ck_refused(p, end - 1, (uint8_t)(at - end));
				nr++;
			}
	}
	return nr;
}

TEST(verify_refuses_branches_into_nops)
{
	uint32_t nr_stubs = 0, nr_gaps = 0;
	struct pair p;

	build(&p, CONTROL, 0, true, "*:wait=9");
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i];

		if (is_stub(piece)) /* the block behind its nops is a copy that branches may lead to */
			nr_stubs += try_branches(&p, piece, piece->new_vaddr,
						 piece->new_vaddr + piece->new_size);
	}
	pair_free(&p);
	build(&p, CONTROL, 0, true, "*:loop=41");
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i];

		if (is_run_through(&p, i))
			nr_gaps += try_branches(&p, piece + 1, piece->new_vaddr + piece->new_size,
						piece[1].new_vaddr);
	}
	pair_free(&p);
	ck_assert_uint_gt(nr_stubs, 0);
	ck_assert_uint_gt(nr_gaps, 0);
}

/* Replaces the output's map by @map. Return: true if it fits. */
static bool put_map(struct pair *p, const struct mp_map *map)
{
	const struct mp_section *sec = mp_elf_section(p->good, MP_MAP_SECTION);
	struct mp_err err;
	uint8_t *bytes;
	size_t size;
	bool fits;

	if (mp_map_encode(map, &bytes, &size, &err))
		return false;
	fits = size <= sec->size;
	if (fits) {
		memset(p->bytes + sec->off, 0, sec->size);
		memcpy(p->bytes + sec->off, bytes, size);
	}
	free(bytes);
	return fits;
}

TEST(verify_refuses_a_map_that_is_wrong_about_a_stub_that_waits)
{
	uint32_t nr[5] = {0};
	struct mp_map map;
	struct pair p;

	build(&p, CONTROL, 3, false, "*:wait=30");
	map = *p.map;
	map.pieces = malloc((map.nr_pieces + 1) * sizeof(*map.pieces));
	ck_assert_ptr_nonnull(map.pieces);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		for (int way = 0; way < 5 && is_stub(&p.map->pieces[i]); way++) {
			struct mp_map_piece *m = &map.pieces[i];

			map.nr_pieces = p.map->nr_pieces;
			memcpy(map.pieces, p.map->pieces, map.nr_pieces * sizeof(*m));
			switch (way) {
			case 0: m->old_vaddr++; break;
			case 1: m->old_vaddr += m[1].old_size; break;
			case 2: m->old_size = 1; break;
			case 3: m->new_size--; break; /* the last nop is padding */
			default:		      /* all of them are */
				map.nr_pieces--;
				memmove(m, m + 1, (map.nr_pieces - i) * sizeof(*m));
			}
			if (put_map(&p, &map)) {
				ck_assert_msg(!accepted(&p), "stub at %#llx, way %d",
					      (unsigned long long)p.map->pieces[i].new_vaddr, way);
				nr[way]++;
			}
			pair_restore(&p);
		}
	}
	for (int way = 0; way < 5; way++)
		ck_assert_msg(nr[way] > 0, "way %d was not tried", way);
	free(map.pieces);
	pair_free(&p);
}
