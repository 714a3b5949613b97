// SPDX-License-Identifier: Apache-2.0
/*
 * note_frame - what the map note, the table of edges and the table of paths have in common: a
 * version first, a checksum last, and blocks as distances. Called by map, edge_table and
 * path_table. Their bytes may come from anybody.
 */
#ifndef MP_NOTE_FRAME_H
#define MP_NOTE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/base/err.h"
#include "libprof/base/varint.h"
#include "libprof/elf/elf.h"

#define MP_FRAME_CHECKSUM_SIZE 8

/* Limit of functions, of blocks and of edges: it bounds the memory that a hostile file can take. */
#define MP_FRAME_NR_MAX (1u << 25)

/* Adds the checksum of all bytes from offset @from on. */
void mp_frame_put_checksum(struct mp_varint_writer *w, size_t from);

/*
 * mp_frame_open - checks the checksum, then the version. @what: "edge table", for messages.
 * @path: the file, for messages. *@r: set to the bytes between both.
 * Return: 0, -EBADMSG.
 */
int mp_frame_open(const char *what, const char *path, const uint8_t *bytes, size_t size,
		  uint64_t version, struct mp_varint_reader *r, struct mp_err *err);

/*
 * mp_frame_find - the bytes of the section @name of @elf, which must not be opened with
 * MP_ELF_ID alone. @missing: message if there is no such section.
 * Return: 0, -ENOENT, -EINVAL, -EBADMSG.
 */
int mp_frame_find(const struct mp_elf *elf, const char *name, const char *what, const char *missing,
		  const uint8_t **bytes, size_t *size, struct mp_err *err);

/*
 * Reads a number of elements, which take @size bytes at least. Return: 0, and @r fails, if the
 * rest is too short for them.
 */
uint32_t mp_frame_get_nr(struct mp_varint_reader *r, size_t size);

/*
 * mp_frame_error - the message for a table that cannot be decoded. @rc: -ENOMEM; any other value
 * means that it is damaged.
 * Return: -ENOMEM, -EBADMSG.
 */
int mp_frame_error(const char *what, const char *path, int rc, struct mp_err *err);

/* A block: its address as the distance from *@end, where the block before ends. */
void mp_frame_put_block(struct mp_varint_writer *w, uint64_t vaddr, uint32_t size,
			uint32_t term_off, uint64_t *end);
/* Sets *@end to the end of the block. The end may wrap: the caller checks all blocks later. */
void mp_frame_get_block(struct mp_varint_reader *r, uint64_t *vaddr, uint32_t *size,
			uint32_t *term_off, uint64_t *end);

#endif
