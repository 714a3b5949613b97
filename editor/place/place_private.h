// SPDX-License-Identifier: Apache-2.0
/* place_private - functions that the parts of place share. No other file includes this header. */
#ifndef ME_PLACE_PRIVATE_H
#define ME_PLACE_PRIVATE_H

#include "editor/place/place.h"

/* The copy or stub that the end of @copy leads to on its way to @block; MP_NONE: not copied. */
uint32_t me_place_arrival(const struct mp_cfg *cfg, const struct me_placement *placement,
			  const struct me_copy *copy, uint32_t block);
/* Computed once, because branches are measured many times until all reach. */
void me_place_find_arrivals(const struct mp_cfg *cfg, struct me_placement *placement);
/* Orders struct me_edge_stub. */
int me_edge_stub_compare(const void *a, const void *b);

#endif
