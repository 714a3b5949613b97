// SPDX-License-Identifier: Apache-2.0
/*
 * personality: a routine without a name is known by its code and by its tables, and by nothing
 * less; the reader and verify find that out each on its own.
 */
#include "tests/suite.h"

#include <errno.h>

#include "tests/support/compile.h"
#include "tests/verify_pair.h"

#define STATIC "g++ -w -O2 -static tests/data/exceptions.cc"
#define CXX    "__gxx_personality_v0"
#define C      "__gcc_personality_v0"

/* The move of minus the class of C++ exceptions, as GCC's runtime has it. */
static const uint8_t class_move[] = {0x48, 0xb8, 0x00, 0xd5, 0xd4, 0xbc, 0xbc, 0xaa, 0xb1, 0xb8};

static struct mp_elf *read_memory(const uint8_t *bytes, size_t size)
{
	struct mp_err err = {""};
	struct mp_elf *elf;

	ck_assert_msg(!mp_elf_open_memory("changed", bytes, size, MP_ELF_ALL, &elf, &err), "%s",
		      err.msg);
	return elf;
}

static uint32_t nr_named(const struct mp_elf *elf, const char *name)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < elf->nr_fdes; i++)
		nr += elf->fdes[i].personality_name &&
		      !strncmp(elf->fdes[i].personality_name, name, strlen(name));
	return nr;
}

/* The static program, without symbols or with: opened, and its bytes. */
static struct mp_elf *build(const char *flags, uint8_t **bytes)
{
	struct mp_err err = {""};
	struct mp_elf *elf;
	char path[256];

	ck_assert_int_eq(compile_run("g++", flags, "tests/data/exceptions.cc", path), 0);
	ck_assert_msg(!mp_elf_open(path, MP_ELF_ALL, &elf, &err), "%s", err.msg);
	unlink(path);
	*bytes = malloc(elf->size);
	ck_assert_ptr_nonnull(*bytes);
	memcpy(*bytes, elf->data, elf->size);
	return elf;
}

static uint8_t *at(const struct mp_elf *elf, uint8_t *bytes, uint64_t vaddr)
{
	uint64_t off;

	ck_assert(mp_elf_vaddr_to_off(elf, vaddr, &off));
	return bytes + off;
}

/* Change the class of exceptions wherever the code has it. */
static uint32_t change_class(uint8_t *bytes, size_t size)
{
	uint8_t *p = bytes;
	uint32_t nr = 0;

	while ((p = memmem(p, size - (size_t)(p - bytes), class_move, sizeof(class_move)))) {
		p[6] ^= 1;
		nr++;
	}
	return nr;
}

START_TEST(personality_without_a_name_is_what_it_is_with_one)
{
	struct mp_elf *with, *without;
	uint8_t *bytes, *stripped;

	with = build("-w -O2 -static", &bytes);
	without = build("-w -O2 -static -s", &stripped);
	ck_assert_uint_eq(with->nr_fdes, without->nr_fdes);
	ck_assert_uint_gt(nr_named(with, CXX), 10);
	ck_assert_uint_gt(nr_named(with, C), 1);
	for (uint32_t i = 0; i < with->nr_fdes; i++) {
		const char *a = with->fdes[i].personality_name;
		const char *b = without->fdes[i].personality_name;

		ck_assert_uint_eq(!a, !b);
		ck_assert(!a || !strncmp(a, b, strlen(b)));
	}
	mp_elf_close(with);
	mp_elf_close(without);
	free(bytes);
	free(stripped);
}
END_TEST

START_TEST(personality_that_asks_for_another_class_is_not_known)
{
	struct mp_elf *elf, *changed;
	uint8_t *bytes;

	elf = build("-w -O2 -static -s", &bytes);
	if (!change_class(bytes, elf->size))
		MORPH_SKIP("the runtime has the class elsewhere");
	changed = read_memory(bytes, elf->size);
	ck_assert_uint_eq(nr_named(changed, CXX), 0);
	ck_assert_uint_eq(nr_named(changed, C), nr_named(elf, C));
	mp_elf_close(changed);
	mp_elf_close(elf);
	free(bytes);
}
END_TEST

/* One table of many that reads as no table of C++, or of C. */
START_TEST(personality_with_a_table_of_another_kind_is_not_known)
{
	const char *name = _i ? C : CXX;
	struct mp_elf *elf, *changed;
	uint8_t *bytes, *table = NULL;

	elf = build("-w -O2 -static -s", &bytes);
	for (uint32_t i = 0; i < elf->nr_fdes && !table; i++)
		if (elf->fdes[i].lsda && elf->fdes[i].personality_name &&
		    !strcmp(elf->fdes[i].personality_name, name))
			table = at(elf, bytes, elf->fdes[i].lsda);
	ck_assert_ptr_nonnull(table);
	ck_assert_uint_eq(table[0], 0xff);
	/* How call sites are encoded, behind the types' place, where there are types. */
	table += 2;
	while (table[-1] != 0xff && *table++ & 0x80)
		;
	ck_assert_uint_eq(*table, 1);
	*table = 0x31;
	changed = read_memory(bytes, elf->size);
	ck_assert_uint_eq(nr_named(changed, name), 0);
	ck_assert_uint_gt(nr_named(changed, _i ? CXX : C), 0);
	mp_elf_close(changed);
	mp_elf_close(elf);
	free(bytes);
}
END_TEST

/* Verify's own reading: original and output agree, but the routine is nobody's. */
START_TEST(verify_asks_the_routine_itself_for_what_it_is)
{
	struct mp_elf *original, *output;
	struct mp_err err = {""};
	uint8_t *bytes;
	struct pair p;
	int rc;

	pair_build_stock(&p, STATIC, 1);
	ck_assert_uint_gt(p.report.nr_landing_pads, 10);
	bytes = malloc(p.original->size);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, p.original->data, p.original->size);
	if (!change_class(bytes, p.original->size))
		MORPH_SKIP("the runtime has the class elsewhere");
	ck_assert_uint_gt(change_class(p.bytes, p.size), 0);
	original = read_memory(bytes, p.original->size);
	output = read_memory(p.bytes, p.size);
	/* The map names the one that it was made of. */
	original->id = p.original->id;
	rc = me_verify(original, output, NULL, &err);
	ck_assert_int_eq(rc, -EBADMSG);
	ck_assert_msg(strstr(err.msg, "unknown personality"), "%s", err.msg);
	mp_elf_close(original);
	mp_elf_close(output);
	free(bytes);
	pair_free(&p);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("personality");
	TCase *t = tcase_create("personality");

	tcase_set_timeout(t, 120);
	if (compile_has("g++")) {
		tcase_add_test(t, personality_without_a_name_is_what_it_is_with_one);
		tcase_add_test(t, personality_that_asks_for_another_class_is_not_known);
		tcase_add_loop_test(t, personality_with_a_table_of_another_kind_is_not_known, 0, 2);
		tcase_add_test(t, verify_asks_the_routine_itself_for_what_it_is);
	}
	suite_add_tcase(s, t);
	return s;
}

MORPH_SUITE_MAIN(suite)
