// SPDX-License-Identifier: Apache-2.0
/* debug_index - rewrites .debug_aranges, with the copies of extended units. Called by debug. */
#include "editor/debug/debug_index.h"

#include <errno.h>

enum {
	ADDRESS_SIZE = 8,
	TUPLE_SIZE = 2 * ADDRESS_SIZE,
	ARANGES_VERSION = 2,
};

/* ---- .debug_aranges: one set of tuples for each unit, a zero tuple ends it ---- */

static void put_tuples(const struct me_ranges *ranges, struct me_bytes *out)
{
	for (uint32_t i = 0; i < ranges->nr && !ranges->failed; i++) {
		me_bytes_u64(out, ranges->ranges[i].lo);
		me_bytes_u64(out, ranges->ranges[i].hi - ranges->ranges[i].lo);
	}
	me_bytes_u64(out, 0);
	me_bytes_u64(out, 0);
}

/* Write tuples for the ranges in file->old and their copies, but not for code that another unit has. */
static bool put_extended(struct me_debug_sections *file, const struct me_added_unit *added,
			 struct me_bytes *out)
{
	struct me_ranges *new = &file->new;
	uint32_t nr = file->old.nr;

	new->nr = 0;
	for (uint32_t i = 0; i < nr; i++)
		me_moves_map(file->moves, file->old.ranges[i].lo, file->old.ranges[i].hi, new);
	me_ranges_join(new, 0);
	for (uint32_t i = 0; i < new->nr && !new->failed; i++)
		me_ranges_add(&file->old, new->ranges[i].lo, new->ranges[i].hi);
	if (added && !me_debug_spend(file, (uint64_t)file->old.nr * (added->ranges.nr + 1)))
		return false;
	if (added)
		me_ranges_subtract(&file->old, &added->ranges);
	put_tuples(&file->old, out);
	return true;
}

/* Write the set of a unit that was added. */
static void put_set(const struct me_added_unit *added, struct me_bytes *out)
{
	size_t at = out->size;

	me_bytes_u32(out, 0);
	me_bytes_u16(out, ARANGES_VERSION);
	me_bytes_u32(out, (uint32_t)added->off);
	me_bytes_u8(out, ADDRESS_SIZE);
	me_bytes_u8(out, 0);
	me_bytes_u32(out, 0); /* tuples are aligned */
	put_tuples(&added->ranges, out);
	if (!out->failed)
		me_bytes_patch_u32(out, at, (uint32_t)(out->size - at - 4));
}

/* Write one set to @out, extended if its unit is. Return: false if it cannot be read. */
static bool extend_set(struct me_debug_sections *file, struct mp_cursor *c, struct me_bytes *out)
{
	const struct me_added_unit *added;
	const uint8_t *start = c->p, *tuples;
	size_t at = out->size;
	uint32_t length = mp_cursor_u32(c);
	struct mp_cursor set = mp_cursor_over(c->p, c->p + length);
	uint64_t unit;

	if (!mp_cursor_skip(c, length) || length >= 0xfffffff0)
		return false;
	if (mp_cursor_u16(&set) != ARANGES_VERSION)
		return false;
	unit = mp_cursor_u32(&set);
	if (mp_cursor_u8(&set) != ADDRESS_SIZE || mp_cursor_u8(&set))
		return false;
	/* Tuples are aligned to their size, counted from the set's start. */
	mp_cursor_skip(&set, (uint64_t)(TUPLE_SIZE - (set.p - start) % TUPLE_SIZE) % TUPLE_SIZE);
	if (!me_unit_is_extended(file, unit)) {
		me_bytes_put(out, start, (size_t)(c->p - start));
		return true;
	}
	tuples = set.p;
	file->old.nr = 0;
	for (;;) {
		uint64_t lo = mp_cursor_u64(&set), size = mp_cursor_u64(&set);

		if (set.bad)
			return false;
		if (!lo && !size)
			break;
		me_ranges_add(&file->old, lo, lo + size);
	}
	me_bytes_put(out, start, (size_t)(tuples - start));
	added = me_unit_added(file, unit);
	if (!put_extended(file, added, out))
		return false;
	me_bytes_patch_u32(out, at, (uint32_t)(out->size - at - 4));
	if (added)
		put_set(added, out);
	return true;
}

static int result(const struct me_debug_sections *file, const struct me_debug_section *s)
{
	return s->added.failed || file->old.failed || file->new.failed ? -ENOMEM : 0;
}

static void give_up(struct me_debug_section *s)
{
	me_bytes_fini(&s->added);
}

int me_aranges_extend(struct me_debug_sections *file)
{
	struct me_debug_section *s = &file->aranges;
	struct mp_cursor c = mp_cursor_at(s->data, s->size, 0);

	if (!s->index || !file->nr_extended)
		return 0;
	while (c.p < c.end) {
		if (!extend_set(file, &c, &s->added)) {
			int rc = result(file, s);

			give_up(s);
			return rc;
		}
	}
	s->replaced = true;
	return result(file, s);
}
