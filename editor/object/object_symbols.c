// SPDX-License-Identifier: Apache-2.0
/*
 * object_symbols - the new symbol table, and relocations as the output has them. New symbols are
 * local, so that no other object sees them: one for each section that lacks one, and NAME.cold for
 * the cold part of function NAME.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object_private.h"

/* The end of the name of a function's cold part. */
#define COLD ".cold"

static void put_symbol(struct me_object *o, const Elf64_Sym *symbol)
{
	me_bytes_put(&o->symbols, symbol, sizeof(*symbol));
}

/* The old symbol at its new place. */
static int put_old(struct me_object *o, uint32_t index, struct mp_err *err)
{
	Elf64_Sym symbol = o->in->symbols[index];
	const struct me_ocode *code;
	uint32_t insn, out, off;

	if (!mp_relobj_in_code(o->in, index) || ELF64_ST_TYPE(symbol.st_info) == STT_SECTION)
		goto put;
	code = &o->codes[o->code_of[symbol.st_shndx]];
	if (code->closed)
		goto put;
	insn = me_object_insn_at(o, o->code_of[symbol.st_shndx], symbol.st_value);
	if (insn == ME_NONE || !me_object_place_of(o, insn, &out, &off))
		return mp_err_set(err, EPERM, "a symbol has no place");
	symbol.st_shndx = (uint16_t)o->outs[out].section;
	symbol.st_value = off;
	if (symbol.st_size && o->funcs[o->insns[insn].func].first_insn == insn) {
		const struct me_fragment *first =
			&o->fragments[o->funcs[o->insns[insn].func].first_fragment];

		symbol.st_size = first->end - first->start;
	}
put:
	put_symbol(o, &symbol);
	return 0;
}

/* Names of symbols that end as those of cold parts do, ascending. */
struct cold_names {
	const char **list;
	uint32_t nr;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool find_cold_names(const struct me_object *o, struct cold_names *names)
{
	names->list = malloc(((size_t)o->in->nr_symbols + 1) * sizeof(*names->list));
	for (uint32_t i = 1; names->list && i < o->in->nr_symbols; i++) {
		const char *name = mp_relobj_symbol_name(o->in, i);
		size_t len = strlen(name);

		if (len > strlen(COLD) && !strcmp(name + len - strlen(COLD), COLD))
			names->list[names->nr++] = name;
	}
	if (names->nr)
		qsort(names->list, names->nr, sizeof(*names->list), compare_names);
	return names->list;
}

static int put_cold(struct me_object *o, const struct me_fragment *fragment,
		    const struct cold_names *names, struct mp_err *err)
{
	const char *name = mp_relobj_symbol_name(o->in, o->funcs[fragment->func].symbol);
	Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
			    .st_shndx = (uint16_t)o->outs[fragment->out].section,
			    .st_value = fragment->start,
			    .st_size = fragment->end - fragment->start};
	char *cold;

	if (asprintf(&cold, "%s" COLD, name) < 0)
		return mp_err_set(err, ENOMEM, "out of memory");
	/* gcc's own cold part of this function */
	if (names->nr &&
	    bsearch(&cold, names->list, names->nr, sizeof(*names->list), compare_names)) {
		free(cold);
		if (asprintf(&cold, "%s" COLD ".1", name) < 0)
			return mp_err_set(err, ENOMEM, "out of memory");
	}
	symbol.st_name = (uint32_t)o->names.size;
	me_bytes_put(&o->names, cold, strlen(cold) + 1);
	free(cold);
	put_symbol(o, &symbol);
	return 0;
}

/* Sections of code have one symbol each, to which places in them refer. */
static bool find_section_symbols(struct me_object *o)
{
	uint32_t *of = calloc(o->in->nr_sections, sizeof(*of));

	if (!of)
		return false;
	for (uint32_t i = 1; i < o->nr_locals; i++) {
		const Elf64_Sym *symbol = &o->in->symbols[i];

		if (ELF64_ST_TYPE(symbol->st_info) == STT_SECTION &&
		    symbol->st_shndx < o->in->nr_sections)
			of[symbol->st_shndx] = i;
	}
	for (uint32_t i = 0; i < o->nr_outs; i++)
		o->outs[i].symbol = o->outs[i].added ? 0 : of[o->outs[i].section];
	free(of);
	return true;
}

/* The section of ranges that gets a symbol: an added one, or one that has none. 0: none. */
static uint32_t list_section(const struct me_object *o, int i)
{
	uint32_t section = mp_relobj_section(o->in, i ? ".debug_rnglists" : ".debug_ranges");

	for (uint32_t k = 1; section && k < o->nr_locals; k++)
		if (ELF64_ST_TYPE(o->in->symbols[k].st_info) == STT_SECTION &&
		    o->in->symbols[k].st_shndx == section)
			return 0;
	return section ? section : o->lists[i].section;
}

int me_object_symbols(struct me_object *o, struct mp_err *err)
{
	uint32_t nr = 0;
	struct cold_names cold_names = {0};
	int rc = 0;

	o->nr_locals = o->in->sections[o->in->symtab].header.sh_info;
	me_bytes_put(&o->names, o->in->strings, o->in->strings_size);
	if (!find_section_symbols(o))
		return mp_err_code(err, ENOMEM);
	for (uint32_t i = 0; !rc && i < o->nr_locals; i++)
		rc = put_old(o, i, err);
	for (uint32_t i = 0; i < o->nr_outs; i++) {
		const Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION),
					  .st_shndx = (uint16_t)o->outs[i].section};

		if (o->outs[i].symbol)
			continue;
		o->outs[i].symbol = o->nr_locals + nr++;
		put_symbol(o, &symbol);
	}
	for (int i = 0; i < 2; i++) {
		const Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION),
					  .st_shndx = (uint16_t)list_section(o, i)};

		if (!symbol.st_shndx)
			continue;
		o->lists[i].symbol = o->nr_locals + nr++;
		put_symbol(o, &symbol);
	}
	if (!find_cold_names(o, &cold_names))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t f = 0; !rc && f < o->nr_fragments; f++) {
		if (!o->fragments[f].cold)
			continue;
		rc = put_cold(o, &o->fragments[f], &cold_names, err);
		nr++;
	}
	free(cold_names.list);
	o->nr_inserted = nr;
	for (uint32_t i = o->nr_locals; !rc && i < o->in->nr_symbols; i++)
		rc = put_old(o, i, err);
	if (!rc && (o->symbols.failed || o->names.failed))
		rc = mp_err_set(err, ENOMEM, "out of memory");
	return rc;
}

int me_object_translate(const struct me_object *o, uint32_t section, const Elf64_Rela *reloc,
			int64_t code_bias, Elf64_Rela *to, struct mp_err *err)
{
	struct me_oref ref = me_object_refer(o, section, reloc, code_bias);
	uint32_t out, off, type = ELF64_R_TYPE(reloc->r_info);

	*to = *reloc;
	if (ref.kind == ME_OREF_KEEP) {
		to->r_info = ELF64_R_INFO((uint64_t)me_object_symbol(o, ELF64_R_SYM(reloc->r_info)),
					  type);
		return 0;
	}
	if (ref.kind == ME_OREF_UNKNOWN || !me_object_place_of(o, ref.insn, &out, &off))
		return mp_err_set(err, EPERM, "a relocation leads to no known place");
	to->r_info = ELF64_R_INFO((uint64_t)o->outs[out].symbol, type);
	to->r_addend = (int64_t)off - ref.bias;
	return 0;
}
