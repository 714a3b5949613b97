// SPDX-License-Identifier: GPL-2.0
/* space_pool - memory of spaces and their mappings, for contexts that cannot wait for memory. */
#include <linux/atomic.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kmod/file.h"
#include "kmod/space_private.h"

/*
 * Freed objects are soon needed again, and allocating costs more than everything else here.
 * Nothing is allocated or freed in interrupts.
 */
#define POOL_LEN 8

struct pool {
	struct space *spaces[POOL_LEN];
	struct maps *maps[POOL_LEN]; /* with room for NR_MAPS_MIN */
	u32 nr_spaces, nr_maps;
};

static DEFINE_PER_CPU(struct pool, pools);

struct space *morph_space_alloc(void)
{
	struct pool *pool = get_cpu_ptr(&pools);
	struct space *space = pool->nr_spaces ? pool->spaces[--pool->nr_spaces] : NULL;

	put_cpu_ptr(&pools);
	return space ? space : kmalloc(sizeof(*space), GFP_ATOMIC | __GFP_NOWARN);
}

struct maps *morph_maps_alloc(u32 room)
{
	struct pool *pool = get_cpu_ptr(&pools);
	struct maps *maps = NULL;

	if (room == NR_MAPS_MIN && pool->nr_maps)
		maps = pool->maps[--pool->nr_maps];
	put_cpu_ptr(&pools);
	if (!maps)
		maps = kmalloc(struct_size(maps, map, room), GFP_ATOMIC | __GFP_NOWARN);
	if (maps) {
		atomic_set(&maps->nr_users, 1);
		maps->nr = 0;
		maps->room = room;
	}
	return maps;
}

void morph_space_put_back(struct space *space)
{
	struct pool *pool = get_cpu_ptr(&pools);

	if (space && pool->nr_spaces < POOL_LEN) {
		pool->spaces[pool->nr_spaces++] = space;
		space = NULL;
	}
	put_cpu_ptr(&pools);
	kfree(space);
}

void morph_maps_put(struct maps *maps)
{
	struct pool *pool;
	u32 i;

	if (!maps || !atomic_dec_and_test(&maps->nr_users))
		return;
	for (i = 0; i < maps->nr; i++)
		morph_mapped_put(maps->map[i].file);
	pool = get_cpu_ptr(&pools);
	if (maps->room == NR_MAPS_MIN && pool->nr_maps < POOL_LEN) {
		pool->maps[pool->nr_maps++] = maps;
		maps = NULL;
	}
	put_cpu_ptr(&pools);
	kfree(maps);
}

void morph_space_pools_free(void)
{
	struct pool *pool;
	unsigned int id;

	for_each_possible_cpu(id) {
		pool = per_cpu_ptr(&pools, id);
		while (pool->nr_spaces)
			kfree(pool->spaces[--pool->nr_spaces]);
		while (pool->nr_maps)
			kfree(pool->maps[--pool->nr_maps]);
	}
}

void morph_maps_copy(struct maps *to, const struct maps *from)
{
	u32 i;

	to->nr = from->nr;
	memcpy(to->map, from->map, from->nr * sizeof(from->map[0]));
	for (i = 0; i < from->nr; i++)
		atomic_inc(&from->map[i].file->nr_users);
}
