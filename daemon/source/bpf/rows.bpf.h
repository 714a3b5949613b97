/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rows - looks up unwind rows in the slabs that bpf_rows fills; see wire_rows.h. A wrong position
 * gives a wrong rule, but leads out of no slab. Called by walk.
 */
#ifndef MD_BPF_ROWS_H
#define MD_BPF_ROWS_H

#include "daemon/source/bpf/wire_rows.h"

enum code_kind {
	CODE_ROWS,
	CODE_BARE,  /* it is known to have no rows, as code of a JIT compiler */
	CODE_ASKED, /* morphd did not give its rows yet, or cannot read the file */
};

/* Executable memory from @start on. */
struct code {
	__u64 start, size;
	__u64 bias; /* + the run-time address: the link-time address */
	__u64 base;
	__u32 nr_pages, directory, rules;
	__u32 kind;
};

struct slab {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__uint(value_size, MD_WIRE_SLAB_ROOM);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MD_WIRE_SLABS);
	__type(key, __u32);
	__array(values, struct slab);
} slabs SEC(".maps");

/* Return: the slab that has @position; NULL: there is none. */
static __always_inline const __u8 *slab_of(__u32 position)
{
	__u32 nr = position >> MD_WIRE_SLAB_SHIFT, first = 0;
	void *slab = bpf_map_lookup_elem(&slabs, &nr);

	return slab ? bpf_map_lookup_elem(slab, &first) : NULL;
}

/* The same, where @slab has @known. Most files lie in one slab. */
static __always_inline const __u8 *slab_of_next(__u32 position, const __u8 *slab, __u32 known)
{
	return (position ^ known) >> MD_WIRE_SLAB_SHIFT ? slab_of(position) : slab;
}

/* @position modulo the slab's size, as a multiple of @align that the verifier can bound. */
static __always_inline __u64 in_slab(__u64 position, __u32 align)
{
	hide(position);
	position &= MD_WIRE_SLAB - align;
	hide(position);
	return position;
}

/*
 * The last of the rows @from to @from + @nr - 1 of a page that begins at or below @low, or the
 * one before. Comparisons are differences: branches would multiply the verifier's work.
 */
static __always_inline __u32 search(const __u8 *slab, __u64 rows, __u64 from, __u64 nr, __u64 low)
{
	__u64 half, is_below;
	__u32 i;

	for (i = 0; i < MD_WIRE_SEARCH_STEPS && nr; i++) {
		half = (nr + 1) / 2;
		is_below = *(const __u16 *)(slab + in_slab(rows + (from + half - 1) * 4, 4));
		is_below = (__u64)((__s64)(is_below - low - 1) >> 63);
		from += half & is_below;
		nr -= half;
	}
	return from ? from - 1 : 0;
}

/*
 * Copies the rule of the link-time address @vaddr. Return: false: the file has no row there. It is not
 * static: the verifier checks it on its own, once.
 */
bool find_rule(const struct code *code, __u64 vaddr, struct morph_row_rule *rule);
__noinline bool find_rule(const struct code *code, __u64 vaddr, struct morph_row_rule *rule)
{
	__u64 off, low = vaddr & (MORPH_ROWS_PAGE - 1), from, to, *words;
	const __u8 *slab;
	__u32 page, number;

	if (!code || !rule)
		return false;
	off = vaddr - code->base;
	slab = slab_of(code->directory);
	if (off / MORPH_ROWS_PAGE >= code->nr_pages || !slab)
		return false;
	page = *(const __u32 *)(slab + in_slab(code->directory + off / MORPH_ROWS_PAGE * 4, 4));
	slab = page ? slab_of_next(page, slab, code->directory) : NULL;
	if (!slab)
		return false;
	off = page + (low >> MD_WIRE_GRANULE_SHIFT) * 2;
	from = *(const __u16 *)(slab + in_slab(off, 2));
	to = *(const __u16 *)(slab + in_slab(off + 2, 2));
	if (to < from)
		return false;
	off = page + sizeof(struct md_wire_page);
	number = search(slab, off, from, to - from, low);
	number = *(const __u16 *)(slab + in_slab(off + number * 4 + 2, 2));
	off = code->rules + number * sizeof(*rule);
	slab = slab_of_next(off, slab, page);
	if (!slab)
		return false;
	words = (__u64 *)(slab + in_slab(off, 8));
	((__u64 *)rule)[0] = words[0];
	((__u64 *)rule)[1] = words[1];
	((__u64 *)rule)[2] = words[2];
	return true;
}

#endif
