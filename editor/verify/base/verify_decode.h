// SPDX-License-Identifier: Apache-2.0
/*
 * verify_decode - single instructions, as verify reads them by Zydis alone.
 */
#ifndef ME_VERIFY_DECODE_H
#define ME_VERIFY_DECODE_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "editor/verify/base/verify_context.h"

enum vf_kind {
	VF_OTHER, /* falls through */
	VF_JCC,
	VF_JMP,	 /* direct */
	VF_CALL, /* direct */
	VF_ICALL,
	VF_IJMP_REG, /* jmp *%reg */
	VF_IJMP_MEM, /* jmp *memory */
	VF_STOP,     /* ret, iret, ud2, hlt: nothing follows */
	VF_ODD,	     /* loop, jrcxz, xbegin: a relative branch that verify does not follow */
};

struct vf_insn {
	uint8_t len, kind, cc;
	uint8_t disp_off;	   /* rip-relative: offset of its disp32; else 0 */
	uint8_t rel_off, rel_size; /* relative branch: offset and size of the displacement */
	uint8_t abs_off;	   /* offset of a disp32 that may be an absolute address; else 0 */
	uint8_t imm_off, imm_size;
	bool eip_relative; /* rip-relative with a 32-bit address: wraps */
	bool nop, int3, lea;
	uint8_t base; /* of memory: VF_BASE, VF_INDEX, the register's last three bits; else 0 */
	uint8_t disp8_off; /* offset of its displacement, if that has one byte; else 0 */
	uint64_t target;   /* branch target or rip-relative operand */
	int64_t abs;	   /* value of that disp32, sign-extended */
	int64_t imm;
};

#define VF_BASE	 8  /* there is one */
#define VF_INDEX 16 /* there may be an index as well */

/* Return: the displacement from the base in the instruction at @b. */
static inline int64_t vf_base_disp(const struct vf_insn *insn, const uint8_t *b)
{
	return insn->abs_off ? insn->abs : insn->disp8_off ? (int8_t)b[insn->disp8_off] : 0;
}

/* Decode one instruction. Return: false if the bytes are no instruction or are cut off. */
bool vf_decode(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct vf_insn *insn);
/* vf_decode() without its cache of earlier instructions. The tests compare both. */
bool vf_decode_anew(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct vf_insn *insn);

/* Return: the target of the displacement at @b, in an instruction that ends at @end. */
static inline uint64_t vf_displacement_target(const uint8_t *b, uint64_t end)
{
	int32_t disp;

	memcpy(&disp, b, sizeof(disp));
	return end + (uint64_t)(int64_t)disp;
}

#define VF_NOP_MAX 9
/* Length of the nop at @p, if processors' manuals name it; else 0. */
size_t vf_nop_len(const uint8_t *p, size_t avail);
/* The calling thread's Zydis decoder, for callers that need operands. */
const ZydisDecoder *vf_full_decoder(void);

/* One instruction with all of its operands, also those that its text does not show. */
struct vf_full {
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* Decodes the original's instruction at @at, which must end by @end. Return: false: there is none. */
bool vf_decode_full(const struct vf *vf, uint64_t at, uint64_t end, struct vf_full *f);

/*
 * Sets @to to the addresses that the operands may name: absolute ones only in a file with fixed addresses, and
 * immediates there, or if they have 8 bytes. Return: their number, 3 at most.
 */
unsigned int vf_may_name(const struct vf *vf, const struct vf_insn *insn, uint64_t to[3]);

#endif
