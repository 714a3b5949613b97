// SPDX-License-Identifier: Apache-2.0
/*
 * path_key - writes and reads the bytes that identify a path in the store.
 * Called by store_paths, path_evidence and the daemon.
 */
#include "libprof/note/path_key.h"

#include <stdlib.h>
#include <string.h>

#include "libprof/base/varint.h"

/* As varint, but without allocation: every sample has a key. */
static uint8_t *put(uint8_t *p, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

static uint8_t *put_signed(uint8_t *p, int64_t v)
{
	return put(p, ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0));
}

/* Number of the last edges of @path whose blocks report all paths. */
static uint32_t count_complete(const struct mp_path_table *table, const struct mp_path *path)
{
	uint32_t nr = 0;

	while (nr < path->nr_edges &&
	       table->blocks[table->edges[path->edges[path->nr_edges - 1 - nr]].to].fully_reported)
		nr++;
	return nr < MP_PATH_MAX_BLOCKS ? nr : MP_PATH_MAX_BLOCKS - 1;
}

uint32_t mp_path_key_encode(const struct mp_path_table *table, const struct mp_path *path,
			    bool reported, uint8_t *key)
{
	uint32_t nr = path->nr_edges, first = 0;
	uint64_t last = 0;
	uint8_t *p = key;

	/* Each edge adds one block, the first edge two. */
	if (nr > MP_PATH_MAX_BLOCKS - 1)
		first = nr - (MP_PATH_MAX_BLOCKS - 1);
	if (nr) {
		uint32_t from = table->edges[path->edges[first]].from;

		if (from != MP_NONE)
			last = table->blocks[from].vaddr;
	} else {
		last = table->blocks[path->block].vaddr;
	}
	p = put(p, last);
	for (uint32_t i = first; i < nr; i++) {
		uint64_t vaddr = table->blocks[table->edges[path->edges[i]].to].vaddr;

		p = put_signed(p, (int64_t)(vaddr - last));
		last = vaddr;
	}
	if (reported) {
		p = put_signed(p, -(int64_t)last);
		p = put(p, count_complete(table, path));
	}
	return (uint32_t)(p - key);
}

uint32_t mp_path_key_decode(const uint8_t *key, size_t size, uint64_t *vaddrs,
			    uint32_t *nr_complete)
{
	struct mp_varint_reader r = {.p = key, .end = key + size};
	uint64_t vaddr;
	uint64_t complete = MP_PATH_SAMPLED;
	uint32_t nr = 1;

	vaddrs[0] = mp_varint_get(&r);
	while (!r.failed && r.p < r.end) {
		vaddr = vaddrs[nr - 1] + (uint64_t)mp_varint_get_signed(&r);
		/* No block is at 0. */
		if (!vaddr) {
			complete = mp_varint_get(&r);
			if (complete >= nr || r.p < r.end)
				return 0;
		} else if (nr == MP_PATH_MAX_BLOCKS) {
			return 0;
		} else {
			vaddrs[nr++] = vaddr;
		}
	}
	if (nr_complete)
		*nr_complete = (uint32_t)complete;
	return r.failed || (nr == 1 && !vaddrs[0]) ? 0 : nr;
}
