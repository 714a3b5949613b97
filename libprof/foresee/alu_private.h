// SPDX-License-Identifier: Apache-2.0
/*
 * alu - results and flags of integer arithmetic, as Intel's manual (volume 2) defines them.
 *
 * Operands are zero-extended values of @bits bits: 8, 16, 32 or 64.
 */
#ifndef MP_FORESEE_ALU_PRIVATE_H
#define MP_FORESEE_ALU_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

struct mp_alu {
	uint64_t value;
	uint32_t flags;	  /* values of the flags in @defined */
	uint32_t defined; /* flags that get a value */
	uint32_t changed; /* flags that do not keep their value: @defined and those that become undefined */
};

/* The instructions that mp_alu_shift() computes. */
enum mp_shift {
	MP_SHL,
	MP_SHR,
	MP_SAR,
	MP_ROL,
	MP_ROR
};

struct mp_alu mp_alu_add(uint64_t a, uint64_t b, bool carry, unsigned int bits);
/* @a - @b - @borrow. */
struct mp_alu mp_alu_sub(uint64_t a, uint64_t b, bool borrow, unsigned int bits);
/* The flags of and, or, xor and test with result @value. */
struct mp_alu mp_alu_logic(uint64_t value, unsigned int bits);
/* @count: as the processor uses it, at most 31 (63 of 64 bits); at 0 no flag changes. */
struct mp_alu mp_alu_shift(enum mp_shift shift, uint64_t a, unsigned int count, unsigned int bits);
/* The signed product, cut to @bits. */
struct mp_alu mp_alu_multiply(uint64_t a, uint64_t b, unsigned int bits);
/* @value, of @bits bits, with its sign in all bits above. */
uint64_t mp_sign_extend(uint64_t value, unsigned int bits);

#endif
