// SPDX-License-Identifier: Apache-2.0
/* range_coder - writes and reads bits by their probabilities; see range_coder.h. */
#include "libprof/base/range_coder.h"

#define TOP (1u << 24) /* a range below gets another byte */
/* Probabilities never get nearer to 0 or 1: any bit can be written. */
#define ZERO_MIN 64u
#define ZERO_MAX (65536u - ZERO_MIN)

void mp_bit_models_init(struct mp_bit_model *models, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		models[i] = (struct mp_bit_model){.zero = 32768};
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* Gives out the highest byte of @low. Bytes of 255 wait, since a carry may still change them. */
static void put_byte(struct mp_range_coder *rc)
{
	uint8_t carry = (uint8_t)(rc->low >> 32), byte;

	if ((uint32_t)rc->low < 0xff000000u || carry) {
		for (; rc->nr_kept; rc->nr_kept--) {
			byte = (uint8_t)(rc->kept + carry);
			mp_varint_put_bytes(rc->out, &byte, 1);
			rc->kept = 0xff;
		}
		rc->kept = (uint8_t)(rc->low >> 24);
	}
	rc->nr_kept++;
	rc->low = (rc->low & 0x00ffffff) << 8;
}

static void get_byte(struct mp_range_coder *rc)
{
	rc->failed |= rc->p == rc->end;
	rc->code = rc->code << 8 | (rc->failed ? 0 : *rc->p++);
}

void mp_range_write(struct mp_range_coder *rc, struct mp_varint_writer *out)
{
	*rc = (struct mp_range_coder){.range = UINT32_MAX, .nr_kept = 1, .out = out};
}

void mp_range_read(struct mp_range_coder *rc, const uint8_t *data, size_t size)
{
	*rc = (struct mp_range_coder){
		.reading = true, .range = UINT32_MAX, .p = data, .end = data + size};
	/* The first byte is the one that the writer had before any carry. */
	for (int i = 0; i < 5; i++)
		get_byte(rc);
}

bool mp_range_finish(struct mp_range_coder *rc)
{
	for (int i = 0; i < 5 && !rc->reading; i++)
		put_byte(rc);
	return !rc->failed && rc->p == rc->end;
}

/* ---- bits ---------------------------------------------------------------------------------- */

static inline void widen(struct mp_range_coder *rc)
{
	for (; rc->range < TOP; rc->range <<= 8) {
		if (rc->reading)
			get_byte(rc);
		else
			put_byte(rc);
	}
}

static inline bool narrow(struct mp_range_coder *rc, uint32_t zeros, bool bit)
{
	if (rc->reading)
		bit = rc->code >= zeros;
	if (!bit) {
		rc->range = zeros;
	} else {
		rc->range -= zeros;
		if (rc->reading)
			rc->code -= zeros;
		else
			rc->low += zeros;
	}
	widen(rc);
	return bit;
}

/* After a few bits, each changes the probability by a sixteenth, later by a thirty-second. */
static void learn(struct mp_bit_model *model, bool bit)
{
	static const uint8_t shifts[] = {1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 5};
	uint32_t shift = shifts[model->nr_seen], zero = model->zero;

	if (model->nr_seen + 1u < sizeof(shifts))
		model->nr_seen++;
	zero = bit ? zero - (zero >> shift) : zero + ((65536 - zero) >> shift);
	model->zero = (uint16_t)(zero < ZERO_MIN ? ZERO_MIN : zero > ZERO_MAX ? ZERO_MAX : zero);
}

bool mp_range_bit(struct mp_range_coder *rc, struct mp_bit_model *model, bool bit)
{
	bit = narrow(rc, (rc->range >> 12) * (model->zero >> 4), bit);
	learn(model, bit);
	return bit;
}

/* @nr: 16 at most, which leaves 256 parts of a range. */
static uint32_t narrow_evenly(struct mp_range_coder *rc, uint32_t nr, uint32_t value)
{
	rc->range >>= nr;
	if (rc->reading) {
		value = rc->code / rc->range;
		/* Division leaves a rest of the range, which no writer uses; damaged bytes may lead there. */
		value = value >> nr ? (1u << nr) - 1 : value;
		rc->code -= value * rc->range;
	} else {
		rc->low += (uint64_t)value * rc->range;
	}
	widen(rc);
	return value;
}

uint64_t mp_range_bits(struct mp_range_coder *rc, uint32_t nr, uint64_t value)
{
	uint64_t out = 0;

	while (nr) {
		uint32_t part = nr < 16 ? nr : 16;

		nr -= part;
		out = out << part |
		      narrow_evenly(rc, part, (uint32_t)(value >> nr) & ((1u << part) - 1));
	}
	return out;
}

uint64_t mp_range_number(struct mp_range_coder *rc, struct mp_number_model *model, uint64_t value)
{
	uint32_t length = value ? 64 - (uint32_t)__builtin_clzll(value) : 0, i = 0, left;
	uint64_t out = 1;

	while (i < 64 && mp_range_bit(rc, &model->longer[i], i < length))
		i++;
	if (i < 2)
		return i;
	left = i - 1;
	for (uint32_t depth = 0; depth < 2 && left && i <= 16; depth++, left--)
		out = out << 1 | mp_range_bit(rc, &model->top[i][depth ? 1 + (out & 1) : 0],
					      value >> (left - 1) & 1);
	return out << left | mp_range_bits(rc, left, value);
}
