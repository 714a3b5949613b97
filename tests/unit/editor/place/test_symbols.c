// SPDX-License-Identifier: Apache-2.0
/* test_symbols - .symtab and .strtab of an output, for moved functions and all others. */
#include "tests/unit/suite.h"

#include "editor/place/symbols.h"
#include "tests/unit/edit_fixture.h"

#define TEXT_INDEX 77
#define START	   ".globl start\nstart: .cfi_startproc\n hlt\n .cfi_endproc\n"
#define FUNC(name, body)                                                                           \
	".type " name ", @function\n" name ": .cfi_startproc\n" body " .cfi_endproc\n"             \
	".size " name ", .-" name "\n"
#define ASM "-nostdlib -Wl,-e,start"
#define SOURCE                                                                                     \
	START ".globl f\n.globl alias\n.type alias, @function\n.set alias, f\n" FUNC(              \
		"f", " test %edi, %edi\n je 1f\n mov $1, %eax\n ret\n1: mov $2, %eax\n ret\n")     \
		FUNC("stays", " ret\n") FUNC("local", " ret\n") ".data\n.globl d\nd: .quad 0\n"

struct table {
	struct me_symbols out;
	uint16_t *index;
};

/* Adds ten to section indexes, which shows the ones that were renumbered. */
static int try_build(struct fixture *f, struct mp_section *symtab, struct mp_section *strtab,
		     struct table *t, struct mp_err *err)
{
	t->index = calloc(f->elf->nr_sections + 1, sizeof(*t->index));
	ck_assert_ptr_nonnull(t->index);
	for (uint32_t i = 1; i < f->elf->nr_sections; i++)
		t->index[i] = (uint16_t)(i + 10);
	return me_symbols_build(f->cfg, &f->placement, f->elf, symtab, strtab, t->index, TEXT_INDEX,
				&t->out, err);
}

static void build(struct fixture *f, struct table *t)
{
	struct mp_section symtab = *mp_elf_section(f->elf, ".symtab");
	struct mp_section strtab = *mp_elf_section(f->elf, ".strtab");

	fixture_place(f);
	ck_assert_msg(try_build(f, &symtab, &strtab, t, &err) == 0, "%s", err.msg);
}

static void table_free(struct table *t)
{
	me_symbols_fini(&t->out);
	free(t->index);
}

static uint32_t nr_symbols(const struct table *t)
{
	return (uint32_t)(t->out.symtab_size / sizeof(Elf64_Sym));
}

static Elf64_Sym symbol(const struct table *t, uint32_t i)
{
	Elf64_Sym sym;

	memcpy(&sym, t->out.symtab + i * sizeof(sym), sizeof(sym));
	return sym;
}

static const char *name_of(const struct table *t, uint32_t i)
{
	return (const char *)t->out.strtab + symbol(t, i).st_name;
}

/* Return: number of symbols called @name; *@out is the last one. */
static uint32_t find(const struct table *t, const char *name, Elf64_Sym *out)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < nr_symbols(t); i++) {
		if (strcmp(name_of(t, i), name))
			continue;
		*out = symbol(t, i);
		nr++;
	}
	return nr;
}

FIXTURE(NULL, fixture_done);

TEST(symbols_name_the_copy_and_what_was_left_behind)
{
	const struct mp_symbol *old;
	AUTO(table_free) struct table t = {0};
	Elf64_Sym sym;

	fixture_build(&f, "assembler", ASM, SOURCE);
	fixture_plan(&f, "f", 0);
	fixture_plan(&f, "f", 1);
	build(&f, &t);
	old = fixture_symbol(&f, "f");
	ck_assert_uint_eq(find(&t, "f", &sym), 1);
	ck_assert_uint_eq(sym.st_value, f.placement.base);
	ck_assert_uint_eq(sym.st_size, f.placement.end - f.placement.base);
	ck_assert_uint_eq(sym.st_shndx, TEXT_INDEX);
	ck_assert_uint_eq(ELF64_ST_BIND(sym.st_info), STB_GLOBAL);
	ck_assert_uint_eq(find(&t, "f.morph.old", &sym), 1);
	ck_assert_uint_eq(sym.st_value, old->vaddr);
	ck_assert_uint_eq(sym.st_size, old->size);
	ck_assert_uint_eq(sym.st_shndx, old->shndx + 10);
	ck_assert_uint_eq(sym.st_info, ELF64_ST_INFO(STB_LOCAL, STT_FUNC));
	ck_assert_uint_eq(find(&t, "f.morph.warm", &sym), 0);
}

TEST(symbols_name_the_warm_run)
{
	AUTO(table_free) struct table t = {0};
	Elf64_Sym sym;

	fixture_build(&f, "assembler", ASM, SOURCE);
	fixture_plan(&f, "f", 0);
	fixture_plan(&f, "local", 0);
	fixture_plan(&f, "f", 2)->zone = ME_ZONE_WARM;
	build(&f, &t);
	ck_assert_uint_eq(find(&t, "f", &sym), 1);
	ck_assert_uint_eq(sym.st_size, fixture_copy_of(&f, "f", 0)->new_size);
	ck_assert_uint_eq(find(&t, "f.morph.warm", &sym), 1);
	ck_assert_uint_eq(sym.st_value, fixture_copy_of(&f, "f", 2)->new_vaddr);
	ck_assert_uint_eq(sym.st_size, fixture_copy_of(&f, "f", 2)->new_size);
	ck_assert_uint_eq(sym.st_shndx, TEXT_INDEX);
	ck_assert_uint_eq(find(&t, "local.morph.warm", &sym), 0);
}

/* Only a part of the function is hot: the name still belongs to the part with the entry. */
TEST(symbols_name_the_run_of_the_entry)
{
	AUTO(table_free) struct table t = {0};
	Elf64_Sym sym;

	fixture_build(&f, "assembler", ASM, SOURCE);
	fixture_plan(&f, "f", 2);
	fixture_plan(&f, "f", 0)->zone = ME_ZONE_WARM;
	fixture_plan(&f, "f", 1)->zone = ME_ZONE_WARM;
	build(&f, &t);
	ck_assert_uint_eq(find(&t, "f", &sym), 1);
	ck_assert_uint_eq(sym.st_value, fixture_copy_of(&f, "f", 0)->new_vaddr);
	ck_assert_uint_eq(sym.st_size, f.placement.end - sym.st_value);
	ck_assert_uint_eq(find(&t, "f.morph.hot", &sym), 1);
	ck_assert_uint_eq(sym.st_value, fixture_copy_of(&f, "f", 2)->new_vaddr);
	ck_assert_uint_eq(sym.st_size, fixture_copy_of(&f, "f", 2)->new_size);
	ck_assert_uint_eq(find(&t, "f.morph.warm", &sym), 0);
}

TEST(symbols_move_every_alias_and_add_once)
{
	AUTO(table_free) struct table t = {0};
	Elf64_Sym f_sym, alias, extra;

	fixture_build(&f, "assembler", ASM, SOURCE);
	fixture_plan_all(&f, "f");
	build(&f, &t);
	ck_assert_uint_eq(find(&t, "f", &f_sym), 1);
	ck_assert_uint_eq(find(&t, "alias", &alias), 1);
	ck_assert_uint_eq(f_sym.st_value, f.placement.base);
	ck_assert_uint_eq(alias.st_value, f.placement.base);
	ck_assert_uint_eq(find(&t, "f.morph.old", &extra) + find(&t, "alias.morph.old", &extra), 1);
}

/* Rust's traces leave such a suffix out, so they name old code and copies as the original. */
TEST_EACH(symbols_of_rust_have_a_suffix_of_llvm, 2)
{
	static const char *const names[] = {"_RNvCs1_1p4deep", "_ZN1p4deep17h0123456789abcdefE"};
	char source[640], old[64];
	AUTO(table_free) struct table t = {0};
	Elf64_Sym sym;

	snprintf(
		source, sizeof(source),
		".globl start\nstart: hlt\n.globl %s\n.type %s, @function\n%s: .cfi_startproc\n ret\n"
		" .cfi_endproc\n.size %s, . - %s\n"
		".globl main\n.type main, @function\nmain: .cfi_startproc\n ret\n .cfi_endproc\n"
		".size main, . - main\n",
		names[_i], names[_i], names[_i], names[_i], names[_i]);
	fixture_build(&f, "assembler", ASM, source);
	fixture_plan_all(&f, names[_i]);
	fixture_plan_all(&f, "main");
	build(&f, &t);
	snprintf(old, sizeof(old), "%s.llvm.0", names[_i]);
	ck_assert_uint_eq(find(&t, names[_i], &sym), 1);
	ck_assert_uint_eq(find(&t, old, &sym), 1);
	/* They print other names as they are. */
	ck_assert_uint_eq(find(&t, "main", &sym), 2);
	ck_assert_uint_eq(find(&t, "main.morph.old", &sym), 0);
}

TEST(symbols_put_locals_before_globals)
{
	AUTO(table_free) struct table t = {0};
	const struct mp_section *symtab;

	fixture_build(&f, "assembler", ASM, SOURCE);
	fixture_plan_all(&f, "f");
	fixture_plan_all(&f, "local");
	build(&f, &t);
	symtab = mp_elf_section(f.elf, ".symtab");
	ck_assert_uint_eq(nr_symbols(&t), symtab->size / sizeof(Elf64_Sym) + 2);
	ck_assert_uint_eq(t.out.nr_locals, symtab->info + 2);
	for (uint32_t i = 0; i < nr_symbols(&t); i++)
		ck_assert_int_eq(ELF64_ST_BIND(symbol(&t, i).st_info) == STB_LOCAL,
				 i < t.out.nr_locals);
	ck_assert_uint_eq(symbol(&t, 0).st_shndx, SHN_UNDEF);
	ck_assert_uint_eq(symbol(&t, 0).st_name, 0);
}

TEST(symbols_keep_all_else_but_section_numbers)
{
	AUTO(table_free) struct table t = {0};
	uint32_t at = 0;

	fixture_build(&f, "assembler", ASM, SOURCE);
	fixture_plan_all(&f, "f");
	build(&f, &t);
	for (uint32_t i = 0; i < nr_symbols(&t); i++) {
		const struct mp_section *symtab = mp_elf_section(f.elf, ".symtab");
		Elf64_Sym now = symbol(&t, i), old;

		if (strstr(name_of(&t, i), ".morph."))
			continue;
		memcpy(&old, f.elf->data + symtab->off + at++ * sizeof(old), sizeof(old));
		ck_assert_uint_eq(now.st_name, old.st_name);
		ck_assert_uint_eq(now.st_info, old.st_info);
		ck_assert_uint_eq(now.st_other, old.st_other);
		if (now.st_shndx == TEXT_INDEX)
			continue;
		ck_assert_uint_eq(now.st_value, old.st_value);
		ck_assert_uint_eq(now.st_size, old.st_size);
		if (old.st_shndx == SHN_UNDEF || old.st_shndx >= SHN_LORESERVE)
			ck_assert_uint_eq(now.st_shndx, old.st_shndx);
		else
			ck_assert_uint_eq(now.st_shndx, old.st_shndx + 10);
	}
	ck_assert_uint_eq(at, mp_elf_section(f.elf, ".symtab")->size / sizeof(Elf64_Sym));
}

TEST(symbols_refuse_damaged_tables)
{
	struct mp_section symtab, strtab;
	struct table t;

	fixture_build(&f, "assembler", ASM, SOURCE);
	fixture_plan_all(&f, "f");
	fixture_place(&f);
	for (int i = 0; i < 4; i++) {
		symtab = *mp_elf_section(f.elf, ".symtab");
		strtab = *mp_elf_section(f.elf, ".strtab");
		switch (i) {
		case 0: strtab.size = 0; break;
		case 1: strtab.size--; break; /* ends within a name */
		case 2: symtab.info = (uint32_t)(symtab.size / sizeof(Elf64_Sym)) + 1; break;
		case 3: strtab.size = 1; break; /* names lie behind its end */
		}
		ck_assert_msg(try_build(&f, &symtab, &strtab, &t, &err) == -EBADMSG, "case %d", i);
		ck_assert_ptr_nonnull(strstr(err.msg, ".symtab"));
		table_free(&t);
	}
}
