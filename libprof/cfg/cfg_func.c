// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_func - decides which functions exist: FDEs first, then symbols that no FDE covers.
 * Each function has one range at first; cfg_cold joins them. Called by mp_cfg_build()
 * before anything is decoded.
 */
#include <errno.h>

#include "libprof/cfg/cfg_private.h"

static bool is_func_symbol(const struct mp_symbol *sym)
{
	return (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC) && sym->shndx != SHN_UNDEF;
}

/* A lower rank is the better name: global before weak before local, sized before unsized. */
static int symbol_rank(const struct mp_symbol *sym)
{
	return (sym->bind == STB_GLOBAL ? 0 : sym->bind == STB_WEAK ? 2 : 4) + (sym->size ? 0 : 1);
}

static int compare_symbols(const void *a, const void *b, void *ctx)
{
	const struct mp_elf *elf = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct mp_symbol *x = &elf->symbols[i], *y = &elf->symbols[j];
	int rx = symbol_rank(x), ry = symbol_rank(y);

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (rx != ry)
		return rx - ry;
	return i < j ? -1 : i > j;
}

static uint32_t *sort_symbols(const struct mp_elf *elf, uint32_t *nr)
{
	uint32_t *order = calloc((size_t)elf->nr_symbols + 1, sizeof(*order));

	*nr = 0;
	if (!order)
		return NULL;
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (is_func_symbol(&elf->symbols[i]))
			order[(*nr)++] = i;
	qsort_r(order, *nr, sizeof(*order), compare_symbols, (void *)elf);
	return order;
}

struct claim {
	uint64_t start, end;
	uint32_t fde; /* MP_NONE: the claim comes from a symbol */
	bool overlap;
	bool cut; /* comes from a symbol, and another claim gives a different end */
};

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->fde < y->fde ? -1 : x->fde > y->fde;
}

/* Size of the text at @vaddr, at most @size and within its segment; 0 if there is no text. */
static uint64_t clip_to_text(const struct mp_cfg_build *b, uint64_t vaddr, uint64_t size)
{
	uint32_t at = mp_space_at(b->index, vaddr);
	const struct mp_span *span;
	uint64_t left;

	if (at == MP_NONE || !mp_space_is_text(b->index, at))
		return 0;
	span = mp_space_span(b->index, at);
	left = span->size - (at - span->at);
	return size < left ? size : left;
}

/* Every FDE, and every symbol with a size whose start no FDE covers; ascending. */
static struct claim *collect_claims(const struct mp_cfg_build *b, const uint32_t *order,
				    uint32_t nr_symbols, uint32_t *nr)
{
	const struct mp_elf *elf = b->elf;
	struct claim *claims = calloc((size_t)elf->nr_fdes + nr_symbols + 1, sizeof(*claims));
	uint64_t covered = 0;
	uint32_t fde = 0;

	*nr = 0;
	if (!claims)
		return NULL;
	for (uint32_t i = 0; i < elf->nr_fdes; i++) {
		const struct mp_fde *f = &elf->fdes[i];
		uint64_t size = clip_to_text(b, f->start, f->size);

		if (size)
			claims[(*nr)++] =
				(struct claim){f->start, f->start + size, i, false, false};
	}
	for (uint32_t i = 0; i < nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[order[i]];
		uint64_t size;

		while (fde < elf->nr_fdes && elf->fdes[fde].start <= sym->vaddr) {
			uint64_t end = elf->fdes[fde].start + elf->fdes[fde].size;

			if (end > covered)
				covered = end;
			fde++;
		}
		size = sym->vaddr < covered ? 0 : clip_to_text(b, sym->vaddr, sym->size);
		if (size)
			claims[(*nr)++] = (struct claim){sym->vaddr, sym->vaddr + size, MP_NONE,
							 false, size != sym->size};
	}
	qsort(claims, *nr, sizeof(*claims), compare_claims);
	return claims;
}

/* Two symbols at one place: keep the larger end. */
static void join_claims(struct claim *one, const struct claim *other)
{
	one->cut |= other->cut || other->end != one->end;
	if (other->end > one->end)
		one->end = other->end;
}

/*
 * Claims must not overlap. Overlapping FDEs are damaged or hand-made; symbols are only
 * shortened.
 */
static uint32_t separate_claims(struct claim *claims, uint32_t nr)
{
	uint32_t out = 0;

	for (uint32_t i = 0; i < nr; i++) {
		struct claim *last = out ? &claims[out - 1] : NULL;

		if (last && claims[i].start == last->start) {
			if (claims[i].fde != MP_NONE)
				last->overlap = true;
			else if (last->fde == MP_NONE)
				join_claims(last, &claims[i]);
			continue;
		}
		if (last && claims[i].start < last->end) {
			if (last->fde != MP_NONE) {
				last->overlap = true;
				claims[i].overlap = true;
			}
			last->end = claims[i].start;
			last->cut = claims[i].cut = true;
		}
		claims[out++] = claims[i];
	}
	return out;
}

static void name_func(const struct mp_cfg_build *b, struct mp_func *func, const uint32_t *order,
		      uint32_t nr, uint32_t *next)
{
	const struct mp_elf *elf = b->elf;

	while (*next < nr && elf->symbols[order[*next]].vaddr < func->vaddr)
		++*next;
	for (uint32_t i = *next; i < nr; i++) {
		const struct mp_symbol *sym = &elf->symbols[order[i]];

		if (sym->vaddr != func->vaddr)
			break;
		if (func->symbol == MP_NONE) {
			func->symbol = order[i];
			func->name = sym->name;
		}
		if (sym->dynamic)
			func->flags |= MP_FUNC_EXPORTED;
		if (sym->type == STT_GNU_IFUNC)
			func->flags |= MP_FUNC_IFUNC;
	}
}

static bool is_special_section(const struct mp_section *sec)
{
	return sec && (!strncmp(sec->name, ".plt", 4) || !strcmp(sec->name, ".iplt") ||
		       !strcmp(sec->name, ".init") || !strcmp(sec->name, ".fini"));
}

static void mark_special(const struct mp_cfg_build *b, struct mp_func *func,
			 const struct claim *claim)
{
	if (claim->overlap)
		mp_func_problem(func, MP_PROBLEM_OVERLAP, claim->start);
	if (func->vaddr == b->elf->ehdr.e_entry ||
	    is_special_section(mp_elf_section_at(b->elf, func->vaddr)))
		mp_func_problem(func, MP_PROBLEM_SPECIAL, claim->start);
	/*
	 * The program writes to such code: a copy would not see that, and could overwrite a
	 * patch.
	 */
	if (!mp_elf_is_readonly(b->elf, func->vaddr))
		mp_func_problem(func, MP_PROBLEM_WRITABLE, claim->start);
	if (claim->fde == MP_NONE)
		func->flags |= MP_FUNC_BARE;
	if (claim->fde == MP_NONE && claim->cut)
		mp_func_problem(func, MP_PROBLEM_NO_FDE, claim->start);
	else if (claim->fde != MP_NONE && b->elf->fdes[claim->fde].signal_frame)
		mp_func_problem(func, MP_PROBLEM_SIGNAL_FRAME, claim->start);
}

/* Marks ifunc resolvers that have no symbol: the loader calls them to fill in a word. */
static void mark_resolvers(const struct mp_cfg_build *b)
{
	for (uint32_t i = 0; i < b->elf->nr_dyn_relocs; i++) {
		const struct mp_reloc *rel = &b->elf->dyn_relocs[i];
		uint32_t at = mp_space_at(b->index, (uint64_t)rel->addend), part;

		if (rel->type != R_X86_64_IRELATIVE || at == MP_NONE)
			continue;
		part = mp_part_at(b->index, at);
		if (part != MP_NONE && b->index->parts[part].at == at)
			b->cfg->funcs[part].flags |= MP_FUNC_IFUNC;
	}
}

/* Lookups of parts are frequent, and a page holds few parts. */
static int make_hints(struct mp_cfg_index *index)
{
	uint32_t nr = (index->nr_bytes >> MP_HINT_SHIFT) + 2, part = 0;

	index->part_hint = malloc(nr * sizeof(*index->part_hint));
	if (!index->part_hint)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		while (part < index->nr_parts && index->parts[part].end <= (uint64_t)i
										   << MP_HINT_SHIFT)
			part++;
		index->part_hint[i] = part;
	}
	return 0;
}

static void find_words(struct mp_cfg_index *index)
{
	uint32_t at = index->nr_bytes, end = 0;

	for (uint32_t i = 0; i < index->nr_text; i++) {
		at = index->text[i].at < at ? index->text[i].at : at;
		end = index->text[i].end > end ? index->text[i].end : end;
	}
	for (uint32_t p = 0; p < index->nr_parts; p++) {
		at = index->parts[p].at < at ? index->parts[p].at : at;
		end = index->parts[p].end > end ? index->parts[p].end : end;
	}
	index->first_word = at / 64;
	index->nr_words = end > at ? end / 64 + 1 - index->first_word : 0;
}

int mp_cfg_find_funcs(struct mp_cfg_build *b)
{
	struct mp_cfg_index *index = b->index;
	struct mp_cfg *cfg = b->cfg;
	uint32_t nr_symbols, nr = 0, next = 0;
	struct claim *claims = NULL;
	uint32_t *order;
	int ret = -ENOMEM;

	order = sort_symbols(b->elf, &nr_symbols);
	if (!order)
		goto out;
	claims = collect_claims(b, order, nr_symbols, &nr);
	if (!claims)
		goto out;
	nr = separate_claims(claims, nr);
	cfg->funcs = calloc((size_t)nr + 1, sizeof(*cfg->funcs));
	cfg->ranges = calloc((size_t)nr + 1, sizeof(*cfg->ranges));
	index->parts = calloc((size_t)nr + 1, sizeof(*index->parts));
	if (!cfg->funcs || !cfg->ranges || !index->parts)
		goto out;
	for (uint32_t i = 0; i < nr; i++) {
		const struct claim *claim = &claims[i];
		struct mp_func *func = &cfg->funcs[i];
		uint32_t at = mp_space_at(index, claim->start);

		func->vaddr = claim->start;
		func->size = claim->end - claim->start;
		func->name = "";
		func->symbol = MP_NONE;
		func->first_range = i;
		func->nr_ranges = 1;
		cfg->ranges[i] = (struct mp_range){claim->start, func->size, i, claim->fde, false};
		index->parts[i] = (struct mp_part){
			.at = at,
			.end = at + (uint32_t)func->size,
			.range = i,
			.func = i,
		};
		mp_bit_set(b->entries, at);
		mp_bit_set(index->targets, at);
		name_func(b, func, order, nr_symbols, &next);
		mark_special(b, func, claim);
	}
	cfg->nr_funcs = cfg->nr_ranges = index->nr_parts = nr;
	find_words(index);
	ret = make_hints(index);
	if (!ret)
		mark_resolvers(b);
out:
	free(order);
	free(claims);
	return ret;
}
