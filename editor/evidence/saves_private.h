// SPDX-License-Identifier: Apache-2.0
/* saves_private - what saves.c and kept_registers.c share. */
#ifndef ME_SAVES_PRIVATE_H
#define ME_SAVES_PRIVATE_H

#include <Zydis/Zydis.h>

#include "editor/evidence/saves.h"

/* One instruction with all of its operands. */
struct me_save_decoded {
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

bool me_save_decode(const uint8_t *bytes, uint64_t avail, struct me_save_decoded *d);
/* Return: the index of the callee-saved register that @reg is, or is a part of; -1: none. */
int me_callee_saved_index(ZydisRegister reg);
/* Return: the callee-saved registers that the instruction changes. */
uint8_t me_save_writes(const struct me_save_decoded *d);
/*
 * Return: the callee-saved registers that a call of @target may change. Calls that leave the file, or go through
 * pointers, change none by the ABI.
 */
uint8_t me_kept_registers_changed(struct me_kept_registers *kept, uint64_t target);

#endif
