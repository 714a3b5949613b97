// SPDX-License-Identifier: Apache-2.0
/*
 * verify_table_bases - finds the tables whose address other blocks set before an indirect jump
 * reads them.
 */
#ifndef ME_VERIFY_TABLE_BASES_H
#define ME_VERIFY_TABLE_BASES_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

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
