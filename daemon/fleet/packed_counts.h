// SPDX-License-Identifier: Apache-2.0
/*
 * packed_counts - the counts of one chunk in about three quarters of the store's bytes, for the wire and
 * the server. Called by push_send and pull_sum; daemon/fleet/sql/v1-2-codec.sql checks and reads the same.
 *
 * Two lists of numbers are packed: distances (each address minus the one before, minus 1; the first from the
 * byte before the chunk) and counts minus 1. A number n of a list with the parameter k has the class c and c + k
 * further bits, of value r: n = ((1 << c) - 1 << k) + r. This is an exponential Golomb code; the encoder chooses k
 * for each list. Its bits are not written number by number, but so that the sum of a list follows from
 * counting ones, which a server does fast:
 *	for c = 0, 1, ... until no number is left: one bit for each number that is left; 1: its class is c
 *	for c = 0, 1, ...: the r of this class, the highest bits of all of them first, then the next ones, ...
 *
 * Bytes: the number of entries, LEB128; the bits of the distances, then those of the counts, the highest bit of a
 * byte first, and up to seven zeros; 128 + k of the distances * 8 + k of the counts. The store's bytes never end
 * with a byte above 127. So the last byte tells both formats apart.
 */
#ifndef MD_FLEET_PACKED_COUNTS_H
#define MD_FLEET_PACKED_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/store/store_codec.h"

/* Memory for one chunk at a time. Starts as zeros. */
struct md_packer {
	struct mp_ip_count
		*entries;  /* of a row that was unpacked or is packed, MP_CHUNK_SIZE of them */
	uint64_t *numbers; /* of one list */
	uint16_t *order;   /* places in the list, those of one class together */
	uint16_t *left;	   /* places of numbers whose class is not known yet */
	uint8_t *bytes;	   /* a row that was packed */
};

void md_packer_fini(struct md_packer *p);
/*
 * Packs a row of the store, which is valid, with addresses below 2^64 and counts below 2^46. Return: the size of
 * the bytes in @p->bytes; 0: they would hardly be fewer; -EBADMSG: not valid; -ENOMEM.
 */
long md_counts_pack(struct md_packer *p, const uint8_t *data, size_t size);

static inline bool md_counts_are_packed(const uint8_t *data, size_t size)
{
	return size && data[size - 1] > 127;
}

/*
 * Unpacks into @p->entries, with addresses from @base. Return: 0 and *@nr; -EBADMSG: cut short, an address outside
 * of the chunk, a count of 2^46 or more; -ENOMEM.
 */
int md_counts_unpack(struct md_packer *p, uint64_t base, const uint8_t *data, size_t size,
		     size_t *nr);

#endif
