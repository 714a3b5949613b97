// SPDX-License-Identifier: Apache-2.0
/*
 * test_verify_marker - a copy may lack what serves only code markers, and no other instruction.
 * Each forgery is a whole output, made by the editor's own stages, whose copies lack one
 * instruction.
 */
#include "tests/unit/suite.h"

#include "editor/layout/plan_all.h"
#include "editor/marker/slice.h"
#include "editor/verify/verify.h"
#include "tests/support/rewrite.h"
#include "tests/unit/edit_fixture.h"

static void build_of(struct fixture *f, const char *source, const char *flags, bool relocs)
{
	struct rewrite_bytes file;
	char command[256];
	struct mp_err err = {""};

	memset(f, 0, sizeof(*f));
	snprintf(command, sizeof(command), "gcc %s -I. %s tests/data/%s", flags,
		 relocs ? "-Wl,--emit-relocs" : "", source);
	ck_assert(rewrite_compile(command, &file));
	/* The bytes live as long as the test's process. */
	ck_assert_int_eq(
		mp_elf_open_memory("marker", file.data, file.size, MP_ELF_ALL, &f->elf, &err), 0);
	ck_assert_int_eq(mp_cfg_build(f->elf, NULL, &f->cfg, &err), 0);
}

static void build(struct fixture *f, const char *flags, bool relocs)
{
	build_of(f, "marker.c", flags, relocs);
}

static void find_slices(const struct fixture *f, struct me_slices *slices)
{
	struct me_markers markers;
	struct mp_err err = {""};

	ck_assert_int_eq(me_markers_find(f->elf, &markers, &err), 0);
	ck_assert_int_eq(me_slices_find(f->cfg, &markers, NULL, slices, &err), 0);
	me_markers_fini(&markers);
}

static bool is_in(const struct me_slices *slices, uint64_t vaddr)
{
	for (uint32_t i = 0; i < slices->nr_insns; i++)
		if (slices->insns[i].vaddr == vaddr)
			return true;
	return false;
}

/* Makes an output whose copies lack [@vaddr, @vaddr + @len), and verifies it. */
static int forge(const struct mp_elf *elf, uint64_t vaddr, uint32_t len,
		 struct me_verify_report *report, struct mp_err *err)
{
	const uint64_t cuts[] = {vaddr, vaddr + len};
	struct mp_cfg_options options = {.cuts = cuts, .nr_cuts = 2};
	struct mp_elf *output;
	struct me_emitted emitted;
	struct rewrite_bytes bytes;
	struct me_plan plan;
	struct mp_cfg *cfg;
	uint8_t *movable;
	uint32_t nr = 0;
	int rc;

	ck_assert_int_eq(mp_cfg_build(elf, &options, &cfg, err), 0);
	movable = rewrite_movable(cfg);
	ck_assert_ptr_nonnull(movable);
	ck_assert_int_eq(me_plan_all(cfg, movable, NULL, &plan, err), 0);
	for (uint32_t i = 0; i < plan.nr_blocks; i++) {
		const struct mp_block *block = &cfg->blocks[plan.blocks[i].block];

		plan.blocks[i].left_out = block->vaddr == vaddr && block->term == MP_TERM_FALL;
		nr += plan.blocks[i].left_out;
	}
	ck_assert_uint_eq(nr, 1);
	ck_assert_msg(rewrite_emit(cfg, &plan, &emitted, err) == 0, "%s", err->msg);
	bytes = rewrite_flatten(&emitted.output);
	ck_assert_int_eq(
		mp_elf_open_memory("forged", bytes.data, bytes.size, MP_ELF_ALL, &output, err), 0);
	rc = me_verify(elf, output, report, err);
	mp_elf_close(output);
	free(bytes.data);
	me_emitted_fini(&emitted);
	me_plan_fini(&plan);
	free(movable);
	mp_cfg_free(cfg);
	return rc;
}

/* Calls forge() for each instruction of @name that ends no block. */
static void forge_all(const struct fixture *f, const char *name, const struct me_slices *slices,
		      uint32_t *nr_accepted, uint32_t *nr_refused)
{
	for (uint32_t b = 0; b < f->cfg->nr_blocks; b++) {
		const struct mp_block *block = &f->cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(f->elf, block->vaddr, block->size);
		uint32_t end = block->size - block->term_len;
		struct mp_insn insn;

		if (strcmp(f->cfg->funcs[block->func].name, name))
			continue;
		for (uint32_t off = 0; off < end; off += insn.len) {
			uint64_t at = block->vaddr + off;
			struct me_verify_report report;
			struct mp_err err = {""};
			int rc;

			ck_assert_int_eq(mp_insn_decode(bytes + off, end - off, at, &insn), 0);
			if (insn.kind != MP_INSN_OTHER || insn.nop || insn.endbr64)
				continue;
			rc = forge(f->elf, at, insn.len, &report, &err);
			ck_assert_msg(rc == (is_in(slices, at) ? 0 : -EBADMSG), "%s %#llx: %d %s",
				      name, (unsigned long long)at, rc, err.msg);
			ck_assert_uint_eq(report.nr_needed, rc ? 1 : 0);
			*(rc ? nr_refused : nr_accepted) += 1;
		}
	}
}

TEST(verify_refuses_a_copy_without_an_instruction_that_is_no_markers)
{
	uint32_t nr_accepted = 0, nr_refused = 0;
	struct me_slices slices;
	struct fixture f;

	build(&f, "-O2", true);
	find_slices(&f, &slices);
	forge_all(&f, "collatz", &slices, &nr_accepted, &nr_refused);
	forge_all(&f, "hash", &slices, &nr_accepted, &nr_refused);
	forge_all(&f, "main", &slices, &nr_accepted, &nr_refused);
	ck_assert_uint_ge(nr_accepted, 3);
	ck_assert_uint_gt(nr_refused, 30);
	me_slices_fini(&slices);
	fixture_free(&f);
}

/* Which increments may go depends on the flags that the next instruction replaces. */
TEST(verify_refuses_a_copy_without_an_increment_whose_flags_may_be_used)
{
	uint32_t nr_accepted = 0, nr_refused = 0, nr_go = 0, nr_stay = 0;
	struct me_markers markers;
	struct me_slices slices;
	struct fixture f;
	struct mp_err err = {""};

	build_of(&f, "marker_flags.c", "-O2", true);
	find_slices(&f, &slices);
	ck_assert_int_eq(me_markers_find(f.elf, &markers, &err), 0);
	for (uint32_t i = 0; i < slices.nr_accesses; i++) {
		const struct me_slice_access *a = &slices.accesses[i];
		const char *name = markers.list[a->marker].name + strlen(ME_MARKER_PREFIX);
		bool goes = a->stays == ME_SLICE_GOES;

		if (strncmp(name, "goes_", 5) && strncmp(name, "stays_", 6))
			continue;
		ck_assert_msg(goes == !strncmp(name, "goes_", 5), "%s", name);
		*(goes ? &nr_go : &nr_stay) += 1;
		forge_all(&f, name, &slices, &nr_accepted, &nr_refused);
	}
	ck_assert_uint_eq(nr_go, 8);
	ck_assert_uint_eq(nr_stay, 8);
	ck_assert_uint_ge(nr_accepted, nr_go);
	ck_assert_uint_ge(nr_refused, 2 * (nr_go + nr_stay));
	me_markers_fini(&markers);
	me_slices_fini(&slices);
	fixture_free(&f);
}

/* The linker puts cold parts in front of all other code. */
TEST(slices_are_in_the_order_of_addresses)
{
	struct me_slices slices;
	struct fixture f;

	build_of(&f, "marker_flags.c", "-O2", true);
	find_slices(&f, &slices);
	ck_assert_uint_gt(slices.nr_insns, 2);
	for (uint32_t i = 1; i < slices.nr_insns; i++)
		ck_assert_uint_lt(slices.insns[i - 1].vaddr, slices.insns[i].vaddr);
	for (uint32_t i = 1; i < slices.nr_accesses; i++)
		ck_assert_uint_lt(slices.accesses[i - 1].vaddr, slices.accesses[i].vaddr);
	me_slices_fini(&slices);
	fixture_free(&f);
}

/* A variable with a marker's name that no compiler listed, and that the program reads. */
TEST(verify_refuses_a_copy_without_an_access_of_a_marker_that_is_read)
{
	struct me_markers markers;
	struct me_slices slices;
	struct fixture f;
	struct mp_err err = {""};
	uint32_t nr = 0;

	build(&f, "-O2", true);
	find_slices(&f, &slices);
	ck_assert_int_eq(me_markers_find(f.elf, &markers, &err), 0);
	for (uint32_t i = 0; i < slices.nr_accesses; i++) {
		const struct me_slice_access *a = &slices.accesses[i];
		bool own = !strcmp(markers.list[a->marker].name, ME_MARKER_PREFIX "own");

		ck_assert_int_eq(a->stays != ME_SLICE_GOES, own);
		nr += own;
	}
	ck_assert_uint_ge(nr, 2);
	me_markers_fini(&markers);
	me_slices_fini(&slices);
	fixture_free(&f);
}

/* Without the linker's relocations, not all references are known. */
TEST(nothing_is_left_out_of_a_file_without_relocations)
{
	struct me_slices slices;
	struct fixture f;

	build(&f, "-O2", false);
	find_slices(&f, &slices);
	ck_assert_uint_gt(slices.nr_accesses, 0);
	ck_assert_uint_eq(slices.nr_insns, 0);
	me_slices_fini(&slices);
	fixture_free(&f);
}

TEST(places_of_markers_are_read_from_their_section)
{
	struct me_marker_place place;
	struct fixture f;

	build(&f, "-O1", true);
	ck_assert(me_marker_find_place(f.elf, "__morph_marker_hash", &place));
	ck_assert_int_eq(strncmp(place.file, "tests/data/marker.c", (size_t)place.file_len), 0);
	ck_assert_int_gt(place.line, 10);
	ck_assert(me_marker_find_place(f.elf, "__morph_marker_hash.lto_priv.0", &place));
	ck_assert(!me_marker_find_place(f.elf, "__morph_marker_own", &place));
	ck_assert(!me_marker_find_place(f.elf, "__morph_marker_has", &place));
	fixture_free(&f);
}
