// SPDX-License-Identifier: Apache-2.0
/* test_copies - where copies lead: into which patches, and when they are retired. */
#include "daemon/live/copies.h"
#include "libprof/insn/insn.h"
#include "libprof/note/map.h"
#include "tests/support/rewrite.h"
#include "tests/unit/program.h"

static struct rewrite_bytes bytes;
static struct mp_elf *output;
static struct md_changes changes;
static struct md_copies copies;

static void setup(void)
{
	program_build("-O2", "tests/e2e/live/work.c");
	ck_assert(rewrite_all(elf, NULL, &bytes));
	ck_assert_msg(!mp_elf_open_memory("output", bytes.data, bytes.size, MP_ELF_SYMBOLS, &output,
					  &err),
		      "%s", err.msg);
	/* Where the new segment is; which patches there are does not matter here. */
	for (uint32_t i = 0; i < output->nr_phdrs; i++) {
		const Elf64_Phdr *p = &output->phdrs[i];

		if (p->p_type == PT_LOAD && p->p_vaddr > changes.segment_vaddr)
			changes = (struct md_changes){.segment_vaddr = p->p_vaddr,
						      .segment_off = p->p_offset,
						      .segment_size = p->p_memsz};
	}
	ck_assert_msg(!md_copies_read(elf, output, &changes, &copies, &err), "%s", err.msg);
}

static void teardown(void)
{
	md_copies_fini(&copies);
	mp_elf_close(output);
	free(bytes.data);
	program_free();
}

FIXTURE(setup, teardown);

TEST(copies_that_lead_into_a_patch_are_found)
{
	uint64_t patch;
	const struct md_changes other = {.patches = &patch, .nr_patches = 1};

	ck_assert_uint_gt(copies.nr_exits, 0);
	/* No copy leads to the first bytes of the file. */
	patch = 0;
	ck_assert_uint_eq(md_copies_find_cut(&copies, &other), 0);
	for (size_t i = 0; i < copies.nr_exits; i++) {
		const uint64_t to = copies.exits[i];

		for (patch = to - MD_PATCH_SIZE + 1; patch < to; patch++)
			ck_assert_uint_ne(md_copies_find_cut(&copies, &other), 0);
	}
}

/* Patches at any place: the search finds one exactly if reading all copies does. */
TEST(the_search_finds_what_reading_finds)
{
	const struct mp_section *text = mp_elf_section(elf, ".text");
	uint64_t patch, cut = 1;
	const struct md_changes other = {.patches = &patch, .nr_patches = 1}, none = {0};
	size_t nr_cut = 0, nr_not = 0;

	ck_assert_ptr_nonnull(text);
	for (patch = text->vaddr; patch < text->vaddr + text->size; patch++) {
		uint64_t want = md_copies_find_cut(&copies, &other);

		ck_assert_int_eq(md_copies_search_cut(elf, output, &changes, &other, &cut, &err),
				 0);
		ck_assert_int_eq(!cut, !want);
		ck_assert(!cut || md_changes_inside(&other, cut));
		nr_cut += !!cut;
		nr_not += !cut;
	}
	ck_assert_uint_gt(nr_cut, 0);
	ck_assert_uint_gt(nr_not, 0);
	ck_assert_int_eq(md_copies_search_cut(elf, output, &changes, &none, &cut, &err), 0);
	ck_assert_uint_eq(cut, 0);
}

/* A call of a retired copy, and the original's. */
static void check_call(uint64_t vaddr, const uint8_t *call, uint64_t old)
{
	struct mp_insn now, was;

	ck_assert_int_eq(mp_insn_decode(call, 5, vaddr, &now), 0);
	ck_assert_int_eq(mp_insn_decode(mp_elf_bytes(elf, old, 5), 5, old, &was), 0);
	ck_assert_int_eq(now.kind, MP_INSN_CALL);
	ck_assert_int_eq(was.kind, MP_INSN_CALL);
	ck_assert_uint_eq(now.target, was.target);
	ck_assert(mp_elf_is_code(elf, now.target));
}

TEST(retired_copies_call_what_the_original_calls)
{
	struct mp_map *map;
	size_t nr = 0;

	ck_assert_msg(!mp_map_read(output, &map, &err), "%s", err.msg);
	for (size_t i = 0; i < copies.nr_pages; i++) {
		const struct md_live_page *p = &copies.pages[i];
		const uint8_t *own = copies.own + p->at, *retired = copies.retired + p->at;

		/* Own bytes are the file's. */
		ck_assert_int_eq(memcmp(own, output->data + p->off,
					output->size - p->off < 4096 ? output->size - p->off
								     : 4096),
				 0);
		for (uint32_t k = 0; k < MD_LIVE_PAGE; k++) {
			uint64_t vaddr = p->vaddr + k;

			if (own[k] == retired[k])
				continue;
			/* The first byte that differs is one of a displacement; its call is at most four bytes before. */
			for (uint32_t back = 1; back <= 4; back++)
				if (k >= back && own[k - back] == 0xe8 &&
				    retired[k - back] == 0xe8) {
					uint64_t call = vaddr - back;
					uint32_t piece = mp_map_piece_at(map, call);

					ck_assert_uint_lt(piece, map->nr_pieces);
					check_call(call, retired + k - back,
						   map->pieces[piece].old_vaddr +
							   (call - map->pieces[piece].new_vaddr));
					nr++;
					k += 4 - back;
					break;
				}
		}
	}
	ck_assert_uint_gt(nr, 0);
	ck_assert_uint_le(nr, copies.nr_calls);
	mp_map_free(map);
}
