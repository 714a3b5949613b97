// SPDX-License-Identifier: Apache-2.0
/*
 * potential - a spanning forest of what costs most, over trees that know how far their vertices
 * differ. What edges cost, number says.
 */
#include "editor/potential.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct vertex {
	uint32_t parent;   /* itself: a root */
	uint32_t size;	   /* of a root's tree */
	int64_t above;	   /* its parent's potential */
	int64_t low, high; /* in a root's tree, above the root */
};

static int compare_edges(const void *a, const void *b)
{
	const struct me_potential_edge *x = a, *y = b;

	if (x->price != y->price)
		return x->price < y->price ? 1 : -1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* @*above: its root's potential. The way there is short: smaller trees hang from larger ones. */
static uint32_t root_of(const struct vertex *vertices, uint32_t v, int64_t *above)
{
	*above = 0;
	while (vertices[v].parent != v) {
		*above += vertices[v].above;
		v = vertices[v].parent;
	}
	return v;
}

/* Two trees become one, if what their vertices differ by stays small enough. */
static void join(struct vertex *vertices, const struct me_potential_edge *edge)
{
	int64_t from_above, to_above, between;
	uint32_t a = root_of(vertices, edge->from, &from_above);
	uint32_t b = root_of(vertices, edge->to, &to_above);
	struct vertex *root = &vertices[a], *other = &vertices[b];
	int64_t low, high;

	if (a == b)
		return;
	/* So much is the potential of the one root above the other's. */
	between = from_above - edge->value - to_above;
	if (root->size < other->size) {
		root = &vertices[b];
		other = &vertices[a];
		between = -between;
	}
	low = other->low + between < root->low ? other->low + between : root->low;
	high = other->high + between > root->high ? other->high + between : root->high;
	if (high - low > ME_POTENTIAL_MAX)
		return;
	other->parent = (uint32_t)(root - vertices);
	other->above = between;
	root->size += other->size;
	root->low = low;
	root->high = high;
}

int me_potentials_find(struct me_potential_edge *edges, uint32_t nr_edges, uint32_t nr_vertices,
		       uint32_t *potential)
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

		potential[v] = (uint32_t)(above - vertices[root].low);
	}
	free(vertices);
	return 0;
}
