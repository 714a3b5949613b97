/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * wire_rows - unwind rows as the BPF programs find them in maps. bpf_rows writes them, walk.bpf.h
 * reads them.
 *
 * The rows of all files lie in slabs of memory, one behind the other. A position is a number of
 * bytes from the start of the first slab. What is described here lies in one slab each:
 *
 *	rules of a file       struct mp_row_rule[]
 *	directory of a file   u32[nr_pages]: position of each page; 0: it has no rows
 *	page                  struct md_wire_page, and what belongs to it
 *
 * libprof/unwind/rows_laid.h says what belongs to a page. A search needs no other page.
 */
#ifndef MD_BPF_WIRE_ROWS_H
#define MD_BPF_WIRE_ROWS_H

#include "kmod/uapi/morph_dev.h"
#include "kmod/uapi/morph_rows.h"

#define MD_WIRE_SLAB_SHIFT 18
#define MD_WIRE_SLAB	   (1U << MD_WIRE_SLAB_SHIFT)
#define MD_WIRE_SLAB_ROOM  (MD_WIRE_SLAB + 64) /* a masked position may be the slab's last byte */
#define MD_WIRE_SLABS	   256
#define MD_WIRE_FILES	   16384

/* A granule has few rows, which makes the search in it short. */
#define MD_WIRE_GRANULE_SHIFT 9
#define MD_WIRE_GRANULES      (MORPH_ROWS_PAGE >> MD_WIRE_GRANULE_SHIFT)
/* The most steps that a search among all rows of a granule takes: at most 512 begin in it. */
#define MD_WIRE_SEARCH_STEPS 10
/* The most rows that begin in a granule of a narrow page. */
#define MD_WIRE_STEPS_MAX   128
#define MD_WIRE_FEW_NUMBERS 128
#define MD_WIRE_SHORT	    0xc0
#define MD_WIRE_SHORT_SHIFT 6
#define MD_WIRE_LONG	    0xfe

struct md_wire_page {
	__u16 first[MD_WIRE_GRANULES + 1]; /* of each granule: what begins before it */
	__u8 nr_numbers;		   /* 0: a wide page */
	__u8 nr_pairs;
};

/* A file as the kernel knows it. The [vdso] is all zeros. */
struct md_wire_file_key {
	__u64 ino;
	__u32 dev; /* as the kernel has it: major << 20 | minor */
	__u32 pad;
};

#define MD_WIRE_FILE_GENERATION 1U /* the inode's generation is known, and must be the same */

struct md_wire_file {
	__u64 hash;	 /* of the rows' bytes; for bpf_rows */
	__u64 base;	 /* link-time address of the first page */
	__u32 nr_pages;	 /* 0: the file is known to have no rows */
	__u32 directory; /* position */
	__u32 rules;	 /* position */
	__u32 flags;	 /* MD_WIRE_FILE_... */
	__u32 ino_generation;
	__u32 nr_segments;
	struct morph_segment segments[MORPH_ROWS_SEGMENTS_MAX];
};

MORPH_ASSERT_SIZE(md_wire_page, 260);
MORPH_ASSERT_SIZE(md_wire_file_key, 16);
MORPH_ASSERT_SIZE(md_wire_file, 232);

#endif
