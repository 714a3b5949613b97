// SPDX-License-Identifier: Apache-2.0
/*
 * leaf - recognises functions whose code may stand in place of a call: they use the stack in a way that is understood
 * or not at all (leaf_stack.c), and end in plain returns or in jumps to other functions. They may call functions,
 * but not themselves. Called by inline; place, emit and debug read its results.
 *
 * Says nothing about whether that pays.
 */
#ifndef ME_LEAF_H
#define ME_LEAF_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/cfg/cfg.h"

/* Bytes of a direct call. */
#define ME_LEAF_CALL_SIZE 5
/* Larger code does not replace calls. */
#define ME_LEAF_CODE_MAX 2048
/* Functions of more blocks do not replace calls. */
#define ME_LEAF_PARTS_MAX 200
/*
 * In place of the call, `push %rax` lowers the stack pointer, and writes to the 8 bytes where the call wrote the return
 * address. `lea` would do so in five bytes, and one more step in the chain of its values (results.md, "Functions that
 * call others").
 */
#define ME_LEAF_LOWER	   0x50
#define ME_LEAF_LOWER_SIZE 1
/* Bytes of `lea 8(%rsp), %rsp`, which raises the stack pointer again and leaves the flags as they are. */
#define ME_LEAF_RAISE_SIZE 5
/* Bytes of the largest end of a part: the stack pointer is raised, a call through a slot, a long jump. */
#define ME_LEAF_END_MAX 16

/*
 * A block of such a function in the code that replaces a call. Control goes to part @taken if
 * @condition holds, else to part @next. The number of parts stands for what lies behind the call.
 */
struct me_leaf_part {
	uint64_t vaddr;	  /* in the original, behind its endbr64, if any */
	int32_t callee;	  /* see me_leaf_callee() */
	uint16_t size;	  /* bytes of instructions, which do not change */
	uint16_t off;	  /* of the part in its piece of code */
	uint8_t end_size; /* bytes of the branch, return or call behind them in the original */
	bool branches : 1, returns : 1;
	bool tails : 1;	      /* the original jumps to another function, where this code calls it */
	bool via_slot : 1;    /* the call at the end goes through the slot of a PLT stub */
	bool stops : 1;	      /* control does not come to the end: a call there does not return */
	bool favour_next : 1; /* if neither follows: @next is likelier than @taken */
	bool long_branch : 1, long_jump : 1; /* rel32 rather than rel8 */
	uint8_t condition;
	uint8_t taken, next;
};

/* A rewrite of a large file keeps many parts in memory. */
_Static_assert(sizeof(struct me_leaf_part) == 24, "parts have grown");

/* Return: of a part with a call at its end, the function, or with @via_slot the slot. */
static inline uint64_t me_leaf_callee(const struct me_leaf_part *part)
{
	return part->vaddr + part->size + part->end_size + (uint64_t)(int64_t)part->callee;
}

/*
 * The code of a function in place of a call: its blocks, without endbr64 and returns. The first part is the
 * entry. Parts [0, nr_near) stand where the call was, the last of them returns; the others lie apart.
 */
struct me_leaf {
	uint32_t func;
	uint16_t size; /* bytes in place of the call; 0: the function does nothing */
	uint16_t apart_size;
	uint8_t nr_parts, nr_near;
	/* The function uses the stack: its instructions have unwind rows of their own. */
	bool frame;
	/* It calls functions, or jumps to them: a stack that is walked meanwhile has a frame less. */
	bool calls;
	/*
	 * The first instruction lowers the stack pointer by 8, as the call does. It is raised again before control
	 * goes on behind the call: at the end of the code beside the call, if the last part there returns, where all
	 * returns lead. So all addresses in the stack are the original's.
	 */
	bool lowers;
	struct me_leaf_part parts[ME_LEAF_PARTS_MAX];
};

/* Return: bytes by which the stack pointer is higher in place of the call than in the function. */
static inline uint8_t me_leaf_raised(const struct me_leaf *leaf)
{
	return leaf->lowers ? 0 : 8;
}
/*
 * me_leaf_find - is @func such a function? *@leaf: its code, in the original's order where possible. Return: 1: yes,
 * 0: no, -ENOMEM.
 */
int me_leaf_find(const struct mp_cfg *cfg, uint32_t func, struct me_leaf *leaf);
/*
 * me_leaf_use_slots - lets calls of PLT stubs go through the slots of these. Return: false: the code gets too large,
 * and @leaf is not to be used.
 */
bool me_leaf_use_slots(const struct mp_cfg *cfg, struct me_leaf *leaf);
/*
 * me_leaf_arrange - brings the parts into another order: @order has all of their numbers, the entry's first. Of
 * the first @nr_near, the last one returns or @tails; the others lie apart. Return: false: the code gets too large.
 */
bool me_leaf_arrange(struct me_leaf *leaf, const uint8_t *order, uint8_t nr_near);
/*
 * me_leaf_end - writes what stands behind part @i: a branch, a call, a jump, some or none of them. A return that is
 * not the last one in place of the call jumps behind it. @apart: bytes from the code in place of the call to that
 * which lies apart. Return: their bytes; 0 as well if a displacement is too large.
 */
uint8_t me_leaf_end(const struct me_leaf *leaf, uint8_t i, int64_t apart,
		    uint8_t out[ME_LEAF_END_MAX]);
/* Return: where the end of part @i has the 4 bytes of a call's displacement, which me_leaf_end() leaves 0; 0: no call. */
uint8_t me_leaf_call_field(const struct me_leaf *leaf, uint8_t i);
#define ME_LEAF_NEVER UINT8_MAX
/*
 * Return: from where on, in bytes from the end of part @i's instructions, the stack is that of the replaced call: the
 * stack pointer is raised, or another function is called. ME_LEAF_NEVER: in none of the bytes before the next part.
 */
uint8_t me_leaf_frame_end(const struct me_leaf *leaf, uint8_t i);
/* In me_leaf_changed(): all registers from DWARF's number 33 on, which are not told apart. */
#define ME_CHANGED_OTHERS (UINT64_C(1) << 33)
/* The stack pointer, and registers that a called function gives back: rbx, rbp, rsp, r12 to r15. */
#define ME_CHANGED_KEPT UINT64_C(0xf0c8)
/*
 * me_leaf_changed - a bit for each register, by DWARF's numbers, that is changed anywhere in the code, even if it gets
 * its value back. ME_CHANGED_OTHERS is always set.
 */
uint64_t me_leaf_changed(const struct mp_elf *elf, const struct me_leaf *leaf);
/*
 * me_leaf_caller - does no instruction of @func name memory below the stack pointer? Only then calls in
 * it may be replaced: a call writes the return address there.
 */
bool me_leaf_caller(const struct mp_cfg *cfg, uint32_t func);

#endif
