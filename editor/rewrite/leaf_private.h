// SPDX-License-Identifier: Apache-2.0
/* leaf_private - instructions of functions that may replace calls. Included by leaf*.c only. */
#ifndef ME_LEAF_PRIVATE_H
#define ME_LEAF_PRIVATE_H

#include <Zydis/Zydis.h>

#include "editor/rewrite/leaf.h"
#include "libprof/insn/insn.h"

/* One instruction with all of its operands. */
struct me_leaf_insn {
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

bool me_leaf_decode(const uint8_t *bytes, uint64_t avail, struct me_leaf_insn *f);
/* Is the instruction certainly me_leaf_is_known(), with addresses of 64 bits, and no user of the stack pointer? */
bool me_leaf_is_simple(const uint8_t *bytes, const struct mp_insn *insn);
/* Is @reg the stack pointer, or a part of it? */
bool me_leaf_is_stack_pointer(ZydisRegister reg);
/* Does @vaddr lie in @func, whatever part of it? Functions may overlap, so mp_cfg_func_at() may name another. */
bool me_leaf_is_own(const struct mp_cfg *cfg, uint32_t func, uint64_t vaddr);
/* Is the whole effect of such instructions on registers, flags and the memory that they name? */
bool me_leaf_is_known(const ZydisDecodedInstruction *z);
/* Gives the parts their places, after a change of these. Return: false: the code is too large. */
bool me_leaf_place(struct me_leaf *leaf);
/* An order of the parts, that of @leaf if possible, whose last part returns or tails. Return: false: there is none. */
bool me_leaf_order(const struct me_leaf *leaf, uint8_t *order);
/*
 * me_leaf_find_stack - is every use of the stack by @leaf understood? Then sets @frame and @lowers; the parts must be
 * placed again. Return: 1: yes, 0: no, -ENOMEM.
 */
int me_leaf_find_stack(const struct mp_cfg *cfg, struct me_leaf *leaf);

#endif
