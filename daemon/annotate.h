// SPDX-License-Identifier: Apache-2.0
/*
 * annotate - one function, instruction by instruction, with the samples, counts and source lines
 * of each: plain data for whoever prints it.
 */
#ifndef MD_ANNOTATE_H
#define MD_ANNOTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/debuginfo.h"
#include "daemon/names.h"
#include "daemon/stats_code.h"
#include "libprof/map.h"
#include "libprof/profile.h"

struct md_ann_insn {
	uint64_t vaddr;
	uint64_t original; /* of an optimised file: where it came from; else @vaddr */
	bool added;	   /* of an optimised file: it has no original */
	uint8_t len;
	char *text;
	uint32_t block; /* index in blocks, MP_NONE: in none */
	uint64_t samples;
	bool hot;
	uint64_t target;       /* branch or rip-relative operand; 0: none */
	uint32_t target_block; /* it is the start of this block of the function, or MP_NONE */
	char *target_name;     /* NULL: none */
	struct md_line line;   /* file NULL: not known */
	uint32_t first_inline, nr_inlines;
};

struct md_ann_block {
	const struct mp_block *block;
	uint32_t first_insn, nr_insns;
	uint64_t samples;
	double weight; /* samples per instruction */
	double count;  /* inferred; below 0: not */
	double taken;  /* conditional branch: probability that it is taken; below 0: not known */
};

struct md_annotation {
	const struct md_code *code;
	const struct mp_func *func;
	const struct mp_map *map; /* NULL: no optimised file */
	char *name;		  /* demangled; "0x401000" where there is none */
	const char *symbol;	  /* as it stands in the file; NULL: none */
	struct md_ann_insn *insns;
	size_t nr_insns, max_insns;
	struct md_ann_block *blocks; /* in the order of ranges: the entry first */
	uint32_t nr_blocks;
	uint32_t *index_of; /* per block of the function, ascending address: its index there */
	struct md_inline *inlines;
	size_t nr_inlines, max_inlines;
	uint64_t samples; /* of the function: those at its addresses, each counted once */
	bool counted;	  /* counts were inferred */
	bool has_lines;
};

struct md_ann_request {
	const struct md_code *code;
	uint64_t vaddr;	  /* anywhere in the function */
	const char *name; /* what to call it where it begins at @vaddr; NULL: as its symbol */
	const struct md_names *names;
	struct md_debuginfo *debug; /* NULL: none */
	const struct mp_map *map;   /* NULL: @counts are of this very file */
	const struct mp_ip_count *counts;
	size_t nr_counts;
	const struct mp_edge_count *edges; /* NULL: no transfers are known */
	size_t nr_edges;
	bool exact; /* both were counted, not sampled */
	bool intel;
};

/* Return: 0, -ENOENT no function there, -ENOMEM. Ownership: md_annotation_fini(@out). */
int md_annotate(const struct md_ann_request *request, struct md_annotation *out,
		struct mp_err *err);
void md_annotation_fini(struct md_annotation *a);

/* Samples at exactly @vaddr. */
uint64_t md_counts_at(const struct mp_ip_count *counts, size_t nr, uint64_t vaddr);
/* Samples in [@start, @start + @size). */
uint64_t md_counts_in(const struct mp_ip_count *counts, size_t nr, uint64_t start, uint64_t size);
/* The same through @map: of the originals of what lies there, each counted once per place. */
uint64_t md_counts_mapped(const struct mp_map *map, const struct mp_ip_count *counts, size_t nr,
			  uint64_t start, uint64_t size);

/* The piece of @map that holds @vaddr, or NULL. */
const struct mp_map_piece *md_map_piece(const struct mp_map *map, uint64_t vaddr);

#endif
