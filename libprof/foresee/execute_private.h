// SPDX-License-Identifier: Apache-2.0
/* execute - what one instruction that falls through does to registers and flags. */
#ifndef MP_FORESEE_EXECUTE_PRIVATE_H
#define MP_FORESEE_EXECUTE_PRIVATE_H

#include <Zydis/Zydis.h>

#include "libprof/foresee/processor_private.h"

/* An instruction and all its operands, hidden ones too. */
struct mp_decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* Executes @d, which falls through. What does not follow from known registers and flags becomes unknown. */
void mp_execute(struct mp_processor *p, const struct mp_decoded *d);

#endif
