// SPDX-License-Identifier: Apache-2.0
/* sample_table - the table of samples; see sample_table.h. */
#include "daemon/attribute/sample_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Initial size. Each flush walks all slots, so do not make the table larger than needed. */
#define SLOTS_MIN_LOG2 10

static int alloc_slots(struct md_sample_table *table, unsigned int log2)
{
	table->slots = calloc((size_t)1 << log2, sizeof(table->slots[0]));
	if (!table->slots)
		return -ENOMEM;
	table->nr_slots = (size_t)1 << log2;
	table->shift = 64 - log2;
	table->nr_used = 0;
	return 0;
}

int md_sample_table_init(struct md_sample_table *table)
{
	return alloc_slots(table, SLOTS_MIN_LOG2);
}

void md_sample_table_fini(struct md_sample_table *table)
{
	free(table->slots);
	memset(table, 0, sizeof(*table));
}

void md_sample_table_clear(struct md_sample_table *table)
{
	memset(table->slots, 0, table->nr_slots * sizeof(table->slots[0]));
	table->nr_used = 0;
}

int md_sample_table_grow(struct md_sample_table *table)
{
	struct md_sample_table old = *table;
	size_t i;
	int ret;

	if (table->nr_used >= MD_SAMPLE_TABLE_MAX)
		return -ENOMEM;
	ret = alloc_slots(table, 64 - old.shift + 1);
	if (ret) {
		*table = old;
		return ret;
	}
	for (i = 0; i < old.nr_slots; i++)
		if (old.slots[i].key)
			md_sample_table_add(table, old.slots[i].key, old.slots[i].nr);
	free(old.slots);
	return 0;
}
