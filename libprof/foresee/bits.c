// SPDX-License-Identifier: Apache-2.0
/* bits - instructions that look at single bits, or turn bytes round. Called by execute. */
#include "libprof/foresee/alu_private.h"
#include "libprof/foresee/execute_private.h"

/* Only carry gets a value; the zero flag keeps its own. */
bool mp_bit_test(struct mp_processor *p, const struct mp_decoded *d)
{
	struct mp_alu alu = {.defined = MP_CF, .changed = MP_STATUS_FLAGS & ~MP_ZF};
	uint64_t a, n;

	/* A register may name a bit far from the operand in memory. */
	if (d->operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    d->operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	if (!mp_operand_read(p, d, &d->operands[0], &a) ||
	    !mp_operand_read(p, d, &d->operands[1], &n))
		return false;
	alu.flags = a >> (n % d->operands[0].size) & 1 ? MP_CF : 0;
	mp_flags_write(p, &alu);
	return true;
}

/*
 * bsf, bsr and tzcnt, whose results are the same as long as there is a bit. Old processors execute tzcnt as bsf, with
 * other flags. Without a bit, bsf and bsr write only the zero flag.
 */
bool mp_bit_find(struct mp_processor *p, const struct mp_decoded *d)
{
	struct mp_alu alu = {.changed = MP_STATUS_FLAGS};
	uint64_t a;

	if (!mp_operand_read(p, d, &d->operands[1], &a))
		return false;
	if (d->insn.mnemonic != ZYDIS_MNEMONIC_TZCNT) {
		alu.defined = MP_ZF;
		alu.flags = a ? 0 : MP_ZF;
	}
	if (!a)
		mp_operand_forget(p, d, &d->operands[0]);
	else if (d->insn.mnemonic == ZYDIS_MNEMONIC_BSR)
		mp_operand_write(p, d, &d->operands[0], 63 - (uint64_t)__builtin_clzll(a));
	else
		mp_operand_write(p, d, &d->operands[0], (uint64_t)__builtin_ctzll(a));
	mp_flags_write(p, &alu);
	return true;
}

bool mp_bit_count(struct mp_processor *p, const struct mp_decoded *d)
{
	uint64_t a;

	if (!mp_operand_read(p, d, &d->operands[1], &a))
		return false;
	mp_operand_write(p, d, &d->operands[0], (uint64_t)__builtin_popcountll(a));
	mp_flags_write(p, &(struct mp_alu){.flags = a ? 0 : MP_ZF,
					   .defined = MP_STATUS_FLAGS,
					   .changed = MP_STATUS_FLAGS});
	return true;
}

/* With 16 bits, the result is undefined. */
bool mp_byte_swap(struct mp_processor *p, const struct mp_decoded *d)
{
	unsigned int bits = d->operands[0].size;
	uint64_t a;

	if (bits < 32 || !mp_operand_read(p, d, &d->operands[0], &a))
		return false;
	mp_operand_write(p, d, &d->operands[0], __builtin_bswap64(a) >> (64 - bits));
	return true;
}
