// SPDX-License-Identifier: Apache-2.0
/*
 * bytes - a growing byte buffer, written front to back. After a failed allocation,
 * writes do nothing and @failed stays set, so that a writer checks once at its end.
 * Called by the writers of unwind tables and debug information.
 */
#ifndef ME_BYTES_H
#define ME_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct me_bytes {
	uint8_t *data;
	size_t size, room;
	bool failed;
};

void me_bytes_fini(struct me_bytes *bytes);
/* Each appends to @bytes. Multi-byte numbers are little-endian. */
void me_bytes_put(struct me_bytes *bytes, const void *data, size_t size);
void me_bytes_u8(struct me_bytes *bytes, uint8_t v);
void me_bytes_u16(struct me_bytes *bytes, uint16_t v);
void me_bytes_u32(struct me_bytes *bytes, uint32_t v);
void me_bytes_u64(struct me_bytes *bytes, uint64_t v);
void me_bytes_uleb(struct me_bytes *bytes, uint64_t v);
void me_bytes_sleb(struct me_bytes *bytes, int64_t v);
/* Write @v in exactly @width bytes. The caller makes sure that @v fits. */
void me_bytes_uleb_padded(struct me_bytes *bytes, uint64_t v, unsigned int width);
/* Write zeros up to a multiple of @align, a power of two. */
void me_bytes_align(struct me_bytes *bytes, size_t align);
/* Overwrite 4 bytes at @off. */
void me_bytes_patch_u32(struct me_bytes *bytes, size_t off, uint32_t v);
/* Bytes of @v as ULEB128. */
unsigned int me_uleb_size(uint64_t v);

#endif
