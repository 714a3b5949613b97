// SPDX-License-Identifier: Apache-2.0
/* unowned_samples - collects samples in code that belongs to no function. Called by optimize. */
#include "editor/evidence/unowned_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"

struct place {
	uint64_t vaddr;
	const char *name; /* NULL: a function's range or a section starts or ends here */
};

struct places {
	struct place *list; /* ascending vaddr: bounds of stretches */
	uint32_t nr;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int compare_samples(const void *a, const void *b)
{
	const struct me_unowned_samples *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static bool names_code(const struct mp_elf *elf, const struct mp_symbol *sym)
{
	return *sym->name && sym->shndx < elf->nr_sections &&
	       (elf->sections[sym->shndx].flags & SHF_EXECINSTR) &&
	       (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC || sym->type == STT_NOTYPE);
}

static int find_places(const struct mp_cfg *cfg, struct places *places)
{
	const struct mp_elf *elf = cfg->elf;
	size_t most = 2 * (size_t)cfg->nr_ranges + 2 * (size_t)elf->nr_sections + elf->nr_symbols;
	struct place *list = calloc(most + 1, sizeof(*list));
	uint32_t nr = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < cfg->nr_ranges; i++) {
		list[nr++].vaddr = cfg->ranges[i].start;
		list[nr++].vaddr = cfg->ranges[i].start + cfg->ranges[i].size;
	}
	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		if (!(elf->sections[i].flags & SHF_EXECINSTR))
			continue;
		list[nr++].vaddr = elf->sections[i].vaddr;
		list[nr++].vaddr = elf->sections[i].vaddr + elf->sections[i].size;
	}
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (names_code(elf, &elf->symbols[i]))
			list[nr++] = (struct place){elf->symbols[i].vaddr, elf->symbols[i].name};
	qsort(list, nr, sizeof(*list), compare_places);
	*places = (struct places){list, nr};
	return 0;
}

/* Index of the first place behind @vaddr. */
static uint32_t place_behind(const struct places *places, uint64_t vaddr)
{
	return mp_search(i, 0, places->nr, places->list[i].vaddr <= vaddr);
}

static int stretch_at(const struct mp_elf *elf, const struct places *places, uint64_t vaddr,
		      struct me_unowned_samples *o)
{
	const struct mp_section *sec = mp_elf_section_at(elf, vaddr);
	uint32_t next = place_behind(places, vaddr);

	*o = (struct me_unowned_samples){.vaddr = next ? places->list[next - 1].vaddr : vaddr,
					 .size = 1};
	if (next < places->nr)
		o->size = places->list[next].vaddr - o->vaddr;
	for (uint32_t i = next; i-- > 0 && sec && places->list[i].vaddr >= sec->vaddr;) {
		if (!places->list[i].name)
			continue;
		o->near = strdup(places->list[i].name);
		o->offset = o->vaddr - places->list[i].vaddr;
		return o->near ? 0 : -ENOMEM;
	}
	return 0;
}

static int add_count(const struct mp_cfg *cfg, const struct places *places,
		     const struct mp_ip_count *count, struct me_unowned_samples_list *out)
{
	struct me_unowned_samples *last = out->nr ? &out->list[out->nr - 1] : NULL;

	if (!last || count->vaddr - last->vaddr >= last->size) {
		if (!(out->nr & (out->nr - 1))) { /* 0, 1, 2, 4, ... */
			struct me_unowned_samples *grown = reallocarray(
				out->list, out->nr ? 2 * (size_t)out->nr : 1, sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			out->list = grown;
		}
		last = &out->list[out->nr++];
		if (stretch_at(cfg->elf, places, count->vaddr, last))
			return -ENOMEM;
	}
	last->samples += count->count;
	out->samples += count->count;
	return 0;
}

int me_unowned_samples_find(const struct mp_cfg *cfg, const struct mp_ip_count *counts, size_t nr,
			    struct me_unowned_samples_list *out)
{
	struct places places = {0};
	int ret = 0;

	*out = (struct me_unowned_samples_list){0};
	for (size_t i = 0; i < nr && !ret; i++) {
		if (mp_cfg_func_at(cfg, counts[i].vaddr) != MP_NONE)
			continue;
		if (!places.list)
			ret = find_places(cfg, &places);
		if (!ret)
			ret = add_count(cfg, &places, &counts[i], out);
	}
	free(places.list);
	if (ret)
		me_unowned_samples_fini(out);
	else if (out->nr)
		qsort(out->list, out->nr, sizeof(*out->list), compare_samples);
	return ret;
}

void me_unowned_samples_fini(struct me_unowned_samples_list *list)
{
	for (uint32_t i = 0; i < list->nr; i++)
		free(list->list[i].near);
	free(list->list);
	*list = (struct me_unowned_samples_list){0};
}
