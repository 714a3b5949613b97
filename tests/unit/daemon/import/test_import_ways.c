// SPDX-License-Identifier: Apache-2.0
/* test_import_ways - imported ways of branches: which are counted, and the lines of errors. */

#include "daemon/import/import.h"
#include "tests/support/tiny_elf.h"
#include "tests/unit/suite.h"

static char path[256];
static struct md_import *import;

static const uint8_t code[0x10] = {
	0x85, 0xff,		      /* 1000 test edi, edi */
	0x74, 0x02,		      /* 1002 jz 1006 */
	0xeb, 0x00,		      /* 1004 jmp 1006 */
	0x0f, 0x85, 0x00, 0x00, 0, 0, /* 1006 jnz 100c */
	0xc3,			      /* 100c ret */
};

static void setup(void)
{
	const struct tiny_section text = {
		".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof(code), 0, 0,
		0};
	size_t size;
	uint8_t *bytes = tiny_elf_build(&text, 1, NULL, 0, &size);

	ck_assert_ptr_nonnull(bytes);
	ck_assert_int_eq(tiny_elf_write(bytes, size, path), 0);
	free(bytes);
	import = md_import_new();
	err.msg[0] = '\0';
}

static void teardown(void)
{
	md_import_free(import);
	unlink(path);
}

static int run(const char *content, const char *binary)
{
	struct md_lines lines = {.name = "FILE"};
	int r;

	lines.file = fmemopen((void *)(uintptr_t)content, strlen(content), "r");
	ck_assert_ptr_nonnull(lines.file);
	r = md_import_ways(import, &lines, binary, &err);
	fclose(lines.file);
	free(lines.line);
	return r;
}

FIXTURE(setup, teardown);

TEST(ways_count_at_conditional_branches_and_are_added_up)
{
	const struct md_import_module *m;

	ck_assert_int_eq(run("1006 5 0\n0x1002 3 4\n1004 10 0\n1003 1 1\nffffffff 1 0\n1002 0 90\n",
			     path),
			 0);
	ck_assert_uint_eq(import->ways.seen, 5 + 7 + 10 + 2 + 1 + 90);
	ck_assert_uint_eq(import->ways.unfit, 10 + 2 + 1);
	ck_assert_uint_eq(import->ways.counted, 5 + 7 + 90);
	ck_assert_uint_eq(import->nr_modules, 1);
	m = &import->modules[0];
	ck_assert_uint_eq(m->nr_ways, 2);
	ck_assert_uint_eq(m->ways[0].vaddr, 0x1002);
	ck_assert_uint_eq(m->ways[0].taken, 3);
	ck_assert_uint_eq(m->ways[0].fell, 94);
	ck_assert_uint_eq(m->ways[1].vaddr, 0x1006);
	ck_assert_uint_eq(m->ways[1].taken, 5);
	ck_assert_uint_eq(m->ways[1].fell, 0);
	ck_assert_uint_eq(import->ledger.emitted, 0);
}

TEST(ways_have_three_numbers_in_each_line)
{
	static const char *const bad[] = {
		"1002 3",	   "1002 3 4 5", "x 3 4",   "1002 a 4",
		"1002 -3 4",	   "1002  3 4",	 " 1002 3", "1002 3 99999999999999999999",
		"1002 3 4\n\n3 4", "1002 0x3 4", "",	    "1002 3 4 ",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[80];

		snprintf(text, sizeof(text), "1002 1 1\n%s\n", bad[i]);
		ck_assert_msg(run(text, path) == -EBADMSG, "%s", bad[i]);
		ck_assert_msg(strstr(err.msg, "not ADDRESS TAKEN FELL"), "%s", err.msg);
		ck_assert_msg(strstr(err.msg, i == 8 ? "FILE:3" : "FILE:2"), "%s", err.msg);
		teardown();
		setup();
	}
}

TEST(ways_of_another_file_or_too_many_are_refused)
{
	ck_assert_int_eq(run("1000 3 4\n2000 1 1\n", path), -EBADMSG);
	ck_assert_msg(strstr(err.msg, "9 ways are at no conditional branch"), "%s", err.msg);
	ck_assert_int_eq(run("1002 9223372036854775807 1\n", path), -EOVERFLOW);
	ck_assert_int_eq(run("1002 18446744073709551615 1\n", path), -EOVERFLOW);
	ck_assert_int_eq(run("1002 3 4\n", "/nonexistent/file"), -ENOENT);
}
