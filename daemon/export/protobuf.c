// SPDX-License-Identifier: Apache-2.0
/*
 * protobuf - varints, lengths and deflate; see protobuf.h.
 */
#include "daemon/export/protobuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	WIRE_VARINT = 0,
	WIRE_BYTES = 2
};

#define VARINT_MAX 10

void md_pb_fini(struct md_pb *pb)
{
	free(pb->bytes);
	*pb = (struct md_pb){0};
}

void md_pb_reset(struct md_pb *pb)
{
	pb->nr = 0;
}

static bool reserve(struct md_pb *pb, size_t nr)
{
	size_t max = pb->max ? pb->max : 64;
	uint8_t *bigger;

	if (pb->failed)
		return false;
	if (nr <= pb->max - pb->nr)
		return true;
	while (nr > max - pb->nr && max <= SIZE_MAX / 2)
		max *= 2;
	bigger = nr <= max - pb->nr ? realloc(pb->bytes, max) : NULL;
	if (!bigger) {
		pb->failed = true;
		return false;
	}
	pb->bytes = bigger;
	pb->max = max;
	return true;
}

static size_t varint(uint8_t *p, uint64_t value)
{
	size_t nr = 0;

	while (value >= 0x80) {
		p[nr++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	p[nr++] = (uint8_t)value;
	return nr;
}

static void put_varint(struct md_pb *pb, uint64_t value)
{
	if (reserve(pb, VARINT_MAX))
		pb->nr += varint(pb->bytes + pb->nr, value);
}

void md_pb_uint(struct md_pb *pb, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	put_varint(pb, (uint64_t)field << 3 | WIRE_VARINT);
	put_varint(pb, value);
}

void md_pb_bytes(struct md_pb *pb, uint32_t field, const void *bytes, size_t nr)
{
	put_varint(pb, (uint64_t)field << 3 | WIRE_BYTES);
	put_varint(pb, nr);
	if (nr && reserve(pb, nr)) {
		memcpy(pb->bytes + pb->nr, bytes, nr);
		pb->nr += nr;
	}
}

void md_pb_message(struct md_pb *pb, uint32_t field, const struct md_pb *inner)
{
	pb->failed |= inner->failed;
	md_pb_bytes(pb, field, inner->bytes, inner->nr);
}

void md_pb_packed(struct md_pb *pb, uint32_t field, const uint64_t *values, size_t nr)
{
	uint8_t scratch[VARINT_MAX];
	size_t size = 0;

	for (size_t i = 0; i < nr; i++)
		size += varint(scratch, values[i]);
	put_varint(pb, (uint64_t)field << 3 | WIRE_BYTES);
	put_varint(pb, size);
	for (size_t i = 0; i < nr; i++)
		put_varint(pb, values[i]);
}

/* ---- gzip ---------------------------------------------------------------------------------- */

struct md_gzip {
	z_stream z;
	FILE *out;
	uint8_t buf[1 << 15];
};

int md_gzip_open(FILE *out, struct md_gzip **gz)
{
	*gz = calloc(1, sizeof(**gz));
	if (!*gz)
		return -ENOMEM;
	(*gz)->out = out;
	/* 15: window bits; 16: a gzip header, without name and time. */
	if (deflateInit2(&(*gz)->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(*gz);
		*gz = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int pump(struct md_gzip *gz, int flush)
{
	int r;

	do {
		size_t nr;

		gz->z.next_out = gz->buf;
		gz->z.avail_out = sizeof(gz->buf);
		r = deflate(&gz->z, flush);
		nr = sizeof(gz->buf) - gz->z.avail_out;
		if (r == Z_STREAM_ERROR || fwrite(gz->buf, 1, nr, gz->out) != nr)
			return -EIO;
	} while (!gz->z.avail_out || (flush == Z_FINISH && r != Z_STREAM_END));
	return 0;
}

int md_gzip_write(struct md_gzip *gz, const void *bytes, size_t nr)
{
	const uint8_t *p = bytes;
	int r = 0;

	while (nr && !r) {
		unsigned int now = nr > 1u << 30 ? 1u << 30 : (unsigned int)nr;

		gz->z.next_in = (uint8_t *)p;
		gz->z.avail_in = now;
		r = pump(gz, Z_NO_FLUSH);
		p += now;
		nr -= now;
	}
	return r;
}

int md_gzip_finish(struct md_gzip *gz)
{
	gz->z.next_in = NULL;
	gz->z.avail_in = 0;
	return pump(gz, Z_FINISH);
}

void md_gzip_free(struct md_gzip *gz)
{
	if (!gz)
		return;
	deflateEnd(&gz->z);
	free(gz);
}
