// SPDX-License-Identifier: Apache-2.0
/* fleet_paths - rows of paths as bytes, and their difference; see fleet_paths.h. */
#include "libprof/store/fleet/fleet_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store_codec.h"
#include "libprof/store/store_path_list.h"
#include "libprof/store/store_paths.h"

int64_t mp_fleet_path_chunk(const struct mp_path_count *path)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS];
	uint32_t nr = 0;

	if (path->key_size && path->key_size <= MP_PATH_KEY_MAX)
		nr = mp_path_key_decode(path->key, path->key_size, vaddrs, NULL);
	return nr ? (int64_t)(vaddrs[nr - 1] >> MP_CHUNK_SHIFT) : -1;
}

/* ---- bytes --------------------------------------------------------------------------------- */

void mp_fleet_paths_encode(const struct mp_path_count *paths, size_t nr,
			   struct mp_varint_writer *out)
{
	for (size_t i = 0; i < nr; i++) {
		mp_varint_put(out, paths[i].key_size);
		mp_varint_put_bytes(out, paths[i].key, paths[i].key_size);
		mp_varint_put(out, paths[i].count);
	}
}

int mp_fleet_paths_decode(int64_t chunk, const uint8_t *data, size_t size,
			  struct mp_path_count *out, size_t *nr)
{
	struct mp_varint_reader r = {.p = data, .end = data + size};
	uint64_t sum = 0;

	for (*nr = 0; r.p < r.end; (*nr)++) {
		struct mp_path_count *path = &out[*nr];
		uint64_t key_size = mp_varint_get(&r);

		if (r.failed || !key_size || key_size > MP_PATH_KEY_MAX)
			return -EBADMSG;
		path->key_size = (uint32_t)key_size;
		path->key = mp_varint_get_bytes(&r, key_size);
		path->count = mp_varint_get(&r);
		if (r.failed || !path->key || !path->count ||
		    __builtin_add_overflow(sum, path->count, &sum) || sum > INT64_MAX ||
		    mp_fleet_path_chunk(path) != chunk ||
		    (*nr && mp_path_compare_keys(path - 1, path) >= 0))
			return -EBADMSG;
	}
	return 0;
}

/* ---- difference ---------------------------------------------------------------------------- */

uint64_t mp_fleet_paths_sum(const struct mp_path_count *paths, size_t nr)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		sum += paths[i].count;
	return sum;
}

static uint64_t take(struct mp_path_count *from, size_t nr, const struct mp_path_count *path,
		     uint64_t count)
{
	struct mp_path_count *found = bsearch(path, from, nr, sizeof(*from), mp_path_compare_keys);

	if (!found)
		return count;
	if (found->count > count) {
		found->count -= count;
		return 0;
	}
	count -= found->count;
	found->count = 0;
	return count;
}

/* The store shortens a path to two blocks, and later perhaps to one: the counts are at one of these. */
static bool take_path(struct mp_path_count *from, size_t nr, const struct mp_path_count *path)
{
	uint8_t key[MP_PATH_KEY_MAX];
	struct mp_path_count shorter = {.key = key};
	uint64_t left = take(from, nr, path, path->count);

	for (uint32_t keep = 2; left && keep; keep--) {
		shorter.key_size = mp_path_shorten(path, keep, key);
		if (shorter.key_size)
			left = take(from, nr, &shorter, left);
	}
	return !left;
}

bool mp_fleet_paths_subtract(struct mp_path_count *from, size_t *nr,
			     const struct mp_path_count *what, size_t nr_what)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr_what; i++)
		if (!*nr || !take_path(from, *nr, &what[i]))
			return false;
	for (size_t i = 0; i < *nr; i++)
		if (from[i].count)
			from[kept++] = from[i];
	*nr = kept;
	return true;
}
