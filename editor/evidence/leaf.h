// SPDX-License-Identifier: Apache-2.0
/*
 * leaf - recognises functions whose code may stand in place of a call: one block that ends in a
 * plain return, calls nothing and does not use the stack pointer. Called by optimize, place and emit.
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
/* Larger bodies do not replace calls. */
#define ME_LEAF_BODY_MAX 64

/* The instructions of such a function between its endbr64, if any, and its return. */
struct me_leaf {
	uint64_t vaddr;
	uint32_t func;
	uint8_t size;	     /* 0: the function does nothing */
	uint8_t return_size; /* bytes of the return, which lies behind them */
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
