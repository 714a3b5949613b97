// SPDX-License-Identifier: Apache-2.0
/*
 * verify_block - the blocks of all code, by which verify decides whether a register may be overwritten at an address.
 *
 * A second opinion on the editor's liveness: it starts from the bytes and knows neither the
 * editor's functions nor its blocks. Where it cannot tell, the answer is no.
 */
#ifndef ME_VERIFY_BLOCK_H
#define ME_VERIFY_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/*
 * The registers that are wanted behind a place, as four masks in one number. A read counts only
 * if it reads the low byte, or bits 8 to 15 alone: compilers may read other parts that they
 * left undefined. Saving a register on the stack is a use only if the value is loaded again.
 */
#define VF_WANT_LOW		 0  /* shifts */
#define VF_WANT_HIGH		 16 /* bits 8 to 15 alone, %ah */
#define VF_WANT_PUSH		 32
#define VF_WANT_SPILL		 48
#define VF_WANT(reg_mask, shift) ((uint64_t)(reg_mask) << (shift))

enum vf_end {
	VF_END_FALL,
	VF_END_JCC,
	VF_END_JMP,
	VF_END_CALL,
	VF_END_ICALL,
	VF_END_TABLE, /* jumps to one of vf_graph.targets[to ...] */
	VF_END_IJMP,  /* unknown target, perhaps another function */
	VF_END_RET,
	VF_END_STOP,
	VF_END_BAD, /* not understood */
};

struct vf_block {
	uint32_t start;	  /* offset in the text */
	uint32_t end;	  /* offset behind the last instruction */
	uint32_t last;	  /* offset of the last instruction */
	uint32_t to;	  /* target block; VF_NONE: outside of the known code */
	uint32_t fde;	  /* VF_NONE: none */
	uint16_t kill[2]; /* low byte, %ah: always replaced */
	uint16_t sets;	  /* registers that may be written, in whole or part */
	uint16_t passed;  /* first block of an FDE: registers that may pass arguments; else: all */
	uint8_t kind;	  /* enum vf_end */
	bool returns;	  /* control continues behind the call */
	bool pending;	  /* IJMP, TABLE: the table's address is set in another block */
	bool through_memory;   /* IJMP: through one fixed place in memory */
	bool filled_by_loader; /* the loader fills this place */
	uint64_t want, in;     /* @want: by the block itself; @in: at its start, without returns */
	uint64_t wanted;       /* @in, and what callers want behind returns */
};

struct vf_graph {
	struct vf_bits head; /* starts of blocks */
	uint32_t *rank;	     /* blocks before each 64 bits of @head */
	struct vf_block *blocks;
	uint32_t nr_blocks;
	uint32_t *targets, nr_targets, cap_targets; /* of tables; VF_NONE ends each list */
	struct vf_bits label;			    /* addresses that words and operands hold */
	uint32_t first_dynamic; /* index of the original's first dynamic symbol */

	/* Per FDE of the original: */
	uint16_t *changes;	     /* registers that it, its callees and jump targets change */
	uint16_t *not_preserved;     /* registers that callers cannot rely on it to keep */
	uint16_t *saves;	     /* registers whose caller's value its unwind rows find */
	uint16_t *result_candidates; /* registers that may be results */
	uint64_t *results;	     /* wanted by callers behind returns */
	uint8_t *flags;
	uint16_t **live; /* live registers at each block's start; filled on demand */
};

enum vf_func_flag {
	VF_FUNC_CALLED = 1 << 0, /* it is called, or its address is taken: more than a part */
	VF_FUNC_JUMPED = 1 << 1, /* another FDE's code jumps to its start or into it */
	VF_FUNC_NAMED = 1 << 2,	 /* its address is certainly taken */
	VF_FUNC_KNOWN = 1 << 3,	 /* also called; or exported, or the entry: the ABI holds */
};

/* Return: the block that starts at @vaddr, or VF_NONE. */
uint32_t vf_block_at(const struct vf *vf, uint64_t vaddr);
/* Does control continue behind the call that ends block @i? Not at the end of a function. */
bool vf_continues_after_call(const struct vf_graph *g, uint32_t i);

/*
 * Registers that block @i wants of its callers. A register that the block's function saves counts
 * only as one to be spilled: the function reads it only after setting it, or on a path that never
 * runs. Registers outside of @passed pass nothing: not every caller has set them.
 */
static inline uint64_t vf_wanted_of_callers(const struct vf_graph *g, uint32_t i)
{
	const struct vf_block *b = &g->blocks[i];
	uint16_t saves = b->fde == VF_NONE ? 0 : g->saves[b->fde];
	uint64_t mask = (uint64_t)saves << VF_WANT_LOW | (uint64_t)saves << VF_WANT_HIGH;
	uint64_t passed = b->passed * UINT64_C(0x0001000100010001);
	uint64_t in = b->in & passed, own = in & mask;

	return (in & ~mask) | (uint64_t)(uint16_t)(own | own >> VF_WANT_HIGH) << VF_WANT_SPILL;
}

/* Return: @want without the registers that @kill, of a block, replaces. */
static inline uint64_t vf_want_without(uint64_t want, const uint16_t kill[2])
{
	return want & ~(VF_WANT(kill[0], VF_WANT_LOW) | VF_WANT(kill[1], VF_WANT_HIGH) |
			VF_WANT(kill[0], VF_WANT_PUSH) | VF_WANT(kill[0], VF_WANT_SPILL));
}

/* Return: the registers that are wanted in any way. */
static inline uint16_t vf_wanted_any(uint64_t want)
{
	return (uint16_t)(want | want >> VF_WANT_HIGH | want >> VF_WANT_PUSH |
			  want >> VF_WANT_SPILL);
}

#endif
