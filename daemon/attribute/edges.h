// SPDX-License-Identifier: Apache-2.0
/*
 * edges - counts transfers of control between two addresses of a module since the last flush.
 *
 * One hash table with open addressing, keyed by both ends. Takes no memory before the first
 * edge, since most machines deliver none. Filled by attribute, emptied by flush.
 */
#ifndef MD_EDGES_H
#define MD_EDGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/attribute/sample_table.h"

struct md_edge {
	uint64_t from; /* md_sample_table_key() of module and address; 0: a free slot */
	uint64_t to;   /* link-time address in the same module */
	uint64_t nr;
};

struct md_edges {
	struct md_edge *slots;
	size_t nr_slots; /* a power of two, or 0 */
	size_t nr_used;
};

#define MD_EDGES_MAX (1u << 18) /* growth stops at twice as many slots; 12 MiB of table at most */

void md_edges_fini(struct md_edges *edges);
void md_edges_clear(struct md_edges *edges);
/* Makes room for @more edges. Return: 0, -ENOMEM (also if the table is at its limit: flush). */
int md_edges_reserve(struct md_edges *edges, size_t more);
/* The caller has reserved room with md_edges_reserve(). */
void md_edges_add(struct md_edges *edges, uint64_t from, uint64_t to, uint64_t nr);

#endif
