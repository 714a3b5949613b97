// SPDX-License-Identifier: Apache-2.0
/* multiply - products of two halves, and quotients. Called by execute. */
#include "libprof/foresee/alu_private.h"
#include "libprof/foresee/execute_private.h"

typedef unsigned __int128 wide;

/* Registers of a product or a dividend of twice @bits: the low and the high half. */
static void halves_of(unsigned int bits, ZydisRegister *low, ZydisRegister *high)
{
	switch (bits) {
	case 8:
		*low = ZYDIS_REGISTER_AL;
		*high = ZYDIS_REGISTER_AH;
		break;
	case 16:
		*low = ZYDIS_REGISTER_AX;
		*high = ZYDIS_REGISTER_DX;
		break;
	case 32:
		*low = ZYDIS_REGISTER_EAX;
		*high = ZYDIS_REGISTER_EDX;
		break;
	default: *low = ZYDIS_REGISTER_RAX; *high = ZYDIS_REGISTER_RDX;
	}
}

bool mp_multiply_wide(struct mp_processor *p, const struct mp_decoded *d, bool is_signed)
{
	unsigned int bits = d->operands[0].size;
	ZydisRegister low, high;
	uint64_t a, b;
	wide product, fits;

	halves_of(bits, &low, &high);
	if (!mp_operand_read(p, d, &d->operands[0], &a) || !mp_register_read(p, low, &b))
		return false;
	if (is_signed) {
		product = (wide)((__int128)(int64_t)mp_sign_extend(a, bits) *
				 (int64_t)mp_sign_extend(b, bits));
		fits = (wide)(__int128)(int64_t)mp_sign_extend((uint64_t)product, bits);
	} else {
		product = (wide)a * b;
		fits = product & mp_low_bits(bits);
	}
	mp_register_write(p, low, (uint64_t)product);
	mp_register_write(p, high, (uint64_t)(product >> bits));
	mp_flags_write(p, &(struct mp_alu){.flags = product != fits ? MP_CF | MP_OF : 0,
					   .defined = MP_CF | MP_OF,
					   .changed = MP_STATUS_FLAGS});
	return true;
}

/* Return: false: this division faults. */
static bool divide_signed(wide dividend, uint64_t divisor, unsigned int bits, uint64_t *quotient,
			  uint64_t *remainder)
{
	__int128 a = (__int128)dividend, b = (int64_t)mp_sign_extend(divisor, bits), q;

	if (bits < 64)
		a = (int64_t)mp_sign_extend((uint64_t)dividend, 2 * bits);
	/* The least number, divided by -1, does not even fit into @a. */
	if (!b || (b == -1 && a == (__int128)((wide)1 << 127)))
		return false;
	q = a / b;
	*quotient = (uint64_t)q;
	*remainder = (uint64_t)(a % b);
	return (int64_t)mp_sign_extend(*quotient, bits) == q;
}

static bool divide_unsigned(wide dividend, uint64_t divisor, unsigned int bits, uint64_t *quotient,
			    uint64_t *remainder)
{
	wide q;

	if (!divisor)
		return false;
	q = dividend / divisor;
	*quotient = (uint64_t)q;
	*remainder = (uint64_t)(dividend % divisor);
	return q <= mp_low_bits(bits);
}

bool mp_divide(struct mp_processor *p, const struct mp_decoded *d, bool is_signed)
{
	unsigned int bits = d->operands[0].size;
	uint64_t divisor, from_low, from_high, quotient, remainder;
	ZydisRegister low, high;
	wide dividend;

	halves_of(bits, &low, &high);
	if (!mp_operand_read(p, d, &d->operands[0], &divisor) ||
	    !mp_register_read(p, low, &from_low) || !mp_register_read(p, high, &from_high))
		return false;
	dividend = (wide)from_high << bits | from_low;
	if (!(is_signed ? divide_signed : divide_unsigned)(dividend, divisor, bits, &quotient,
							   &remainder))
		return false;
	mp_register_write(p, low, quotient);
	mp_register_write(p, high, remainder);
	mp_flags_write(p, &(struct mp_alu){.changed = MP_STATUS_FLAGS});
	return true;
}
