// SPDX-License-Identifier: Apache-2.0
/*
 * counts - counts the samples at each address of each module since the last flush.
 *
 * One hash table with open addressing. Its key is the module's index and the low 48 bits of the
 * address. Filled by attribute, emptied by flush.
 */
#ifndef MD_COUNTS_H
#define MD_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 *	63      48 47                       0
 *	+---------+-------------------------+
 *	| module  | address, low 48 bits    |	never 0: modules count from 1
 *	+---------+-------------------------+
 */
struct md_count {
	uint64_t key;
	uint64_t nr;
};

struct md_counts {
	struct md_count *slots; /* key 0: a free slot */
	size_t nr_slots;	/* a power of two */
	unsigned int shift;
	size_t nr_used;
};

#define MD_COUNTS_SHIFT 48
#define MD_COUNTS_MASK	((UINT64_C(1) << MD_COUNTS_SHIFT) - 1)
#define MD_COUNTS_MAX	(1u << 19) /* addresses at which growth stops; 16 MiB of table at most */

int md_counts_init(struct md_counts *counts);
void md_counts_fini(struct md_counts *counts);
void md_counts_clear(struct md_counts *counts);
/* Doubles the table. Return: 0, -ENOMEM (also at MD_COUNTS_MAX: flush). */
int md_counts_grow(struct md_counts *counts);

static inline uint64_t md_counts_key(uint32_t module, uint64_t vaddr)
{
	return (uint64_t)module << MD_COUNTS_SHIFT | (vaddr & MD_COUNTS_MASK);
}

static inline uint32_t md_counts_module(uint64_t key)
{
	return key >> MD_COUNTS_SHIFT;
}

/* Sign-extends bit 47: user and kernel addresses are canonical. */
static inline uint64_t md_counts_vaddr(uint64_t key)
{
	return (uint64_t)((int64_t)(key << 16) >> 16);
}

/* Return: true if adding @more addresses would make the table slow. */
static inline bool md_counts_is_full(const struct md_counts *counts, size_t more)
{
	return counts->nr_used + more >= counts->nr_slots / 4 * 3;
}

/* The caller has checked md_counts_is_full(), so there is a free slot. */
static inline void md_counts_add(struct md_counts *counts, uint64_t key, uint64_t nr)
{
	size_t mask = counts->nr_slots - 1;
	size_t i = key * UINT64_C(0x9e3779b97f4a7c15) >> counts->shift;

	while (counts->slots[i].key != key) {
		if (!counts->slots[i].key) {
			counts->slots[i].key = key;
			counts->nr_used++;
			break;
		}
		i = (i + 1) & mask;
	}
	counts->slots[i].nr += nr;
}

#endif
