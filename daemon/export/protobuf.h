// SPDX-License-Identifier: Apache-2.0
/*
 * protobuf - builds messages in the protobuf wire format in memory, and writes a gzip stream.
 * Called by the exports to pprof.
 *
 * Morph does not use a library for this format, because the two needed field types take less code
 * than the library's interface.
 */
#ifndef MD_PROTOBUF_H
#define MD_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A message; initialise with {0}. If memory runs out, @failed is set and later calls do nothing. */
struct md_pb {
	uint8_t *bytes;
	size_t nr, max;
	bool failed;
};

void md_pb_fini(struct md_pb *pb);
/* Empties @pb, and keeps its memory for the next message. */
void md_pb_reset(struct md_pb *pb);
/* Adds an integer field (not sint, not fixed); 0 is the default and is not written. */
void md_pb_uint(struct md_pb *pb, uint32_t field, uint64_t value);
/* Adds a string or bytes, even if empty (an element of a list may be empty). */
void md_pb_bytes(struct md_pb *pb, uint32_t field, const void *bytes, size_t nr);
/* Adds a message inside of @pb. */
void md_pb_message(struct md_pb *pb, uint32_t field, const struct md_pb *inner);
/* Adds a packed list of integers. */
void md_pb_packed(struct md_pb *pb, uint32_t field, const uint64_t *values, size_t nr);

/* A gzip stream. Ownership: md_gzip_free(), which accepts NULL. */
struct md_gzip;
/* Return: 0, -ENOMEM. */
int md_gzip_open(FILE *out, struct md_gzip **gz);
/* Errors of @out stay in its ferror(). Return: 0, -EIO. */
int md_gzip_write(struct md_gzip *gz, const void *bytes, size_t nr);
/* Writes what is left. Return: 0, -EIO. */
int md_gzip_finish(struct md_gzip *gz);
void md_gzip_free(struct md_gzip *gz);

#endif
