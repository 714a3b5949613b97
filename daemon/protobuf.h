// SPDX-License-Identifier: Apache-2.0
/*
 * protobuf - messages in the protobuf wire format, built in memory from the inside out, and a gzip
 * stream to write them to.
 *
 * Own code, since the two field types that profiles need are shorter than the generated code and
 * the library would be.
 */
#ifndef MD_PROTOBUF_H
#define MD_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A message; starts as {0}. Running out of memory makes it @failed; later calls do nothing. */
struct md_pb {
	uint8_t *bytes;
	size_t nr, max;
	bool failed;
};

void md_pb_fini(struct md_pb *pb);
/* Empty again, memory kept. */
void md_pb_reset(struct md_pb *pb);
/* A field of an integer type (not sint, not fixed); 0 is not written, as it is the default. */
void md_pb_uint(struct md_pb *pb, uint32_t field, uint64_t value);
/* A string, or bytes; empty ones are written (an element of a list may be empty). */
void md_pb_bytes(struct md_pb *pb, uint32_t field, const void *bytes, size_t nr);
/* A message inside of @pb. */
void md_pb_message(struct md_pb *pb, uint32_t field, const struct md_pb *inner);
/* A packed list of integers. */
void md_pb_packed(struct md_pb *pb, uint32_t field, const uint64_t *values, size_t nr);

/* gzip into @out. Ownership: md_gzip_free(), which takes NULL. */
struct md_gzip;
/* Return: 0, -ENOMEM. */
int md_gzip_open(FILE *out, struct md_gzip **gz);
/* Errors of @out stay in its ferror(). Return: 0, -EIO. */
int md_gzip_write(struct md_gzip *gz, const void *bytes, size_t nr);
/* Write what is left. Return: 0, -EIO. */
int md_gzip_finish(struct md_gzip *gz);
void md_gzip_free(struct md_gzip *gz);

#endif
