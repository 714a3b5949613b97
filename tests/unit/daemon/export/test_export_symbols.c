// SPDX-License-Identifier: Apache-2.0
/*
 * test_export_symbols - names of functions: numbers of local symbols, aliases, escapes.
 */

#include "daemon/export/export_symbols.h"
#include "tests/unit/suite.h"

static struct mp_symbol table[] = {
	{.vaddr = 0x100, .name = "same", .type = STT_OBJECT, .bind = STB_LOCAL, .shndx = 1},
	{.vaddr = 0x3000, .name = "same", .type = STT_FUNC, .bind = STB_LOCAL, .shndx = 1},
	{.vaddr = 0x1000, .name = "same", .type = STT_FUNC, .bind = STB_LOCAL, .shndx = 1},
	{.vaddr = 0, .name = "file.c", .type = STT_FILE, .bind = STB_LOCAL, .shndx = SHN_ABS},
	{.vaddr = 0x2000, .name = "alias_of", .type = STT_FUNC, .bind = STB_LOCAL, .shndx = 1},
	{.vaddr = 0x2000, .name = "shown", .type = STT_FUNC, .bind = STB_GLOBAL, .shndx = 1},
	{.vaddr = 0, .name = "missing", .type = STT_FUNC, .bind = STB_GLOBAL, .shndx = SHN_UNDEF},
	{.vaddr = 0x4000, .name = "a b\\c", .type = STT_FUNC, .bind = STB_GLOBAL, .shndx = 1},
	{.vaddr = 0x2000,
	 .name = "shown",
	 .type = STT_FUNC,
	 .bind = STB_GLOBAL,
	 .shndx = 1,
	 .dynamic = true},
	{.vaddr = 0x6000,
	 .name = "exported",
	 .type = STT_FUNC,
	 .bind = STB_GLOBAL,
	 .shndx = 1,
	 .dynamic = true},
};
static struct mp_elf elf = {.symbols = table, .nr_symbols = sizeof(table) / sizeof(table[0])};
static struct md_export_symbols symbols;

static void setup(void)
{
	ck_assert_int_eq(md_export_symbols_init(&symbols, &elf), 0);
}

static void teardown(void)
{
	md_export_symbols_fini(&symbols);
}

static const char *name(uint64_t vaddr)
{
	static char buf[64];

	ck_assert_uint_eq(md_export_symbols_format_bolt(&symbols, vaddr, buf, sizeof(buf)),
			  strlen(buf));
	return buf;
}

FIXTURE(setup, teardown);

TEST(symbols_number_local_names_by_address)
{
	/* The data symbol of this name has a lower address, and BOLT counts it too. */
	ck_assert_str_eq(name(0x1000), "same/2");
	ck_assert_str_eq(name(0x3000), "same/3");
}

TEST(symbols_prefer_the_name_that_others_see)
{
	size_t nr;
	const struct md_export_symbol *at = md_export_symbols_at(&symbols, 0x2000, &nr);

	ck_assert_str_eq(name(0x2000), "shown");
	/* The copy in .dynsym is not an additional name. */
	ck_assert_uint_eq(nr, 2);
	ck_assert_str_eq(at[0].symbol->name, "shown");
	ck_assert_str_eq(at[1].symbol->name, "alias_of");
	ck_assert_uint_eq(at[0].nr_same, 0);
}

TEST(symbols_tell_which_names_are_shared)
{
	size_t nr;
	const struct md_export_symbol *a = md_export_symbols_at(&symbols, 0x1000, &nr);
	const struct md_export_symbol *b = md_export_symbols_at(&symbols, 0x3000, &nr);
	const struct md_export_symbol *c = md_export_symbols_at(&symbols, 0x2000, &nr);

	ck_assert_uint_eq(a->nr_same, 1);
	ck_assert_uint_eq(b->nr_same, 1);
	ck_assert_uint_eq(a->name, b->name);
	ck_assert_uint_ne(a->name, c->name);
	ck_assert_uint_lt(c->name, symbols.nr_names);
}

TEST(symbols_escape_blanks_as_fdata_does)
{
	char small[4];

	ck_assert_str_eq(name(0x4000), "a\\ b\\\\c");
	/*
	 * If the buffer is too small, the result is the needed length, and nothing is written
	 * beyond the end.
	 */
	ck_assert_uint_eq(md_export_symbols_format_bolt(&symbols, 0x4000, small, 4), 7);
}

TEST(symbols_name_what_has_none)
{
	size_t nr = 9;

	ck_assert_str_eq(name(0x5000), "__BOLT_FDE_FUNCat5000");
	ck_assert_ptr_null(md_export_symbols_at(&symbols, 0x5000, &nr));
	ck_assert_uint_eq(nr, 0);
	/* Data symbols are no functions. */
	ck_assert_ptr_null(md_export_symbols_at(&symbols, 0x100, &nr));
}

TEST(symbols_of_dynsym_are_unknown_to_bolt)
{
	size_t nr;

	/* llvm-bolt 19 names functions by .symtab and by FDEs; a stripped file has only FDEs. */
	ck_assert_str_eq(name(0x6000), "__BOLT_FDE_FUNCat6000");
	ck_assert_ptr_nonnull(md_export_symbols_at(&symbols, 0x6000, &nr));
	ck_assert_uint_eq(nr, 1);
}
