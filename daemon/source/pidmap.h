// SPDX-License-Identifier: Apache-2.0
/*
 * pidmap - a hash table from process ids to numbers. The caller decides what a number means.
 * Called by kmod_merge and who.
 */
#ifndef MD_PIDMAP_H
#define MD_PIDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct md_pidmap_slot {
	uint32_t pid; /* 0: a free slot */
	uint64_t value;
};

/* All zero: an empty table. */
struct md_pidmap {
	struct md_pidmap_slot *slots;
	/* nr_slots is a power of two; at most half of the slots are used */
	size_t nr_slots, nr_used;
};

void md_pidmap_fini(struct md_pidmap *map);
/* Sets the value of @pid, which must not be 0. Return: 0 or -ENOMEM. */
int md_pidmap_put(struct md_pidmap *map, uint32_t pid, uint64_t value);
/* Return: false: @pid has no value. @value may be NULL. */
bool md_pidmap_get(const struct md_pidmap *map, uint32_t pid, uint64_t *value);
void md_pidmap_remove(struct md_pidmap *map, uint32_t pid);
void md_pidmap_clear(struct md_pidmap *map);

#endif
