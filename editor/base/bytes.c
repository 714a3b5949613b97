// SPDX-License-Identifier: Apache-2.0
/* bytes - a growing byte buffer, see bytes.h. */
#include "editor/base/bytes.h"

#include <stdlib.h>
#include <string.h>

void me_bytes_fini(struct me_bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct me_bytes){0};
}

static uint8_t *extend(struct me_bytes *bytes, size_t size)
{
	uint8_t *at;

	if (bytes->failed)
		return NULL;
	if (size > bytes->room - bytes->size) {
		size_t room = bytes->room + bytes->room / 2 + size + 64;
		uint8_t *data = realloc(bytes->data, room);

		if (!data) {
			bytes->failed = true;
			return NULL;
		}
		bytes->data = data;
		bytes->room = room;
	}
	at = bytes->data ? bytes->data + bytes->size : NULL;
	bytes->size += size;
	return at;
}

void me_bytes_put(struct me_bytes *bytes, const void *data, size_t size)
{
	uint8_t *at = extend(bytes, size);

	if (at && size)
		memcpy(at, data, size);
}

void me_bytes_u8(struct me_bytes *bytes, uint8_t v)
{
	me_bytes_put(bytes, &v, sizeof(v));
}

void me_bytes_u16(struct me_bytes *bytes, uint16_t v)
{
	me_bytes_put(bytes, &v, sizeof(v));
}

void me_bytes_u32(struct me_bytes *bytes, uint32_t v)
{
	me_bytes_put(bytes, &v, sizeof(v));
}

void me_bytes_u64(struct me_bytes *bytes, uint64_t v)
{
	me_bytes_put(bytes, &v, sizeof(v));
}

unsigned int me_uleb_size(uint64_t v)
{
	unsigned int n = 1;

	while (v >>= 7)
		n++;
	return n;
}

void me_bytes_uleb_padded(struct me_bytes *bytes, uint64_t v, unsigned int width)
{
	for (unsigned int i = 0; i < width; i++) {
		me_bytes_u8(bytes, (uint8_t)((v & 0x7f) | (i + 1 < width ? 0x80 : 0)));
		v >>= 7;
	}
}

void me_bytes_uleb(struct me_bytes *bytes, uint64_t v)
{
	me_bytes_uleb_padded(bytes, v, me_uleb_size(v));
}

void me_bytes_sleb(struct me_bytes *bytes, int64_t v)
{
	for (;;) {
		uint8_t byte = v & 0x7f;

		v >>= 7;
		if ((v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40))) {
			me_bytes_u8(bytes, byte);
			return;
		}
		me_bytes_u8(bytes, byte | 0x80);
	}
}

void me_bytes_align(struct me_bytes *bytes, size_t align)
{
	size_t pad = -bytes->size & (align - 1);
	uint8_t *at = extend(bytes, pad);

	if (at && pad)
		memset(at, 0, pad);
}

void me_bytes_patch_u32(struct me_bytes *bytes, size_t off, uint32_t v)
{
	if (!bytes->failed)
		memcpy(bytes->data + off, &v, sizeof(v));
}
