// SPDX-License-Identifier: Apache-2.0
/*
 * fleet_paths - paths as rows of a fleet. A path belongs to the chunk of its last block: where the store
 * shortens a path, its last block stays, so that the counts of a chunk never become fewer.
 *
 * The bytes of a row are, for each path in the order of keys: the size of its key, the key (path_key),
 * and its count; both numbers as varint writes them. Called by fleet/ and by morph-fleet pull.
 */
#ifndef MP_FLEET_PATHS_H
#define MP_FLEET_PATHS_H

#include "libprof/base/varint.h"
#include "libprof/note/path_key.h"

/* The fewest bytes of a path in a row. */
#define MP_FLEET_PATH_MIN 3

/* Return: the chunk that the path belongs to; -1: the key is none. */
int64_t mp_fleet_path_chunk(const struct mp_path_count *path);
/* Appends @paths, in the order of keys. */
void mp_fleet_paths_encode(const struct mp_path_count *paths, size_t nr,
			   struct mp_varint_writer *out);
/*
 * Reads a row, which may come from anybody, into @out, with room for @size / MP_FLEET_PATH_MIN paths. Their
 * keys lie in @data. Return: 0, -EBADMSG.
 */
int mp_fleet_paths_decode(int64_t chunk, const uint8_t *data, size_t size,
			  struct mp_path_count *out, size_t *nr);
/* Return: the sum of the counts, which does not overflow for paths that were decoded. */
uint64_t mp_fleet_paths_sum(const struct mp_path_count *paths, size_t nr);
/*
 * mp_fleet_paths_subtract - takes @what out of the @nr paths @from, which are in the order of keys, and
 * of which the store may have shortened some since. Paths without counts are removed.
 * Return: false: @from does not have them.
 */
bool mp_fleet_paths_subtract(struct mp_path_count *from, size_t *nr,
			     const struct mp_path_count *what, size_t nr_what);

#endif
