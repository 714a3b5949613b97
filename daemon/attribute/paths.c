// SPDX-License-Identifier: Apache-2.0
/* paths - decodes registers and counts paths; see paths.h. */
#include "daemon/attribute/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"

void md_paths_fini(struct md_paths *paths)
{
	md_edges_fini(&paths->counts);
	mp_path_fini(&paths->path);
}

void md_paths_clear(struct md_paths *paths)
{
	md_edges_clear(&paths->counts);
}

int md_paths_reserve(struct md_paths *paths, size_t more)
{
	return md_edges_reserve(&paths->counts, more);
}

uint64_t md_paths_sum(const struct md_paths *paths)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < paths->counts.nr_slots; i++)
		sum += paths->counts.slots[i].nr;
	return sum;
}

/* Return: the number in the register of @block; 0 if the block uses no register. */
static uint64_t number_of(const struct mp_path_block *block, const struct morph_registers *record,
			  uint32_t nr, bool *is_known)
{
	uint32_t word;

	*is_known = true;
	if (block->reg >= MORPH_NR_REGS)
		return 0;
	word = md_registers_word(record, block->reg);
	*is_known = word != 0;
	return record->entries[(size_t)nr * md_registers_words(record) + word] - block->shift;
}

/* A bit beside the block's number in keys of @counts: the program reported the path. */
#define REPORTED (1ull << 32)

static enum mp_path_fate add_number(struct md_paths *paths, const struct md_module *module,
				    uint32_t block, uint64_t value, uint64_t reported, uint64_t nr)
{
	const struct mp_path_table *table = module->paths;
	int ret;

	if (block >= table->nr_blocks)
		return MP_PATH_UNDECODABLE;
	ret = mp_path_decode(table, block, value, &paths->path);
	if (ret)
		return ret == -ENOMEM ? MP_PATH_NO_MEMORY : MP_PATH_UNDECODABLE;
	md_edges_add(&paths->counts, md_sample_table_key(module->index, block | reported),
		     value - table->blocks[block].shift, nr);
	return MP_PATH_DECODED;
}

enum mp_path_fate md_paths_add_reported(struct md_paths *paths, const struct md_module *module,
					uint32_t block, uint64_t value, uint64_t nr)
{
	return add_number(paths, module, block, value, REPORTED, nr);
}

enum mp_path_fate md_paths_add(struct md_paths *paths, const struct md_module *module,
			       uint64_t vaddr, const struct morph_registers *record, uint32_t nr)
{
	const struct mp_path_table *table = module->paths;
	const struct mp_map *map = module->map;
	uint32_t piece = mp_map_piece_at(map, vaddr), block;
	uint64_t number;
	bool is_known;

	/* The sample hit code that was not moved; its registers hold no path number. */
	if (piece == map->nr_pieces)
		return MP_PATH_OUTSIDE;
	if (!mp_map_piece(map, piece).old_size)
		return MP_PATH_STUB;
	block = mp_path_table_block_at(table, mp_map_original(map, vaddr));
	if (block == MP_NONE)
		return MP_PATH_OUTSIDE;
	number = number_of(&table->blocks[block], record, nr, &is_known);
	if (!is_known)
		return MP_PATH_OUTSIDE;
	return add_number(paths, module, block, number + table->blocks[block].shift, 0, 1);
}

/* ---- for the store ------------------------------------------------------------------------ */

struct list {
	struct md_path *paths;
	size_t nr;
	uint8_t *keys;
	size_t size, max;
};

static int add_key(struct list *list, const struct mp_path_table *table, const struct mp_path *path,
		   bool asked, uint32_t module, uint64_t nr)
{
	uint32_t size;

	if (list->max - list->size < MP_PATH_KEY_MAX) {
		list->max = 2 * list->max + 16 * MP_PATH_KEY_MAX;
		if (mp_resize(list->keys, list->max))
			return -ENOMEM;
	}
	size = mp_path_key_encode(table, path, asked, list->keys + list->size);
	list->paths[list->nr++] = (struct md_path){module, {NULL, size, nr}};
	list->size += size;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct md_path *x = a, *y = b;

	return x->module < y->module ? -1 : x->module > y->module;
}

int md_paths_list(struct md_paths *paths, const struct md_modcache *mc, struct md_path **out,
		  size_t *nr, uint8_t **keys)
{
	const struct md_edge *slots = paths->counts.slots;
	struct list list = {.paths = calloc(paths->counts.nr_used + 1, sizeof(*list.paths))};
	size_t i, at = 0;
	int ret = list.paths ? 0 : -ENOMEM;

	for (i = 0; i < paths->counts.nr_slots && !ret; i++) {
		const struct md_module *module;
		uint64_t place = md_sample_table_vaddr(slots[i].from);
		uint32_t block = (uint32_t)place;

		if (!slots[i].from)
			continue;
		module = md_modcache_module(mc, md_sample_table_module(slots[i].from));
		if (!module || !module->paths)
			ret = -EBADMSG; /* modules are not forgotten while counts are pending */
		else
			ret = mp_path_decode(module->paths, block,
					     slots[i].to + module->paths->blocks[block].shift,
					     &paths->path);
		if (!ret)
			ret = add_key(&list, module->paths, &paths->path, place & REPORTED,
				      md_module_map(module) ? module->original : module->index,
				      slots[i].nr);
	}
	if (ret) {
		free(list.paths);
		free(list.keys);
		return ret == -ENOMEM ? ret : -EBADMSG;
	}
	for (i = 0; i < list.nr; i++) {
		list.paths[i].count.key = list.keys + at;
		at += list.paths[i].count.key_size;
	}
	qsort(list.paths, list.nr, sizeof(*list.paths), compare);
	*out = list.paths;
	*nr = list.nr;
	*keys = list.keys;
	return 0;
}
