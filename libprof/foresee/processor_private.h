// SPDX-License-Identifier: Apache-2.0
/*
 * processor - general registers and status flags, each known or unknown.
 *
 * A register is known as a whole or not at all. Flags are bits of FLAGS, and each is known for itself.
 */
#ifndef MP_FORESEE_PROCESSOR_PRIVATE_H
#define MP_FORESEE_PROCESSOR_PRIVATE_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdint.h>

#include "libprof/foresee/memory_private.h"

#define MP_CF 0x001u
#define MP_PF 0x004u
#define MP_ZF 0x040u
#define MP_SF 0x080u
#define MP_OF 0x800u
/* The adjust flag decides no branch and is never known. */
#define MP_STATUS_FLAGS (MP_CF | MP_PF | MP_ZF | MP_SF | MP_OF)

struct mp_alu;

enum mp_truth {
	MP_FALSE,
	MP_TRUE,
	MP_UNKNOWN
};

struct mp_processor {
	uint64_t values[16];
	uint16_t known;
	uint32_t flags, flags_known;
	uint64_t behind; /* run-time address behind the instruction that is executed */
	struct mp_memory memory;
};

/* The lowest @bits (1 to 64) bits. */
static inline uint64_t mp_low_bits(unsigned int bits)
{
	return UINT64_MAX >> (64 - bits);
}

/* Return: false if @reg is no general register or is not known; otherwise its zero-extended value in @value. */
bool mp_register_read(const struct mp_processor *p, ZydisRegister reg, uint64_t *value);
/*
 * Writes the low bits of @value. 32 bits clear the upper half; 8 and 16 bits keep the rest, so an unknown
 * register stays unknown. Registers other than general ones are left out.
 */
void mp_register_write(struct mp_processor *p, ZydisRegister reg, uint64_t value);
/* Makes the whole register around @reg unknown. */
void mp_register_forget(struct mp_processor *p, ZydisRegister reg);
/* Flags that @alu leaves undefined become unknown. */
void mp_flags_write(struct mp_processor *p, const struct mp_alu *alu);
/* Is condition @cc, the low four bits of a branch's opcode, true? */
enum mp_truth mp_condition(const struct mp_processor *p, unsigned int cc);

#endif
