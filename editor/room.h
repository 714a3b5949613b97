// SPDX-License-Identifier: Apache-2.0
/*
 * room - which functions have numbers where there is no room for all: who collects reads maps of up to
 * ME_NUMBERED_PIECES_MAX pieces.
 */
#ifndef ME_ROOM_H
#define ME_ROOM_H

#include <stdint.h>

#include "libprof/cfg.h"
#include "libprof/counts.h"

/* So that collectors have room for the table of paths: it takes more memory than the map. */
#define ME_NUMBERED_PIECES_MAX (1u << 20)

/*
 * me_room_make - of the functions with @movable[func] keep those that run most by @counts (NULL: nobody
 * knows, and the first are kept), as far as they and their stubs, guessed from their blocks, are no
 * more than @max_pieces. The others' @detail says why.
 * Return: 0, -ENOMEM.
 */
int me_room_make(const struct mp_cfg *cfg, const struct mp_counts *counts, uint64_t max_pieces,
		 uint8_t *movable, const char **detail);

#endif
