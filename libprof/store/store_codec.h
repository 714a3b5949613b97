// SPDX-License-Identifier: Apache-2.0
/*
 * store_codec - the bytes that hold the counts, or the edges, of one chunk of text.
 *
 * An entry of counts is a token, LEB128: (distance to the previous address - 1) * 4 + how,
 * with how:
 * 	0  the same count as the entry before (exact counts: a basic block is one run)
 * 	1  one sample
 * 	2  two samples
 * 	3  the count follows, LEB128
 * Most entries of a sampled profile take one or two bytes. The first distance is from the
 * byte before the chunk, and the count before the first entry is 1.
 *
 * An entry of edges consists of LEB128 numbers, most of them one byte each:
 * 	(distance of @from from the entry before's, at first from the chunk) * 8
 * 		+ mispredicted? 4 + how
 * 	@to: if @from is as before, the distance from the entry before's @to - 1; else the distance
 * 		from @from, folded (0, -1, 1, -2, 2, ... are 0, 1, 2, 3, 4, ...)
 * 	the count, if how is 3
 * 	the mispredicted, if there are any
 */
#ifndef MP_STORE_CODEC_H
#define MP_STORE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/base/ip_count.h"
#include "libprof/store/store.h"

/*
 * Text bytes per chunk: small, so that a flush rewrites little; large enough that the row's
 * own 30 bytes do not matter.
 */
#define MP_CHUNK_SHIFT	   16
#define MP_CHUNK_SIZE	   (1u << MP_CHUNK_SHIFT)
#define MP_CHUNK_ENTRY_MAX 13 /* bytes: token 3, count 10 */

/*
 * Encodes @nr entries, ascending and all inside the chunk at @base; @out holds nr *
 * MP_CHUNK_ENTRY_MAX bytes. Return: bytes used.
 */
size_t mp_chunk_encode(uint64_t base, const struct mp_ip_count *ips, size_t nr, uint8_t *out);

/*
 * Decodes into @out, which holds MP_CHUNK_SIZE entries.
 * Return: 0 and *@nr, or -EBADMSG: cut short, an address outside the chunk, a count of 0.
 */
int mp_chunk_decode(uint64_t base, const uint8_t *data, size_t size, struct mp_ip_count *out,
		    size_t *nr);

#define MP_EDGE_ENTRY_MIN 2  /* bytes: token 1, to 1 */
#define MP_EDGE_ENTRY_MAX 33 /* bytes: token 3, to 10, count 10, mispredicted 10 */

/* The same for edges: ascending by (from, to), every from inside the chunk at @base. */
size_t mp_edge_encode(uint64_t base, const struct mp_edge_count *edges, size_t nr, uint8_t *out);
/* @out holds @size / MP_EDGE_ENTRY_MIN entries. Return: 0 and *@nr, or -EBADMSG. */
int mp_edge_decode(uint64_t base, const uint8_t *data, size_t size, struct mp_edge_count *out,
		   size_t *nr);

#endif
