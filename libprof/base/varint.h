// SPDX-License-Identifier: Apache-2.0
/*
 * varint - numbers with as many bytes as they need: seven bits in each, the lowest first.
 * Used by all compact formats, such as map, edge_table, path_table and fingerprint. A failure stays
 * set in the writer or reader, so one check at the end suffices.
 */
#ifndef MP_VARINT_H
#define MP_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts as zeros. Ownership: free(@bytes). */
struct mp_varint_writer {
	uint8_t *bytes;
	size_t size, room;
	bool failed; /* out of memory */
};

void mp_varint_put_bytes(struct mp_varint_writer *w, const void *data, size_t size);
void mp_varint_put(struct mp_varint_writer *w, uint64_t v);
/* Maps small magnitudes of either sign to small numbers: 0, -1, 1, -2 become 0, 1, 2, 3. */
void mp_varint_put_signed(struct mp_varint_writer *w, int64_t v);

struct mp_varint_reader {
	const uint8_t *p, *end;
	bool failed; /* past the end, more than 64 bits, or longer than needed; reads then give 0 */
};

/* Address of the next @size bytes, or NULL. */
const uint8_t *mp_varint_get_bytes(struct mp_varint_reader *r, size_t size);
uint64_t mp_varint_get_long(struct mp_varint_reader *r);
/* Most numbers have one byte, which is read in place. */
static inline uint64_t mp_varint_get(struct mp_varint_reader *r)
{
	if (!r->failed && r->p < r->end && *r->p < 128)
		return *r->p++;
	return mp_varint_get_long(r);
}
int64_t mp_varint_get_signed(struct mp_varint_reader *r);

#endif
