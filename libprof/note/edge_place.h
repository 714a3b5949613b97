// SPDX-License-Identifier: Apache-2.0
/*
 * edge_place - a place at which a counter stands, as text: a block of the original by its address, and which of the
 * control that comes to the block is counted.
 *
 *	0x401230		all of it
 *	0x401230<outside	what comes from outside of the function
 *	0x401230<0x401200	what comes from the end of the block at 0x401200
 *
 * The counters of a version that counts edges become places for one with a meter (editor/instrument/meter.h).
 */
#ifndef MP_EDGE_PLACE_H
#define MP_EDGE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/note/edge_table.h"

#define MP_PLACE_ALL	 UINT64_MAX
#define MP_PLACE_OUTSIDE (UINT64_MAX - 1)

struct mp_edge_place {
	uint64_t block; /* address in the original */
	uint64_t from;	/* address of a block, MP_PLACE_ALL or MP_PLACE_OUTSIDE */
};

/* Room for the text of any place, with the 0 at its end. */
#define MP_EDGE_PLACE_TEXT 40

/* Return: false: no edge of the table has this counter. */
bool mp_edge_place_of(const struct mp_edge_table *table, uint32_t counter,
		      struct mp_edge_place *out);
void mp_edge_place_format(const struct mp_edge_place *place, char text[MP_EDGE_PLACE_TEXT]);
/* Return: false: the text is no place. */
bool mp_edge_place_parse(const char *text, struct mp_edge_place *out);

#endif
