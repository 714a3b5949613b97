// SPDX-License-Identifier: Apache-2.0
/*
 * map_packed - stores the pieces of a large map in about six bytes each.
 * The bytes are those of the map note. An index holds the position of every 16th piece, so
 * that finding a piece decodes at most 16 pieces. Called by map and by modcache.
 */
#ifndef MP_MAP_PACKED_H
#define MP_MAP_PACKED_H

#include "libprof/note/map.h"
#include "libprof/base/varint.h"

/* State that the next piece's bytes are relative to. Starts as zeros. */
struct mp_map_cursor {
	uint64_t new_end, old_end;
};

void mp_map_put_piece(struct mp_varint_writer *w, struct mp_map_cursor *at,
		      const struct mp_map_piece *piece);
/* Sets @r->failed if the bytes are no piece. Addresses may wrap: check with mp_map_follows(). */
void mp_map_get_piece(struct mp_varint_reader *r, struct mp_map_cursor *at,
		      struct mp_map_piece *piece);
/* True if @piece may follow a piece that ended at @new_end. */
bool mp_map_follows(const struct mp_map_piece *piece, uint64_t new_end);

struct mp_map_packed;

struct mp_map_packed *mp_map_packed_new(void);
void mp_map_packed_free(struct mp_map_packed *packed);
/* Adds @piece, which must follow the last one. Return: 0, -ENOMEM. */
int mp_map_packed_add(struct mp_map_packed *packed, const struct mp_map_piece *piece);
/* Frees the memory that was reserved for further pieces. */
void mp_map_packed_trim(struct mp_map_packed *packed);
uint64_t mp_map_packed_bytes(const struct mp_map_packed *packed);
/*
 * mp_map_next - returns piece @walk->i of @map and moves the walk on. Reading a packed map
 * in order decodes each piece once. The walk starts as zeros.
 */
struct mp_map_walk {
	uint32_t i;
	struct mp_varint_reader r;
	struct mp_map_cursor at;
};
struct mp_map_piece mp_map_next(const struct mp_map *map, struct mp_map_walk *walk);
/* Number of pieces that begin at or before @vaddr. The last of them is stored in *@piece. */
uint32_t mp_map_packed_rank(const struct mp_map_packed *packed, uint64_t vaddr,
			    struct mp_map_piece *piece);
bool mp_map_packed_equal(const struct mp_map_packed *a, const struct mp_map_packed *b);

#endif
