// SPDX-License-Identifier: Apache-2.0
/*
 * map_calls - the second note of an optimised module: which calls of the original the pieces of the map replace.
 * Called by map, by the editor's verify, and by readers that translate stacks. A reader that does not know the note,
 * or its version, still has the pieces, and so all counts of blocks.
 */
#ifndef MP_MAP_CALLS_H
#define MP_MAP_CALLS_H

#include "libprof/note/map.h"
#include "libprof/base/varint.h"

/* Adds the descriptor without its checksum. */
void mp_map_put_calls(struct mp_varint_writer *w, const struct mp_map *map);
/*
 * mp_map_get_calls - reads the descriptor @desc into @map, which has its pieces. Another version is ignored. @path: for
 * messages. Return: 0, -EBADMSG, -ENOMEM.
 */
int mp_map_get_calls(const char *path, const uint8_t *desc, size_t size, struct mp_map *map,
		     struct mp_err *err);
/* True if @call may follow calls whose pieces end before piece @next. */
bool mp_map_call_follows(const struct mp_map *map, const struct mp_map_call *call, uint32_t next);
bool mp_map_same_calls(const struct mp_map *a, const struct mp_map *b);
/* Return: the call that piece @i replaces, or is a part of what does; NULL: none. */
const struct mp_map_call *mp_map_call_of_piece(const struct mp_map *map, uint32_t i);

#endif
