// SPDX-License-Identifier: Apache-2.0
/*
 * test_object - rewritten objects verify; verify refuses objects in which a relocation, a symbol or
 * code was changed; damaged objects are refused with a message.
 */
#include "tests/unit/suite.h"

#include <errno.h>

#include "editor/layout/plan_all.h"
#include "editor/object/object.h"
#include "editor/verify/object/verify_object.h"
#include "libprof/elf/relobj.h"
#include "tests/support/rewrite.h"

#define DIR "tests/e2e/object/"
#define CXX "g++ -w -std=c++14 -O2 "

enum language {
	C,
	CPP, /* with exception tables */
	NR_LANGUAGES
};

static const char *const objects[NR_LANGUAGES] = {
	[C] = "gcc -O2 -fPIE -c " DIR "hot.c",
	[CPP] = CXX "-fPIE -c tests/e2e/optimize/exceptions.cc",
};
static const char *const programs[NR_LANGUAGES] = {
	[C] = "gcc -O2 -fPIE -pie " DIR "hot.c " DIR "other.c",
	[CPP] = CXX "-fPIE -pie tests/e2e/optimize/exceptions.cc",
};

struct given {
	struct rewrite_bytes object, program;
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	uint8_t *movable;
	struct me_plan made;
	struct me_object_plan plan;
	struct me_bytes output;
};

static int rewrite(const struct given *g, const uint8_t *bytes, size_t size, struct me_bytes *out,
		   struct mp_err *err)
{
	struct me_object_report report = {0};
	int rc = me_object_rewrite(bytes, size, &g->plan, &report, out, err);

	me_object_report_fini(&report);
	return rc;
}

static void given_init(struct given *g, enum language language, uint64_t seed)
{
	struct mp_err err = {""};

	*g = (struct given){0};
	ck_assert(rewrite_compile(objects[language], &g->object) &&
		  rewrite_compile(programs[language], &g->program));
	ck_assert(!mp_elf_open_memory("program", g->program.data, g->program.size, MP_ELF_ALL,
				      &g->elf, &err));
	ck_assert(!mp_cfg_build(g->elf, &(struct mp_cfg_options){0}, &g->cfg, &err));
	g->movable = rewrite_movable(g->cfg);
	ck_assert_ptr_nonnull(g->movable);
	ck_assert(!me_plan_all(g->cfg, g->movable, &seed, &g->made, &err));
	ck_assert(!me_object_plan_init(&g->plan, g->cfg, NULL, &g->made, &err));
	ck_assert_msg(!rewrite(g, g->object.data, g->object.size, &g->output, &err), "%s", err.msg);
}

static void given_fini(struct given *g)
{
	me_bytes_fini(&g->output);
	me_object_plan_fini(&g->plan);
	me_plan_fini(&g->made);
	free(g->movable);
	mp_cfg_free(g->cfg);
	mp_elf_close(g->elf);
	free(g->program.data);
	free(g->object.data);
}

static bool accepted(const struct given *g)
{
	struct mp_err err = {""};
	int rc = me_verify_object(g->object.data, g->object.size, g->output.data, g->output.size,
				  NULL, &err);

	ck_assert(!rc || *err.msg);
	return !rc;
}

START_TEST(object_in_any_order_verifies)
{
	struct given g;

	given_init(&g, (enum language)_i % NR_LANGUAGES, (uint64_t)_i);
	ck_assert(accepted(&g));
	given_fini(&g);
}
END_TEST

/* Relocations of the profile only tell linkers what to put together. */
static bool is_profile(const struct mp_relobj *obj, uint32_t section)
{
	return !strcmp(obj->sections[section].name, ".llvm.call-graph-profile");
}

START_TEST(verify_refuses_every_changed_relocation)
{
	uint32_t nr = 0, passed = 0;
	struct mp_relobj *obj;
	struct mp_err err;
	struct given g;

	given_init(&g, (enum language)_i, 7);
	ck_assert(!mp_relobj_open(g.output.data, g.output.size, &obj, &err));
	for (uint32_t i = 1; i < obj->nr_sections; i++) {
		const Elf64_Shdr *h = &obj->sections[i].header;

		for (uint64_t k = 0; h->sh_type == SHT_RELA && !is_profile(obj, h->sh_info) &&
				     k < h->sh_size / sizeof(Elf64_Rela);
		     k++) {
			uint8_t *addend = g.output.data + h->sh_offset + k * sizeof(Elf64_Rela) +
					  offsetof(Elf64_Rela, r_addend);

			nr++;
			*addend += 1;
			passed += accepted(&g);
			*addend -= 1;
		}
	}
	mp_relobj_free(obj);
	/* Jumps behind calls that do not return, and copies of blocks that no block falls into, are
	 * never executed; nor are types used that no action of a part's exception table names. */
	ck_assert_uint_gt(nr, 60);
	ck_assert_msg(10 * passed <= (_i == C ? 0 : nr), "%u of %u relocations", passed, nr);
	ck_assert(accepted(&g));
	given_fini(&g);
}
END_TEST

START_TEST(verify_refuses_every_moved_symbol)
{
	struct mp_relobj *obj;
	struct mp_err err;
	struct given g;

	given_init(&g, (enum language)_i, 9);
	ck_assert(!mp_relobj_open(g.output.data, g.output.size, &obj, &err));
	for (uint32_t i = 1; i < obj->nr_symbols; i++) {
		uint8_t *value = g.output.data + obj->sections[obj->symtab].header.sh_offset +
				 i * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_value);
		const char *name = mp_relobj_symbol_name(obj, i);

		/* symbols that were added serve debuggers only */
		if (ELF64_ST_TYPE(obj->symbols[i].st_info) != STT_FUNC || strstr(name, ".cold") ||
		    !obj->symbols[i].st_shndx)
			continue;
		*value += 1;
		ck_assert_msg(!accepted(&g), "%s", name);
		*value -= 1;
	}
	mp_relobj_free(obj);
	given_fini(&g);
}
END_TEST

/* The new bytes of .gcc_except_table. */
START_TEST(verify_refuses_changed_exception_tables)
{
	uint32_t refused = 0, nr, section;
	struct mp_relobj *old, *new;
	struct mp_err err;
	struct given g;
	uint8_t *at;

	given_init(&g, CPP, 5);
	ck_assert(!mp_relobj_open(g.object.data, g.object.size, &old, &err));
	ck_assert(!mp_relobj_open(g.output.data, g.output.size, &new, &err));
	section = mp_relobj_section(old, ".gcc_except_table");
	nr = (uint32_t)(new->sections[section].header.sh_size -
			old->sections[section].header.sh_size);
	at = g.output.data + new->sections[section].header.sh_offset +
	     old->sections[section].header.sh_size;
	mp_relobj_free(old);
	mp_relobj_free(new);
	ck_assert_uint_gt(nr, 100);
	for (uint32_t i = 0; i < nr; i++) {
		at[i] ^= 0x01;
		refused += !accepted(&g);
		at[i] ^= 0x01;
	}
	/* Relocated fields, padding, and ends of sites behind their calls have no meaning. */
	ck_assert_msg(10 * refused > 4 * nr, "%u of %u bytes", refused, nr);
	given_fini(&g);
}
END_TEST

START_TEST(verify_refuses_every_changed_unwind_byte_or_finds_the_same_rows)
{
	uint32_t refused = 0, nr = 0;
	struct mp_relobj *obj;
	struct mp_err err;
	struct given g;
	uint8_t *at;

	given_init(&g, (enum language)(_i % 2), 11);
	ck_assert(!mp_relobj_open(g.output.data, g.output.size, &obj, &err));
	at = g.output.data + obj->sections[mp_relobj_section(obj, ".eh_frame")].header.sh_offset;
	nr = (uint32_t)obj->sections[mp_relobj_section(obj, ".eh_frame")].header.sh_size;
	mp_relobj_free(obj);
	for (uint32_t i = 0; i < nr; i++) {
		at[i] ^= 0x05;
		refused += !accepted(&g);
		at[i] ^= 0x05;
	}
	/* Relocated fields and padding have no meaning. */
	ck_assert_msg(10 * refused > 6 * nr, "%u of %u bytes", refused, nr);
	given_fini(&g);
}
END_TEST

START_TEST(object_that_is_damaged_does_no_harm)
{
	uint64_t state = 42 + (uint64_t)_i;
	struct given g;
	uint8_t *copy;

	given_init(&g, (enum language)_i % NR_LANGUAGES, 3);
	copy = malloc(g.object.size);
	ck_assert_ptr_nonnull(copy);
	for (int round = 0; round < 2000; round++) {
		size_t size = g.object.size;
		struct mp_err err = {""};
		struct me_bytes out = {0};
		int rc;

		memcpy(copy, g.object.data, size);
		for (int i = 0; i < 1 + round % 3; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			copy[(state >> 33) % size] = (uint8_t)(state >> 20);
		}
		if (round % 10 == 9)
			size = (state >> 40) % size;
		rc = rewrite(&g, copy, size, &out, &err);
		ck_assert(!rc || *err.msg);
		me_bytes_fini(&out);
		/* And as what verify compares with. */
		rc = me_verify_object(copy, size, g.output.data, g.output.size, NULL, &err);
		ck_assert(!rc || *err.msg);
	}
	free(copy);
	given_fini(&g);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("object");
	TCase *t = tcase_create("object");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, object_in_any_order_verifies, 0, 8);
	tcase_add_loop_test(t, verify_refuses_every_changed_relocation, 0, NR_LANGUAGES);
	tcase_add_loop_test(t, verify_refuses_every_moved_symbol, 0, NR_LANGUAGES);
	tcase_add_test(t, verify_refuses_changed_exception_tables);
	tcase_add_loop_test(t, verify_refuses_every_changed_unwind_byte_or_finds_the_same_rows, 0,
			    NR_LANGUAGES);
	tcase_add_loop_test(t, object_that_is_damaged_does_no_harm, 0, 4);
	suite_add_tcase(s, t);
	return s;
}

MORPH_SUITE_MAIN(suite)
