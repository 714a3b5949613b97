// SPDX-License-Identifier: Apache-2.0
/*
 * debuglink - reads and makes the section .gnu_debuglink: the name, zero bytes up to a
 * multiple of four, and the checksum (zlib's CRC-32).
 */
#include "editor/debug/debuglink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static size_t crc_off(size_t name_len)
{
	return (name_len + 1 + 3) & ~(size_t)3;
}

int me_debuglink_read(const struct mp_elf *elf, struct me_debuglink *out)
{
	const struct mp_section *s = mp_elf_section(elf, ME_DEBUGLINK_SECTION);
	const char *name;
	size_t len;

	if (!s)
		return -ENOENT;
	if (s->type != SHT_PROGBITS || !s->size)
		return -EBADMSG;
	name = (const char *)elf->data + s->off;
	len = strnlen(name, s->size);
	if (!len || len == s->size || memchr(name, '/', len) ||
	    s->size != crc_off(len) + sizeof(out->crc))
		return -EBADMSG;
	out->name = name;
	memcpy(&out->crc, name + crc_off(len), sizeof(out->crc));
	return 0;
}

uint8_t *me_debuglink_make(const char *name, uint32_t crc, size_t *size)
{
	size_t len = strlen(name);
	uint8_t *bytes = calloc(1, crc_off(len) + sizeof(crc));

	if (!bytes)
		return NULL;
	memcpy(bytes, name, len);
	memcpy(bytes + crc_off(len), &crc, sizeof(crc));
	*size = crc_off(len) + sizeof(crc);
	return bytes;
}

uint32_t me_debuglink_crc(const uint8_t *data, size_t size)
{
	return (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, size);
}

uint32_t me_debuglink_crc_parts(const struct me_output_parts *output)
{
	static const uint8_t zeros[4096];
	uLong crc = crc32_z(0, NULL, 0);
	uint64_t at = 0;

	for (uint32_t i = 0; i < output->nr_parts; i++) {
		const struct me_part *part = &output->parts[i];

		while (at < part->off) {
			size_t n = part->off - at < sizeof(zeros) ? (size_t)(part->off - at)
								  : sizeof(zeros);

			crc = crc32_z(crc, zeros, n);
			at += n;
		}
		crc = crc32_z(crc, part->bytes, part->size);
		at += part->size;
	}
	return (uint32_t)crc;
}
