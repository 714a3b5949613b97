// SPDX-License-Identifier: Apache-2.0
/*
 * pidmap - a number for each process id: a small hash table.
 *
 * What the number means is the caller's business. Called by kmod_merge.
 */
#ifndef MD_PIDMAP_H
#define MD_PIDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct md_pidmap_slot {
	uint32_t pid; /* 0: free */
	uint64_t value;
};

/* All zero is an empty one. */
struct md_pidmap {
	struct md_pidmap_slot *slots;
	size_t nr_slots, nr_used; /* a power of two; at most half of them are used */
};

void md_pidmap_fini(struct md_pidmap *map);
/* A new value for @pid, which is not 0. Return: 0 or -ENOMEM. */
int md_pidmap_put(struct md_pidmap *map, uint32_t pid, uint64_t value);
/* Return: false where @pid has none. @value may be NULL. */
bool md_pidmap_get(const struct md_pidmap *map, uint32_t pid, uint64_t *value);
void md_pidmap_remove(struct md_pidmap *map, uint32_t pid);
void md_pidmap_clear(struct md_pidmap *map);

#endif
