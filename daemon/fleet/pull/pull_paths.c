// SPDX-License-Identifier: Apache-2.0
/* pull_paths - sums of paths; see pull_paths.h. */
#include "daemon/fleet/pull/pull_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libprof/store/fleet/fleet_paths.h"

/* Different paths of one chunk, and of a module: far more than the store keeps of a program with 10 MiB of text. */
#define SLOTS_MAX (1u << 18)
#define BYTES_MAX (32u << 20)
#define PATHS_MAX (1u << 21)

typedef unsigned __int128 wide;

struct slot {
	wide sum; /* 0: the slot is free */
	size_t key;
	uint32_t key_size;
};

struct md_pull_paths {
	const struct mp_elf *elf;
	int64_t chunk;	    /* that is being added up; -1: none yet */
	struct slot *slots; /* a hash table of the chunk's paths */
	size_t nr_slots, nr_used;
	uint8_t *keys; /* of the chunk's paths */
	size_t keys_size, keys_room;
	struct mp_path_count *row; /* paths of the row that is being added */
	size_t row_room;
	struct md_pull_paths_result result; /* its keys are in @bytes, one after the other */
	size_t paths_room;
	uint8_t *bytes;
	size_t bytes_size, bytes_room;
};

struct md_pull_paths *md_pull_paths_new(const struct mp_elf *elf)
{
	struct md_pull_paths *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->elf = elf;
	p->chunk = -1;
	p->result.last_day = -1;
	p->nr_slots = 1024;
	p->slots = calloc(p->nr_slots, sizeof(*p->slots));
	if (p->slots)
		return p;
	free(p);
	return NULL;
}

void md_pull_paths_free(struct md_pull_paths *p)
{
	if (!p)
		return;
	free(p->slots);
	free(p->keys);
	free(p->row);
	free(p->result.paths);
	free(p->bytes);
	free(p);
}

/* Room for @size elements of @each bytes. Return: 0, -ENOMEM. */
static int reserve(void **list, size_t *room, size_t size, size_t each)
{
	size_t more = *room ? 2 * *room : 256;
	void *bigger;

	if (size <= *room)
		return 0;
	if (more < size)
		more = size;
	bigger = reallocarray(*list, more, each);
	if (!bigger)
		return -ENOMEM;
	*list = bigger;
	*room = more;
	return 0;
}

/* ---- results ------------------------------------------------------------------------------- */

/* Moves a path of the chunk to the result. Return: 0, -EOVERFLOW, -ENOMEM. */
static int finish_path(struct md_pull_paths *p, const struct slot *slot)
{
	struct md_pull_paths_result *result = &p->result;
	wide count = (slot->sum + MD_PULL_WHOLE / 2) / MD_PULL_WHOLE;
	void *paths = result->paths, *bytes = p->bytes;
	int r;

	if (!count)
		return 0;
	if (count > INT64_MAX - result->total)
		return -EOVERFLOW;
	if (result->nr == PATHS_MAX || p->bytes_size + slot->key_size > BYTES_MAX) {
		result->left_out += (uint64_t)count;
		return 0;
	}
	r = reserve(&paths, &p->paths_room, result->nr + 1, sizeof(*result->paths));
	result->paths = paths;
	if (!r)
		r = reserve(&bytes, &p->bytes_room, p->bytes_size + slot->key_size, 1);
	p->bytes = bytes;
	if (r)
		return r;
	memcpy(p->bytes + p->bytes_size, p->keys + slot->key, slot->key_size);
	p->bytes_size += slot->key_size;
	result->paths[result->nr++] =
		(struct mp_path_count){.key_size = slot->key_size, .count = (uint64_t)count};
	result->total += (uint64_t)count;
	return 0;
}

static int finish_chunk(struct md_pull_paths *p, struct mp_err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->nr_slots && !r; i++)
		if (p->slots[i].sum)
			r = finish_path(p, &p->slots[i]);
	memset(p->slots, 0, p->nr_slots * sizeof(*p->slots));
	p->nr_used = 0;
	p->keys_size = 0;
	if (r == -EOVERFLOW)
		return mp_err_set(err, EOVERFLOW, "the fleet has more than 2^63 counts");
	return r ? mp_err_code(err, -r) : 0;
}

int md_pull_paths_finish(struct md_pull_paths *p, struct md_pull_paths_result *out,
			 struct mp_err *err)
{
	struct md_pull_paths_result *result = &p->result;
	struct mp_path_count *all;
	const uint8_t *key;
	int r = finish_chunk(p, err);

	if (r)
		return r;
	all = malloc(result->nr * sizeof(*all) + p->bytes_size + 1);
	if (!all)
		return mp_err_set(err, ENOMEM, "out of memory");
	if (result->nr) {
		memcpy(all, result->paths, result->nr * sizeof(*all));
		memcpy(all + result->nr, p->bytes, p->bytes_size);
	}
	key = (const uint8_t *)(all + result->nr);
	for (size_t i = 0; i < result->nr; i++) {
		all[i].key = key;
		key += all[i].key_size;
	}
	*out = *result;
	out->paths = all;
	return 0;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static struct slot *find_slot(const struct md_pull_paths *p, struct slot *slots, size_t nr,
			      const uint8_t *key, uint32_t size)
{
	size_t i = (size_t)XXH3_64bits(key, size) & (nr - 1);

	while (slots[i].sum &&
	       (slots[i].key_size != size || memcmp(p->keys + slots[i].key, key, size) != 0))
		i = (i + 1) & (nr - 1);
	return &slots[i];
}

static int grow_slots(struct md_pull_paths *p)
{
	size_t nr = 2 * p->nr_slots;
	struct slot *bigger;

	if (p->nr_used < p->nr_slots / 2)
		return 0;
	bigger = calloc(nr, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_slots; i++)
		if (p->slots[i].sum)
			*find_slot(p, bigger, nr, p->keys + p->slots[i].key, p->slots[i].key_size) =
				p->slots[i];
	free(p->slots);
	p->slots = bigger;
	p->nr_slots = nr;
	return 0;
}

static bool is_outside(const struct md_pull_paths *p, const struct mp_path_count *path)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	uint32_t nr;

	if (!p->elf)
		return false;
	nr = mp_path_key_decode(path->key, path->key_size, vaddrs, NULL);
	/* The first address is 0 where control came from outside of the function. */
	for (uint32_t i = 0; i < nr; i++)
		if ((i || vaddrs[i]) && !mp_elf_is_code(p->elf, vaddrs[i]))
			return true;
	return false;
}

static int add_path(struct md_pull_paths *p, const struct mp_path_count *path, int32_t weight)
{
	struct slot *slot;
	void *keys = p->keys;
	int r;

	if (is_outside(p, path)) {
		p->result.outside += path->count;
		return 0;
	}
	r = grow_slots(p);
	if (r)
		return r;
	slot = find_slot(p, p->slots, p->nr_slots, path->key, path->key_size);
	if (!slot->sum) {
		if (p->nr_used == SLOTS_MAX || p->keys_size + path->key_size > BYTES_MAX) {
			p->result.left_out += path->count;
			return 0;
		}
		r = reserve(&keys, &p->keys_room, p->keys_size + path->key_size, 1);
		p->keys = keys;
		if (r)
			return r;
		memcpy(p->keys + p->keys_size, path->key, path->key_size);
		slot->key = p->keys_size;
		slot->key_size = path->key_size;
		p->keys_size += path->key_size;
		p->nr_used++;
	}
	slot->sum += (wide)path->count * (wide)weight;
	return 0;
}

/* Return: 1: the row's paths are in @p->row; 0: it is not sound; -ENOMEM. */
static int decode(struct md_pull_paths *p, const struct md_pull_row *row, size_t *nr)
{
	void *list = p->row;
	int r;

	if (!row->data || !row->size || row->size > MP_FLEET_ROW_BYTES_MAX || row->total <= 0 ||
	    row->weight <= 0 || row->weight > MD_PULL_WHOLE || row->last_day < 0)
		return 0;
	r = reserve(&list, &p->row_room, row->size / MP_FLEET_PATH_MIN + 1, sizeof(*p->row));
	p->row = list;
	if (r)
		return r;
	return !mp_fleet_paths_decode(row->chunk, row->data, row->size, p->row, nr) &&
	       mp_fleet_paths_sum(p->row, *nr) == (uint64_t)row->total;
}

int md_pull_paths_add(struct md_pull_paths *p, const struct md_pull_row *row, struct mp_err *err)
{
	size_t nr = 0;
	int r;

	if (row->chunk < p->chunk || row->chunk < 0)
		return mp_err_set(err, EPROTO, "the server's rows are out of order");
	if (row->chunk != p->chunk) {
		r = finish_chunk(p, err);
		if (r)
			return r;
		p->chunk = row->chunk;
	}
	p->result.nr_rows++;
	r = decode(p, row, &nr);
	p->result.nr_bad += !r;
	if (r > 0 && row->last_day > p->result.last_day)
		p->result.last_day = row->last_day;
	for (size_t i = 0; i < nr && r > 0; i++)
		if (add_path(p, &p->row[i], row->weight))
			r = -ENOMEM;
	return r < 0 ? mp_err_set(err, ENOMEM, "out of memory") : 0;
}
