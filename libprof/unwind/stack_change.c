// SPDX-License-Identifier: Apache-2.0
/*
 * stack_change - looks for the bytes of such instructions first, since there are few. Only if they are
 * found, the function is decoded, to see whether an instruction begins there.
 *
 * "pop %rsp" and "leave" are not looked for: compilers describe them, and their single bytes are
 * everywhere.
 */
#include "libprof/unwind/stack_change.h"

#include "libprof/insn/insn.h"

#define RSP	 4
#define REX_R	 4
#define REX_B	 1
#define OP_XCHG	 0x87
#define OP_STORE 0x89
#define OP_LOAD	 0x8b
#define OP_LEA	 0x8d

static const uint8_t *elf_bytes(void *arg, uint64_t vaddr, uint64_t size)
{
	return mp_elf_bytes(arg, vaddr, size);
}

struct mp_code_bytes mp_code_bytes_of(const struct mp_elf *elf)
{
	return (struct mp_code_bytes){elf_bytes, (void *)elf};
}

/* Return: true if the four bytes at @p, of which the first is a REX prefix, may begin such an instruction. */
static bool may_change(const uint8_t *p)
{
	uint8_t rex = p[0], mod = p[2] >> 6, reg = p[2] >> 3 & 7, rm = p[2] & 7;
	bool to_reg = reg == RSP && !(rex & REX_R), is_direct = mod == 3;
	bool is_rm = rm == RSP && !(rex & REX_B);

	switch (p[1]) {
	case OP_LOAD: return to_reg && !(is_direct && is_rm);
	case OP_STORE: return is_direct && is_rm && !to_reg;
	case OP_XCHG: return to_reg != (is_direct && is_rm);
	/* An address by rsp itself only makes room. */
	case OP_LEA: return to_reg && !(is_rm && (p[3] & 7) == RSP);
	default: return false;
	}
}

/* Decodes on from *@at up to @to. Return: false if something there is no instruction. */
static bool decode_to(const uint8_t *code, size_t size, size_t *at, size_t to)
{
	struct mp_insn insn;

	for (; *at < to; *at += insn.len)
		if (mp_insn_decode(code + *at, size - *at, *at, &insn))
			return false;
	return true;
}

/* Bytes that are looked at together: the compiler makes vectors of them. */
#define AT_ONCE 32

/* Could the three bytes at @p begin such an instruction? Few of a compiler's do. */
static inline uint8_t looks_like_change(const uint8_t *p)
{
	/* To rsp from memory, from another register or by exchange; from a register to rsp, two ways. */
	uint8_t to = ((p[0] & 0xfc) == 0x48) & ((p[1] & 0xf1) == 0x81) & ((p[2] & 0x38) == 0x20);
	uint8_t from = ((p[0] & 0xf9) == 0x48) & ((p[1] == OP_STORE) | (p[1] == OP_XCHG)) &
		       ((p[2] & 0xc7) == 0xc4);

	return to | from;
}

bool mp_stack_may_change(const uint8_t *code, size_t size)
{
	size_t i = 0;
	uint8_t any = 0;

	for (; i + AT_ONCE + 2 <= size && !any; i += AT_ONCE)
		for (size_t k = 0; k < AT_ONCE; k++)
			any |= looks_like_change(code + i + k);
	for (; i + 3 <= size && !any; i++)
		any |= looks_like_change(code + i);
	return any;
}

size_t mp_stack_change(const uint8_t *code, size_t size, size_t from, size_t to)
{
	size_t at = 0, end;

	if (size < 4)
		return to;
	for (size_t i = from; i < to && i <= size - 4; i++) {
		if (!looks_like_change(code + i) || !may_change(code + i))
			continue;
		/* Behind bytes that are no instruction, any byte may begin one. */
		if (decode_to(code, size, &at, i) && at != i)
			continue;
		end = i;
		if (!decode_to(code, size, &end, i + 1))
			end = i + 1;
		if (end < to)
			return end;
	}
	return to;
}
