// SPDX-License-Identifier: Apache-2.0
/* relobj - reads a relocatable object; every offset, size and index is checked here. */
#include "libprof/elf/relobj.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"

/* All sections together are at most as many times as large as the file: some share a string table. */
#define SECTIONS_MAX 4

bool mp_relobj_is(const uint8_t *bytes, size_t size)
{
	Elf64_Ehdr header;

	if (size < sizeof(header) || memcmp(bytes, ELFMAG, SELFMAG))
		return false;
	memcpy(&header, bytes, sizeof(header));
	return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
	       header.e_type == ET_REL && header.e_machine == EM_X86_64;
}

static bool inside(const struct mp_relobj *obj, uint64_t off, uint64_t size)
{
	return off <= obj->size && size <= obj->size - off;
}

static const char *string_at(const struct mp_relobj_section *table, uint64_t off)
{
	if (table->header.sh_type != SHT_STRTAB || !table->data ||
	    table->data[table->header.sh_size - 1] || off >= table->header.sh_size)
		return NULL;
	return (const char *)table->data + off;
}

static int read_sections(struct mp_relobj *obj, struct mp_err *err)
{
	const Elf64_Ehdr *h = &obj->header;
	uint64_t total = 0;
	uint32_t nr = h->e_shnum;

	if (h->e_shentsize != sizeof(Elf64_Shdr) || !nr || h->e_shstrndx >= nr)
		return mp_err_set(err, EOPNOTSUPP, "no section headers, or too many");
	if (!inside(obj, h->e_shoff, (uint64_t)nr * sizeof(Elf64_Shdr)))
		return mp_err_set(err, EBADMSG, "section headers are not in the file");
	obj->sections = calloc(nr, sizeof(*obj->sections));
	if (!obj->sections)
		return mp_err_set(err, ENOMEM, "out of memory");
	obj->nr_sections = nr;
	for (uint32_t i = 0; i < nr; i++) {
		struct mp_relobj_section *s = &obj->sections[i];

		memcpy(&s->header, obj->bytes + h->e_shoff + i * sizeof(Elf64_Shdr),
		       sizeof(Elf64_Shdr));
		if (!i || s->header.sh_type == SHT_NOBITS || !s->header.sh_size)
			continue;
		if (!inside(obj, s->header.sh_offset, s->header.sh_size))
			return mp_err_set(err, EBADMSG, "section %u is not in the file", i);
		if (s->header.sh_size > UINT32_MAX / 2)
			return mp_err_set(err, EOPNOTSUPP, "section %u is too large", i);
		s->data = obj->bytes + s->header.sh_offset;
		/* Sections may overlap. This limit keeps the memory for reading them in proportion to the file. */
		total += s->header.sh_size;
		if (total > SECTIONS_MAX * obj->size)
			return mp_err_set(err, EBADMSG, "sections overlap");
	}
	for (uint32_t i = 0; i < nr; i++) {
		struct mp_relobj_section *s = &obj->sections[i];

		s->name = i ? string_at(&obj->sections[h->e_shstrndx], s->header.sh_name) : "";
		if (!s->name)
			return mp_err_set(err, EBADMSG, "section %u has no name", i);
	}
	return 0;
}

static int read_symbols(struct mp_relobj *obj, struct mp_err *err)
{
	const struct mp_relobj_section *table = NULL, *strings;

	for (uint32_t i = 1; i < obj->nr_sections; i++) {
		if (obj->sections[i].header.sh_type == SHT_SYMTAB_SHNDX)
			return mp_err_set(err, EOPNOTSUPP, "too many sections");
		if (obj->sections[i].header.sh_type != SHT_SYMTAB)
			continue;
		if (table)
			return mp_err_set(err, EOPNOTSUPP, "two symbol tables");
		table = &obj->sections[i];
		obj->symtab = i;
	}
	if (!table || !table->data || table->header.sh_entsize != sizeof(Elf64_Sym) ||
	    table->header.sh_size % sizeof(Elf64_Sym) || table->header.sh_link >= obj->nr_sections)
		return mp_err_set(err, EOPNOTSUPP, "no symbol table");
	strings = &obj->sections[table->header.sh_link];
	if (!string_at(strings, 0))
		return mp_err_set(err, EBADMSG, "no symbol names");
	obj->strings = (const char *)strings->data;
	obj->strings_size = strings->header.sh_size;
	obj->nr_symbols = (uint32_t)(table->header.sh_size / sizeof(Elf64_Sym));
	if (table->header.sh_info > obj->nr_symbols)
		return mp_err_set(err, EBADMSG, "bad number of local symbols");
	obj->symbols = malloc(table->header.sh_size);
	if (!obj->symbols)
		return mp_err_set(err, ENOMEM, "out of memory");
	memcpy(obj->symbols, table->data, table->header.sh_size);
	for (uint32_t i = 0; i < obj->nr_symbols; i++) {
		const Elf64_Sym *symbol = &obj->symbols[i];
		bool in_section = symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE;

		if (symbol->st_name >= obj->strings_size)
			return mp_err_set(err, EBADMSG, "symbol %u has no name", i);
		if (in_section &&
		    (symbol->st_shndx >= obj->nr_sections || symbol->st_value > UINT32_MAX / 2))
			return mp_err_set(err, EBADMSG, "symbol %u lies in no section", i);
	}
	return 0;
}

static int compare_relocs(const void *a, const void *b)
{
	const Elf64_Rela *x = a, *y = b;

	return (x->r_offset > y->r_offset) - (x->r_offset < y->r_offset);
}

/* Debug information has a million relocations, and each field asks for one. */
static bool index_relocs(struct mp_relobj_section *s)
{
	uint64_t last = s->nr_relocs ? s->relocs[s->nr_relocs - 1].r_offset : 0;
	uint32_t r = 0;

	if (!s->nr_relocs)
		return true;
	while (last >> s->part_shift >= s->nr_relocs)
		s->part_shift++;
	s->nr_parts = (uint32_t)(last >> s->part_shift) + 1;
	s->part_relocs = malloc(((size_t)s->nr_parts + 1) * sizeof(*s->part_relocs));
	if (!s->part_relocs)
		return false;
	for (uint32_t part = 0; part <= s->nr_parts; part++) {
		while (r < s->nr_relocs && s->relocs[r].r_offset >> s->part_shift < part)
			r++;
		s->part_relocs[part] = r;
	}
	return true;
}

static int read_relocs(struct mp_relobj *obj, uint32_t index, struct mp_err *err)
{
	const struct mp_relobj_section *table = &obj->sections[index];
	struct mp_relobj_section *to;
	uint64_t nr = table->header.sh_size / sizeof(Elf64_Rela);
	bool sorted = true;

	if (table->header.sh_entsize != sizeof(Elf64_Rela) || table->header.sh_info == 0 ||
	    table->header.sh_info >= obj->nr_sections || table->header.sh_link != obj->symtab ||
	    table->header.sh_size % sizeof(Elf64_Rela))
		return mp_err_set(err, EBADMSG, "bad relocations in section %u", index);
	to = &obj->sections[table->header.sh_info];
	if (to->relocs_section)
		return mp_err_set(err, EOPNOTSUPP, "a section has relocations in two places");
	/* Relocations count from the start of the uncompressed bytes. */
	if (to->header.sh_flags & SHF_COMPRESSED)
		return mp_err_set(err, EPERM,
				  "section %s is compressed (objcopy --decompress-debug-sections)",
				  to->name);
	to->relocs = calloc(nr + 1, sizeof(*to->relocs));
	if (!to->relocs)
		return mp_err_set(err, ENOMEM, "out of memory");
	to->relocs_section = index;
	to->nr_relocs = (uint32_t)nr;
	if (nr)
		memcpy(to->relocs, table->data, nr * sizeof(*to->relocs));
	for (uint64_t i = 0; i < nr; i++) {
		if (ELF64_R_SYM(to->relocs[i].r_info) >= obj->nr_symbols ||
		    to->relocs[i].r_offset >= to->header.sh_size)
			return mp_err_set(err, EBADMSG, "bad relocation in section %u", index);
		sorted &= !i || to->relocs[i - 1].r_offset <= to->relocs[i].r_offset;
	}
	if (!sorted)
		qsort(to->relocs, nr, sizeof(*to->relocs), compare_relocs);
	return index_relocs(to) ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

int mp_relobj_open(const uint8_t *bytes, size_t size, struct mp_relobj **out, struct mp_err *err)
{
	struct mp_relobj *obj = calloc(1, sizeof(*obj));
	int rc;

	*out = NULL;
	if (!obj)
		return mp_err_set(err, ENOMEM, "out of memory");
	obj->bytes = bytes;
	obj->size = size;
	if (!mp_relobj_is(bytes, size)) {
		free(obj);
		return mp_err_set(err, EOPNOTSUPP, "not a relocatable object for x86-64");
	}
	memcpy(&obj->header, bytes, sizeof(obj->header));
	rc = read_sections(obj, err);
	if (!rc)
		rc = read_symbols(obj, err);
	for (uint32_t i = 1; !rc && i < obj->nr_sections; i++) {
		if (obj->sections[i].header.sh_type == SHT_REL)
			rc = mp_err_set(err, EOPNOTSUPP, "relocations without addends");
		else if (obj->sections[i].header.sh_type == SHT_RELA)
			rc = read_relocs(obj, i, err);
	}
	if (rc)
		mp_relobj_free(obj);
	else
		*out = obj;
	return rc;
}

void mp_relobj_free(struct mp_relobj *obj)
{
	if (!obj)
		return;
	for (uint32_t i = 0; i < obj->nr_sections; i++) {
		free(obj->sections[i].relocs);
		free(obj->sections[i].part_relocs);
	}
	free(obj->sections);
	free(obj->symbols);
	free(obj);
}

const char *mp_relobj_symbol_name(const struct mp_relobj *obj, uint32_t symbol)
{
	const Elf64_Sym *s = &obj->symbols[symbol];

	if (ELF64_ST_TYPE(s->st_info) == STT_SECTION && s->st_shndx < obj->nr_sections)
		return obj->sections[s->st_shndx].name;
	return obj->strings + s->st_name;
}

uint32_t mp_relobj_section(const struct mp_relobj *obj, const char *name)
{
	for (uint32_t i = 1; i < obj->nr_sections; i++)
		if (!strcmp(obj->sections[i].name, name))
			return i;
	return 0;
}

uint32_t mp_relobj_reloc_at(const struct mp_relobj_section *section, uint64_t off)
{
	uint64_t part = off >> section->part_shift;

	if (part >= section->nr_parts)
		return section->nr_relocs;
	return mp_search(i, section->part_relocs[part], section->part_relocs[part + 1],
			 section->relocs[i].r_offset < off);
}

bool mp_relobj_in_code(const struct mp_relobj *obj, uint32_t symbol)
{
	uint16_t index = obj->symbols[symbol].st_shndx;

	return index != SHN_UNDEF && index < obj->nr_sections &&
	       mp_relobj_is_code(&obj->sections[index]);
}
