// SPDX-License-Identifier: Apache-2.0
/*
 * test_unowned_samples - samples in code outside of all functions, reported by stretch, with
 * size and symbol.
 */
#include "editor/evidence/unowned_samples.h"

#include "tests/unit/edit_fixture.h"
#include "tests/unit/suite.h"

#define FUNC(name, body)                                                                           \
	".type " name ", @function\n" name ": .cfi_startproc\n" body " .cfi_endproc\n"             \
	".size " name ", .-" name "\n"

/* Behind f: 6 bytes without a name, then 5 with a label of size 0; g; 1 byte at the end. */
#define SOURCE                                                                                        \
	".globl start\n" FUNC("start", " hlt\n")                                                      \
		FUNC("f", " mov $1, %eax\n ret\n") " mov $2, %eax\n ret\nlabel: mov $3, %eax\n" FUNC( \
			"g", " ret\n") " ret\n"

FIXTURE(NULL, fixture_done);

TEST(outside_names_each_stretch_once)
{
	AUTO(me_unowned_samples_fini) struct me_unowned_samples_list list = {0};
	uint64_t gap, g;

	fixture_compile(&f, "assembler", "-nostdlib -Wl,-e,start -pie", SOURCE);
	fixture_read(&f);
	gap = fixture_vaddr(&f, "f") + 6;
	g = fixture_vaddr(&f, "g");
	{
		const struct mp_ip_count counts[] = {
			{.vaddr = gap - 6, .count = 1000}, /* in f itself */
			{.vaddr = gap, .count = 3},	   {.vaddr = gap + 5, .count = 4},
			{.vaddr = gap + 6, .count = 20},   {.vaddr = g, .count = 1000},
			{.vaddr = g + 1, .count = 1},
		};

		ck_assert_int_eq(me_unowned_samples_find(f.cfg, counts, 6, &list), 0);
	}
	ck_assert_uint_eq(list.nr, 3);
	ck_assert_uint_eq(list.samples, 28);
	ck_assert_uint_eq(list.list[0].vaddr, gap + 6);
	ck_assert_uint_eq(list.list[0].size, 5);
	ck_assert_uint_eq(list.list[0].samples, 20);
	ck_assert_str_eq(list.list[0].near, "label");
	ck_assert_uint_eq(list.list[0].offset, 0);
	ck_assert_uint_eq(list.list[1].vaddr, gap);
	ck_assert_uint_eq(list.list[1].size, 6);
	ck_assert_uint_eq(list.list[1].samples, 7);
	ck_assert_str_eq(list.list[1].near, "f");
	ck_assert_uint_eq(list.list[1].offset, 6);
	ck_assert_uint_eq(list.list[2].vaddr, g + 1);
	ck_assert_uint_eq(list.list[2].size, 1);
	ck_assert_str_eq(list.list[2].near, "g");
}

/* Without a symbol there is no name; without samples there is no entry. */
TEST(outside_has_no_name_where_there_is_none)
{
	struct me_unowned_samples_list list;
	struct mp_ip_count count = {.count = 9};

	fixture_compile(&f, "assembler", "-nostdlib -Wl,-e,start -pie -s", SOURCE);
	fixture_read(&f);
	count.vaddr = f.elf->ehdr.e_entry + 1 + 6 + 3;
	ck_assert_int_eq(me_unowned_samples_find(f.cfg, &count, 1, &list), 0);
	ck_assert_uint_eq(list.nr, 1);
	ck_assert_ptr_null(list.list[0].near);
	ck_assert_uint_eq(list.list[0].size, 11);
	me_unowned_samples_fini(&list);
	ck_assert_int_eq(me_unowned_samples_find(f.cfg, NULL, 0, &list), 0);
	ck_assert_uint_eq(list.nr, 0);
}
