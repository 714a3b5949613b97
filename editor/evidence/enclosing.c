// SPDX-License-Identifier: Apache-2.0
#include "editor/evidence/enclosing.h"

#include <string.h>

static const char find_name[] = "_Unwind_FindEnclosingFunction",
		  region_name[] = "_Unwind_GetRegionStart";

/* ---- does the program ask? ----------------------------------------------------------------- */

static bool is_asking_import(const char *name)
{
	static const char *const names[] = {"_Unwind_Find_FDE", "unw_get_proc_info",
					    "_ULx86_64_get_proc_info", "_Ux86_64_get_proc_info"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Return: the address of the FDE's personality routine; 0: it has none, or the routine lies in another file. */
static uint64_t routine_of(const struct mp_elf *elf, const struct mp_fde *fde)
{
	const struct mp_reloc *r;
	const uint8_t *p;
	uint64_t vaddr = 0;

	if (!fde->personality || !fde->personality_indirect)
		return fde->personality;
	r = mp_elf_dyn_reloc_at(elf, fde->personality);
	if (r)
		return r->sym && r->sym_shndx == SHN_UNDEF ? 0 : r->sym_value + (uint64_t)r->addend;
	p = mp_elf_bytes(elf, fde->personality, sizeof(vaddr));
	if (p)
		memcpy(&vaddr, p, sizeof(vaddr));
	return vaddr;
}

/* Is @func such a routine? It asks for the region to read its tables. */
static bool is_routine(const struct mp_cfg *cfg, uint32_t func)
{
	const struct mp_fde *fdes = cfg->elf->fdes;

	for (uint32_t i = 0; i < cfg->elf->nr_fdes; i++) {
		if (!fdes[i].personality || (i && fdes[i].personality == fdes[i - 1].personality))
			continue;
		if (mp_cfg_func_at(cfg, routine_of(cfg->elf, &fdes[i])) == func)
			return true;
	}
	return false;
}

/*
 * libgcc's _Unwind_GetRegionStart(), in a static program without symbols, is known by its one load. The function
 * behind it is _Unwind_FindEnclosingFunction().
 */
static bool is_region_start(const struct mp_cfg *cfg, uint32_t func)
{
	static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b,
				       0x87, 0xb8, 0,	 0,    0,    0xc3};
	const struct mp_func *f = &cfg->funcs[func];
	const uint8_t *p = f->size >= 8 && f->size <= sizeof(code)
				   ? mp_elf_bytes(cfg->elf, f->vaddr, f->size)
				   : NULL;

	return p && (f->size == 8 || f->size == sizeof(code)) &&
	       !memcmp(p, code + sizeof(code) - f->size, f->size);
}

static uint32_t function_named(const struct mp_cfg *cfg, const char *name)
{
	for (uint32_t i = 0; i < cfg->elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &cfg->elf->symbols[i];

		if (sym->type == STT_FUNC && sym->shndx != SHN_UNDEF && sym->name &&
		    !strcmp(sym->name, name))
			return mp_cfg_func_at(cfg, sym->vaddr);
	}
	return MP_NONE;
}

/* A routine reads the region of its frame itself, or in a helper: some routine calls it, or another helper does. */
static bool is_for_tables(const struct mp_cfg *cfg, uint32_t func, int depth)
{
	if (is_routine(cfg, func) || strstr(cfg->funcs[func].name, "personality"))
		return true;
	for (uint32_t i = 0; depth && i < cfg->nr_calls; i++)
		if (cfg->calls[i].callee == func &&
		    is_for_tables(cfg, cfg->blocks[cfg->calls[i].block].func, depth - 1))
			return true;
	return false;
}

static bool contains_asking(const struct mp_cfg *cfg)
{
	uint32_t find = function_named(cfg, find_name), region = function_named(cfg, region_name);

	for (uint32_t f = 0; region == MP_NONE && f + 1 < cfg->nr_funcs; f++)
		if (is_region_start(cfg, f)) {
			region = f;
			find = f + 1;
		}
	/* The unwinder's own file exports both, and does not ask. */
	if (region == MP_NONE || cfg->funcs[region].flags & MP_FUNC_EXPORTED)
		return false;
	if (find != MP_NONE && cfg->funcs[find].flags & (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_POINTED))
		return true;
	for (uint32_t i = 0; i < cfg->nr_calls; i++) {
		uint32_t callee = cfg->calls[i].callee;

		if (callee != MP_NONE &&
		    (callee == find ||
		     (callee == region &&
		      !is_for_tables(cfg, cfg->blocks[cfg->calls[i].block].func, 2))))
			return true;
	}
	return false;
}

/* Only routines, which read their tables, may ask the unwinder's library for the region. */
static bool imports_region(const struct mp_cfg *cfg)
{
	struct me_import_use use;

	me_import_use_find(cfg, region_name, &use);
	for (uint32_t i = 0; i < use.nr_users; i++)
		if (!is_for_tables(cfg, use.users[i], 2))
			return true;
	return use.unknown || use.elsewhere;
}

enum asking {
	ASKS_NOT,
	ASKS_ANSWERED, /* in such a way that the output can answer for copies */
	ASKS,
};

/* @use: of the import of _Unwind_FindEnclosingFunction(). */
static enum asking asking_of(const struct mp_cfg *cfg, struct me_import_use *use)
{
	const struct mp_elf *elf = cfg->elf;
	bool finds = false, region = false;

	*use = (struct me_import_use){0};
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (!sym->dynamic || sym->shndx != SHN_UNDEF || !sym->name)
			continue;
		if (is_asking_import(sym->name))
			return ASKS;
		finds |= !strcmp(sym->name, find_name);
		region |= !strcmp(sym->name, region_name);
	}
	/* A file that imports these contains no unwinder. */
	if (region ? imports_region(cfg) : !finds && contains_asking(cfg))
		return ASKS;
	if (!finds)
		return ASKS_NOT;
	me_import_use_find(cfg, find_name, use);
	return use->unknown || use->unsure ? ASKS : use->nr_sites ? ASKS_ANSWERED : ASKS_NOT;
}

bool me_enclosing_answered(const struct mp_cfg *cfg, struct me_import_use *use)
{
	const struct mp_elf *elf = cfg->elf;
	bool finds = false;

	/* Most files import nothing of this. */
	for (uint32_t i = 0; i < elf->nr_symbols && !finds; i++)
		finds = elf->symbols[i].dynamic && elf->symbols[i].name &&
			!strcmp(elf->symbols[i].name, find_name);
	return finds && asking_of(cfg, use) == ASKS_ANSWERED;
}

/* ---- for which functions? ------------------------------------------------------------------ */

/*
 * Rust compares with addresses that code takes. Its words of data are vtables and pointers that are called, but
 * those in .got, which stand for operands.
 */
static bool is_rust(const struct mp_elf *elf)
{
	return elf->data && (memmem(elf->data, elf->size, "library/std/src/", 16) ||
			     memmem(elf->data, elf->size, "library/core/src/", 17));
}

struct looking {
	const struct mp_cfg *cfg;
	void (*found)(void *ctx, uint32_t func);
	void *ctx;
};

/* A part that a function took in, as one to which a table leads, has unwind information of its own. */
static bool begins_range(const struct mp_cfg *cfg, const struct mp_func *func, uint64_t vaddr)
{
	for (uint32_t i = func->first_range; i < func->first_range + func->nr_ranges; i++)
		if (cfg->ranges[i].start == vaddr)
			return true;
	return false;
}

static void look_at(const struct looking *x, const struct mp_reloc *r, bool rust)
{
	uint64_t to = r->sym_value + (uint64_t)r->addend;
	const struct mp_section *sec = mp_elf_section_at(x->cfg->elf, r->vaddr);
	uint32_t func;

	if (!sec || sec->flags & SHF_EXECINSTR || (rust && strcmp(sec->name, ".got")))
		return;
	func = mp_cfg_func_at(x->cfg, to);
	if (func != MP_NONE && begins_range(x->cfg, &x->cfg->funcs[func], to))
		x->found(x->ctx, func);
}

void me_enclosing_functions(const struct mp_cfg *cfg, void (*found)(void *ctx, uint32_t func),
			    void *ctx)
{
	const struct looking x = {cfg, found, ctx};
	const struct mp_elf *elf = cfg->elf;
	struct me_import_use use;
	enum asking asking = asking_of(cfg, &use);
	bool rust;

	for (uint32_t i = 0; i < use.nr_users; i++)
		found(ctx, use.users[i]);
	/* With answers, pointers of a relinkable file stay, its dynamic symbols, too: dladdr() would not name a copy. */
	for (uint32_t f = 0; asking == ASKS_ANSWERED && elf->relinkable && f < cfg->nr_funcs; f++)
		if (cfg->funcs[f].flags & MP_FUNC_EXPORTED)
			found(ctx, f);
	if (asking != ASKS)
		return;
	rust = is_rust(elf);
	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		uint32_t entry = mp_cfg_block_starting(cfg, func->vaddr);
		bool named = entry != MP_NONE && cfg->blocks[entry].flags & MP_BLOCK_NAMED;

		/* With fixed addresses, operands and words may be mere numbers. */
		if (named || (elf->ehdr.e_type == ET_EXEC &&
			      func->flags & (MP_FUNC_ADDRESS_TAKEN | MP_FUNC_POINTED)))
			found(ctx, f);
	}
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++)
		if (elf->dyn_relocs[i].type != R_X86_64_JUMP_SLOT)
			look_at(&x, &elf->dyn_relocs[i], rust);
	for (uint32_t i = 0; i < elf->nr_relocs; i++)
		if (elf->relocs[i].type == R_X86_64_64)
			look_at(&x, &elf->relocs[i], rust);
}
