// SPDX-License-Identifier: Apache-2.0
/* verify_odebug_pairs - instructions that both objects have, and what fields and lists say of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/object/debug/verify_odebug_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

static int compare_places(struct vo_place x, struct vo_place y)
{
	if (x.section != y.section)
		return x.section < y.section ? -1 : 1;
	return (x.off > y.off) - (x.off < y.off);
}

static int compare_old(const void *a, const void *b)
{
	return compare_places(((const struct od_pair *)a)->old, ((const struct od_pair *)b)->old);
}

static int compare_new(const void *a, const void *b)
{
	return compare_places(((const struct od_pair *)a)->new, ((const struct od_pair *)b)->new);
}

int od_pairs(struct od *od)
{
	const struct vo *vo = od->vo;

	od->nr_pairs = vo->nr_compared;
	od->by_old = calloc((size_t)vo->nr_compared + 1, sizeof(*od->by_old));
	od->by_new = calloc((size_t)vo->nr_compared + 1, sizeof(*od->by_new));
	if (!od->by_old || !od->by_new)
		return -ENOMEM;
	for (uint32_t i = 0; i < vo->nr_compared; i++) {
		const struct vo_compared *c = &vo->compared[i];

		od->by_old[i] = (struct od_pair){c->old, c->new, c->old_len, c->new_len};
		od->by_new[i] = od->by_old[i];
	}
	qsort(od->by_old, od->nr_pairs, sizeof(*od->by_old), compare_old);
	qsort(od->by_new, od->nr_pairs, sizeof(*od->by_new), compare_new);
	return 0;
}

/* The first pair whose place is not before @place. */
static uint32_t pair_at(const struct od *od, struct vo_place place, bool new)
{
	const struct od_pair *pairs = new ? od->by_new : od->by_old;

	return mp_search(i, 0, od->nr_pairs,
			 compare_places(new ? pairs[i].new : pairs[i].old, place) < 0);
}

static bool same_place(struct vo_place x, struct vo_place y)
{
	return x.section == y.section && x.off == y.off;
}

static bool is_pair_behind(struct od *od, struct vo_place old, struct vo_place new)
{
	uint32_t i = pair_at(od, old, false);
	bool known = false;

	while (i-- > 0 && od->by_old[i].old.section == old.section &&
	       od->by_old[i].old.off + 15 >= old.off) {
		const struct od_pair *p = &od->by_old[i];

		vd_spend(&od->work, 1);
		if (p->old.off + p->old_len != old.off)
			continue;
		known = true;
		if (p->new.section == new.section && p->new.off + p->new_len == new.off)
			return true;
	}
	return !known; /* code that nothing leads to */
}

bool od_is_pair(struct od *od, struct vo_place old, struct vo_place new, bool behind)
{
	uint32_t i;

	if (behind)
		return is_pair_behind(od, old, new);
	vo_pass(od->vo, &od->vo->old, &old);
	vo_pass(od->vo, &od->vo->new, &new);
	i = pair_at(od, old, false);
	if (i == od->nr_pairs || !same_place(od->by_old[i].old, old))
		return true; /* code that nothing leads to */
	for (; i < od->nr_pairs && same_place(od->by_old[i].old, old) && vd_spend(&od->work, 1);
	     i++)
		if (same_place(od->by_old[i].new, new))
			return true;
	return false;
}

/* ---- fields that must be the same ------------------------------------------------------------ */

static bool same_program(const struct od *od, uint64_t old, uint64_t new)
{
	uint32_t i = mp_search(k, 0, od->old.nr_programs, od->old.programs[k] < old);

	return i < od->old.nr_programs && od->old.programs[i] == old && od->new.programs[i] == new;
}

static bool same_reloc(struct od *od, const Elf64_Rela *x, const Elf64_Rela *y)
{
	const struct mp_relobj *obj = od->vo->old.obj;
	const Elf64_Sym *a = &obj->symbols[ELF64_R_SYM(x->r_info)];
	const Elf64_Sym *b = &od->vo->new.obj->symbols[ELF64_R_SYM(y->r_info)];
	struct vo_ref was, now;

	if (od->old.line && a->st_shndx == od->old.line)
		return od->new.line == b->st_shndx &&ELF64_R_TYPE(x->r_info) ==
			       ELF64_R_TYPE(y->r_info) &&
		       same_program(od, a->st_value + (uint64_t)x->r_addend,
				    b->st_value + (uint64_t)y->r_addend);
	if (vo_same_symbol(od->vo, x, y))
		return true;
	was = vo_ref_of(&od->vo->old, x, 0);
	now = vo_ref_of(&od->vo->new, y, 0);
	return was.code && now.code && ELF64_R_TYPE(x->r_info) == R_X86_64_64 &&
	       ELF64_R_TYPE(y->r_info) == R_X86_64_64 &&
	       od_is_pair(od, was.place, now.place, false);
}

bool od_same_bytes(struct od *od, struct vo_place old, struct vo_place new, uint64_t size)
{
	const struct mp_relobj_section *a = &od->vo->old.obj->sections[old.section];
	const struct mp_relobj_section *b = &od->vo->new.obj->sections[new.section];
	uint32_t i = mp_relobj_reloc_at(a, old.off), k = mp_relobj_reloc_at(b, new.off);

	if (!size)
		return true;
	if (!a->data || !b->data || size > a->header.sh_size || size > b->header.sh_size ||
	    old.off > a->header.sh_size - size || new.off > b->header.sh_size - size ||
	    memcmp(a->data + old.off, b->data + new.off, size))
		return false;
	for (;; i++, k++) {
		bool x = i < a->nr_relocs && a->relocs[i].r_offset < old.off + size;
		bool y = k < b->nr_relocs && b->relocs[k].r_offset < new.off + size;

		if (!x || !y)
			return x == y;
		if (a->relocs[i].r_offset - old.off != b->relocs[k].r_offset - new.off ||
		    !same_reloc(od, &a->relocs[i], &b->relocs[k]))
			return false;
	}
}

/* ---- lists -------------------------------------------------------------------------------------- */

bool od_add_range(struct od_list *list, const struct od_range *range)
{
	if (mp_grow(list->list, list->cap, (uint64_t)list->nr + 1))
		return false;
	list->list[list->nr++] = *range;
	return true;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct od_range *x = a, *y = b;

	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

/* Sorts the list, unless its order may matter since two ranges overlap. */
static bool sort_list(struct od_list *list)
{
	struct od_range *copy = malloc(list->nr * sizeof(*copy) + 1);

	if (!copy)
		return false;
	list->sorted = true;
	if (list->nr) {
		memcpy(copy, list->list, list->nr * sizeof(*copy));
		qsort(copy, list->nr, sizeof(*copy), compare_ranges);
	}
	for (uint32_t i = 0; i < list->nr; i++)
		if (copy[i].anywhere || (i && copy[i - 1].section == copy[i].section &&
					 copy[i - 1].end > copy[i].start))
			list->sorted = false;
	if (list->sorted && list->nr)
		memcpy(list->list, copy, list->nr * sizeof(*copy));
	free(copy);
	return true;
}

static bool holds(const struct od_range *range, struct vo_place place)
{
	return range->anywhere || (range->section == place.section && range->start <= place.off &&
				   place.off < range->end);
}

/* The first range at or behind number @from that holds at @place. */
static const struct od_range *next_at(struct od_list *list, struct vo_place place, uint32_t *from)
{
	const struct od_range *r = list->list;
	uint32_t low;

	if (!list->sorted) {
		while (*from < list->nr)
			if (holds(&list->list[(*from)++], place))
				return &list->list[*from - 1];
		return NULL;
	}
	if (*from)
		return NULL;
	*from = 1;
	/* The next instruction usually lies in the same range. */
	if (list->near < list->nr && holds(&list->list[list->near], place))
		return &list->list[list->near];
	low = mp_search(i, 0, list->nr,
			r[i].section < place.section ||
				(r[i].section == place.section && r[i].start <= place.off));
	if (!low || !holds(&list->list[low - 1], place))
		return NULL;
	list->near = low - 1;
	return &list->list[low - 1];
}

static bool same_expr(struct od *od, const struct od_list *old, const struct od_list *new,
		      const struct od_range *x, const struct od_range *y)
{
	const struct vo_place a = {old->section, (uint32_t)x->expr};
	const struct vo_place b = {new->section, (uint32_t)y->expr};

	if (x->expr_size != y->expr_size || x->anywhere != y->anywhere)
		return false;
	/* The next instruction usually lies in the same two ranges. */
	if (!x->expr_size || (same_place(a, od->same.old) && same_place(b, od->same.new) &&
			      x->expr_size == od->same_size))
		return true;
	if (!vd_spend(&od->work, x->expr_size) || !od_same_bytes(od, a, b, x->expr_size))
		return false;
	od->same.old = a;
	od->same.new = b;
	od->same_size = x->expr_size;
	return true;
}

static bool same_at(struct od *od, struct od_list *old, struct od_list *new, struct vo_place a,
		    struct vo_place b)
{
	uint32_t i = 0, k = 0;

	for (;;) {
		const struct od_range *x = next_at(old, a, &i), *y = next_at(new, b, &k);

		if (!x || !y)
			return vd_spend(&od->work, i + k) && !x && !y;
		if (!same_expr(od, old, new, x, y))
			return false;
	}
}

static bool same_at_pair(struct od *od, struct od_list *old, struct od_list *new,
			 const struct od_pair *p)
{
	struct vo_place a = p->old, b = p->new;

	if (!same_at(od, old, new, a, b))
		return false;
	a.off += p->old_len - 1u;
	b.off += p->new_len - 1u;
	return same_at(od, old, new, a, b);
}

/* Compares at all pairs in ranges of @of, which is one of the lists. */
static bool same_in(struct od *od, struct od_list *old, struct od_list *new,
		    const struct od_list *of)
{
	bool is_new = of == new;
	const struct od_pair *pairs = is_new ? od->by_new : od->by_old;

	for (uint32_t r = 0; r < of->nr; r++) {
		const struct od_range *range = &of->list[r];
		struct vo_place from = {range->section,
					range->start > 14 ? (uint32_t)range->start - 14 : 0};

		/* Instructions that begin before the range may end in it. */
		for (uint32_t i = pair_at(od, from, is_new); !range->anywhere && i < od->nr_pairs;
		     i++) {
			struct vo_place at = is_new ? pairs[i].new : pairs[i].old;

			if (at.section != range->section || at.off >= range->end)
				break;
			if (!same_at_pair(od, old, new, &pairs[i]))
				return false;
		}
	}
	return true;
}

/* A range that ends behind its section would be true of what a linker puts there. */
static bool in_sections(const struct od *od, const struct od_list *new)
{
	for (const struct od_range *r = new->list; r < new->list + new->nr; r++)
		if (r->section && r->end > od->vo->new.obj->sections[r->section].header.sh_size)
			return false;
	return true;
}

bool od_same_lists(struct od *od, struct od_list *old, struct od_list *new)
{
	if (!in_sections(od, new))
		return false;
	if (!sort_list(old) || !sort_list(new)) {
		od->vo->old.no_memory = true;
		return false;
	}
	return same_in(od, old, new, old) && same_in(od, old, new, new);
}
