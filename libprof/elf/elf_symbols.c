// SPDX-License-Identifier: Apache-2.0
/*
 * elf_symbols - reads .symtab, then .dynsym, into one array. It keeps every entry, so that
 * an index in a table is an index here (plus the size of .symtab for dynamic ones). Called
 * by elf.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/elf/elf_private.h"

/* Names can be read safely up to the last NUL of the table: *@limit is that NUL's offset. */
static bool string_limit(const struct mp_elf *elf, const struct mp_section *sec, uint64_t *limit)
{
	const uint8_t *start, *nul;

	if (sec->type != SHT_STRTAB || !sec->size)
		return false;
	start = elf->data + sec->off;
	nul = memrchr(start, 0, sec->size);
	if (!nul)
		return false;
	*limit = (uint64_t)(nul - start);
	return true;
}

static int append_table(struct mp_elf *elf, const struct mp_section *sec, bool dynamic,
			struct mp_err *err)
{
	const struct mp_section *str;
	struct mp_symbol *symbols;
	uint64_t nr = sec->size / sizeof(Elf64_Sym), limit;

	if (sec->entsize != sizeof(Elf64_Sym) || sec->size % sizeof(Elf64_Sym))
		return mp_err_set(err, EBADMSG, "%s: %s: entries of %" PRIu64 " bytes", elf->path,
				  sec->name, sec->entsize);
	if (nr > MP_ELF_MAX_SYMBOLS - elf->nr_symbols)
		return mp_err_set(err, EBADMSG, "%s: %" PRIu64 " symbols are too many", elf->path,
				  nr);
	if (!nr)
		return 0;
	if (sec->link >= elf->nr_sections || !string_limit(elf, &elf->sections[sec->link], &limit))
		return mp_err_set(err, EBADMSG, "%s: %s: no string table", elf->path, sec->name);
	str = &elf->sections[sec->link];
	symbols = reallocarray(elf->symbols, elf->nr_symbols + nr, sizeof(*symbols));
	if (!symbols)
		return mp_err_set(err, ENOMEM, "%s: out of memory", elf->path);
	elf->symbols = symbols;
	symbols += elf->nr_symbols;
	for (uint64_t i = 0; i < nr; i++) {
		Elf64_Sym sym;

		memcpy(&sym, elf->data + sec->off + i * sizeof(sym), sizeof(sym));
		if (sym.st_name > limit)
			return mp_err_set(err, EBADMSG,
					  "%s: %s: name of symbol %" PRIu64 " out of bounds",
					  elf->path, sec->name, i);
		symbols[i] = (struct mp_symbol){
			.vaddr = sym.st_value,
			.size = sym.st_size,
			.name = (const char *)elf->data + str->off + sym.st_name,
			.type = ELF64_ST_TYPE(sym.st_info),
			.bind = ELF64_ST_BIND(sym.st_info),
			.other = sym.st_other,
			.shndx = sym.st_shndx,
			.dynamic = dynamic,
			.index = (uint32_t)i,
		};
	}
	elf->nr_symbols += (uint32_t)nr;
	return 0;
}

int mp_elf_read_symbols(struct mp_elf *elf, struct mp_err *err)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	int ret;

	for (unsigned int t = 0; t < 2; t++) {
		for (uint32_t i = 1; i < elf->nr_sections; i++) {
			if (elf->sections[i].type != types[t])
				continue;
			ret = append_table(elf, &elf->sections[i], t == 1, err);
			if (ret)
				return ret;
			if (t == 0)
				elf->has_symtab = true;
			break; /* the format allows one of each */
		}
	}
	return 0;
}
