// SPDX-License-Identifier: Apache-2.0
/* map_calls - writes and reads the note of replaced calls; see map_calls.h. */
#include "libprof/note/map_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"
#include "libprof/note/note_frame.h"

#define CALLS_VERSION 1
#define CALL_BYTES    4 /* a call takes at least this much */

/* Return: the address to which most calls before piece @i return: code beside the call follows the block that it ended. */
static uint64_t usual_back(const struct mp_map *map, uint32_t i)
{
	struct mp_map_piece before = {0};

	if (i)
		before = mp_map_piece(map, i - 1);
	return before.old_vaddr + before.old_size;
}

void mp_map_put_calls(struct mp_varint_writer *w, const struct mp_map *map)
{
	uint32_t next = 0;

	mp_varint_put(w, CALLS_VERSION);
	mp_varint_put(w, map->nr_calls);
	for (uint32_t i = 0; i < map->nr_calls; i++) {
		const struct mp_map_call *call = &map->calls[i];

		mp_varint_put(w, call->first - next);
		mp_varint_put(w, call->nr);
		mp_varint_put_signed(w, (int64_t)(call->back - usual_back(map, call->first)));
		mp_varint_put_signed(
			w, (int64_t)(call->callee - mp_map_piece(map, call->first).old_vaddr));
		next = call->first + call->nr;
	}
}

bool mp_map_call_follows(const struct mp_map *map, const struct mp_map_call *call, uint32_t next)
{
	return call->first >= next && call->first < map->nr_pieces && call->nr &&
	       call->nr <= map->nr_pieces - call->first;
}

/* Return: false: it is damaged. */
static bool get_call(struct mp_varint_reader *r, const struct mp_map *map, uint32_t next,
		     struct mp_map_call *call)
{
	uint64_t first = mp_varint_get(r), nr = mp_varint_get(r);

	if (r->failed || first > UINT32_MAX - next || nr > UINT32_MAX)
		return false;
	*call = (struct mp_map_call){.first = next + (uint32_t)first, .nr = (uint32_t)nr};
	if (!mp_map_call_follows(map, call, next))
		return false;
	call->back = usual_back(map, call->first) + (uint64_t)mp_varint_get_signed(r);
	call->callee = mp_map_piece(map, call->first).old_vaddr + (uint64_t)mp_varint_get_signed(r);
	return !r->failed;
}

int mp_map_get_calls(const char *path, const uint8_t *desc, size_t size, struct mp_map *map,
		     struct mp_err *err)
{
	struct mp_varint_reader r;
	uint32_t nr, next = 0;
	int ret;

	if (size && *desc != CALLS_VERSION)
		return 0;
	ret = mp_frame_open("note of replaced calls", path, desc, size, CALLS_VERSION, &r, err);
	if (ret)
		return ret;
	nr = mp_frame_get_nr(&r, CALL_BYTES);
	if (r.failed || nr > map->nr_pieces)
		return mp_frame_error("note of replaced calls", path, -EBADMSG, err);
	map->calls = malloc(((size_t)nr + 1) * sizeof(*map->calls));
	if (!map->calls)
		return mp_frame_error("note of replaced calls", path, -ENOMEM, err);
	for (; map->nr_calls < nr; map->nr_calls++) {
		struct mp_map_call *call = &map->calls[map->nr_calls];

		if (!get_call(&r, map, next, call))
			break;
		next = call->first + call->nr;
	}
	return map->nr_calls < nr || r.p != r.end
		       ? mp_frame_error("note of replaced calls", path, -EBADMSG, err)
		       : 0;
}

bool mp_map_same_calls(const struct mp_map *a, const struct mp_map *b)
{
	return a->nr_calls == b->nr_calls &&
	       (!a->nr_calls || !memcmp(a->calls, b->calls, a->nr_calls * sizeof(a->calls[0])));
}

const struct mp_map_call *mp_map_call_of_piece(const struct mp_map *map, uint32_t i)
{
	uint32_t lo = mp_search(mid, 0, map->nr_calls, map->calls[mid].first <= i);

	return lo && i - map->calls[lo - 1].first < map->calls[lo - 1].nr ? &map->calls[lo - 1]
									  : NULL;
}
