// SPDX-License-Identifier: Apache-2.0
/*
 * store_codec - the bytes that hold the counts of one chunk of text.
 *
 * An entry is a token, LEB128: (distance to the previous address - 1) * 4 + how, where how is
 *	0  the same count as the entry before (exact counts: a basic block is one run)
 *	1  one sample
 *	2  two samples
 *	3  the count follows, LEB128
 * so most entries of a sampled profile are one or two bytes. The first distance is to the byte
 * before the chunk, and before the first entry the count was 1.
 */
#ifndef MP_STORE_CODEC_H
#define MP_STORE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/profile.h"

/* Text bytes per chunk: small enough that a flush rewrites little, large enough that the row's
 * own 30 bytes do not matter. */
#define MP_CHUNK_SHIFT	   16
#define MP_CHUNK_SIZE	   (1u << MP_CHUNK_SHIFT)
#define MP_CHUNK_ENTRY_MAX 13 /* bytes: token 3, count 10 */

/* Encode @nr entries, ascending and all inside the chunk at @base; @out holds
 * nr * MP_CHUNK_ENTRY_MAX. Return: bytes used. */
size_t mp_chunk_encode(uint64_t base, const struct mp_ip_count *ips, size_t nr, uint8_t *out);

/*
 * Decode into @out, which holds MP_CHUNK_SIZE entries.
 * Return: 0 and *@nr, or -EBADMSG: cut short, an address outside the chunk, a count of 0.
 */
int mp_chunk_decode(uint64_t base, const uint8_t *data, size_t size, struct mp_ip_count *out,
		    size_t *nr);

#endif
