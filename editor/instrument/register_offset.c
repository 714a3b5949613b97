// SPDX-License-Identifier: Apache-2.0
/*
 * register_offset - builds a spanning forest of the costliest edges; each tree knows the offsets
 * of its vertices. number_stub, the caller, knows what edges cost.
 */
#include "editor/instrument/register_offset.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct vertex {
	uint32_t parent; /* itself: it is a root */
	uint32_t size;	 /* of the tree, if it is a root */
	int64_t above;	 /* its offset minus the parent's */
	int64_t low,
		high; /* if it is a root: least and greatest offset in its tree, minus its own */
};

static int compare_edges(const void *a, const void *b)
{
	const struct me_register_offset_edge *x = a, *y = b;

	if (x->price != y->price)
		return x->price < y->price ? 1 : -1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* *@above: offset of @v minus that of its root. Paths are short: smaller trees join larger
 * ones. */
static uint32_t root_of(const struct vertex *vertices, uint32_t v, int64_t *above)
{
	*above = 0;
	while (vertices[v].parent != v) {
		*above += vertices[v].above;
		v = vertices[v].parent;
	}
	return v;
}

/* Join two trees, if their offsets stay within the limit. */
static void join(struct vertex *vertices, const struct me_register_offset_edge *edge)
{
	int64_t from_above, to_above, between;
	uint32_t a = root_of(vertices, edge->from, &from_above);
	uint32_t b = root_of(vertices, edge->to, &to_above);
	struct vertex *root = &vertices[a], *other = &vertices[b];
	int64_t low, high;

	if (a == b)
		return;
	/* Offset of the other tree's root minus that of this one. */
	between = from_above - edge->value - to_above;
	if (root->size < other->size) {
		root = &vertices[b];
		other = &vertices[a];
		between = -between;
	}
	low = other->low + between < root->low ? other->low + between : root->low;
	high = other->high + between > root->high ? other->high + between : root->high;
	if (high - low > ME_REGISTER_OFFSET_MAX)
		return;
	other->parent = (uint32_t)(root - vertices);
	other->above = between;
	root->size += other->size;
	root->low = low;
	root->high = high;
}

int me_register_offsets_find(struct me_register_offset_edge *edges, uint32_t nr_edges,
			     uint32_t nr_vertices, uint32_t *offset)
{
	struct vertex *vertices = malloc(((size_t)nr_vertices + 1) * sizeof(*vertices));

	if (!vertices)
		return -ENOMEM;
	for (uint32_t v = 0; v < nr_vertices; v++)
		vertices[v] = (struct vertex){.parent = v, .size = 1};
	if (nr_edges)
		qsort(edges, nr_edges, sizeof(*edges), compare_edges);
	for (uint32_t e = 0; e < nr_edges; e++)
		join(vertices, &edges[e]);
	for (uint32_t v = 0; v < nr_vertices; v++) {
		int64_t above;
		uint32_t root = root_of(vertices, v, &above);

		offset[v] = (uint32_t)(above - vertices[root].low);
	}
	free(vertices);
	return 0;
}
