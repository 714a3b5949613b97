// SPDX-License-Identifier: Apache-2.0
/*
 * verify_registers - may a register be overwritten at an address? What its parts share: the effect
 * of one instruction, the blocks of all code, what functions pass each other.
 *
 * A second opinion on the editor's liveness: it starts from the bytes, knows neither the editor's
 * functions nor its blocks, and says no where it cannot tell.
 */
#ifndef ME_VERIFY_REGISTERS_H
#define ME_VERIFY_REGISTERS_H

#include "editor/verify_priv.h"

/* Masks have bit n for the register that instructions encode as n. */
#define VF_REG(n)	((uint16_t)(1u << (n)))
#define VF_ALL_REGS	((uint16_t)0xffff)
#define VF_CALLEE_SAVED ((uint16_t)0xf038) /* rbx, rsp, rbp, r12 to r15 */
#define VF_CALLER_SAVED ((uint16_t)~VF_CALLEE_SAVED)
#define VF_RESULT_REGS	((uint16_t)(VF_REG(0) | VF_REG(2)))
/* rdi, rsi, rdx, rcx, r8, r9, al with the number of vectors, r10 as the static chain. */
#define VF_ARGUMENT_REGS ((uint16_t)0x07c7)

/* ---- one instruction ---------------------------------------------------------------------- */

enum {
	VF_PART_LOW,  /* bits 0 to 7 */
	VF_PART_HIGH, /* 8 to 15 */
	VF_PART_REST,
	VF_NR_PARTS,
};

enum vf_effect_flag {
	VF_EFFECT_PUSH = 1 << 0,
	VF_EFFECT_SPILL = 1 << 1, /* stores a register in the stack */
	VF_EFFECT_POP = 1 << 2,	  /* gets a whole register from the stack, by pop or mov */
	VF_EFFECT_TOP = 1 << 3,	  /* writes what a return would take for its address */
	VF_EFFECT_STACK = 1 << 4, /* writes to the stack */
};

struct vf_effect {
	uint16_t reads[VF_NR_PARTS];  /* before it writes */
	uint16_t writes[VF_NR_PARTS]; /* whatever the operands are */
	uint16_t sets;		      /* writes, perhaps */
	uint16_t named;		      /* of @sets: by an operand that one reads in the listing */
	uint8_t flags;
};

struct vf_effect vf_effect_of(const uint8_t *bytes, size_t avail);

/* ---- the blocks of all code ---------------------------------------------------------------- */

/*
 * What is asked for behind some place, as four masks in one number. The low byte alone decides
 * whether someone wants a value: what else of a register compilers read, they may have left
 * undefined. Saving a register on the stack wants nothing of it as long as nobody gets it back.
 */
#define VF_WANT_LOW   0	 /* shifts */
#define VF_WANT_HIGH  16 /* bits 8 to 15 for themselves, %ah */
#define VF_WANT_PUSH  32
#define VF_WANT_SPILL 48

enum vf_end {
	VF_END_FALL,
	VF_END_JCC,
	VF_END_JMP,
	VF_END_CALL,
	VF_END_ICALL,
	VF_END_TABLE, /* jumps to one of vf_graph.targets[to ...] */
	VF_END_IJMP,  /* who knows where to; perhaps to another function */
	VF_END_RET,
	VF_END_STOP,
	VF_END_BAD, /* not understood */
};

struct vf_block {
	uint32_t start;	   /* from the text's start on */
	uint32_t end;	   /* behind its last instruction */
	uint32_t last;	   /* where that starts */
	uint32_t to;	   /* a block; VF_NONE: leads out of what is known */
	uint32_t fde;	   /* VF_NONE: none */
	uint16_t kill[2];  /* low byte, %ah: replaced in any case */
	uint16_t sets;	   /* some part, on some condition */
	uint16_t passed;   /* of an FDE's first one: what may be passed to it; others: all */
	uint8_t kind;	   /* enum vf_end */
	bool returns;	   /* control comes behind its call */
	bool pending;	   /* IJMP, TABLE: the table was named elsewhere */
	bool cell;	   /* IJMP: through one place in memory */
	bool outside;	   /* and the loader fills that */
	uint64_t want, in; /* by itself; at its start by all that comes, returns excepted */
	uint64_t wanted;   /* the same with what callers want behind returns */
};

struct vf_graph {
	struct vf_bits head; /* where blocks start */
	uint32_t *rank;	     /* blocks before each 64 bits of it */
	struct vf_block *blocks;
	uint32_t nr_blocks;
	uint32_t *targets, nr_targets, cap_targets; /* of tables, each list ended by VF_NONE */
	struct vf_bits label;			    /* addresses that words and operands hold */
	uint32_t first_dynamic;			    /* of the original's symbols */

	/* Per FDE of the original: */
	uint16_t *changes; /* with whom it calls and jumps to */
	uint16_t *usable;  /* what no caller may rely on that it leaves alone */
	uint16_t *saves;   /* its unwind rows say where it keeps the caller's value */
	uint16_t *leaves;  /* what may be a result */
	uint64_t *results; /* what callers want behind returns */
	uint8_t *flags;
	uint16_t **live; /* at the start of each of its blocks, once asked for */
};

enum vf_func_flag {
	VF_FUNC_CALLED = 1 << 0, /* or its address is known: it is more than a part of another */
	VF_FUNC_JUMPED = 1 << 1, /* somebody else jumps to its start or into it */
	VF_FUNC_NAMED = 1 << 2,	 /* its address is known without any doubt */
	VF_FUNC_KNOWN = 1 << 3,	 /* and it is a function: the ABI holds for it */
};

/* The block that starts at @vaddr, or VF_NONE. */
uint32_t vf_block_at(const struct vf *vf, uint64_t vaddr);
/* Fills @vf->graph. Return: 0, -ENOMEM. Ownership: vf_graph_free(), also then. */
int vf_graph_build(struct vf *vf);
void vf_graph_free(struct vf *vf);
/*
 * @leaves, per FDE: registers that may be results of it; and what may be passed to blocks.
 * Return: 0, -ENOMEM.
 */
int vf_find_leaves(struct vf *vf, uint16_t *leaves);
/* Where indirect jumps lead, if tables say so. Return: 0, -ENOMEM. */
int vf_graph_find_tables(struct vf *vf);
/* Does the cell at @vaddr, or the stub at it, lead to a function that never comes back? */
bool vf_is_noreturn_cell(const struct vf *vf, uint64_t vaddr);
/* Of the registers that callees save: those that @row finds in the stack. */
uint16_t vf_row_saves(const struct vf_row *row);
/* Does control come behind the call that ends block @i? Not so at a function's very end. */
bool vf_comes_behind(const struct vf_graph *g, uint32_t i);

/*
 * What block @i asks of whoever calls it. Of a register that the function there saves for its
 * callers it hardly asks what is in it: a read is of what it has not set yet, or a way that is none.
 * And what not everybody who calls has set before, nobody passes.
 */
static inline uint64_t vf_asks(const struct vf_graph *g, uint32_t i)
{
	const struct vf_block *b = &g->blocks[i];
	uint16_t saves = b->fde == VF_NONE ? 0 : g->saves[b->fde];
	uint64_t mask = (uint64_t)saves << VF_WANT_LOW | (uint64_t)saves << VF_WANT_HIGH;
	uint64_t passed = b->passed * UINT64_C(0x0001000100010001);
	uint64_t in = b->in & passed, own = in & mask;

	return (in & ~mask) | (uint64_t)(uint16_t)(own | own >> VF_WANT_HIGH) << VF_WANT_SPILL;
}

/* What wants @want of a register, whatever of it. */
static inline uint16_t vf_fold(uint64_t want)
{
	return (uint16_t)(want | want >> VF_WANT_HIGH | want >> VF_WANT_PUSH |
			  want >> VF_WANT_SPILL);
}

#endif
