// SPDX-License-Identifier: Apache-2.0
/*
 * path_decode - converts a path number to its path. Called for samples with registers.
 * The edges to a block divide its numbers into ranges, each of which begins at the edge's
 * value. Control took the last edge whose value is at most the number.
 */
#include "libprof/note/path_decode.h"

#include <errno.h>
#include <stdlib.h>

#include "libprof/base/search.h"

static int path_grow(struct mp_path *path)
{
	uint32_t room = path->room ? 2 * path->room : 32;
	uint32_t *edges = realloc(path->edges, room * sizeof(*edges));

	if (!edges)
		return -ENOMEM;
	path->edges = edges;
	path->room = room;
	return 0;
}

/*
 * Return: the last edge to @to with a value of at most @value, or MP_NONE. Edges ascend by
 * (to, value).
 */
static uint32_t edge_find(const struct mp_path_table *table, uint32_t to, uint64_t value)
{
	const struct mp_path_edge *edges = table->edges;
	uint32_t low =
		mp_search(i, 0, table->nr_edges,
			  edges[i].to < to || (edges[i].to == to && edges[i].value <= value));

	return low && table->edges[low - 1].to == to ? low - 1 : MP_NONE;
}

static void reverse(uint32_t *v, uint32_t nr)
{
	for (uint32_t i = 0; i < nr / 2; i++) {
		uint32_t t = v[i];

		v[i] = v[nr - 1 - i];
		v[nr - 1 - i] = t;
	}
}

int mp_path_decode(const struct mp_path_table *table, uint32_t block, uint64_t reg_value,
		   struct mp_path *out)
{
	uint64_t number;
	uint32_t at = block;

	if (block >= table->nr_blocks)
		return -EINVAL;
	out->block = block;
	out->nr_edges = 0;
	number = table->blocks[block].reg == MP_NO_REGISTER
			 ? 0
			 : reg_value - table->blocks[block].shift;
	while (!table->blocks[at].starts) {
		uint32_t e = edge_find(table, at, number);
		const struct mp_path_edge *edge = &table->edges[e == MP_NONE ? 0 : e];

		/* A table may come from anybody: limit its cost per sample. */
		if (e == MP_NONE || out->nr_edges >= MP_PATH_MAX_EDGES)
			return -EINVAL;
		if (out->nr_edges == out->room && path_grow(out))
			return -ENOMEM;
		out->edges[out->nr_edges++] = e;
		number -= edge->value;
		if (!edge->carries)
			break;
		at = edge->from;
	}
	if (number)
		return -EINVAL;
	reverse(out->edges, out->nr_edges);
	return 0;
}

void mp_path_fini(struct mp_path *path)
{
	free(path->edges);
	*path = (struct mp_path){0};
}
