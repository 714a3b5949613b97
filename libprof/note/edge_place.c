// SPDX-License-Identifier: Apache-2.0
/*
 * edge_place - places of counters as text; see edge_place.h. An edge that leaves its function is counted before the
 * block that it leaves: all control to that block is.
 */
#include "libprof/note/edge_place.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mp_edge_place_of(const struct mp_edge_table *table, uint32_t counter,
		      struct mp_edge_place *out)
{
	for (uint32_t e = 0; e < table->nr_edges; e++) {
		const struct mp_counted_edge *edge = &table->edges[e];

		if (edge->counter != counter || counter == MP_NONE)
			continue;
		if (edge->to == MP_NONE)
			*out = (struct mp_edge_place){table->blocks[edge->from].vaddr,
						      MP_PLACE_ALL};
		else
			*out = (struct mp_edge_place){table->blocks[edge->to].vaddr,
						      edge->from == MP_NONE
							      ? MP_PLACE_OUTSIDE
							      : table->blocks[edge->from].vaddr};
		return true;
	}
	return false;
}

void mp_edge_place_format(const struct mp_edge_place *place, char text[MP_EDGE_PLACE_TEXT])
{
	int n = snprintf(text, MP_EDGE_PLACE_TEXT, "0x%" PRIx64, place->block);

	if (place->from == MP_PLACE_OUTSIDE)
		snprintf(text + n, MP_EDGE_PLACE_TEXT - (size_t)n, "<outside");
	else if (place->from != MP_PLACE_ALL)
		snprintf(text + n, MP_EDGE_PLACE_TEXT - (size_t)n, "<0x%" PRIx64, place->from);
}

/* Reads "0x" and digits. Return: what follows; NULL: the text is another one, or no address. */
static const char *read_address(const char *text, uint64_t *out)
{
	char *end;

	if (text[0] != '0' || text[1] != 'x' || !isxdigit((unsigned char)text[2]))
		return NULL;
	errno = 0;
	*out = strtoull(text + 2, &end, 16);
	return errno || *out >= MP_PLACE_OUTSIDE ? NULL : end;
}

bool mp_edge_place_parse(const char *text, struct mp_edge_place *out)
{
	const char *end = read_address(text, &out->block);

	out->from = MP_PLACE_ALL;
	if (!end || !*end)
		return end;
	if (*end++ != '<')
		return false;
	if (!strcmp(end, "outside")) {
		out->from = MP_PLACE_OUTSIDE;
		return true;
	}
	end = read_address(end, &out->from);
	return end && !*end;
}
