// SPDX-License-Identifier: Apache-2.0
/* operand - reads and writes registers, memory and immediates, as an instruction names them. */
#ifndef MP_FORESEE_OPERAND_PRIVATE_H
#define MP_FORESEE_OPERAND_PRIVATE_H

#include <Zydis/Zydis.h>

#include "libprof/foresee/processor_private.h"

/* An instruction and all its operands, hidden ones too. */
struct mp_decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* The address that @op, an operand in memory or of lea, stands for. Return: false: not known. */
bool mp_operand_address(const struct mp_processor *p, const struct mp_decoded *d,
			const ZydisDecodedOperand *op, uint64_t *address);
/*
 * Reads @op as a zero-extended value of its size; an immediate has its sign in all 64 bits. Return: false: not known.
 */
bool mp_operand_read(const struct mp_processor *p, const struct mp_decoded *d,
		     const ZydisDecodedOperand *op, uint64_t *value);
/* Writes the low bits of @value. At an unknown address, all that may have changed becomes unknown. */
void mp_operand_write(struct mp_processor *p, const struct mp_decoded *d,
		      const ZydisDecodedOperand *op, uint64_t value);
/* Makes a register or a place in memory unknown. */
void mp_operand_forget(struct mp_processor *p, const struct mp_decoded *d,
		       const ZydisDecodedOperand *op);

#endif
