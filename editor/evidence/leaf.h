// SPDX-License-Identifier: Apache-2.0
/*
 * leaf - recognises functions whose code may stand in place of a call: blocks without loops that end in
 * plain returns, call nothing and do not use the stack pointer. Called by optimize, place and emit.
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
/* Larger code of one block does not replace calls. */
#define ME_LEAF_BODY_MAX 64
/* The same for code of several blocks. Short branches reach everything in it. */
#define ME_LEAF_CODE_MAX 120
/* Functions of more blocks do not replace calls. */
#define ME_LEAF_PARTS_MAX 16
/* Bytes of the largest end of a part: a branch and a jump. */
#define ME_LEAF_END_MAX 4

/*
 * A block of such a function in the code that replaces a call. Control goes to part @taken if
 * @condition holds, else to part @next. The number of parts stands for what lies behind the call.
 */
struct me_leaf_part {
	uint64_t vaddr;	  /* in the original, behind its endbr64, if any */
	uint8_t size;	  /* bytes of instructions, which do not change */
	uint8_t end_size; /* bytes of the branch or return behind them in the original */
	uint8_t off;	  /* of the part in the code that replaces a call */
	bool branches;
	uint8_t condition;
	uint8_t taken, next;
};

/*
 * The code of a function in place of a call: its blocks in their order, but the last one returns, without
 * endbr64 and returns.
 */
struct me_leaf {
	uint32_t func;
	uint8_t size; /* 0: the function does nothing */
	uint8_t nr_parts;
	struct me_leaf_part parts[ME_LEAF_PARTS_MAX];
};

/*
 * me_leaf_is_plain - are the bytes whole instructions that neither transfer control, nor name the stack
 * pointer, nor depend on their address? Operands relative to the program counter are plain unless they
 * lead into [@own, @own_end).
 */
bool me_leaf_is_plain(const struct mp_elf *elf, uint64_t vaddr, uint64_t size, uint64_t own,
		      uint64_t own_end);
/* me_leaf_find - is @func such a function? *@leaf: its body. */
bool me_leaf_find(const struct mp_cfg *cfg, uint32_t func, struct me_leaf *leaf);
/*
 * me_leaf_end - writes the branch, the jump, both or neither behind part @i: a return that is not last jumps
 * to the end. Return: their bytes.
 */
uint8_t me_leaf_end(const struct me_leaf *leaf, uint8_t i, uint8_t out[ME_LEAF_END_MAX]);
/*
 * me_leaf_body - *@leaf: the body of @func, if it has the form of such a function. Does not look at the
 * instructions: for functions that me_leaf_find() has found.
 */
bool me_leaf_body(const struct mp_cfg *cfg, uint32_t func, struct me_leaf *leaf);
/* me_leaf_called - the same for the function that a plain call at @vaddr leads to. */
bool me_leaf_called(const struct mp_cfg *cfg, uint64_t vaddr, struct me_leaf *leaf);
/*
 * me_leaf_caller - does no instruction of @func name memory below the stack pointer? Only then calls in
 * it may be replaced: a call writes the return address there.
 */
bool me_leaf_caller(const struct mp_cfg *cfg, uint32_t func);

#endif
