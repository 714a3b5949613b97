// SPDX-License-Identifier: Apache-2.0
/*
 * heat_after_private - an optimised file's copies, and the original's blocks cut as the copies are. Only
 * heat_after.c, heat_pieces.c and heat_inlined.c include this header.
 */
#ifndef MD_HEAT_AFTER_PRIVATE_H
#define MD_HEAT_AFTER_PRIVATE_H

#include "daemon/draw/heat.h"

/* How a piece's code ends. */
struct md_heat_end {
	bool falls;	  /* continues into the code that follows */
	uint64_t cond_at; /* conditional branch at its end; 0: none */
	uint64_t cond_to;
	uint64_t jump_at; /* direct jump at its end; 0: none */
	uint64_t jump_to;
};

/*
 * A copy of a block, and for an output with calls through slots or without calls, of a part of a block
 * up to such a call. Blocks are those of the view.
 */
struct md_heat_copy {
	uint64_t vaddr, end;
	uint32_t block;
	bool clone;	 /* reached only by falling through from the copy before */
	bool lacks_call; /* its last instruction does not call directly, as the original's does */
	uint32_t stub;	 /* block that the call at its end passes by; MP_NONE: none */
	/* what stands in place of its call: @inlined of struct md_heat_after */
	uint32_t first_inlined, nr_inlined;
	struct md_heat_end end_of; /* behind the inlined code, if there is any */
	double share;		   /* fraction of the block's count */
};

/* A block of a called function, in place of the call at the end of a copy. */
struct md_heat_inlined {
	uint64_t vaddr, end;
	uint32_t first_block, block; /* the piece stands for these two, and all between them */
	uint32_t nr_insns;
	struct md_heat_end end_of;
	double share; /* fraction of the block's count */
};

struct md_heat_after {
	const struct md_heat_input *in; /* the original: its blocks are not cut */
	const struct mp_elf *elf;
	struct mp_cfg_view view;     /* blocks cut where copies are cut */
	struct mp_counts counts;     /* of the view's blocks and edges; only these two arrays */
	struct md_heat_copy *copies; /* ascending by vaddr */
	uint32_t nr;
	struct md_heat_inlined *inlined; /* ascending by vaddr */
	uint32_t nr_inlined;
	uint32_t *primary; /* per block: the copy that branches lead to; MP_NONE: not copied */
	double *rest;	   /* per block: fraction of its count that other code does not take over */
	struct md_heat *out;
};

/* md_heat_pieces_read - fills view, counts, copies and inlined. Return: 0, -ENOMEM. */
int md_heat_pieces_read(struct md_heat_after *a, const struct mp_map *map);
/* Return: the block of the view that starts at @vaddr, or MP_NONE. */
uint32_t md_heat_block_starting(const struct md_heat_after *a, uint64_t vaddr);

/*
 * md_heat_inlined_share - divides the counts of called functions among the code in place of their calls
 * and the functions themselves, when the shares of copies are known; the same for stubs that calls pass
 * by. Fills rest. Return: 0, -ENOMEM.
 */
int md_heat_inlined_share(struct md_heat_after *a);
/* Adds the places and jumps of the code in place of calls. Return: 0, -ENOMEM. */
int md_heat_inlined_add(struct md_heat_after *a);

#endif
