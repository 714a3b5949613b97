// SPDX-License-Identifier: Apache-2.0
/*
 * sections - makes the output's section header table: sections are kept, dropped, renamed and
 * added. Called by emit and separate.
 *
 * A section header covers every new byte of the file, or strip and similar tools would drop it.
 */
#ifndef ME_SECTIONS_H
#define ME_SECTIONS_H

#include <elf.h>
#include <stdint.h>

#include "editor/place/phdr_extend.h"
#include "libprof/elf/elf.h"
#include "libprof/base/err.h"

enum me_new_section {
	ME_SECTION_TEXT, /* .morph.text */
	ME_SECTION_LSDA, /* .gcc_except_table.morph */
	ME_SECTION_EH_FRAME,
	ME_SECTION_EH_FRAME_HDR,
	ME_SECTION_MAP, /* .note.morph */
	ME_NR_NEW_SECTIONS
};

struct me_sections {
	Elf64_Shdr *shdrs;
	uint32_t nr_shdrs;
	uint16_t *index;		   /* old section index -> new one, 0: dropped */
	uint32_t *origin;		   /* new section index -> old one, 0: new */
	uint16_t first_new;		   /* index of ME_SECTION_TEXT; the others follow */
	uint16_t symtab, strtab, shstrtab; /* new indexes, 0: none */
	char *names;			   /* .shstrtab's content */
	size_t names_size;
};

/* Build the table. emit fills in the offsets of sections that are not loaded. Return: 0,
 * -ENOMEM, -EPERM refused. Ownership: me_sections_fini(@out). */
int me_sections_build(const struct mp_elf *elf, const struct me_displaced *moved,
		      struct me_sections *out, struct mp_err *err);
/* Append a section. It is not loaded unless the caller sets its flags and address. Return: 0,
 * -ENOMEM. */
int me_sections_append(struct me_sections *sections, const char *name, uint32_t type,
		       uint32_t *index);
void me_sections_fini(struct me_sections *sections);

#endif
