// SPDX-License-Identifier: Apache-2.0
/* counts - the table of counts; see counts.h. */
#include "daemon/attribute/counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Initial size. Each flush walks all slots, so do not make the table larger than needed. */
#define SLOTS_MIN_LOG2 10

static int alloc_slots(struct md_counts *counts, unsigned int log2)
{
	counts->slots = calloc((size_t)1 << log2, sizeof(counts->slots[0]));
	if (!counts->slots)
		return -ENOMEM;
	counts->nr_slots = (size_t)1 << log2;
	counts->shift = 64 - log2;
	counts->nr_used = 0;
	return 0;
}

int md_counts_init(struct md_counts *counts)
{
	return alloc_slots(counts, SLOTS_MIN_LOG2);
}

void md_counts_fini(struct md_counts *counts)
{
	free(counts->slots);
	memset(counts, 0, sizeof(*counts));
}

void md_counts_clear(struct md_counts *counts)
{
	memset(counts->slots, 0, counts->nr_slots * sizeof(counts->slots[0]));
	counts->nr_used = 0;
}

int md_counts_grow(struct md_counts *counts)
{
	struct md_counts old = *counts;
	size_t i;
	int ret;

	if (counts->nr_used >= MD_COUNTS_MAX)
		return -ENOMEM;
	ret = alloc_slots(counts, 64 - old.shift + 1);
	if (ret) {
		*counts = old;
		return ret;
	}
	for (i = 0; i < old.nr_slots; i++)
		if (old.slots[i].key)
			md_counts_add(counts, old.slots[i].key, old.slots[i].nr);
	free(old.slots);
	return 0;
}
