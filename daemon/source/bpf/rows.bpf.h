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
 * The rule of the last of the rows @from to @from + @nr - 1 of a wide page that begins at or below @low, or
 * of the one before. Comparisons are differences: branches would multiply the verifier's work.
 */
static __always_inline __u32 search_wide(const __u8 *slab, __u64 rows, __u64 from, __u64 nr,
					 __u64 low)
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
	from -= from > 0;
	return *(const __u16 *)(slab + in_slab(rows + from * 4 + 2, 2));
}

/* Goes through the rows of a granule of a narrow page. */
struct narrow {
	const __u8 *slab;
	__u64 pairs;	/* position */
	__u64 from, to; /* positions of codes */
	__u64 left;	/* bytes to the address that is looked up */
	__u64 number;	/* index of the rule that holds so far */
	__u64 shift;	/* of the distance in a pair */
};

/* Goes to the next row, if it does not begin above the address. */
static long narrow_step(__u32 i, struct narrow *n)
{
	const __u8 *slab = n->slab;
	__u64 code, bits, distance, index;

	(void)i;
	if (n->from >= n->to)
		return 1;
	code = *(slab + in_slab(n->from++, 1));
	if (code < MD_WIRE_SHORT) {
		bits = *(const __u16 *)(slab + in_slab(n->pairs + code * 2, 2));
		distance = bits >> n->shift;
		index = bits & ((1 << n->shift) - 1);
	} else {
		bits = *(slab + in_slab(n->from++, 1));
		if (code < MD_WIRE_LONG) {
			bits |= (code - MD_WIRE_SHORT) << 8;
			distance = bits >> MD_WIRE_SHORT_SHIFT;
			index = bits & ((1 << MD_WIRE_SHORT_SHIFT) - 1);
		} else {
			distance = (code & 1) << 8 | bits;
			index = *(slab + in_slab(n->from++, 1));
		}
	}
	if (distance > n->left)
		return 1;
	n->left -= distance;
	n->number = index;
	return 0;
}

/*
 * The same of a narrow page, whose parts begin at @parts: its rows have codes @from to @to - 1. The verifier of
 * Linux 6.1 would follow a loop of this program through each of its steps.
 */
static __always_inline __u32 search_narrow(const __u8 *slab, __u64 parts, __u32 kinds, __u64 from,
					   __u64 to, __u64 low)
{
	__u64 numbers = parts + MD_WIRE_GRANULES;
	struct narrow n = {
		.slab = slab,
		.pairs = numbers + (kinds & 0xff) * 2,
		.left = low & ((1 << MD_WIRE_GRANULE_SHIFT) - 1),
		.number = *(slab + in_slab(parts + (low >> MD_WIRE_GRANULE_SHIFT), 1)),
		.shift = (kinds & 0xff) > MD_WIRE_FEW_NUMBERS ? 8 : 7,
	};

	n.from = n.pairs + (kinds >> 8) * 2 + from;
	n.to = n.pairs + (kinds >> 8) * 2 + to;
	bpf_loop(MD_WIRE_STEPS_MAX, narrow_step, &n, 0);
	return *(const __u16 *)(slab + in_slab(numbers + n.number * 2, 2));
}

/*
 * Copies the rule of the link-time address @vaddr. Return: false: the file has no row there. It is not
 * static: the verifier checks it on its own, once.
 */
bool find_rule(const struct code *code, __u64 vaddr, struct morph_row_rule *rule);
__noinline bool find_rule(const struct code *code, __u64 vaddr, struct morph_row_rule *rule)
{
	__u64 off, low = vaddr & (MORPH_ROWS_PAGE - 1), from, to, *words;
	__u32 page, number, kinds;
	const __u8 *slab;

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
	off = page + offsetof(struct md_wire_page, nr_numbers);
	kinds = *(const __u16 *)(slab + in_slab(off, 2));
	off = page + sizeof(struct md_wire_page);
	if (kinds & 0xff)
		number = search_narrow(slab, off, kinds, from, to, low);
	else
		number = search_wide(slab, off, from, to - from, low);
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
