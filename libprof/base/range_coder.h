// SPDX-License-Identifier: Apache-2.0
/*
 * range_coder - bits that take as much room as they are unlikely, by models that learn. One coder writes or
 * reads: code that describes a format once does both. Called by context/context_pack.
 *
 * A bit narrows a range of numbers to the part that its value has; what is written in the end is a number
 * in the last range. Method: Martin, Range encoding (1979); carries as in LZMA.
 */
#ifndef MP_RANGE_CODER_H
#define MP_RANGE_CODER_H

#include "libprof/base/varint.h"

/* How likely the next bit of one kind is 0, by the bits of this kind before it. */
struct mp_bit_model {
	uint16_t zero;	  /* probability of 0, in 2^-16 */
	uint16_t nr_seen; /* it learns fast at first */
};

/* Numbers of one kind: how long they are, and their two highest bits below the first one. */
struct mp_number_model {
	struct mp_bit_model longer[64], top[17][3];
};

struct mp_range_coder {
	bool reading;
	uint32_t range;
	/* reading */
	uint32_t code;
	const uint8_t *p, *end;
	bool failed; /* past the end; bits are then any */
	/* writing: what may still get a carry is kept back */
	uint64_t low, nr_kept;
	uint8_t kept;
	struct mp_varint_writer *out;
};

/* Models that have seen nothing. */
void mp_bit_models_init(struct mp_bit_model *models, size_t nr);

/* @out: not owned; gets bytes until mp_range_finish(). */
void mp_range_write(struct mp_range_coder *rc, struct mp_varint_writer *out);
/* @data: not owned; is read until the coder's end. */
void mp_range_read(struct mp_range_coder *rc, const uint8_t *data, size_t size);
/* Writing: all bytes are written. Reading: return true if exactly all bytes were read. */
bool mp_range_finish(struct mp_range_coder *rc);

/* Writes @bit, or reads one. Return: the bit. */
bool mp_range_bit(struct mp_range_coder *rc, struct mp_bit_model *model, bool bit);
/* The same for the low @nr bits of @value, of which nothing is known. */
uint64_t mp_range_bits(struct mp_range_coder *rc, uint32_t nr, uint64_t value);
/* The same for any number; small ones are short. */
uint64_t mp_range_number(struct mp_range_coder *rc, struct mp_number_model *model, uint64_t value);

#endif
