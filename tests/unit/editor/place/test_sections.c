// SPDX-License-Identifier: Apache-2.0
/*
 * test_sections - the new section header table: removed and added sections, and links between
 * sections.
 */
#include "tests/unit/suite.h"

#include "editor/place/sections.h"

enum {
	NONE,
	DYNSYM,
	DYNSTR,
	RELA_DYN,
	TEXT,
	RELA_TEXT,
	EH_HDR,
	EH,
	RELA_EH,
	BSS,
	COMMENT,
	SYMTAB,
	STRTAB,
	SHSTRTAB,
	NR
};

/* A file as --emit-relocs leaves it. */
static void make(struct mp_section *s, struct mp_elf *elf)
{
	const struct mp_section sections[NR] = {
		[NONE] = {.name = ""},
		[DYNSYM] = {.name = ".dynsym",
			    .type = SHT_DYNSYM,
			    .flags = SHF_ALLOC,
			    .link = DYNSTR,
			    .info = 1,
			    .entsize = 24,
			    .vaddr = 0x200,
			    .off = 0x200},
		[DYNSTR] = {.name = ".dynstr", .type = SHT_STRTAB, .flags = SHF_ALLOC},
		[RELA_DYN] = {.name = ".rela.dyn",
			      .type = SHT_RELA,
			      .flags = SHF_ALLOC,
			      .link = DYNSYM},
		[TEXT] = {.name = ".text",
			  .type = SHT_PROGBITS,
			  .flags = SHF_ALLOC | SHF_EXECINSTR,
			  .vaddr = 0x1000,
			  .off = 0x1000,
			  .size = 0x77,
			  .align = 16},
		[RELA_TEXT] = {.name = ".rela.text",
			       .type = SHT_RELA,
			       .flags = SHF_INFO_LINK,
			       .link = SYMTAB,
			       .info = TEXT},
		[EH_HDR] = {.name = ".eh_frame_hdr", .type = SHT_PROGBITS, .flags = SHF_ALLOC},
		[EH] = {.name = ".eh_frame", .type = SHT_PROGBITS, .flags = SHF_ALLOC},
		[RELA_EH] = {.name = ".rela.eh_frame",
			     .type = SHT_RELA,
			     .flags = SHF_INFO_LINK,
			     .link = SYMTAB,
			     .info = EH},
		[BSS] = {.name = ".bss", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_WRITE},
		[COMMENT] = {.name = ".comment", .type = SHT_PROGBITS},
		[SYMTAB] = {.name = ".symtab",
			    .type = SHT_SYMTAB,
			    .link = STRTAB,
			    .info = 5,
			    .entsize = 24},
		[STRTAB] = {.name = ".strtab", .type = SHT_STRTAB},
		[SHSTRTAB] = {.name = ".shstrtab", .type = SHT_STRTAB},
	};

	memcpy(s, sections, sizeof(sections));
	*elf = (struct mp_elf){.sections = s, .nr_sections = NR};
	elf->ehdr.e_shstrndx = SHSTRTAB;
}

static const struct me_displaced nothing;

static const char *name_of(const struct me_sections *out, uint32_t i)
{
	return out->names + out->shdrs[i].sh_name;
}

TEST(sections_drop_the_linkers_relocations_only)
{
	struct mp_section s[NR];
	AUTO(me_sections_fini) struct me_sections out = {0};
	struct mp_elf elf;

	make(s, &elf);
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), 0);
	ck_assert_uint_eq(out.nr_shdrs, NR - 2 + ME_NR_NEW_SECTIONS);
	ck_assert_uint_eq(out.index[RELA_TEXT], 0);
	ck_assert_uint_eq(out.index[RELA_EH], 0);
	ck_assert_uint_ne(out.index[RELA_DYN], 0);
	for (uint32_t i = 1; i < NR; i++) {
		if (i == RELA_TEXT || i == RELA_EH)
			continue;
		ck_assert_uint_eq(out.origin[out.index[i]], i);
	}
	ck_assert_uint_eq(out.shdrs[0].sh_type, SHT_NULL);
}

TEST(sections_put_the_new_ones_behind_the_last_loaded_one)
{
	static const char *const names[] = {".morph.text", ".gcc_except_table.morph", ".eh_frame",
					    ".eh_frame_hdr", ".note.morph"};
	struct mp_section s[NR];
	AUTO(me_sections_fini) struct me_sections out = {0};
	struct mp_elf elf;

	make(s, &elf);
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), 0);
	ck_assert_uint_eq(out.first_new, out.index[BSS] + 1);
	ck_assert_uint_eq(out.index[COMMENT], out.first_new + ME_NR_NEW_SECTIONS);
	for (uint32_t n = 0; n < ME_NR_NEW_SECTIONS; n++) {
		ck_assert_str_eq(name_of(&out, out.first_new + n), names[n]);
		ck_assert_uint_eq(out.origin[out.first_new + n], 0);
		ck_assert(out.shdrs[out.first_new + n].sh_flags & SHF_ALLOC);
		ck_assert_int_eq((out.shdrs[out.first_new + n].sh_flags & SHF_EXECINSTR) != 0,
				 n == ME_SECTION_TEXT);
	}
	ck_assert_uint_eq(out.shdrs[out.first_new + ME_SECTION_MAP].sh_type, SHT_NOTE);
}

/* patchelf relies on sections being sorted by offset. */
TEST(sections_that_move_to_the_new_segment_come_last_of_the_loaded_ones)
{
	const struct me_displaced moved = {.off = 0x200, .vaddr = 0x200, .size = 24};
	struct mp_section s[NR];
	AUTO(me_sections_fini) struct me_sections out = {0};
	struct mp_elf elf;

	make(s, &elf);
	s[DYNSYM].size = 24;
	ck_assert_int_eq(me_sections_build(&elf, &moved, &out, &err), 0);
	ck_assert_uint_eq(out.index[DYNSTR], 1);
	ck_assert_uint_eq(out.first_new, out.index[BSS] + 1);
	ck_assert_uint_eq(out.index[DYNSYM], out.first_new + ME_NR_NEW_SECTIONS);
	ck_assert_uint_eq(out.origin[out.index[DYNSYM]], DYNSYM);
	ck_assert_uint_eq(out.index[COMMENT], out.index[DYNSYM] + 1);
	/* Links are updated. */
	ck_assert_uint_eq(out.shdrs[out.index[DYNSYM]].sh_link, out.index[DYNSTR]);
	ck_assert_uint_eq(out.shdrs[out.index[RELA_DYN]].sh_link, out.index[DYNSYM]);
}

TEST(sections_rename_the_old_unwind_tables)
{
	struct mp_section s[NR];
	AUTO(me_sections_fini) struct me_sections out = {0};
	struct mp_elf elf;

	make(s, &elf);
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), 0);
	ck_assert_str_eq(name_of(&out, out.index[EH]), ".morph.eh_frame_old");
	ck_assert_str_eq(name_of(&out, out.index[EH_HDR]), ".morph.eh_frame_hdr_old");
	ck_assert_str_eq(name_of(&out, out.index[TEXT]), ".text");
	/* All names lie in the table, which ends with a zero byte. */
	for (uint32_t i = 0; i < out.nr_shdrs; i++)
		ck_assert_uint_lt(out.shdrs[i].sh_name, out.names_size);
	ck_assert_int_eq(out.names[out.names_size - 1], '\0');
}

TEST(sections_link_to_the_new_indexes)
{
	struct mp_section s[NR];
	AUTO(me_sections_fini) struct me_sections out = {0};
	struct mp_elf elf;

	make(s, &elf);
	/* A loaded relocation section may name the section that it relocates. */
	s[RELA_DYN].flags |= SHF_INFO_LINK;
	s[RELA_DYN].info = BSS;
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), 0);
	ck_assert_uint_eq(out.shdrs[out.index[DYNSYM]].sh_link, out.index[DYNSTR]);
	ck_assert_uint_eq(out.shdrs[out.index[RELA_DYN]].sh_link, out.index[DYNSYM]);
	ck_assert_uint_eq(out.shdrs[out.index[RELA_DYN]].sh_info, out.index[BSS]);
	/* sh_info of a symbol table is a number of symbols, not a section. */
	ck_assert_uint_eq(out.shdrs[out.index[DYNSYM]].sh_info, 1);
	ck_assert_uint_eq(out.shdrs[out.index[SYMTAB]].sh_info, 5);
	ck_assert_uint_eq(out.symtab, out.index[SYMTAB]);
	ck_assert_uint_eq(out.strtab, out.index[STRTAB]);
	ck_assert_uint_eq(out.shstrtab, out.index[SHSTRTAB]);
	ck_assert_uint_eq(out.shdrs[out.index[TEXT]].sh_addr, 0x1000);
	ck_assert_uint_eq(out.shdrs[out.index[TEXT]].sh_size, 0x77);
	ck_assert_uint_eq(out.shdrs[out.index[TEXT]].sh_addralign, 16);
}

TEST(sections_of_a_stripped_file_have_no_symtab)
{
	struct mp_section s[NR];
	AUTO(me_sections_fini) struct me_sections out = {0};
	struct mp_elf elf;

	make(s, &elf);
	s[SYMTAB].type = s[STRTAB].type = SHT_PROGBITS;
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), 0);
	ck_assert_uint_eq(out.symtab, 0);
	ck_assert_uint_eq(out.strtab, 0);
}

TEST(sections_refuse_what_they_do_not_know)
{
	struct mp_section s[NR];
	struct me_sections out;
	struct mp_elf elf;

	make(s, &elf);
	s[COMMENT].type = SHT_GROUP;
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, ".comment"));
	s[COMMENT].type = SHT_SYMTAB_SHNDX;
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), -EPERM);
	make(s, &elf);
	s[COMMENT].align = UINT64_C(1) << 40;
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "alignment"));
	make(s, &elf);
	s[DYNSYM].link = NR;
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, ".dynsym"));
	me_sections_fini(&out);
	make(s, &elf);
	elf.ehdr.e_shstrndx = SHN_XINDEX;
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "names"));
	elf.nr_sections = 0;
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), -EPERM);
	elf.ehdr.e_shstrndx = 0;
	elf.nr_sections = SHN_LORESERVE - ME_NR_NEW_SECTIONS;
	ck_assert_int_eq(me_sections_build(&elf, &nothing, &out, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "too many"));
}
