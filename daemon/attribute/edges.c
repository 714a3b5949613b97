// SPDX-License-Identifier: Apache-2.0
/* edges - the table of edges; see edges.h. */
#include "daemon/attribute/edges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 4096

void md_edges_fini(struct md_edges *edges)
{
	free(edges->slots);
	memset(edges, 0, sizeof(*edges));
}

void md_edges_clear(struct md_edges *edges)
{
	if (edges->nr_used)
		memset(edges->slots, 0, edges->nr_slots * sizeof(edges->slots[0]));
	edges->nr_used = 0;
}

static bool is_full(const struct md_edges *edges, size_t more)
{
	return edges->nr_used + more >= edges->nr_slots / 4 * 3;
}

int md_edges_reserve(struct md_edges *edges, size_t more)
{
	struct md_edges bigger = {.nr_slots = edges->nr_slots ? edges->nr_slots : SLOTS_MIN};
	size_t i;

	if (!is_full(edges, more))
		return 0;
	bigger.nr_used = edges->nr_used;
	while (is_full(&bigger, more))
		bigger.nr_slots *= 2;
	if (bigger.nr_slots > 2 * MD_EDGES_MAX)
		return -ENOMEM;
	bigger.nr_used = 0;
	bigger.slots = calloc(bigger.nr_slots, sizeof(bigger.slots[0]));
	if (!bigger.slots)
		return -ENOMEM;
	for (i = 0; i < edges->nr_slots; i++)
		if (edges->slots[i].from)
			md_edges_add(&bigger, edges->slots[i].from, edges->slots[i].to,
				     edges->slots[i].nr);
	free(edges->slots);
	*edges = bigger;
	return 0;
}

void md_edges_add(struct md_edges *edges, uint64_t from, uint64_t to, uint64_t nr)
{
	size_t mask = edges->nr_slots - 1;
	uint64_t hash = (from ^ (to << 17 | to >> 47)) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (hash ^ hash >> 32) & mask;

	while (edges->slots[i].from != from || edges->slots[i].to != to) {
		if (!edges->slots[i].from) {
			edges->slots[i].from = from;
			edges->slots[i].to = to;
			edges->nr_used++;
			break;
		}
		i = (i + 1) & mask;
	}
	edges->slots[i].nr += nr;
}
