// SPDX-License-Identifier: Apache-2.0
/* pidmap - a table with open addressing; see pidmap.h. */
#include "daemon/source/pidmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 64

static size_t home_of(const struct md_pidmap *map, uint32_t pid)
{
	return (pid * 2654435761u) & (map->nr_slots - 1);
}

/* Return: the slot of @pid, or the free slot where it belongs. */
static struct md_pidmap_slot *find(const struct md_pidmap *map, uint32_t pid)
{
	size_t i = home_of(map, pid);

	while (map->slots[i].pid && map->slots[i].pid != pid)
		i = (i + 1) & (map->nr_slots - 1);
	return &map->slots[i];
}

void md_pidmap_fini(struct md_pidmap *map)
{
	free(map->slots);
	memset(map, 0, sizeof(*map));
}

static int grow(struct md_pidmap *map)
{
	struct md_pidmap more = {.nr_slots = map->nr_slots ? map->nr_slots * 2 : SLOTS_MIN};
	size_t i;

	more.slots = calloc(more.nr_slots, sizeof(more.slots[0]));
	if (!more.slots)
		return -ENOMEM;
	for (i = 0; i < map->nr_slots; i++)
		if (map->slots[i].pid)
			*find(&more, map->slots[i].pid) = map->slots[i];
	more.nr_used = map->nr_used;
	free(map->slots);
	*map = more;
	return 0;
}

int md_pidmap_put(struct md_pidmap *map, uint32_t pid, uint64_t value)
{
	struct md_pidmap_slot *slot;

	if (!pid)
		return 0;
	if (map->nr_used >= map->nr_slots / 2 && grow(map))
		return -ENOMEM;
	slot = find(map, pid);
	map->nr_used += !slot->pid;
	*slot = (struct md_pidmap_slot){pid, value};
	return 0;
}

bool md_pidmap_get(const struct md_pidmap *map, uint32_t pid, uint64_t *value)
{
	const struct md_pidmap_slot *slot;

	if (!map->nr_used || !pid)
		return false;
	slot = find(map, pid);
	if (!slot->pid)
		return false;
	if (value)
		*value = slot->value;
	return true;
}

void md_pidmap_remove(struct md_pidmap *map, uint32_t pid)
{
	size_t mask = map->nr_slots - 1, hole, i, home;

	if (!md_pidmap_get(map, pid, NULL))
		return;
	hole = find(map, pid) - map->slots;
	/* Move later entries of the same run into the hole, else a search would stop at it. */
	for (i = (hole + 1) & mask; map->slots[i].pid; i = (i + 1) & mask) {
		home = home_of(map, map->slots[i].pid);
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		map->slots[hole] = map->slots[i];
		hole = i;
	}
	map->slots[hole] = (struct md_pidmap_slot){0};
	map->nr_used--;
}

void md_pidmap_clear(struct md_pidmap *map)
{
	if (map->nr_used)
		memset(map->slots, 0, map->nr_slots * sizeof(map->slots[0]));
	map->nr_used = 0;
}
