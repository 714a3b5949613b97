// SPDX-License-Identifier: Apache-2.0
/*
 * verify_free_registers_private - decides whether a register may be overwritten at an address.
 * This header is what its parts share: the effect of one instruction, the blocks of all code,
 * what functions pass, the tables of jumps.
 *
 * A second opinion on the editor's liveness: it starts from the bytes and knows neither the
 * editor's functions nor its blocks. Where it cannot tell, the answer is no.
 */
#ifndef ME_VERIFY_FREE_REGISTERS_PRIVATE_H
#define ME_VERIFY_FREE_REGISTERS_PRIVATE_H

#include "editor/verify/verify_private.h"

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
	VF_EFFECT_POP = 1 << 2,	  /* loads a whole register from the stack, by pop or mov */
	VF_EFFECT_TOP = 1 << 3,	  /* writes the word at the top of the stack */
	VF_EFFECT_STACK = 1 << 4, /* writes to the stack */
};

struct vf_effect {
	uint16_t reads[VF_NR_PARTS];  /* registers read */
	uint16_t writes[VF_NR_PARTS]; /* replaced in every case */
	uint16_t sets;		      /* may be written */
	uint16_t named;		      /* of @sets: by an explicit operand */
	uint8_t flags;
};

struct vf_effect vf_effect_of(const uint8_t *bytes, size_t avail);

/* ---- the blocks of all code ---------------------------------------------------------------- */

/*
 * The registers that are wanted behind a place, as four masks in one number. A read counts only
 * if it reads the low byte, or bits 8 to 15 alone: compilers may read other parts that they
 * left undefined. Saving a register on the stack is a use only if the value is loaded again.
 */
#define VF_WANT_LOW   0	 /* shifts */
#define VF_WANT_HIGH  16 /* bits 8 to 15 alone, %ah */
#define VF_WANT_PUSH  32
#define VF_WANT_SPILL 48

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
/* Fill @vf->graph. Return: 0, -ENOMEM. Ownership: vf_graph_free(), also after an error. */
int vf_graph_build(struct vf *vf);
void vf_graph_free(struct vf *vf);
/*
 * Find, per FDE, the registers that may be its results (@result_candidates), and set @passed of all
 * blocks.
 * Return: 0, -ENOMEM.
 */
int vf_find_result_candidates(const struct vf *vf, uint16_t *result_candidates);
/* Add to @changes of each FDE those of its callees and jump targets. */
void vf_find_changes(const struct vf *vf);
/* Find @in of all blocks, and set @wanted to the part of @in that is no push or spill. */
void vf_find_wants(const struct vf *vf);
/* Find @wanted of all blocks, and @results of each FDE. Call vf_find_wants() first. */
void vf_find_results(const struct vf *vf);
/*
 * Find @not_preserved of each FDE, by @changes. Callers reach a part only through functions that
 * jump to it. They may rely on a register if any of these functions keeps it.
 */
void vf_find_not_preserved(const struct vf *vf);
/* Find the targets of indirect jumps that read tables. Return: 0, -ENOMEM. */
int vf_graph_find_tables(const struct vf *vf);
/* Does the loader fill the cell at @vaddr with a function that never returns? */
bool vf_is_noreturn_slot(const struct vf *vf, uint64_t vaddr);
/* Return: callee-saved registers that the unwinder finds elsewhere by @row, or, not @saved, that it leaves as they are. */
uint16_t vf_row_rules(const struct vf_row *row, bool saved);
/* Return: registers that the unwinder reads to find the caller's frame and registers. */
uint16_t vf_named_by_row(const struct vf_row *row);
/* Return: callee-saved registers that @row finds in the stack. */
uint16_t vf_row_saves(const struct vf_row *row);
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

/* ---- tables of indirect jumps -------------------------------------------------------------- */

/* A decoded instruction: the jump, or one before it. */
struct vf_step {
	uint64_t at;
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* Decode the instruction at @at, inside @fde. Return: false if there is none. */
bool vf_decode_step(const struct vf *vf, const struct vf_fde *fde, uint64_t at, struct vf_step *s);

/* The blocks of one FDE, and the predecessors of each. */
struct vf_predecessors {
	uint32_t fde, first, nr;
	uint32_t *start, *from; /* predecessors of block @first + i: from[start[i] ..) */
	uint16_t *seen;		/* registers already looked for at the block's end */
	uint32_t *stack;	/* of blocks, each with a register */
	bool complete;
};

void vf_predecessors_fini(struct vf_predecessors *predecessors);

/* Give up on jumps with more tables. */
#define VF_MAX_BASES 16

/* Addresses of tables. */
struct vf_bases {
	uint64_t start[VF_MAX_BASES];
	uint32_t nr;
	bool unknown; /* there may be further ones */
};

/*
 * Find the tables, one or several, whose address is set in register @reg on the paths to the jump
 * that ends @block. @predecessors: those of the last call, replaced if @block belongs to another
 * FDE; before the first call, @fde must be VF_NONE and the rest zero.
 * Return: 0, -ENOMEM. Ownership: vf_predecessors_fini(), also after an error.
 */
int vf_find_table_bases(const struct vf *vf, struct vf_predecessors *predecessors, uint32_t block,
			ZydisRegister reg, struct vf_bases *bases);

#endif
