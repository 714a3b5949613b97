// SPDX-License-Identifier: Apache-2.0
/*
 * numbered_limit - chooses the functions that get numbers if not all can: collectors read maps
 * of at most ME_NUMBERED_PIECES_MAX pieces.
 */
#ifndef ME_NUMBERED_LIMIT_H
#define ME_NUMBERED_LIMIT_H

#include <stdint.h>

#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"

/* Bounds the memory of collectors, of which the table of paths takes more than the map. */
#define ME_NUMBERED_PIECES_MAX (1u << 20)

/*
 * me_numbered_limit_apply - of the functions with @movable[func], keeps those that run most by
 * @counts (NULL: not known, the first are kept), until they and their stubs, estimated from
 * their blocks, reach @max_pieces. Sets @detail of the others.
 * Return: 0, -ENOMEM.
 */
int me_numbered_limit_apply(const struct mp_cfg *cfg, const struct mp_counts *counts,
			    uint64_t max_pieces, uint8_t *movable, const char **detail);

#endif
