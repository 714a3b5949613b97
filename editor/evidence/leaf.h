// SPDX-License-Identifier: Apache-2.0
/*
 * leaf - recognises functions whose code may stand in place of a call: they call nothing, use the stack in a way
 * that is understood or not at all (leaf_stack.c), and end in plain returns. Called by optimize.
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
/* Bytes of the instruction that lowers the stack pointer in place of the call, and of the one that raises it. */
#define ME_LEAF_ADJUST_SIZE 5
/* Bytes of the largest end of a part: a branch and a jump, both long. */
#define ME_LEAF_END_MAX 11

/*
 * A block of such a function in the code that replaces a call. Control goes to part @taken if
 * @condition holds, else to part @next. The number of parts stands for what lies behind the call.
 */
struct me_leaf_part {
	uint64_t vaddr;	  /* in the original, behind its endbr64, if any */
	uint16_t size;	  /* bytes of instructions, which do not change */
	uint16_t off;	  /* of the part in its piece of code */
	uint8_t end_size; /* bytes of the branch or return behind them in the original */
	bool branches, returns;
	bool favour_next;	     /* if neither follows: @next is likelier than @taken */
	bool long_branch, long_jump; /* rel32 rather than rel8 */
	uint8_t condition;
	uint8_t taken, next;
};

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
	/*
	 * The first instruction lowers the stack pointer by 8, as the call does; the last one beside the call raises
	 * it again, and all returns lead there. So all addresses in the stack are the original's.
	 */
	bool lowers;
	struct me_leaf_part parts[ME_LEAF_PARTS_MAX];
};

/*
 * me_leaf_is_plain - are the bytes whole instructions that neither transfer control, nor name the stack
 * pointer, nor depend on their address? Operands relative to the program counter are plain unless they
 * lead into [@own, @own_end).
 */
bool me_leaf_is_plain(const struct mp_elf *elf, uint64_t vaddr, uint64_t size, uint64_t own,
		      uint64_t own_end);
/* Return: bytes by which the stack pointer is higher in place of the call than in the function. */
static inline uint8_t me_leaf_raised(const struct me_leaf *leaf)
{
	return leaf->lowers ? 0 : 8;
}
/* Write the instruction that lowers the stack pointer by the size of a return address: `lea -8(%rsp), %rsp`. */
void me_leaf_put_lower(uint8_t out[ME_LEAF_ADJUST_SIZE]);
/* me_leaf_find - is @func such a function? *@leaf: its code, in the original's order where possible. */
bool me_leaf_find(const struct mp_cfg *cfg, uint32_t func, struct me_leaf *leaf);
/*
 * me_leaf_arrange - brings the parts into another order: @order has all of their numbers, the entry's first. Of
 * the first @nr_near, the last one returns; the others lie apart. Return: false: the code gets too large.
 */
bool me_leaf_arrange(struct me_leaf *leaf, const uint8_t *order, uint8_t nr_near);
/*
 * me_leaf_end - writes the branch, the jump, both or neither behind part @i: a return that is not the last one
 * in place of the call jumps behind it. @apart: bytes from the code in place of the call to that which lies apart.
 * Return: their bytes; 0 as well if a displacement is too large.
 */
uint8_t me_leaf_end(const struct me_leaf *leaf, uint8_t i, int64_t apart,
		    uint8_t out[ME_LEAF_END_MAX]);
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
