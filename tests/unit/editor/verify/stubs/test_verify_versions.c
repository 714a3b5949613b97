// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_versions - a branch of one version must not lead to the other version, nor past a
 * stub that ends a timing, even if the program would do the same. Version A's own jump tables lead
 * where the original's do, and only switches name them.
 */
#include "tests/unit/suite.h"

#include <errno.h>

#include "libprof/note/audit_table.h"
#include "tests/unit/verify_pair.h"

struct place {
	uint32_t function;
	uint8_t version;
};

static bool place_of(const struct mp_audit_table *table, uint64_t vaddr, struct place *out)
{
	for (uint32_t f = 0; f < table->nr_funcs; f++)
		for (uint32_t i = 0; i < table->funcs[f].nr_ranges; i++) {
			const struct mp_audited_range *range =
				&table->ranges[table->funcs[f].first_range + i];

			if (vaddr - range->vaddr < range->size) {
				*out = (struct place){f, range->version};
				return true;
			}
		}
	return false;
}

/* The piece, of a stub or not, of the same code in another version, to which a branch may lead. */
static const struct mp_map_piece *other_of(const struct pair *p, const struct mp_audit_table *table,
					   const struct mp_map_piece *piece)
{
	struct place a, b;

	ck_assert(place_of(table, piece->new_vaddr, &a));
	for (uint32_t i = 0; i < p->map->nr_pieces; i++) {
		const struct mp_map_piece *other = &p->map->pieces[i];

		/* Only the stub before an exit leads to it. */
		if (i && other->old_size && !other[-1].old_size &&
		    other[-1].old_vaddr == other->old_vaddr)
			continue;
		if (other->old_vaddr == piece->old_vaddr && other->old_size == piece->old_size &&
		    other->new_size && place_of(table, other->new_vaddr, &b) &&
		    b.function == a.function && b.version != a.version)
			return other;
	}
	return NULL;
}

static const struct mp_map_piece *piece_at(const struct pair *p, uint64_t vaddr)
{
	for (uint32_t i = 0; i < p->map->nr_pieces; i++)
		if (p->map->pieces[i].new_vaddr == vaddr && p->map->pieces[i].new_size)
			return &p->map->pieces[i];
	return NULL;
}

/* The displacement, of 4 bytes, of the last instruction of @piece. *@to: where it leads. */
static uint8_t *last_branch(struct pair *p, const struct mp_map_piece *piece, uint64_t *to)
{
	uint64_t end = piece->new_vaddr + piece->new_size;
	int32_t disp;
	uint8_t *b;

	if (!piece->old_size || piece->new_size < 6)
		return NULL;
	b = pair_at(p, end - 6);
	if (b[1] != 0xe9 && (b[0] != 0x0f || (b[1] & 0xf0) != 0x80))
		return NULL;
	memcpy(&disp, b + 2, sizeof(disp));
	*to = end + (uint64_t)(int64_t)disp;
	return b + 2;
}

static void lead(uint8_t *field, uint64_t from, uint64_t to)
{
	int32_t disp;

	memcpy(&disp, field, sizeof(disp));
	disp += (int32_t)(to - from);
	memcpy(field, &disp, sizeof(disp));
}

static void spoil_branches(uint64_t seed, uint32_t *nr_mixed, uint32_t *nr_past)
{
	struct mp_audit_table *table;
	struct mp_err err;
	struct pair p;

	pair_make(&p, "g++ -O2 -s tests/data/mutants.cc", seed, PAIR_AUDITS);
	ck_assert(p.report.kind == ME_KIND_AUDIT);
	ck_assert_int_eq(mp_audit_table_read(p.good, &table, &err), 0);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i], *at, *other;
		struct place from, to_place;
		uint64_t to;
		uint8_t *field = last_branch(&p, piece, &to);

		if (!field || !place_of(table, piece->new_vaddr, &from) ||
		    !place_of(table, to, &to_place) || from.function != to_place.function)
			continue;
		ck_assert_uint_eq(from.version, to_place.version);
		at = piece_at(&p, to);
		other = at ? other_of(&p, table, at) : NULL;
		if (other) {
			lead(field, to, other->new_vaddr);
			pair_refused(&p, "one version of an audited function leads to the other");
			++*nr_mixed;
		}
		if (at && !at->old_size) {
			ck_assert_uint_eq(at[1].old_vaddr, at->old_vaddr);
			lead(field, to, at[1].new_vaddr);
			pair_refused(&p, "instead of");
			++*nr_past;
		}
	}
	mp_audit_table_free(table);
	pair_free(&p);
}

TEST(verify_refuses_branches_to_the_other_version_and_past_stubs)
{
	uint32_t nr_mixed = 0, nr_past = 0;

	for (uint64_t seed = 1; seed < 6; seed++)
		spoil_branches(seed, &nr_mixed, &nr_past);
	ck_assert_uint_gt(nr_mixed, 5);
	ck_assert_uint_gt(nr_past, 1);
}

/* Every bit of the tables that version A has for itself matters. */
static void flip_bits_of_tables(const char *command, uint64_t seed)
{
	const struct mp_section *sec;
	struct pair p;

	pair_make(&p, command, seed, PAIR_AUDITS);
	sec = mp_elf_section(p.good, ".morph.tables");
	ck_assert_ptr_nonnull(sec);
	ck_assert_uint_gt(sec->size, 16);
	for (uint64_t at = sec->vaddr; at < sec->vaddr + sec->size; at++) {
		uint8_t *byte = pair_at(&p, at);

		for (int bit = 0; bit < 8; bit++) {
			*byte ^= (uint8_t)(1 << bit);
			pair_refused(&p, "");
		}
	}
	pair_free(&p);
}

TEST(verify_refuses_changed_tables_of_a_version)
{
	flip_bits_of_tables("g++ -O2 -s tests/data/mutants.cc", 0);
	flip_bits_of_tables("g++ -O2 -s tests/data/mutants.cc", 3);
	flip_bits_of_tables("g++ -O2 -Wl,--emit-relocs tests/data/mutants.cc", 1);
	flip_bits_of_tables("g++ -O2 -fno-pie -no-pie tests/data/mutants.cc", 1);
	flip_bits_of_tables("g++ -O2 -fno-pie -no-pie -Wl,--emit-relocs tests/data/mutants.cc", 2);
}

/* Let each `lea' of a copy load the address of a version's table instead. */
TEST(verify_refuses_other_operands_that_name_a_versions_table)
{
	const struct mp_section *sec;
	struct mp_audit_table *table;
	struct mp_err err;
	uint32_t nr = 0;
	struct pair p;

	pair_make(&p, "gcc -O2 -fPIE -pie tests/data/version_names.c", 1, PAIR_AUDITS);
	ck_assert_int_eq(mp_audit_table_read(p.good, &table, &err), 0);
	sec = mp_elf_section(p.good, ".morph.tables");
	ck_assert_ptr_nonnull(sec);
	for (uint32_t i = 0; i < p.map->nr_pieces; i++) {
		const struct mp_map_piece *piece = &p.map->pieces[i];
		struct place place;

		if (!piece->old_size || !place_of(table, piece->new_vaddr, &place))
			continue;
		for (uint64_t at = piece->new_vaddr; at + 7 <= piece->new_vaddr + piece->new_size;
		     at++) {
			uint8_t *b = pair_at(&p, at);
			int32_t disp;

			memcpy(&disp, b + 3, sizeof(disp));
			if (b[0] != 0x48 || b[1] != 0x8d || (b[2] & 0xc7) != 5 ||
			    at + 7 + (uint64_t)(int64_t)disp == sec->vaddr)
				continue;
			lead(b + 3, at + 7 + (uint64_t)(int64_t)disp, sec->vaddr);
			pair_refused(&p, "");
			nr++;
		}
	}
	ck_assert_uint_gt(nr, 4);
	mp_audit_table_free(table);
	pair_free(&p);
}
