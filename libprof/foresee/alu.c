// SPDX-License-Identifier: Apache-2.0
/* alu - computes integer results and status flags. Called by execute. */
#include "libprof/foresee/alu_private.h"

#include "libprof/foresee/processor_private.h"

uint64_t mp_sign_extend(uint64_t value, unsigned int bits)
{
	uint64_t sign = 1ull << (bits - 1);

	return ((value & mp_low_bits(bits)) ^ sign) - sign;
}

static bool bit_of(uint64_t value, unsigned int n)
{
	return value >> n & 1;
}

static uint32_t flag_if(bool on, uint32_t flag)
{
	return on ? flag : 0;
}

/* The flags that depend on the result alone. Parity: that of the lowest byte. */
static uint32_t result_flags(uint64_t value, unsigned int bits)
{
	return flag_if(!value, MP_ZF) | flag_if(bit_of(value, bits - 1), MP_SF) |
	       flag_if(!__builtin_parityll(value & 0xff), MP_PF);
}

struct mp_alu mp_alu_add(uint64_t a, uint64_t b, bool carry, unsigned int bits)
{
	uint64_t value = (a + b + carry) & mp_low_bits(bits);
	bool carries = value < a || (carry && value == a);
	bool overflows = bit_of((a ^ value) & (b ^ value), bits - 1);

	return (struct mp_alu){value,
			       result_flags(value, bits) | flag_if(carries, MP_CF) |
				       flag_if(overflows, MP_OF),
			       MP_STATUS_FLAGS, MP_STATUS_FLAGS};
}

struct mp_alu mp_alu_sub(uint64_t a, uint64_t b, bool borrow, unsigned int bits)
{
	uint64_t value = (a - b - borrow) & mp_low_bits(bits);
	bool borrows = a < b || (borrow && a == b);
	bool overflows = bit_of((a ^ b) & (a ^ value), bits - 1);

	return (struct mp_alu){value,
			       result_flags(value, bits) | flag_if(borrows, MP_CF) |
				       flag_if(overflows, MP_OF),
			       MP_STATUS_FLAGS, MP_STATUS_FLAGS};
}

struct mp_alu mp_alu_logic(uint64_t value, unsigned int bits)
{
	return (struct mp_alu){value, result_flags(value, bits), MP_STATUS_FLAGS, MP_STATUS_FLAGS};
}

/* Overflow is defined for a count of 1, carry for counts of which the last bit shifted out is one of @a's. */
static struct mp_alu shift_left(uint64_t a, unsigned int count, unsigned int bits)
{
	uint64_t value = a << count & mp_low_bits(bits);
	bool carry = count < bits && bit_of(a, bits - count);
	uint32_t defined = MP_STATUS_FLAGS & ~flag_if(count >= bits, MP_CF);

	return (struct mp_alu){value,
			       result_flags(value, bits) | flag_if(carry, MP_CF) |
				       flag_if(carry != bit_of(value, bits - 1), MP_OF),
			       defined, MP_STATUS_FLAGS};
}

static struct mp_alu shift_right(uint64_t a, unsigned int count, unsigned int bits)
{
	uint64_t value = a >> count;
	uint32_t defined = MP_STATUS_FLAGS & ~flag_if(count >= bits, MP_CF);

	return (struct mp_alu){value,
			       result_flags(value, bits) | flag_if(bit_of(a, count - 1), MP_CF) |
				       flag_if(bit_of(a, bits - 1), MP_OF),
			       defined, MP_STATUS_FLAGS};
}

static struct mp_alu shift_right_signed(uint64_t a, unsigned int count, unsigned int bits)
{
	uint64_t wide = mp_sign_extend(a, bits);
	uint64_t value = (uint64_t)((int64_t)wide >> count) & mp_low_bits(bits);

	return (struct mp_alu){value,
			       result_flags(value, bits) | flag_if(bit_of(wide, count - 1), MP_CF),
			       MP_STATUS_FLAGS, MP_STATUS_FLAGS};
}

/* Rotations change carry and overflow only. */
static struct mp_alu rotate(uint64_t a, unsigned int left, unsigned int bits, bool is_left)
{
	uint64_t value = left ? (a << left | a >> (bits - left)) & mp_low_bits(bits) : a;
	bool high = bit_of(value, bits - 1);
	bool carry = is_left ? bit_of(value, 0) : high;
	bool overflow = high != (is_left ? carry : bit_of(value, bits - 2));

	return (struct mp_alu){value, flag_if(carry, MP_CF) | flag_if(overflow, MP_OF),
			       MP_CF | MP_OF, MP_CF | MP_OF};
}

struct mp_alu mp_alu_shift(enum mp_shift shift, uint64_t a, unsigned int count, unsigned int bits)
{
	struct mp_alu alu = {.value = a};

	if (!count)
		return alu;
	switch (shift) {
	case MP_SHL: alu = shift_left(a, count, bits); break;
	case MP_SHR: alu = shift_right(a, count, bits); break;
	case MP_SAR: alu = shift_right_signed(a, count, bits); break;
	case MP_ROL: alu = rotate(a, count % bits, bits, true); break;
	case MP_ROR: alu = rotate(a, (bits - count % bits) % bits, bits, false); break;
	}
	if (count != 1)
		alu.defined &= ~MP_OF;
	return alu;
}

struct mp_alu mp_alu_multiply(uint64_t a, uint64_t b, unsigned int bits)
{
	__int128 product =
		(__int128)(int64_t)mp_sign_extend(a, bits) * (int64_t)mp_sign_extend(b, bits);
	uint64_t value = (uint64_t)product & mp_low_bits(bits);
	bool overflows = (int64_t)mp_sign_extend(value, bits) != product;

	return (struct mp_alu){value, flag_if(overflows, MP_CF | MP_OF), MP_CF | MP_OF,
			       MP_STATUS_FLAGS};
}
