// SPDX-License-Identifier: Apache-2.0
/*
 * table_op - an instruction with its operands, reduced to the facts for following a value
 * backward.
 */
#ifndef MP_TABLE_OP_H
#define MP_TABLE_OP_H

#include "libprof/cfg/cfg_private.h"

#define MP_NO_REG 0xff
/* rax rcx rdx rsi rdi r8 to r11, as bits: a call may change them. */
#define MP_CALLER_SAVED 0x0fc7

enum mp_op_kind {
	MP_OP_OTHER,
	MP_OP_CONST,   /* dst = value */
	MP_OP_LEA,     /* dst = base + index * scale + disp */
	MP_OP_LOAD,    /* dst = [mem], sign or zero extended; @size bytes */
	MP_OP_COPY,    /* dst = src, possibly extended */
	MP_OP_CMOV,    /* dst = src, or dst stays */
	MP_OP_ADD,     /* dst += src */
	MP_OP_ADD_IMM, /* dst += value (sub: negative) */
	MP_OP_AND_IMM, /* dst &= value */
	MP_OP_SHR_IMM, /* dst >>= value */
	MP_OP_SHL_IMM,
	MP_OP_CMP_IMM,	/* flags = src - value, or [mem] - value */
	MP_OP_STORE,	/* [mem] = src */
	MP_OP_JUMP_REG, /* jmp *src */
	MP_OP_JUMP_MEM, /* jmp *[mem] */
};

struct mp_op {
	uint32_t at;
	uint8_t len, kind;
	uint8_t dst, src;	    /* 0 to 15 or MP_NO_REG */
	uint8_t base, index, scale; /* of a memory operand */
	uint8_t size;		    /* bytes loaded, compared or copied */
	uint8_t width;		    /* bytes of the destination register */
	bool mem, rip;		    /* has a memory operand; [rip + disp]: @disp is the address */
	bool falls;		    /* the next instruction may follow */
	bool nop;
	bool flags;	 /* arithmetic flags change */
	uint16_t writes; /* registers that change, as bits */
	uint8_t cond;	 /* jcc: condition code, else 0xff */
	int64_t disp, value;
};

/* Return: 0, -EILSEQ. */
int mp_op_decode(const struct mp_cfg_build *b, uint32_t at, struct mp_op *op);

#endif
