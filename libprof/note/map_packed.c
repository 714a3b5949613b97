// SPDX-License-Identifier: Apache-2.0
/* map_packed - stores many pieces in little memory; see map_packed.h. */
#include "libprof/note/map_packed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"

#define GROUP 16 /* pieces per group */

/* The low bits of a piece's first number; the other bits are its size. */
enum piece_bits {
	PIECE_GAP = 1 << 0,	/* does not start where the piece before ended */
	PIECE_RESIZED = 1 << 1, /* sizes differ */
	PIECE_SHIFT = 2,
};

/* The group stores the start of its first piece, which therefore has no gap. */
struct group {
	uint64_t new_vaddr, old_end;
	size_t off; /* offset in the bytes */
};

struct mp_map_packed {
	struct mp_varint_writer bytes;
	struct mp_map_cursor at; /* position behind the last piece */
	struct group *groups;
	size_t nr_groups, room;
	uint32_t nr_pieces;
};

/* ---- one piece ----------------------------------------------------------------------------- */

void mp_map_put_piece(struct mp_varint_writer *w, struct mp_map_cursor *at,
		      const struct mp_map_piece *piece)
{
	uint64_t head = (uint64_t)piece->new_size << PIECE_SHIFT;

	if (piece->new_vaddr != at->new_end)
		head |= PIECE_GAP;
	if (piece->new_size != piece->old_size)
		head |= PIECE_RESIZED;
	mp_varint_put(w, head);
	if (head & PIECE_GAP)
		mp_varint_put(w, piece->new_vaddr - at->new_end);
	if (head & PIECE_RESIZED)
		mp_varint_put_signed(w, (int64_t)piece->old_size - (int64_t)piece->new_size);
	mp_varint_put_signed(w, (int64_t)(piece->old_vaddr - at->old_end));
	at->new_end = piece->new_vaddr + piece->new_size;
	at->old_end = piece->old_vaddr + piece->old_size;
}

void mp_map_get_piece(struct mp_varint_reader *r, struct mp_map_cursor *at,
		      struct mp_map_piece *piece)
{
	uint64_t head = mp_varint_get(r);
	uint64_t gap = head & PIECE_GAP ? mp_varint_get(r) : 0;
	int64_t old_size = (int64_t)(head >> PIECE_SHIFT);

	/* One piece has one form only. */
	if (head >> PIECE_SHIFT > UINT32_MAX || gap > UINT64_MAX - at->new_end ||
	    (head & PIECE_GAP && !gap)) {
		r->failed = true;
		return;
	}
	if (head & PIECE_RESIZED) {
		int64_t diff = mp_varint_get_signed(r);

		if (diff < -(int64_t)UINT32_MAX || diff > (int64_t)UINT32_MAX || !diff)
			r->failed = true;
		else
			old_size += diff;
	}
	if (old_size < 0 || old_size > UINT32_MAX)
		r->failed = true;
	if (r->failed)
		return;
	piece->new_vaddr = at->new_end + gap;
	piece->new_size = (uint32_t)(head >> PIECE_SHIFT);
	piece->old_size = (uint32_t)old_size;
	piece->old_vaddr = at->old_end + (uint64_t)mp_varint_get_signed(r);
	at->new_end = piece->new_vaddr + piece->new_size;
	at->old_end = piece->old_vaddr + piece->old_size;
}

bool mp_map_follows(const struct mp_map_piece *piece, uint64_t new_end)
{
	/* A block that was one jump, and that the copy leaves out, is a piece of size 0. */
	return piece->new_vaddr >= new_end && piece->new_size <= UINT64_MAX - piece->new_vaddr &&
	       piece->old_size <= UINT64_MAX - piece->old_vaddr;
}

/* ---- many pieces --------------------------------------------------------------------------- */

struct mp_map_packed *mp_map_packed_new(void)
{
	return calloc(1, sizeof(struct mp_map_packed));
}

void mp_map_packed_free(struct mp_map_packed *packed)
{
	if (!packed)
		return;
	free(packed->bytes.bytes);
	free(packed->groups);
	free(packed);
}

static int add_group(struct mp_map_packed *packed, uint64_t new_vaddr)
{
	if (mp_push(packed->groups, packed->nr_groups, packed->room,
		    (struct group){new_vaddr, packed->at.old_end, packed->bytes.size}))
		return -ENOMEM;
	packed->at.new_end = new_vaddr;
	return 0;
}

int mp_map_packed_add(struct mp_map_packed *packed, const struct mp_map_piece *piece)
{
	if (packed->nr_pieces % GROUP == 0 && add_group(packed, piece->new_vaddr))
		return -ENOMEM;
	mp_map_put_piece(&packed->bytes, &packed->at, piece);
	if (packed->bytes.failed)
		return -ENOMEM;
	packed->nr_pieces++;
	return 0;
}

void mp_map_packed_trim(struct mp_map_packed *packed)
{
	void *smaller;

	if (!packed->nr_pieces)
		return;
	smaller = realloc(packed->bytes.bytes, packed->bytes.size);
	if (smaller) {
		packed->bytes.bytes = smaller;
		packed->bytes.room = packed->bytes.size;
	}
	smaller = realloc(packed->groups, packed->nr_groups * sizeof(*packed->groups));
	if (smaller) {
		packed->groups = smaller;
		packed->room = packed->nr_groups;
	}
}

uint64_t mp_map_packed_bytes(const struct mp_map_packed *packed)
{
	return packed->bytes.room + packed->room * sizeof(*packed->groups);
}

/* A reader of the pieces from group @g on. */
static struct mp_varint_reader open_group(const struct mp_map_packed *packed, size_t g,
					  struct mp_map_cursor *at)
{
	const struct group *group = &packed->groups[g];

	*at = (struct mp_map_cursor){group->new_vaddr, group->old_end};
	return (struct mp_varint_reader){.p = packed->bytes.bytes + group->off,
					 .end = packed->bytes.bytes + packed->bytes.size};
}

static struct mp_map_piece map_packed_get(const struct mp_map_packed *packed, uint32_t i)
{
	struct mp_map_piece piece = {0};
	struct mp_map_cursor at;
	struct mp_varint_reader r = open_group(packed, i / GROUP, &at);

	for (uint32_t k = 0; k <= i % GROUP; k++)
		mp_map_get_piece(&r, &at, &piece);
	return piece;
}

struct mp_map_piece mp_map_next(const struct mp_map *map, struct mp_map_walk *walk)
{
	struct mp_map_piece piece = {0};
	uint32_t i = walk->i++;

	if (!map->packed)
		return map->pieces[i];
	if (i % GROUP == 0)
		walk->r = open_group(map->packed, i / GROUP, &walk->at);
	mp_map_get_piece(&walk->r, &walk->at, &piece);
	return piece;
}

uint32_t mp_map_packed_rank(const struct mp_map_packed *packed, uint64_t vaddr,
			    struct mp_map_piece *piece)
{
	struct mp_varint_reader r;
	struct mp_map_cursor at;
	uint32_t rank;
	size_t lo = mp_search(i, 0, packed->nr_groups, packed->groups[i].new_vaddr <= vaddr);

	if (!lo)
		return 0;
	rank = (uint32_t)(lo - 1) * GROUP;
	r = open_group(packed, lo - 1, &at);
	for (uint32_t k = 0; k < GROUP && rank < packed->nr_pieces; k++) {
		struct mp_map_piece next;

		mp_map_get_piece(&r, &at, &next);
		if (next.new_vaddr > vaddr)
			break;
		*piece = next;
		rank++;
	}
	return rank;
}

bool mp_map_packed_equal(const struct mp_map_packed *a, const struct mp_map_packed *b)
{
	return a->nr_pieces == b->nr_pieces && a->bytes.size == b->bytes.size &&
	       !memcmp(a->bytes.bytes, b->bytes.bytes, a->bytes.size) &&
	       !memcmp(a->groups, b->groups, a->nr_groups * sizeof(*a->groups));
}

struct mp_map_piece mp_map_piece(const struct mp_map *map, uint32_t i)
{
	return map->packed ? map_packed_get(map->packed, i) : map->pieces[i];
}
