// SPDX-License-Identifier: Apache-2.0
/*
 * sample_table - counts the samples at each address of each module since the last flush.
 *
 * One hash table with open addressing. Its key is the module's index and the low 48 bits of the
 * address. Filled by attribute, emptied by flush.
 */
#ifndef MD_SAMPLE_TABLE_H
#define MD_SAMPLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 *	63      48 47                       0
 *	+---------+-------------------------+
 *	| module  | address, low 48 bits    |	never 0: modules count from 1
 *	+---------+-------------------------+
 */
struct md_sample_slot {
	uint64_t key;
	uint64_t nr;
};

struct md_sample_table {
	struct md_sample_slot *slots; /* key 0: a free slot */
	size_t nr_slots;	      /* a power of two */
	unsigned int shift;
	size_t nr_used;
};

#define MD_SAMPLE_TABLE_SHIFT 48
#define MD_SAMPLE_TABLE_MASK  ((UINT64_C(1) << MD_SAMPLE_TABLE_SHIFT) - 1)
#define MD_SAMPLE_TABLE_MAX                                                                        \
	(1u << 19) /* addresses at which growth stops; 16 MiB of table at most */

int md_sample_table_init(struct md_sample_table *table);
void md_sample_table_fini(struct md_sample_table *table);
void md_sample_table_clear(struct md_sample_table *table);
/* Doubles the table. Return: 0, -ENOMEM (also at MD_SAMPLE_TABLE_MAX: flush). */
int md_sample_table_grow(struct md_sample_table *table);

static inline uint64_t md_sample_table_key(uint32_t module, uint64_t vaddr)
{
	return (uint64_t)module << MD_SAMPLE_TABLE_SHIFT | (vaddr & MD_SAMPLE_TABLE_MASK);
}

static inline uint32_t md_sample_table_module(uint64_t key)
{
	return key >> MD_SAMPLE_TABLE_SHIFT;
}

/* Sign-extends bit 47: user and kernel addresses are canonical. */
static inline uint64_t md_sample_table_vaddr(uint64_t key)
{
	return (uint64_t)((int64_t)(key << 16) >> 16);
}

/* Return: true if adding @more addresses would make the table slow. */
static inline bool md_sample_table_is_full(const struct md_sample_table *table, size_t more)
{
	return table->nr_used + more >= table->nr_slots / 4 * 3;
}

/* The caller has checked md_sample_table_is_full(), so there is a free slot. */
static inline void md_sample_table_add(struct md_sample_table *table, uint64_t key, uint64_t nr)
{
	size_t mask = table->nr_slots - 1;
	size_t i = key * UINT64_C(0x9e3779b97f4a7c15) >> table->shift;

	while (table->slots[i].key != key) {
		if (!table->slots[i].key) {
			table->slots[i].key = key;
			table->nr_used++;
			break;
		}
		i = (i + 1) & mask;
	}
	table->slots[i].nr += nr;
}

#endif
