// SPDX-License-Identifier: Apache-2.0
/*
 * insn - one decoded x86-64 instruction, reduced to the facts for control flow and
 * relocation.
 * A thin layer over Zydis. Code that needs operands decodes again with Zydis itself
 * (table_op).
 */
#ifndef MP_INSN_H
#define MP_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mp_insn_kind {
	MP_INSN_OTHER,	 /* falls through */
	MP_INSN_COND,	 /* jcc rel8/rel32 */
	MP_INSN_JUMP,	 /* jmp rel8/rel32 */
	MP_INSN_IJUMP,	 /* jmp reg/mem */
	MP_INSN_CALL,	 /* call rel32 */
	MP_INSN_ICALL,	 /* call reg/mem */
	MP_INSN_RET,	 /* ret, iret, sysret */
	MP_INSN_TRAP,	 /* ud2, hlt, int3: nothing follows */
	MP_INSN_LOOP,	 /* loop*, jrcxz, xbegin: rel8-only or unusual */
	MP_INSN_SYSCALL, /* syscall, sysenter, int n: falls through */
};

struct mp_insn {
	uint64_t vaddr;
	uint8_t len;	   /* 1 to 15 */
	uint8_t kind;	   /* enum mp_insn_kind */
	uint8_t cc;	   /* COND: condition code, the low nibble of the opcode; ^1 inverts */
	bool rip_relative; /* a memory operand is [rip + disp32] */
	uint8_t disp_off;  /* offset of that disp32, or of the branch displacement */
	uint8_t disp_size; /* its bytes: 1 or 4 for branches, 4 for rip_relative; 0: none */
	/* Immediate that is not a branch displacement, or an address of 8 bytes in its place; 0 size: none. */
	uint8_t imm_off, imm_size;
	/* offset of another disp32 of a memory operand (base, index or absolute); 0: none */
	uint8_t mem_disp_off;
	bool notrack, bnd, endbr64, nop; /* nop: any multi-byte no-op, padding */
	uint64_t target; /* direct branch: its target; rip_relative: the operand's address */
};

/* Decodes one instruction at @bytes (at most @avail). Return: 0, -EILSEQ if undecodable or cut. */
int mp_insn_decode(const uint8_t *bytes, size_t avail, uint64_t vaddr, struct mp_insn *insn);

#define MP_INSN_SP     4 /* number of the stack pointer, as instructions encode it */
#define MP_INSN_NO_REG UINT8_MAX

/* General registers of an instruction that the quick decoder knows, by their numbers. */
struct mp_insn_operands {
	uint16_t registers;  /* all that it names or uses, perhaps others as well */
	uint8_t base, index; /* of its memory operand, if any; MP_INSN_NO_REG: none */
	int32_t disp;	     /* from them */
};

/*
 * mp_insn_operands - many times faster than Zydis. @insn was decoded from @bytes. Return: false: not known; true only
 * for MP_INSN_OTHER, with addresses of 64 bits.
 */
bool mp_insn_operands(const uint8_t *bytes, const struct mp_insn *insn, struct mp_insn_operands *o);

static inline bool mp_insn_ends_block(const struct mp_insn *insn)
{
	return insn->kind == MP_INSN_COND || insn->kind == MP_INSN_JUMP ||
	       insn->kind == MP_INSN_IJUMP || insn->kind == MP_INSN_RET ||
	       insn->kind == MP_INSN_TRAP || insn->kind == MP_INSN_LOOP;
}

#endif
