// SPDX-License-Identifier: Apache-2.0
/*
 * verify_symbol_fdes - finds functions without unwind information, whose bounds only a symbol
 * gives.
 *
 * Each becomes an FDE without a program, so that its code is read, and its copies are proved,
 * like any other function's. A symbol that overlaps an FDE, or a symbol other than its own
 * aliases, is left out; pieces of its code are then refused. verify_eh calls this for the
 * original.
 *
 * A program may copy such code elsewhere, as V8 copies its built-in functions. It then finds their
 * beginning by a label, a symbol without type and size. So functions behind such a label must stay.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/elf/elf.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_symbol_fdes.h"
#include "libprof/base/search.h"

static int by_start(const void *a, const void *b)
{
	const struct vf_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

static bool bounds_code(const struct mp_elf *elf, const struct mp_symbol *sym)
{
	const struct mp_section *sec;

	if ((sym->type != STT_FUNC && sym->type != STT_GNU_IFUNC) || !sym->size ||
	    sym->shndx == SHN_UNDEF || sym->shndx >= elf->nr_sections)
		return false;
	sec = &elf->sections[sym->shndx];
	return (sec->flags & SHF_ALLOC) && (sec->flags & SHF_EXECINSTR) &&
	       sym->vaddr >= sec->vaddr && sym->vaddr - sec->vaddr < sec->size &&
	       sym->size <= sec->size - (sym->vaddr - sec->vaddr);
}

/* Index of the first FDE that ends behind @vaddr. */
static uint32_t first_behind(const struct vf_eh *eh, uint64_t vaddr)
{
	return mp_search(i, 0, eh->nr_fdes, eh->fdes[i].start + eh->fdes[i].size <= vaddr);
}

static bool overlaps_fde(const struct vf_eh *eh, uint64_t start, uint64_t size)
{
	uint32_t i = first_behind(eh, start);

	return i < eh->nr_fdes && eh->fdes[i].start < start + size;
}

/*
 * Mark those of @bare, ascending and outside of all FDEs, that lie behind a label without an FDE
 * between. Each symbol is looked at once.
 */
static void mark_named_code(const struct vf_eh *eh, struct vf_fde *bare, uint32_t nr)
{
	for (uint32_t i = 0; i < eh->elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &eh->elf->symbols[i];
		uint32_t fde = first_behind(eh, sym->vaddr), lo;
		uint64_t end = fde < eh->nr_fdes ? eh->fdes[fde].start : UINT64_MAX;

		if (sym->type != STT_NOTYPE || sym->size || sym->shndx >= eh->elf->nr_sections ||
		    !(eh->elf->sections[sym->shndx].flags & SHF_EXECINSTR))
			continue;
		lo = mp_search(k, 0, nr, bare[k].start < sym->vaddr);
		/* A label inside a function names no area. */
		if (lo && sym->vaddr < bare[lo - 1].start + bare[lo - 1].size)
			continue;
		for (; lo < nr && bare[lo].start < end && !(bare[lo].flags & VF_FDE_NAMED_CODE);
		     lo++)
			bare[lo].flags |= VF_FDE_NAMED_CODE;
	}
}

/* Remove duplicates from @bare, and all that overlap another one. Return: how many are left. */
static uint32_t drop_overlapping(struct vf_fde *bare, uint32_t nr)
{
	uint64_t reached = 0;
	uint32_t out = 0, same;

	for (uint32_t i = 0; i < nr; i += same) {
		const struct vf_fde fde = bare[i];
		bool alone = fde.start >= reached;

		for (same = 1; i + same < nr && bare[i + same].start == fde.start &&
			       bare[i + same].size == fde.size;)
			same++;
		if (i + same < nr && bare[i + same].start < fde.start + fde.size)
			alone = false;
		if (fde.start + fde.size > reached)
			reached = fde.start + fde.size;
		if (alone)
			bare[out++] = fde;
	}
	return out;
}

/* Append one CIE for all bare functions. */
static int add_cie(struct vf_eh *eh)
{
	const struct vf_cie cie = {
		.vaddr = UINT64_MAX,
		.insns = (const uint8_t *)"",
		.code_align = 1,
		.data_align = -8,
		.ra = 16,
		.version = 1,
	};

	return mp_push(eh->cies, eh->nr_cies, eh->max_cies, cie);
}

int vf_add_symbol_fdes(struct vf_eh *eh)
{
	const struct mp_elf *elf = eh->elf;
	struct vf_fde *all = malloc(((size_t)eh->nr_fdes + elf->nr_symbols + 1) * sizeof(*all));
	struct vf_fde *bare = all ? all + eh->nr_fdes : NULL;
	uint32_t nr = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (bounds_code(elf, sym) && !overlaps_fde(eh, sym->vaddr, sym->size))
			bare[nr++] = (struct vf_fde){
				.start = sym->vaddr,
				.size = sym->size,
				.insns = (const uint8_t *)"",
				.cie = eh->nr_cies,
				.flags = VF_FDE_SYMBOL_ONLY,
			};
	}
	if (nr)
		qsort(bare, nr, sizeof(*bare), by_start);
	nr = drop_overlapping(bare, nr);
	mark_named_code(eh, bare, nr);
	if (!nr || add_cie(eh)) {
		free(all);
		return nr ? -ENOMEM : 0;
	}
	if (eh->nr_fdes)
		memcpy(all, eh->fdes, eh->nr_fdes * sizeof(*all));
	free(eh->fdes);
	eh->fdes = all;
	eh->nr_fdes += nr;
	eh->max_fdes = eh->nr_fdes;
	eh->nr_symbol_only = nr;
	qsort(all, eh->nr_fdes, sizeof(*all), by_start);
	return 0;
}
