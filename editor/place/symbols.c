// SPDX-License-Identifier: Apache-2.0
/*
 * symbols - rewrites .symtab and .strtab for moved functions. dynsym handles .dynsym. Called by
 * emit and separate if the file has symbols.
 */
#include "editor/place/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The runs of a function's copies, one in each zone. */
struct runs {
	uint64_t hot, warm;
	uint64_t hot_size, warm_size;
	bool enters_warm; /* the entry's copy is in the warm run */
};

static bool main_is_warm(const struct runs *r)
{
	return r->warm_size && (r->enters_warm || !r->hot_size);
}

static void extend(uint64_t *start, uint64_t *size, const struct me_copy *copy)
{
	if (*size == 0)
		*start = copy->new_vaddr;
	*size = copy->new_vaddr + copy->new_size - *start;
}

static struct runs *collect_runs(const struct mp_cfg *cfg, const struct me_placement *placement)
{
	struct runs *runs = calloc(cfg->nr_funcs + 1, sizeof(*runs));

	for (uint32_t i = 0; runs && i < placement->nr_copies; i++) {
		const struct me_copy *copy = &placement->copies[i];
		const struct mp_block *block = &cfg->blocks[copy->block];
		struct runs *r = &runs[block->func];

		if (i < placement->first_warm) {
			extend(&r->hot, &r->hot_size, copy);
			continue;
		}
		extend(&r->warm, &r->warm_size, copy);
		if (!copy->clone && block->vaddr == cfg->funcs[block->func].vaddr)
			r->enters_warm = true;
	}
	return runs;
}

struct writer {
	struct me_symbols *out;
	uint32_t nr;
};

static void put(struct writer *w, const Elf64_Sym *sym)
{
	memcpy(w->out->symtab + (size_t)w->nr++ * sizeof(*sym), sym, sizeof(*sym));
}

/* A local symbol "<name><suffix>"; @name lies in the copied string table. */
static void put_named(struct writer *w, Elf64_Sym sym, const char *suffix, uint64_t vaddr,
		      uint64_t size, uint16_t shndx)
{
	const char *name = (const char *)w->out->strtab + sym.st_name;
	size_t len = strlen(name);

	memcpy(w->out->strtab + w->out->strtab_size, name, len);
	memcpy(w->out->strtab + w->out->strtab_size + len, suffix, strlen(suffix) + 1);
	sym.st_name = (uint32_t)w->out->strtab_size;
	w->out->strtab_size += len + strlen(suffix) + 1;
	sym.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
	sym.st_value = vaddr;
	sym.st_size = size;
	sym.st_shndx = shndx;
	put(w, &sym);
}

static const struct mp_func *moved_function(const struct mp_cfg *cfg, const struct runs *runs,
					    const Elf64_Sym *sym)
{
	uint32_t func;

	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF ||
	    sym->st_shndx >= SHN_LORESERVE)
		return NULL;
	func = mp_cfg_func_at(cfg, sym->st_value);
	if (func == MP_NONE || cfg->funcs[func].vaddr != sym->st_value)
		return NULL;
	return runs[func].hot_size || runs[func].warm_size ? &cfg->funcs[func] : NULL;
}

/* Add local symbols for old code and the second run of moved functions, once per function. */
static void put_extra(struct writer *w, const struct mp_cfg *cfg, const struct runs *runs,
		      const uint8_t *old, uint32_t nr, const uint16_t *section_index,
		      uint16_t text_section, uint8_t *named)
{
	for (uint32_t i = 1; i < nr; i++) {
		const struct mp_func *func;
		const struct runs *r;
		Elf64_Sym sym;

		memcpy(&sym, old + (size_t)i * sizeof(sym), sizeof(sym));
		func = moved_function(cfg, runs, &sym);
		if (!func || named[func - cfg->funcs])
			continue;
		named[func - cfg->funcs] = 1;
		r = &runs[func - cfg->funcs];
		put_named(w, sym, ".morph.old", sym.st_value, sym.st_size,
			  sym.st_shndx < SHN_LORESERVE ? section_index[sym.st_shndx]
						       : sym.st_shndx);
		if (r->hot_size && r->warm_size && r->enters_warm)
			put_named(w, sym, ".morph.hot", r->hot, r->hot_size, text_section);
		else if (r->hot_size && r->warm_size)
			put_named(w, sym, ".morph.warm", r->warm, r->warm_size, text_section);
	}
}

static void put_original(struct writer *w, const struct mp_cfg *cfg, const struct runs *runs,
			 Elf64_Sym sym, const uint16_t *section_index, uint16_t text_section)
{
	const struct mp_func *func = moved_function(cfg, runs, &sym);

	if (func) {
		const struct runs *r = &runs[func - cfg->funcs];

		sym.st_value = main_is_warm(r) ? r->warm : r->hot;
		sym.st_size = main_is_warm(r) ? r->warm_size : r->hot_size;
		sym.st_shndx = text_section;
	} else if (sym.st_shndx != SHN_UNDEF && sym.st_shndx < SHN_LORESERVE) {
		sym.st_shndx = section_index[sym.st_shndx];
	}
	put(w, &sym);
}

int me_symbols_build(const struct mp_cfg *cfg, const struct me_placement *placement,
		     const struct mp_elf *elf, const struct mp_section *symtab,
		     const struct mp_section *strtab, const uint16_t *section_index,
		     uint16_t text_section, struct me_symbols *out, struct mp_err *err)
{
	const uint8_t *old = elf->data + symtab->off, *strings = elf->data + strtab->off;
	uint32_t nr = (uint32_t)(symtab->size / sizeof(Elf64_Sym)), nr_locals = symtab->info;
	struct runs *runs = collect_runs(cfg, placement);
	uint8_t *named = calloc(cfg->nr_funcs + 1, 1);
	size_t extra_names = 0, extra = 0;
	struct writer w = {out, 0};
	Elf64_Sym sym;
	int rc = -ENOMEM;

	*out = (struct me_symbols){0};
	if (strtab->type != SHT_STRTAB || strtab->size == 0 || strings[strtab->size - 1] != '\0' ||
	    nr_locals > nr) {
		rc = mp_err_set(err, EBADMSG, ".symtab: damaged");
		goto out;
	}
	for (uint32_t i = 0; i < nr; i++) {
		memcpy(&sym, old + (size_t)i * sizeof(sym), sizeof(sym));
		if (sym.st_name >= strtab->size ||
		    (sym.st_shndx < SHN_LORESERVE && sym.st_shndx >= elf->nr_sections)) {
			rc = mp_err_set(err, EBADMSG, ".symtab: entry %u is damaged", i);
			goto out;
		}
		if (runs && moved_function(cfg, runs, &sym)) {
			extra += 2;
			extra_names += 2 * (strlen((const char *)strings + sym.st_name) +
					    sizeof(".morph.warm"));
		}
	}
	out->symtab = malloc((nr + extra) * sizeof(sym) + 1);
	out->strtab = malloc(strtab->size + extra_names);
	if (!runs || !named || !out->symtab || !out->strtab) {
		mp_err_set(err, ENOMEM, "out of memory");
		goto out;
	}
	memcpy(out->strtab, strings, strtab->size);
	out->strtab_size = strtab->size;
	for (uint32_t i = 0; i < nr; i++) {
		if (i == nr_locals) {
			put_extra(&w, cfg, runs, old, nr, section_index, text_section, named);
			out->nr_locals = w.nr;
		}
		memcpy(&sym, old + (size_t)i * sizeof(sym), sizeof(sym));
		put_original(&w, cfg, runs, sym, section_index, text_section);
	}
	if (nr_locals == nr) {
		put_extra(&w, cfg, runs, old, nr, section_index, text_section, named);
		out->nr_locals = w.nr;
	}
	out->symtab_size = (size_t)w.nr * sizeof(sym);
	rc = 0;
out:
	free(runs);
	free(named);
	if (rc)
		me_symbols_fini(out);
	return rc;
}

void me_symbols_fini(struct me_symbols *symbols)
{
	free(symbols->symtab);
	free(symbols->strtab);
	symbols->symtab = NULL;
	symbols->strtab = NULL;
}
