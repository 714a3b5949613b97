// SPDX-License-Identifier: Apache-2.0
/*
 * edges - how often control went from one address to another of a module, since the last flush.
 *
 * One open-addressing table like counts, keyed by both ends. Takes no memory before the first
 * edge: most machines never give one. Filled by attribute, emptied by flush.
 */
#ifndef MD_EDGES_H
#define MD_EDGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/counts.h"

struct md_edge {
	uint64_t from; /* md_counts_key() of the module and the address; 0: free */
	uint64_t to;   /* link-time address in the same module */
	uint64_t nr;
};

struct md_edges {
	struct md_edge *slots;
	size_t nr_slots; /* a power of two, or 0 */
	size_t nr_used;
};

#define MD_EDGES_MAX (1u << 18) /* no growth beyond it: 12 MiB of table at most */

void md_edges_fini(struct md_edges *edges);
void md_edges_clear(struct md_edges *edges);
/* Room for @more further edges. Return: 0, -ENOMEM (also: MD_EDGES_MAX reached; flush). */
int md_edges_reserve(struct md_edges *edges, size_t more);
/* There is room: md_edges_reserve() was asked before. */
void md_edges_add(struct md_edges *edges, uint64_t from, uint64_t to, uint64_t nr);

#endif
