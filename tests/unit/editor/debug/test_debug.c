// SPDX-License-Identifier: Apache-2.0
/*
 * test_debug - parts of rewriting debug information, and damaged input. tests/e2e compares
 * complete results.
 */

#include "editor/debug/debug.h"
#include "editor/debug/read/debug_abbrev.h"
#include "editor/debug/read/debug_form.h"
#include "editor/debug/debug_moves.h"
#include "tests/unit/edit_fixture.h"
#include "tests/unit/suite.h"

#define SOURCE                                                                                     \
	"int side;\n"                                                                              \
	"static inline __attribute__((always_inline)) int in(int x) { return x * 3 + side; }\n"    \
	"__attribute__((noinline)) int f(int a) { int s = 0;\n"                                    \
	"	for (int i = 0; i < a; i++) { s += in(i); if (s > 99) side++; }\n"                       \
	"	return s; }\n"                                                                           \
	"int main(int c, char **v) { (void)v; return f(c); }\n"

static void moves_of(struct fixture *f, struct me_moves *moves)
{
	fixture_place(f);
	ck_assert_int_eq(me_moves_init(moves, f->cfg, &f->placement), 0);
}

TEST(moves_know_where_each_instruction_went)
{
	struct me_moves moves;
	struct fixture f;
	uint64_t vaddr;

	fixture_build(&f, "c", "-O1", SOURCE);
	fixture_plan_all(&f, "f");
	moves_of(&f, &moves);
	ck_assert_uint_gt(moves.nr, 1);
	for (uint32_t i = 0; i < f.placement.nr_copies; i++) {
		const struct me_copy *copy = &f.placement.copies[i];

		if (!copy->new_size)
			continue;
		ck_assert(me_moves_address(&moves, f.cfg->blocks[copy->block].vaddr, &vaddr));
		ck_assert_uint_eq(vaddr, copy->new_vaddr);
	}
	ck_assert(!me_moves_address(&moves, fixture_vaddr(&f, "main"), &vaddr));
	ck_assert(!me_moves_any(&moves, 0, UINT64_MAX));
	ck_assert(
		!me_moves_any_uncopied(&moves, fixture_vaddr(&f, "f"), fixture_vaddr(&f, "f") + 1));
	me_moves_fini(&moves);
	fixture_free(&f);
}

TEST(moves_tell_what_stayed_behind)
{
	const struct mp_symbol *sym;
	struct me_moves moves;
	struct fixture f;

	fixture_build(&f, "c", "-O1", SOURCE);
	fixture_plan(&f, "f", 0);
	moves_of(&f, &moves);
	sym = fixture_symbol(&f, "f");
	ck_assert(me_moves_any_uncopied(&moves, sym->vaddr, sym->vaddr + sym->size));
	ck_assert(me_moves_any(&moves, sym->vaddr, sym->vaddr + 1));
	me_moves_fini(&moves);
	fixture_free(&f);
}

TEST(a_range_becomes_those_of_its_copies)
{
	struct me_ranges ranges = {0};
	const struct mp_symbol *sym;
	struct me_moves moves;
	struct fixture f;

	fixture_build(&f, "c", "-O1", SOURCE);
	fixture_plan_all(&f, "f");
	moves_of(&f, &moves);
	sym = fixture_symbol(&f, "f");
	me_moves_map(&moves, sym->vaddr, sym->vaddr + sym->size, &ranges);
	me_ranges_join(&ranges, 0);
	/* In the original order, adjacent. */
	ck_assert_uint_ge(ranges.nr, 1);
	ck_assert_uint_eq(ranges.ranges[0].lo, f.placement.base);
	ck_assert_uint_eq(ranges.ranges[ranges.nr - 1].hi, f.placement.end);
	ranges.nr = 0;
	me_moves_map(&moves, sym->vaddr, sym->vaddr + 1, &ranges);
	ck_assert_uint_eq(ranges.nr, 1);
	ck_assert_uint_eq(ranges.ranges[0].hi - ranges.ranges[0].lo, 1);
	me_ranges_fini(&ranges);
	me_moves_fini(&moves);
	fixture_free(&f);
}

/* Code 1: a unit; 2: low_pc addr, high_pc data8; 3: low_pc addrx, high_pc data4. */
static const uint8_t abbrev_bytes[] = {
	1, DW_TAG_compile_unit,	 1, DW_AT_low_pc, DW_FORM_addr,	 DW_AT_high_pc, DW_FORM_data8, 0, 0,
	2, DW_TAG_lexical_block, 0, DW_AT_low_pc, DW_FORM_addr,	 DW_AT_high_pc, DW_FORM_data8, 0, 0,
	3, DW_TAG_subprogram,	 0, DW_AT_low_pc, DW_FORM_addrx, DW_AT_high_pc, DW_FORM_data4, 0, 0,
	0,
};

TEST(abbreviations_keep_the_size_of_entries)
{
	struct me_abbrevs t, now;
	struct me_bytes out = {0};
	struct me_abbrev *a;

	ck_assert_int_eq(me_abbrevs_read(abbrev_bytes, sizeof(abbrev_bytes), 0, 5, &t), 0);
	me_abbrevs_begin(&t, 5);
	ck_assert_int_eq(me_abbrevs_find(&t, 2)->change, ME_ABBREV_BOTH);
	ck_assert_int_eq(me_abbrevs_find(&t, 3)->change, ME_ABBREV_BOTH);
	for (uint64_t code = 1; code <= 3; code++)
		me_abbrevs_find(&t, code)->used = me_abbrevs_find(&t, code)->touched = true;
	me_abbrev_choose_own(&t, me_abbrevs_find(&t, 1), 5);
	me_abbrevs_choose(&t);
	ck_assert_uint_eq(me_abbrevs_find(&t, 1)->new_code, 0);
	ck_assert_uint_eq(me_abbrevs_find(&t, 2)->new_code, 4);
	ck_assert_uint_eq(me_abbrevs_find(&t, 3)->new_code, 5);
	me_abbrevs_write(&t, 5, &out);
	ck_assert(!out.failed);
	ck_assert_int_eq(me_abbrevs_read(out.data, out.size, 0, 5, &now), 0);
	ck_assert_uint_eq(now.nr, 5);
	/* The unit keeps low_pc; ranges and a filler replace high_pc. */
	a = me_abbrevs_find(&now, 1);
	ck_assert_uint_eq(a->nr_attrs, 3);
	ck_assert_uint_eq(now.attrs[a->first_attr].name, DW_AT_low_pc);
	ck_assert_uint_eq(now.attrs[a->first_attr + 1].name, DW_AT_ranges);
	ck_assert_uint_eq(now.attrs[a->first_attr + 1].form, DW_FORM_sec_offset);
	ck_assert_uint_eq(now.attrs[a->first_attr + 2].form, DW_FORM_block1);
	/* The old codes remain for unchanged entries. */
	ck_assert_int_eq(me_abbrevs_find(&now, 2)->size, 16);
	ck_assert_uint_eq(me_abbrevs_find(&now, 4)->nr_attrs, 2);
	me_abbrevs_fini(&now);
	me_abbrevs_fini(&t);
	me_bytes_fini(&out);
}

/* As assemblers write them. 1: a unit, low_pc addr, high_pc udata; 2: a label; 3: has a list. */
static const uint8_t narrow_bytes[] = {
	1,
	DW_TAG_compile_unit,
	1,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_udata,
	0,
	0,
	2,
	DW_TAG_label,
	0,
	DW_AT_low_pc,
	DW_FORM_addr,
	0,
	0,
	3,
	DW_TAG_lexical_block,
	0,
	DW_AT_ranges,
	DW_FORM_sec_offset,
	0,
	0,
	0,
};

TEST(a_unit_without_lists_needs_no_base)
{
	struct me_abbrevs t;
	struct me_abbrev *own;

	ck_assert_int_eq(me_abbrevs_read(narrow_bytes, sizeof(narrow_bytes), 0, 5, &t), 0);
	own = me_abbrevs_find(&t, 1);
	me_abbrevs_begin(&t, 5);
	own->used = me_abbrevs_find(&t, 2)->used = true;
	me_abbrev_choose_own(&t, own, 5);
	ck_assert_int_eq(own->change, ME_ABBREV_BOTH);
	me_abbrevs_begin(&t, 5);
	own->used = me_abbrevs_find(&t, 3)->used = true;
	me_abbrev_choose_own(&t, own, 5);
	ck_assert_int_eq(own->change, ME_ABBREV_NONE);
	me_abbrevs_begin(&t, 3);
	own->used = true;
	me_abbrev_choose_own(&t, own, 3);
	ck_assert_int_eq(own->change, ME_ABBREV_NONE);
	me_abbrevs_fini(&t);
}

TEST(abbreviations_end_within_their_section)
{
	struct me_abbrevs t;

	for (size_t size = 0; size < sizeof(abbrev_bytes); size++)
		ck_assert_int_eq(me_abbrevs_read(abbrev_bytes, size, 0, 5, &t), -EBADMSG);
	ck_assert_int_eq(me_abbrevs_read(abbrev_bytes, sizeof(abbrev_bytes), 1000, 5, &t),
			 -EBADMSG);
}

TEST(filler_covers_what_is_left)
{
	uint8_t field[12];
	struct mp_cursor c = {.p = field, .end = field + sizeof(field)};

	memset(field, 0xee, sizeof(field));
	me_abbrev_fill(field, sizeof(field), 0x1234);
	ck_assert_uint_eq(mp_cursor_u32(&c), 0x1234);
	me_form_skip(&c, DW_FORM_block1, 5);
	ck_assert(!c.bad);
	ck_assert_ptr_eq(c.p, c.end);
}

static int emit(struct fixture *f, struct me_emitted *emitted)
{
	struct mp_err err = {""};
	int rc = rewrite_emit(f->cfg, &f->plan, emitted, &err);

	ck_assert_msg(rc == 0, "%s", err.msg);
	return rc;
}

TEST(no_debug_information_no_new_sections)
{
	struct me_emitted emitted;
	struct fixture f;

	fixture_build(&f, "c", "-O1", SOURCE);
	fixture_plan_all(&f, "f");
	emit(&f, &emitted);
	ck_assert(!emitted.debug.present);
	ck_assert_uint_eq(emitted.debug.nr_units, 0);
	me_emitted_fini(&emitted);
	fixture_free(&f);
}

/* Changes every byte of .debug_*, one at a time: nothing may fail. */
TEST_EACH(damage_fails_nothing, 16)
{
	static const char *const flags[] = {"-O2 -g -gdwarf-4", "-O2 -g -gdwarf-5"};
	static const char *const sections[] = {".debug_info",	  ".debug_abbrev",   ".debug_line",
					       ".debug_ranges",	  ".debug_rnglists", ".debug_loc",
					       ".debug_loclists", ".debug_aranges"};
	const char *name = sections[_i % 8];
	const struct mp_section *s;
	struct fixture f;

	fixture_build(&f, "c", flags[_i / 8], SOURCE);
	fixture_plan_all(&f, "f");
	s = mp_elf_section(f.elf, name);
	for (uint64_t off = 0; s && off < s->size; off++) {
		const uint8_t *was = f.elf->data;
		uint8_t *copy = malloc(f.elf->size);
		struct me_emitted emitted;

		ck_assert_ptr_nonnull(copy);
		memcpy(copy, was, f.elf->size);
		copy[s->off + off] ^= off % 3 ? 0xff : 0x01;
		f.elf->data = copy;
		emit(&f, &emitted);
		ck_assert(emitted.debug.present);
		me_emitted_fini(&emitted);
		f.elf->data = was;
		free(copy);
	}
	fixture_free(&f);
}
