// SPDX-License-Identifier: Apache-2.0
/*
 * annotate - describes one function: each instruction with its samples, counts and source line.
 * The result is plain data. annotate_print and annotate_json print it. Called by "morph-stats
 * annotate".
 */
#ifndef MD_ANNOTATE_H
#define MD_ANNOTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/code/debuginfo.h"
#include "daemon/code/names.h"
#include "daemon/code/stats_code.h"
#include "libprof/note/map.h"
#include "libprof/infer/profile.h"

struct md_ann_insn {
	uint64_t vaddr;
	/* address in the original file; in a file that is not optimised, @vaddr */
	uint64_t original;
	/* the editor added this instruction: the original file has none for it */
	bool added;
	uint8_t len;
	char *text;
	uint32_t block; /* index in md_annotation.blocks; MP_NONE: in no block */
	uint64_t samples;
	bool hot;
	uint64_t target;       /* address that a branch or a rip-relative operand names; 0: none */
	uint32_t target_block; /* the block of this function that starts at @target, or MP_NONE */
	char *target_name;     /* symbol at @target; NULL: none */
	struct md_line line;   /* its file is NULL where no line is known */
	uint32_t first_inline, nr_inlines;
};

struct md_ann_block {
	const struct mp_block *block;
	uint32_t first_insn, nr_insns;
	uint64_t samples;
	double weight; /* samples per instruction */
	double count;  /* inferred executions; negative: not inferred */
	double taken;  /* probability that the conditional branch is taken; negative: not known */
};

struct md_annotation {
	const struct md_code *code;
	const struct mp_func *func;
	const struct mp_map *map; /* NULL: the file is not an optimised one */
	char *name;		  /* demangled; "0x401000" for a function without a name */
	const char *symbol;	  /* symbol as the file spells it; NULL: none */
	struct md_ann_insn *insns;
	size_t nr_insns, max_insns;
	struct md_ann_block *blocks; /* range by range; the entry block is first */
	uint32_t nr_blocks;
	/* maps a block's number in the function, by address, to its index in @blocks */
	uint32_t *index_of;
	struct md_inline *inlines;
	size_t nr_inlines, max_inlines;
	/* samples at the function's addresses; an address with several copies counts once */
	uint64_t samples;
	bool counted; /* execution counts were inferred */
	bool has_lines;
};

struct md_ann_request {
	const struct md_code *code;
	uint64_t vaddr; /* any address in the function */
	/* name to print if the function begins at @vaddr; NULL: print its symbol */
	const char *name;
	const struct md_names *names;
	struct md_debuginfo *debug; /* NULL: no debug information */
	const struct mp_map *map;   /* NULL: @counts belong to the file that is shown */
	const struct mp_ip_count *counts;
	size_t nr_counts;
	const struct mp_edge_count *edges; /* NULL: no edge counts are known */
	size_t nr_edges;
	const struct mp_way_count *ways; /* of branches; NULL: none */
	size_t nr_ways;
	bool exact; /* @counts and @edges were counted, not sampled */
	bool intel;
};

/*
 * Return: 0, -ENOENT no function at @request->vaddr, -ENOMEM. Ownership:
 * md_annotation_fini(@out).
 */
int md_annotate(const struct md_ann_request *request, struct md_annotation *out,
		struct mp_err *err);
void md_annotation_fini(struct md_annotation *a);

/* Samples at exactly @vaddr. */
uint64_t md_sample_table_at(const struct mp_ip_count *counts, size_t nr, uint64_t vaddr);
/* Samples in [@start, @start + @size). */
uint64_t md_sample_table_in(const struct mp_ip_count *counts, size_t nr, uint64_t start,
			    uint64_t size);
/*
 * Samples of the original addresses that @map gives for [@start, @start + @size). An original
 * address counts once per piece.
 */
uint64_t md_sample_table_mapped(const struct mp_map *map, const struct mp_ip_count *counts,
				size_t nr, uint64_t start, uint64_t size);

/* Return: the piece of @map that holds @vaddr, or NULL. */
const struct mp_map_piece *md_map_piece(const struct mp_map *map, uint64_t vaddr);

#endif
