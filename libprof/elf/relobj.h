// SPDX-License-Identifier: Apache-2.0
/*
 * relobj - a relocatable object (ET_REL) as arrays: sections, symbols, relocations by section.
 *
 * Checks all bounds; decides nothing about code. Called by editor/object/ and by verify's part for
 * objects.
 */
#ifndef MP_RELOBJ_H
#define MP_RELOBJ_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"

struct mp_relobj_section {
	Elf64_Shdr header;
	const char *name;
	const uint8_t *data; /* NULL: SHT_NOBITS, or empty */
	/* The relocations that apply to the section, ascending r_offset. */
	Elf64_Rela *relocs;
	uint32_t nr_relocs;
	uint32_t relocs_section; /* the section that holds them; 0: none */
	/*
	 * For mp_relobj_reloc_at(): per part of 1 << part_shift bytes, and one more, the first
	 * relocation at or behind its start. There are as many parts as relocations, or fewer.
	 */
	uint32_t *part_relocs;
	uint32_t nr_parts;
	uint8_t part_shift;
};

struct mp_relobj {
	const uint8_t *bytes;
	size_t size;
	Elf64_Ehdr header;
	struct mp_relobj_section *sections;
	uint32_t nr_sections;
	Elf64_Sym *symbols;
	uint32_t nr_symbols;
	uint32_t symtab; /* section index */
	const char *strings;
	size_t strings_size;
};

/* Is this the beginning of a relocatable object? */
bool mp_relobj_is(const uint8_t *bytes, size_t size);

/*
 * mp_relobj_open - Return: 0, -ENOMEM, -EBADMSG damaged, -EOPNOTSUPP not of a known kind,
 * -EPERM a compressed section has relocations.
 * Ownership: mp_relobj_free(*@out), which takes NULL; @bytes must outlive it.
 */
int mp_relobj_open(const uint8_t *bytes, size_t size, struct mp_relobj **out, struct mp_err *err);
void mp_relobj_free(struct mp_relobj *obj);

/* The symbol's name; that of its section for STT_SECTION; "" if it has none. */
const char *mp_relobj_symbol_name(const struct mp_relobj *obj, uint32_t symbol);
/* Return: index of the section with this name, or 0. */
uint32_t mp_relobj_section(const struct mp_relobj *obj, const char *name);
/* Return: index of the first relocation of @section at or behind @off. */
uint32_t mp_relobj_reloc_at(const struct mp_relobj_section *section, uint64_t off);
/* True if the symbol is defined in a section of code. */
bool mp_relobj_in_code(const struct mp_relobj *obj, uint32_t symbol);

static inline bool mp_relobj_is_code(const struct mp_relobj_section *section)
{
	return section->header.sh_type == SHT_PROGBITS &&
	       (section->header.sh_flags & SHF_EXECINSTR);
}

#endif
