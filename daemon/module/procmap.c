// SPDX-License-Identifier: Apache-2.0
/* procmap - address spaces by process; see procmap.h. */
#include "daemon/module/procmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"

#define NR_BUCKETS   4096
#define MAX_SPACES   16384 /* if there are more, the least recently used ones are dropped */
#define MAX_MAPPINGS 32768 /* per address space */
#define NR_EXITED    256   /* exited processes that are kept */

/* Forked processes share it, hence the count; copied before a change. */
struct maps {
	uint32_t nr_users;
	uint32_t nr, capacity;
	struct md_mapping m[];
};

struct md_space {
	struct md_space *next; /* in its bucket */
	struct maps *maps;     /* NULL: none yet */
	uint64_t last_use;
	uint64_t serial; /* tells a process from a later one with the same id */
	uint32_t tgid, exec_id;
	uint32_t nr_threads;
	uint32_t program;
	bool wants_program;
	bool ended;
	bool is_old; /* md_space_is_new() was called */
};

struct md_procmap {
	struct md_space *buckets[NR_BUCKETS];
	size_t nr_spaces;
	uint64_t clock, serial;
	struct {
		uint32_t tgid;
		uint64_t serial;
	} exited[NR_EXITED];
	uint32_t next_exited;
};

static struct md_space **slot_of(struct md_procmap *pm, uint32_t tgid)
{
	struct md_space **slot = &pm->buckets[tgid * 2654435761u >> 20];

	while (*slot && (*slot)->tgid != tgid)
		slot = &(*slot)->next;
	return slot;
}

_Static_assert(NR_BUCKETS == 1 << (32 - 20), "slot_of() shifts for as many buckets");

static void put_maps(struct maps *maps)
{
	if (maps && !--maps->nr_users)
		free(maps);
}

static void drop_space(struct md_procmap *pm, struct md_space **slot)
{
	struct md_space *space = *slot;

	*slot = space->next;
	put_maps(space->maps);
	free(space);
	pm->nr_spaces--;
}

struct md_procmap *md_procmap_new(void)
{
	return calloc(1, sizeof(struct md_procmap));
}

void md_procmap_forget(struct md_procmap *pm)
{
	size_t i;

	for (i = 0; i < NR_BUCKETS; i++)
		while (pm->buckets[i])
			drop_space(pm, &pm->buckets[i]);
	memset(pm->exited, 0, sizeof(pm->exited));
}

void md_procmap_free(struct md_procmap *pm)
{
	if (!pm)
		return;
	md_procmap_forget(pm);
	free(pm);
}

/*
 * Drops address spaces whose last use lies in the older half of the time range, until there is
 * room.
 */
static void evict(struct md_procmap *pm)
{
	struct md_space **slot;
	uint64_t oldest, limit;
	size_t i;

	while (pm->nr_spaces >= MAX_SPACES) {
		oldest = pm->clock;
		for (i = 0; i < NR_BUCKETS; i++)
			for (slot = &pm->buckets[i]; *slot; slot = &(*slot)->next)
				if ((*slot)->last_use < oldest)
					oldest = (*slot)->last_use;
		limit = oldest + (pm->clock - oldest) / 2;
		for (i = 0; i < NR_BUCKETS; i++) {
			slot = &pm->buckets[i];
			while (*slot) {
				if ((*slot)->last_use <= limit)
					drop_space(pm, slot);
				else
					slot = &(*slot)->next;
			}
		}
	}
}

/* Return: an empty address space for @tgid; an existing one is emptied. */
static struct md_space *fresh_space(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id)
{
	struct md_space **slot = slot_of(pm, tgid);
	struct md_space *space = *slot;

	if (!space) {
		evict(pm);
		slot = slot_of(pm, tgid);
		space = calloc(1, sizeof(*space));
		if (!space)
			return NULL;
		space->tgid = tgid;
		*slot = space;
		pm->nr_spaces++;
		space->nr_threads = 1;
	}
	put_maps(space->maps);
	space->maps = NULL;
	space->is_old &= !space->ended;
	space->exec_id = exec_id;
	space->last_use = ++pm->clock;
	space->serial = ++pm->serial;
	space->program = 0;
	space->wants_program = true;
	space->ended = false;
	return space;
}

int md_procmap_exec(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id, uint32_t nr_threads)
{
	struct md_space *space = *slot_of(pm, tgid);

	/* Same exec_id, same program: its mappings, or /proc, came before the EXEC. */
	if (!space || !exec_id || space->exec_id != exec_id || space->ended)
		space = fresh_space(pm, tgid, exec_id);
	if (!space)
		return -ENOMEM;
	space->nr_threads = nr_threads ? nr_threads : 1;
	return 0;
}

int md_procmap_fork(struct md_procmap *pm, uint32_t child, uint32_t parent)
{
	struct md_space *from = *slot_of(pm, parent);
	struct md_space *to;

	if (child == parent) {
		md_procmap_add_thread(pm, child);
		return 0;
	}
	if (!from) {
		/* An address space left by an earlier process with this id must not be used. */
		struct md_space **slot = slot_of(pm, child);

		if (*slot)
			drop_space(pm, slot);
		return 0;
	}
	/* Count as used, so that making room for the child does not drop the parent. */
	from->last_use = ++pm->clock;
	to = fresh_space(pm, child, from->exec_id);
	if (!to)
		return -ENOMEM;
	to->maps = from->maps;
	if (to->maps)
		to->maps->nr_users++;
	to->program = from->program;
	to->wants_program = from->wants_program;
	to->nr_threads = 1;
	return 0;
}

void md_procmap_add_thread(struct md_procmap *pm, uint32_t tgid)
{
	struct md_space *space = *slot_of(pm, tgid);

	if (space)
		space->nr_threads++;
}

void md_procmap_exit(struct md_procmap *pm, uint32_t tgid)
{
	struct md_space *space = *slot_of(pm, tgid);
	struct md_space **oldest;
	uint32_t i;

	if (!space || space->ended || --space->nr_threads)
		return;
	space->ended = true;
	i = pm->next_exited++ % NR_EXITED;
	if (pm->exited[i].serial) {
		oldest = slot_of(pm, pm->exited[i].tgid);
		if (*oldest && (*oldest)->ended && (*oldest)->serial == pm->exited[i].serial)
			drop_space(pm, oldest);
	}
	pm->exited[i].tgid = tgid;
	pm->exited[i].serial = space->serial;
}

void md_procmap_end(struct md_procmap *pm, uint32_t tgid)
{
	struct md_space *space = *slot_of(pm, tgid);

	if (space)
		space->nr_threads = 1;
	md_procmap_exit(pm, tgid);
}

/* Makes the list unshared, with room for @more. */
static int own_maps(struct md_space *space, uint32_t more)
{
	struct maps *old = space->maps, *maps;
	uint32_t nr = old ? old->nr : 0;
	uint32_t capacity = old ? old->capacity : 16;

	if (nr + more > MAX_MAPPINGS)
		return -ENOMEM;
	if (old && old->nr_users == 1 && nr + more <= capacity)
		return 0;
	while (capacity < nr + more)
		capacity *= 2;
	maps = malloc(sizeof(*maps) + capacity * sizeof(maps->m[0]));
	if (!maps)
		return -ENOMEM;
	maps->nr_users = 1;
	maps->nr = nr;
	maps->capacity = capacity;
	if (nr)
		memcpy(maps->m, old->m, nr * sizeof(maps->m[0]));
	put_maps(old);
	space->maps = maps;
	return 0;
}

/* Return: index of the first mapping that ends behind @ip. */
static uint32_t first_behind(const struct maps *maps, uint64_t ip)
{
	return mp_search(i, 0, maps->nr, maps->m[i].end <= ip);
}

/*
 * Cuts [start, end) out of the list, which has room for one more entry, since a mapping may be
 * split. Return: index for a mapping that fills the hole.
 */
static uint32_t cut(struct maps *maps, uint64_t start, uint64_t end)
{
	uint32_t first = first_behind(maps, start), last;
	struct md_mapping *m = &maps->m[first];

	if (first < maps->nr && m->start < start) {
		if (m->end > end) {
			memmove(m + 1, m, (maps->nr - first) * sizeof(*m));
			maps->nr++;
			m[0].end = start;
			m[1].start = end;
			return first + 1;
		}
		m->end = start;
		first++;
	}
	for (last = first; last < maps->nr && maps->m[last].end <= end; last++)
		;
	if (last < maps->nr && maps->m[last].start < end)
		maps->m[last].start = end;
	memmove(&maps->m[first], &maps->m[last], (maps->nr - last) * sizeof(*m));
	maps->nr -= last - first;
	return first;
}

static bool continues(const struct md_mapping *a, const struct md_mapping *b)
{
	return a->end == b->start && a->why == b->why && a->module == b->module &&
	       a->bias == b->bias;
}

static int map_one(struct md_space *space, const struct md_mapping *mapping)
{
	struct maps *maps;
	uint32_t i;
	int ret;

	ret = own_maps(space, 2);
	if (ret)
		return ret;
	maps = space->maps;
	i = cut(maps, mapping->start, mapping->end);
	/* A JIT maps page after page: extend one entry. */
	if (i && continues(&maps->m[i - 1], mapping)) {
		maps->m[i - 1].end = mapping->end;
		return 0;
	}
	memmove(&maps->m[i + 1], &maps->m[i], (maps->nr - i) * sizeof(maps->m[0]));
	maps->m[i] = *mapping;
	maps->nr++;
	return 0;
}

/* Return: the address space to change; a new exec_id is a new address space. */
static struct md_space *space_to_change(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id)
{
	struct md_space *space = *slot_of(pm, tgid);

	if (space && space->exec_id == exec_id) {
		space->last_use = ++pm->clock;
		return space;
	}
	return fresh_space(pm, tgid, exec_id);
}

int md_procmap_map(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id,
		   const struct md_mapping *mappings, size_t nr)
{
	struct md_space *space = space_to_change(pm, tgid, exec_id);
	size_t i;
	int ret = 0;

	if (!space)
		return -ENOMEM;
	for (i = 0; i < nr && !ret; i++)
		ret = map_one(space, &mappings[i]);
	return ret;
}

int md_procmap_unmap(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id, uint64_t start,
		     uint64_t end)
{
	struct md_space *space = *slot_of(pm, tgid);
	int ret;

	if (!space || space->exec_id != exec_id || !space->maps || start >= end)
		return 0;
	ret = own_maps(space, 1);
	if (!ret)
		cut(space->maps, start, end);
	return ret;
}

struct md_space *md_procmap_find(struct md_procmap *pm, uint32_t tgid, uint32_t exec_id)
{
	struct md_space *space = *slot_of(pm, tgid);

	if (!space || space->exec_id != exec_id)
		return NULL;
	space->last_use = ++pm->clock;
	return space;
}

struct md_space *md_procmap_find_any(struct md_procmap *pm, uint32_t tgid)
{
	struct md_space *space = *slot_of(pm, tgid);

	if (space)
		space->last_use = ++pm->clock;
	return space;
}

const struct md_mapping *md_space_find(const struct md_space *space, uint64_t ip)
{
	const struct maps *maps = space->maps;
	uint32_t i;

	if (!maps)
		return NULL;
	i = first_behind(maps, ip);
	return i < maps->nr && maps->m[i].start <= ip ? &maps->m[i] : NULL;
}

uint32_t md_space_program(const struct md_space *space)
{
	return space->program;
}

bool md_space_wants_program(const struct md_space *space)
{
	return space->wants_program;
}

void md_space_set_program(struct md_space *space, uint32_t module)
{
	space->program = module;
	space->wants_program = false;
}

bool md_space_is_new(struct md_space *space)
{
	bool is_new = !space->is_old;

	space->is_old = true;
	return is_new;
}

size_t md_procmap_nr_spaces(const struct md_procmap *pm)
{
	return pm->nr_spaces;
}

void md_procmap_each_module(const struct md_procmap *pm, void (*fn)(void *arg, uint32_t module),
			    void *arg)
{
	const struct md_space *space;
	size_t i;
	uint32_t k;

	for (i = 0; i < NR_BUCKETS; i++) {
		for (space = pm->buckets[i]; space; space = space->next) {
			if (space->program)
				fn(arg, space->program);
			for (k = 0; space->maps && k < space->maps->nr; k++)
				if (space->maps->m[k].why == MD_MAPPED)
					fn(arg, space->maps->m[k].module);
		}
	}
}
