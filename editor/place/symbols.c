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
	uint32_t first_part, nr_parts;
};

/* Further code of a function, apart from its runs: what replaces its calls. */
struct part {
	uint32_t func;
	uint64_t start, size;
};

struct copies {
	struct runs *runs;  /* per function */
	struct part *parts; /* ascending function, then address */
	uint32_t nr_parts;
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

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static void add_to_run(const struct mp_cfg *cfg, const struct me_copy *copy, bool warm,
		       struct runs *r)
{
	const struct mp_block *block = &cfg->blocks[copy->block];

	if (warm)
		extend(&r->warm, &r->warm_size, copy);
	else
		extend(&r->hot, &r->hot_size, copy);
	if (warm && !copy->clone && block->vaddr == cfg->funcs[block->func].vaddr)
		r->enters_warm = true;
}

/* @before: the copy before, if that lies apart, too. */
static void add_to_part(const struct mp_cfg *cfg, const struct me_copy *copy,
			const struct me_copy *before, struct copies *out)
{
	uint32_t func = cfg->blocks[copy->block].func;

	if (!before || cfg->blocks[before->block].func != func)
		out->parts[out->nr_parts++] = (struct part){.func = func};
	extend(&out->parts[out->nr_parts - 1].start, &out->parts[out->nr_parts - 1].size, copy);
}

static void index_parts(struct copies *out)
{
	if (out->nr_parts)
		qsort(out->parts, out->nr_parts, sizeof(*out->parts), compare_parts);
	for (uint32_t i = 0; i < out->nr_parts; i++) {
		struct runs *r = &out->runs[out->parts[i].func];

		if (!r->nr_parts++)
			r->first_part = i;
	}
}

/* Return: false: out of memory. */
static bool collect_copies(const struct mp_cfg *cfg, const struct me_placement *placement,
			   struct copies *out)
{
	const struct me_copy *copies = placement->copies;
	size_t nr_apart = 0;

	for (uint32_t i = 0; i < placement->nr_copies; i++)
		nr_apart += copies[i].apart;
	out->runs = calloc((size_t)cfg->nr_funcs + 1, sizeof(*out->runs));
	out->parts = malloc((nr_apart + 1) * sizeof(*out->parts));
	if (!out->runs || !out->parts)
		return false;
	for (uint32_t i = 0; i < placement->nr_copies; i++) {
		if (copies[i].apart)
			add_to_part(cfg, &copies[i],
				    i && copies[i - 1].apart ? &copies[i - 1] : NULL, out);
		else
			add_to_run(cfg, &copies[i], i >= placement->first_warm,
				   &out->runs[cfg->blocks[copies[i].block].func]);
	}
	index_parts(out);
	return true;
}

enum extra {
	OLD,
	WARM,
	HOT,
	PART,
};

struct writer {
	struct me_symbols *out;
	uint32_t nr;
	bool rust; /* a function has one of Rust's names */
};

static void put(struct writer *w, const Elf64_Sym *sym)
{
	memcpy(w->out->symtab + (size_t)w->nr++ * sizeof(*sym), sym, sizeof(*sym));
}

/* Rust's mangled names: version 0, and the older ones, which end in 17h, 16 digits and E. */
static bool is_rust(const char *name, size_t len)
{
	return !strncmp(name, "_R", 2) ||
	       (len > 23 && !strncmp(name, "_ZN", 3) && !strncmp(name + len - 20, "17h", 3));
}

/*
 * A local symbol "<name><suffix>"; @name lies in the copied string table. Rust's traces leave out ".llvm.<digits>",
 * and only such a suffix, of Rust's names. They print others (main) as they are.
 */
static void put_named(struct writer *w, Elf64_Sym sym, enum extra what, uint64_t vaddr,
		      uint64_t size, uint16_t shndx)
{
	static const char *const suffixes[][2] = {
		[OLD] = {".morph.old", ".llvm.0"},
		[WARM] = {".morph.warm", ".llvm.1"},
		[HOT] = {".morph.hot", ".llvm.2"},
		[PART] = {".morph.part", ".llvm.3"},
	};
	const char *name = (const char *)w->out->strtab + sym.st_name;
	size_t len = strlen(name);
	bool rust = is_rust(name, len);
	const char *suffix = w->rust && !rust ? "" : suffixes[what][rust];

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

/* Add local symbols for old code, the second run and further parts of moved functions, once per function. */
static void put_extra(struct writer *w, const struct mp_cfg *cfg, const struct copies *copies,
		      const uint8_t *old, uint32_t nr, const uint16_t *section_index,
		      uint16_t text_section, uint8_t *named)
{
	const struct runs *runs = copies->runs;

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
		put_named(w, sym, OLD, sym.st_value, sym.st_size,
			  sym.st_shndx < SHN_LORESERVE ? section_index[sym.st_shndx]
						       : sym.st_shndx);
		if (r->hot_size && r->warm_size && r->enters_warm)
			put_named(w, sym, HOT, r->hot, r->hot_size, text_section);
		else if (r->hot_size && r->warm_size)
			put_named(w, sym, WARM, r->warm, r->warm_size, text_section);
		for (uint32_t k = r->first_part; k < r->first_part + r->nr_parts; k++)
			put_named(w, sym, PART, copies->parts[k].start, copies->parts[k].size,
				  text_section);
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
	struct copies copies = {0};
	bool collected = collect_copies(cfg, placement, &copies);
	const struct runs *runs = copies.runs;
	uint8_t *named = calloc(cfg->nr_funcs + 1, 1);
	size_t extra_names = 0, extra = 0;
	const struct mp_func *func;
	struct writer w = {out, 0, false};
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
		w.rust |= ELF64_ST_TYPE(sym.st_info) == STT_FUNC &&
			  is_rust((const char *)strings + sym.st_name,
				  strlen((const char *)strings + sym.st_name));
		func = collected ? moved_function(cfg, runs, &sym) : NULL;
		if (func) {
			size_t nr_extra = 2 + (size_t)runs[func - cfg->funcs].nr_parts;

			extra += nr_extra;
			extra_names += nr_extra * (strlen((const char *)strings + sym.st_name) +
						   sizeof(".morph.warm"));
		}
	}
	out->symtab = malloc((nr + extra) * sizeof(sym) + 1);
	out->strtab = malloc(strtab->size + extra_names);
	if (!collected || !named || !out->symtab || !out->strtab) {
		mp_err_set(err, ENOMEM, "out of memory");
		goto out;
	}
	memcpy(out->strtab, strings, strtab->size);
	out->strtab_size = strtab->size;
	for (uint32_t i = 0; i < nr; i++) {
		if (i == nr_locals) {
			put_extra(&w, cfg, &copies, old, nr, section_index, text_section, named);
			out->nr_locals = w.nr;
		}
		memcpy(&sym, old + (size_t)i * sizeof(sym), sizeof(sym));
		put_original(&w, cfg, runs, sym, section_index, text_section);
	}
	if (nr_locals == nr) {
		put_extra(&w, cfg, &copies, old, nr, section_index, text_section, named);
		out->nr_locals = w.nr;
	}
	out->symtab_size = (size_t)w.nr * sizeof(sym);
	rc = 0;
out:
	free(copies.runs);
	free(copies.parts);
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
