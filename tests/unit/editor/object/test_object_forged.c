// SPDX-License-Identifier: Apache-2.0
/*
 * test_object_forged - objects that were thought out to pass verification and to be linked to another
 * program: each differs from a good object in one place that another check could take for proved.
 */
#include "tests/unit/suite.h"

#include <errno.h>
#include <string.h>

#include "editor/base/bytes.h"
#include "editor/verify/object/verify_object.h"
#include "libprof/elf/relobj.h"
#include "tests/support/rewrite.h"

#define SOURCE "tests/data/object_forged.S"

/* An object in parts, to be changed and written again. */
struct forged {
	struct {
		Elf64_Shdr header;
		struct me_bytes data;
	} sections[40];
	uint32_t nr, names, symtab, strings;
	Elf64_Ehdr header;
};

static void forged_open(struct forged *f, const struct rewrite_bytes *from)
{
	struct mp_relobj *obj;
	struct mp_err err;

	memset(f, 0, sizeof(*f));
	ck_assert(!mp_relobj_open(from->data, from->size, &obj, &err) && obj->nr_sections < 30);
	f->header = obj->header;
	f->nr = obj->nr_sections;
	f->names = obj->header.e_shstrndx;
	f->symtab = obj->symtab;
	f->strings = obj->sections[obj->symtab].header.sh_link;
	for (uint32_t i = 0; i < f->nr; i++) {
		f->sections[i].header = obj->sections[i].header;
		if (obj->sections[i].data)
			me_bytes_put(&f->sections[i].data, obj->sections[i].data,
				     obj->sections[i].header.sh_size);
	}
	mp_relobj_free(obj);
}

static void forged_write(struct forged *f, struct me_bytes *to)
{
	to->size = 0;
	me_bytes_put(to, &f->header, sizeof(f->header));
	for (uint32_t i = 1; i < f->nr; i++) {
		me_bytes_align(to, 16);
		f->sections[i].header.sh_offset = to->size;
		if (f->sections[i].header.sh_type == SHT_NOBITS)
			continue;
		f->sections[i].header.sh_size = f->sections[i].data.size;
		me_bytes_put(to, f->sections[i].data.data, f->sections[i].data.size);
	}
	me_bytes_align(to, 8);
	f->header.e_shoff = to->size;
	f->header.e_shnum = (uint16_t)f->nr;
	for (uint32_t i = 0; i < f->nr; i++)
		me_bytes_put(to, &f->sections[i].header, sizeof(Elf64_Shdr));
	memcpy(to->data, &f->header, sizeof(f->header));
}

static void forged_fini(struct forged *f)
{
	for (uint32_t i = 0; i < f->nr; i++)
		me_bytes_fini(&f->sections[i].data);
}

static uint32_t add_name(struct forged *f, uint32_t table, const char *name)
{
	uint32_t at = (uint32_t)f->sections[table].data.size;

	me_bytes_put(&f->sections[table].data, name, strlen(name) + 1);
	return at;
}

static uint32_t section(const struct forged *f, const char *name)
{
	for (uint32_t i = 1; i < f->nr; i++)
		if (!strcmp((const char *)f->sections[f->names].data.data +
				    f->sections[i].header.sh_name,
			    name))
			return i;
	ck_abort_msg("no section %s", name);
}

static Elf64_Sym *symbols(struct forged *f)
{
	return (Elf64_Sym *)f->sections[f->symtab].data.data;
}

static uint32_t symbol(struct forged *f, const char *name)
{
	for (uint32_t i = 1; i < f->sections[f->symtab].data.size / sizeof(Elf64_Sym); i++)
		if (!strcmp((const char *)f->sections[f->strings].data.data + symbols(f)[i].st_name,
			    name))
			return i;
	ck_abort_msg("no symbol %s", name);
}

static uint32_t add_section(struct forged *f, const char *name, uint32_t type, uint64_t flags)
{
	f->sections[f->nr].header = (Elf64_Shdr){.sh_name = add_name(f, f->names, name),
						 .sh_type = type,
						 .sh_flags = flags,
						 .sh_addralign = 1};
	return f->nr++;
}

static uint32_t relocs_of(struct forged *f, uint32_t of)
{
	uint32_t i;

	for (i = 1; i < f->nr; i++)
		if (f->sections[i].header.sh_type == SHT_RELA &&
		    f->sections[i].header.sh_info == of)
			return i;
	i = add_section(f, ".rela", SHT_RELA, SHF_INFO_LINK);
	f->sections[i].header.sh_info = of;
	f->sections[i].header.sh_link = f->symtab;
	f->sections[i].header.sh_entsize = sizeof(Elf64_Rela);
	return i;
}

/* Behind all others of the section. */
static void add_reloc(struct forged *f, uint32_t of, uint64_t off, uint32_t type, uint32_t target,
		      int64_t addend)
{
	const Elf64_Rela r = {off, ELF64_R_INFO((uint64_t)target, type), addend};

	me_bytes_put(&f->sections[relocs_of(f, of)].data, &r, sizeof(r));
}

/* The relocation number @nr of the section. */
static Elf64_Rela *reloc(struct forged *f, uint32_t of, uint32_t nr)
{
	return (Elf64_Rela *)f->sections[relocs_of(f, of)].data.data + nr;
}

/* A local symbol, behind the others; numbers in relocations change. */
static uint32_t add_local(struct forged *f, const char *name, uint8_t type, uint16_t in,
			  uint64_t value)
{
	struct me_bytes old = f->sections[f->symtab].data, *now = &f->sections[f->symtab].data;
	uint32_t at = f->sections[f->symtab].header.sh_info++;
	const Elf64_Sym added = {.st_name = add_name(f, f->strings, name),
				 .st_info = ELF64_ST_INFO(STB_LOCAL, type),
				 .st_shndx = in,
				 .st_value = value};

	*now = (struct me_bytes){0};
	me_bytes_put(now, old.data, at * sizeof(added));
	me_bytes_put(now, &added, sizeof(added));
	me_bytes_put(now, old.data + at * sizeof(added), old.size - at * sizeof(added));
	me_bytes_fini(&old);
	for (uint32_t i = 1; i < f->nr; i++) {
		Elf64_Rela *r = (Elf64_Rela *)f->sections[i].data.data;

		if (f->sections[i].header.sh_type != SHT_RELA)
			continue;
		for (size_t k = 0; k < f->sections[i].data.size / sizeof(*r); k++)
			if (ELF64_R_SYM(r[k].r_info) >= at)
				r[k].r_info += UINT64_C(1) << 32;
	}
	return at;
}

static uint8_t *code(struct forged *f, const char *function, uint32_t off)
{
	const Elf64_Sym *s = &symbols(f)[symbol(f, function)];

	return f->sections[s->st_shndx].data.data + s->st_value + off;
}

static uint64_t place(struct forged *f, const char *function, uint32_t off)
{
	return symbols(f)[symbol(f, function)].st_value + off;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void nothing(struct forged *f)
{
	(void)f;
}

/* The linker applies both; the last one counts. */
static void second_reloc(struct forged *f)
{
	add_reloc(f, section(f, ".text"), place(f, "branches", 11), R_X86_64_PLT32,
		  symbol(f, "another"), -4);
}

static void reloc_of_condition(struct forged *f)
{
	add_reloc(f, section(f, ".text"), place(f, "branches", 3), R_X86_64_8, 0, 0x75);
}

static void reloc_of_jump(struct forged *f)
{
	add_reloc(f, section(f, ".text"), place(f, "branches", 15), R_X86_64_8, 0, 0xc3);
}

static void reloc_of_eight_bytes(struct forged *f)
{
	reloc(f, section(f, ".text"), 1)->r_info =
		ELF64_R_INFO((uint64_t)symbol(f, "another"), R_X86_64_64);
}

/* Its first half lies in padding. */
static void reloc_of_bytes_before(struct forged *f)
{
	add_reloc(f, section(f, ".text"), place(f, "slide", 0) - 4, R_X86_64_64, 0, 0);
}

static void address_for_distance(struct forged *f)
{
	add_reloc(f, section(f, ".text"), place(f, "branches", 6), R_X86_64_32, 1,
		  (int64_t)place(f, "callee", 0));
}

static void indirect_function(struct forged *f)
{
	uint32_t s = add_local(f, "indirect", STT_GNU_IFUNC, (uint16_t)section(f, ".text"),
			       place(f, "callee", 0));

	add_reloc(f, section(f, ".text"), place(f, "branches", 6), R_X86_64_PLT32, s, -4);
}

static void by_name(struct forged *f)
{
	reloc(f, section(f, ".data"), 0)->r_info =
		ELF64_R_INFO((uint64_t)symbol(f, "twin"), R_X86_64_64);
}

/* Another function of the same name. */
static void by_name_of_another(struct forged *f)
{
	uint32_t s =
		add_local(f, "twin", STT_FUNC, (uint16_t)section(f, ".text"), place(f, "slide", 0));

	by_name(f);
	reloc(f, section(f, ".data"), 0)->r_info = ELF64_R_INFO((uint64_t)s, R_X86_64_64);
}

static void added_init(struct forged *f)
{
	uint32_t s = add_section(f, ".init", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR);

	me_bytes_put(&f->sections[s].data, "\xe8\0\0\0", 5);
	add_reloc(f, s, 1, R_X86_64_PLT32, symbol(f, "another"), -4);
}

static void renamed_text(struct forged *f)
{
	f->sections[section(f, ".text")].header.sh_name = add_name(f, f->names, ".init");
}

static void gap_in_array(struct forged *f)
{
	f->sections[section(f, ".init_array")].header.sh_addralign = 4096;
}

/* The program would need so many bytes. */
static void gap_before_code(struct forged *f)
{
	f->sections[section(f, ".text")].header.sh_addralign = UINT64_C(1) << 40;
}

static void constant_in_code(struct forged *f)
{
	*code(f, "constant", 3) = 0x91;
}

static void behind_breakpoint(struct forged *f)
{
	*code(f, "slide", 3) = 0x56;
}

static void behind_no_ops(struct forged *f)
{
	*code(f, "slide", 5001) = 0x56;
}

/* `restore' of the return address, which is "not saved" for libgcc. */
static void restored(struct forged *f)
{
	uint32_t frame = section(f, ".eh_frame");

	f->sections[frame].data.data[reloc(f, frame, 3)->r_offset + 9] = 0xd0;
}

static void early_end(struct forged *f)
{
	me_bytes_u32(&f->sections[section(f, ".eh_frame")].data, 0);
}

static void no_frame_bytes(struct forged *f)
{
	f->sections[section(f, ".eh_frame")].header.sh_type = SHT_NOBITS;
	f->sections[relocs_of(f, section(f, ".eh_frame"))].data.size = 0;
}

static void reloc_of_cie_pointer(struct forged *f)
{
	uint32_t frame = section(f, ".eh_frame");

	add_reloc(f, frame, reloc(f, frame, 0)->r_offset - 4, R_X86_64_32, 0, 0);
}

static void reloc_of_program(struct forged *f)
{
	uint32_t frame = section(f, ".eh_frame");

	add_reloc(f, frame, reloc(f, frame, 6)->r_offset + 4, R_X86_64_8, 0, 0);
}

static void no_table(struct forged *f)
{
	Elf64_Rela *r = reloc(f, section(f, ".eh_frame"), 6);

	r->r_info = ELF64_R_INFO(ELF64_R_SYM(r->r_info), R_X86_64_NONE);
}

/* The landing pad of a table behind the old ones. */
static void reloc_of_pad(struct forged *f)
{
	uint32_t s = section(f, ".gcc_except_table");
	uint64_t at = f->sections[s].data.size;
	uint8_t copy[8];

	memcpy(copy, f->sections[s].data.data, 8);
	me_bytes_put(&f->sections[s].data, copy, 8);
	f->sections[s].header.sh_addralign = 4;
	reloc(f, section(f, ".eh_frame"), 6)->r_addend = (int64_t)at;
	add_reloc(f, s, at + 6, R_X86_64_8, 0, 0);
}

/* A call leads to a faithful copy of the function, a pointer to one with another landing pad. */
static void whole_twice(struct forged *f)
{
	uint32_t text = section(f, ".text"), frame = section(f, ".eh_frame");
	struct me_bytes *to = &f->sections[text].data, *rows = &f->sections[frame].data;
	Elf64_Rela start = *reloc(f, frame, 8), table = *reloc(f, frame, 9);
	uint64_t fde = start.r_offset - 8, at = to->size, off = rows->size;
	uint8_t copy[64];

	memcpy(copy, code(f, "whole", 0), 15);
	me_bytes_put(to, copy, 15);
	add_reloc(f, text, at + 2, R_X86_64_PLT32, symbol(f, "other"), -4);
	*code(f, "calls", 1) = (uint8_t)(at - place(f, "calls", 2));
	*code(f, "whole", 9) ^= 1;
	memcpy(copy, rows->data + fde, 0x24);
	me_bytes_put(rows, copy, 0x24);
	me_bytes_patch_u32(rows, off + 4, (uint32_t)(0x24 + off - fde));
	add_reloc(f, frame, off + 8, R_X86_64_PC32, 1, (int64_t)at);
	add_reloc(f, frame, off + 17, R_X86_64_PC32, (uint32_t)ELF64_R_SYM(table.r_info),
		  table.r_addend);
}

/* Each branch leads to another instruction of the same loop: all pairs of its places are right. */
static void all_pairs(struct forged *f)
{
	for (int32_t i = 0, to; i < 4000; i++) {
		to = 2 * i + 6 * (3999 - i);
		memcpy(code(f, "loops", 6 * (uint32_t)i + 2), &to, 4);
	}
}

static const struct {
	void (*original)(struct forged *f), (*output)(struct forged *f);
	const char *flags, *why;
} cases[] = {
	{nothing, second_reloc, "", "two relocations change the same bytes"},
	{nothing, reloc_of_condition, "", "not one of a field"},
	{nothing, reloc_of_jump, "", "not one of a field"},
	{nothing, reloc_of_eight_bytes, "", "begins before it"},
	{nothing, reloc_of_bytes_before, "", "begins before it"},
	{nothing, address_for_distance, "", "refers to something else"},
	{nothing, indirect_function, "", "refers to something else"},
	{by_name, by_name_of_another, "", "an address became two"},
	{nothing, added_init, "", "is another section"},
	{nothing, renamed_text, "", "is another section"},
	{nothing, gap_in_array, "", "is another section"},
	{nothing, gap_before_code, "", "is another section"},
	{nothing, constant_in_code, "-DREADS", "reads bytes of code that changed"},
	{nothing, behind_no_ops, "-DSLIDE", "too many no-ops"},
	{nothing, behind_breakpoint, "-DBREAKPOINT", "is another instruction"},
	{nothing, restored, "", "another unwind row"},
	{nothing, early_end, "", "sections are missing"},
	{nothing, no_frame_bytes, "", "has no bytes"},
	{no_frame_bytes, nothing, "", "has no bytes"},
	{nothing, reloc_of_cie_pointer, "", "an FDE is not understood"},
	{nothing, reloc_of_program, "", "an FDE is not understood"},
	{nothing, no_table, "", "another exception table"},
	{nothing, reloc_of_pad, "", "an exception table that is not understood"},
	{nothing, whole_twice, "", "is another instruction"},
	{nothing, all_pairs, "-DLOOPS", "too many counterparts"},
};

TEST_EACH(verify_refuses_what_was_thought_out, sizeof(cases) / sizeof(*cases))
{
	struct me_bytes old = {0}, new = {0};
	struct rewrite_bytes made;
	struct forged a, b;
	struct mp_err err = {""};
	char command[128];

	snprintf(command, sizeof(command), "gcc %s -c " SOURCE, cases[_i].flags);
	ck_assert(rewrite_compile(command, &made));
	forged_open(&a, &made);
	forged_open(&b, &made);
	cases[_i].original(&a);
	cases[_i].output(&b);
	forged_write(&a, &old);
	forged_write(&b, &new);
	ck_assert_int_eq(me_verify_object(old.data, old.size, new.data, new.size, NULL, &err),
			 -EPERM);
	ck_assert_msg(strstr(err.msg, cases[_i].why), "%s", err.msg);
	forged_fini(&a);
	forged_fini(&b);
	me_bytes_fini(&old);
	me_bytes_fini(&new);
	free(made.data);
}

/* The same with a change that is none: a symbol of its own. */
static void another_local(struct forged *f)
{
	add_local(f, "added", STT_NOTYPE, (uint16_t)section(f, ".text"), 0);
}

TEST(verify_accepts_the_object_as_it_is)
{
	struct me_bytes old = {0}, new = {0};
	struct rewrite_bytes made;
	struct forged a, b;
	struct mp_err err = {""};

	ck_assert(rewrite_compile("gcc -c " SOURCE, &made));
	forged_open(&a, &made);
	forged_open(&b, &made);
	another_local(&b);
	forged_write(&a, &old);
	forged_write(&b, &new);
	ck_assert_msg(!me_verify_object(old.data, old.size, new.data, new.size, NULL, &err), "%s",
		      err.msg);
	forged_fini(&a);
	forged_fini(&b);
	me_bytes_fini(&old);
	me_bytes_fini(&new);
	free(made.data);
}

TEST_EACH(verify_refuses_debug_information_that_takes_too_long, 5)
{
	static const char *const of[] = {"SCOPES", "OVERLAP", "BASES", "UNITS", "ATTRS"};
	char command[80];
	struct me_bytes old = {0}, new = {0};
	struct rewrite_bytes made;
	struct forged a, b;
	struct mp_err err = {""};

	snprintf(command, sizeof(command), "gcc -c -D%s tests/data/object_debug_many.S", of[_i]);
	ck_assert(rewrite_compile(command, &made));
	forged_open(&a, &made);
	forged_open(&b, &made);
	another_local(&b);
	forged_write(&a, &old);
	forged_write(&b, &new);
	ck_assert_int_eq(me_verify_object(old.data, old.size, new.data, new.size, NULL, &err),
			 -EPERM);
	ck_assert_msg(strstr(err.msg, "takes too long"), "%s", err.msg);
	forged_fini(&a);
	forged_fini(&b);
	me_bytes_fini(&old);
	me_bytes_fini(&new);
	free(made.data);
}
