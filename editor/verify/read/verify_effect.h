// SPDX-License-Identifier: Apache-2.0
/*
 * verify_effect - tells which parts of the general registers one instruction reads, and which it
 * certainly replaces, by Zydis's operands.
 */
#ifndef ME_VERIFY_EFFECT_H
#define ME_VERIFY_EFFECT_H

#include <stddef.h>
#include <stdint.h>

/* Return: a bit for each general register that the instruction at @b reads or may set; all: not known. */
uint16_t vf_registers_of(const uint8_t *b, size_t avail);
struct vf_effect vf_effect_of(const uint8_t *bytes, size_t avail);
/* Masks have bit n for the register that instructions encode as n. */
#define VF_REG(n)	((uint16_t)(1u << (n)))
#define VF_ALL_REGS	((uint16_t)0xffff)
#define VF_CALLEE_SAVED ((uint16_t)0xf038) /* rbx, rsp, rbp, r12 to r15 */
#define VF_CALLER_SAVED ((uint16_t)~VF_CALLEE_SAVED)
#define VF_RESULT_REGS	((uint16_t)(VF_REG(0) | VF_REG(2)))
/* rdi, rsi, rdx, rcx, r8, r9, al with the number of vectors, r10 as the static chain. */
#define VF_ARGUMENT_REGS ((uint16_t)0x07c7)

enum {
	VF_PART_LOW,  /* bits 0 to 7 */
	VF_PART_HIGH, /* 8 to 15 */
	VF_PART_REST,
	VF_NR_PARTS,
};

enum vf_effect_flag {
	VF_EFFECT_PUSH = 1 << 0,
	VF_EFFECT_SPILL = 1 << 1, /* stores a register in the stack */
	VF_EFFECT_POP = 1 << 2,	  /* loads a whole register from the stack, by pop or mov */
	VF_EFFECT_TOP = 1 << 3,	  /* writes the word at the top of the stack */
	VF_EFFECT_STACK = 1 << 4, /* writes to the stack */
};

struct vf_effect {
	uint16_t reads[VF_NR_PARTS];  /* registers read */
	uint16_t writes[VF_NR_PARTS]; /* replaced in every case */
	uint16_t sets;		      /* may be written */
	uint16_t named;		      /* of @sets: by an explicit operand */
	uint8_t flags;
};

#endif
