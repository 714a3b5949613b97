// SPDX-License-Identifier: Apache-2.0
/* debug_loc - appends location lists: the old list's bytes, then entries for the copies. */
#include "editor/debug/debug_loc.h"

#include <errno.h>

#include "editor/debug/read/debug_form.h"
#include "editor/debug/debug_expr.h"
#include "editor/debug/debug_ranges.h"

static struct me_debug_section *section_of(const struct me_unit *unit)
{
	return unit->version >= 5 ? &unit->file->loclists : &unit->file->loc;
}

/*
 * Read the old list at @off: number of entries with a range, whether any of them moved,
 * size in bytes.
 */
static int scan_list(const struct me_unit *unit, uint64_t off, uint32_t *nr_bounded, bool *moved,
		     uint64_t *size)
{
	struct me_list_reader r = me_list_open(unit, true, off);
	const uint8_t *start = r.c.p;
	struct me_list_entry e;
	int rc;

	*nr_bounded = 0;
	*moved = false;
	for (;;) {
		*size = (uint64_t)(r.c.p - start);
		rc = me_list_step(unit, &r, &e);
		if (rc || e.last)
			return rc;
		if (!e.bounded)
			continue;
		/* New code would be described by chance. */
		if (e.end.off > unit->file->moves->first_new && unit->file->inlined.nr)
			return -EPERM;
		(*nr_bounded)++;
		*moved |= me_moves_any(unit->file->moves, e.start.off, e.end.off);
	}
}

int me_loc_each(const struct me_unit *unit, uint64_t off,
		bool (*good)(const struct me_unit *unit, const uint8_t *expr, uint64_t size))
{
	struct me_list_reader r = me_list_open(unit, true, off);
	struct me_list_entry e;

	for (;;) {
		int rc = me_list_step(unit, &r, &e);

		if (rc || e.last)
			return rc;
		if (e.expr && (!e.bounded || !good(unit, e.expr, e.expr_size)))
			return -EPERM;
	}
}

int me_loc_registers(const struct me_unit *unit, uint64_t off, uint64_t *registers)
{
	struct me_list_reader r = me_list_open(unit, true, off);
	struct me_list_entry e;

	for (;;) {
		int rc = me_list_step(unit, &r, &e);

		if (rc || e.last)
			return rc;
		if (e.expr && !e.bounded)
			return -EPERM;
		if (e.expr)
			*registers |= me_expr_registers(unit, e.expr, e.expr_size, 0);
	}
}

static void put_entry(const struct me_unit *unit, struct me_bytes *out, const struct me_range *at,
		      const struct me_list_entry *e)
{
	if (unit->version < 5) {
		me_bytes_u64(out, at->lo);
		me_bytes_u64(out, at->hi);
		me_bytes_u16(out, (uint16_t)e->expr_size);
	} else {
		me_bytes_u8(out, DW_LLE_start_length);
		me_bytes_u64(out, at->lo);
		me_bytes_uleb(out, at->hi - at->lo);
		me_bytes_uleb(out, e->expr_size);
	}
	me_bytes_put(out, e->expr, e->expr_size);
}

/*
 * Set file->new to the copies of the entry's range in which its expression holds: without code in place of calls that
 * changes a register on which the expression depends.
 */
static int map_entry(struct me_unit *unit, const struct me_list_entry *e)
{
	struct me_debug_sections *file = unit->file;
	struct me_ranges *list = &file->new, *changing = &file->changing;

	list->nr = changing->nr = 0;
	if (!e->bounded)
		return 0;
	me_moves_map(file->moves, e->start.off, e->end.off, list);
	me_ranges_join(list, 0);
	if (list->nr && file->inlined.nr)
		me_inlined_changing(
			&file->inlined, (struct me_range){e->start.off, e->end.off},
			me_expr_registers(unit, e->expr, e->expr_size, unit->frame_base), changing);
	if (!me_debug_spend(file, changing->nr))
		return -EPERM;
	if (changing->nr)
		me_ranges_subtract(list, changing);
	return list->failed || changing->failed ? -ENOMEM : 0;
}

/* Append the entries of the copies; *@nr: how many. Return: 0 or -errno. */
static int put_copies(struct me_unit *unit, uint64_t off, uint32_t *nr)
{
	struct me_list_reader r = me_list_open(unit, true, off);
	struct me_debug_section *s = section_of(unit);
	struct me_ranges *list = &unit->file->new;
	bool based = false;
	struct me_list_entry e;

	*nr = 0;
	for (;;) {
		int rc = me_list_step(unit, &r, &e);

		if (rc || e.last)
			return rc;
		rc = map_entry(unit, &e);
		if (rc)
			return rc;
		if (!me_debug_spend(unit->file, list->nr) ||
		    !me_debug_section_has_room(s, (uint64_t)list->nr * (e.expr_size + 30)))
			return -EPERM;
		if (list->nr && unit->version < 5 && !based) {
			me_bytes_u64(&s->added, UINT64_MAX);
			me_bytes_u64(&s->added, 0);
			based = true;
		}
		for (uint32_t i = 0; i < list->nr; i++)
			put_entry(unit, &s->added, &list->ranges[i], &e);
		*nr += list->nr;
	}
}

static void put_end(const struct me_unit *unit, struct me_bytes *out)
{
	if (unit->version < 5) {
		me_bytes_u64(out, 0);
		me_bytes_u64(out, 0);
	} else {
		me_bytes_u8(out, DW_LLE_end_of_list);
	}
}

/*
 * View numbers precede their list: one pair for each entry with a range. The copies'
 * entries get zeros: other views are not needed, since a copy begins no statement twice.
 */
static int put_views(struct me_unit *unit, uint64_t old, uint32_t nr_old, uint32_t nr_new,
		     uint32_t *views)
{
	struct me_debug_section *s = section_of(unit);
	struct mp_cursor c = mp_cursor_at(s->data, s->size, old);

	*views = (uint32_t)(s->size + s->added.size);
	for (uint32_t i = 0; i < nr_old; i++) {
		me_bytes_uleb(&s->added, mp_cursor_uleb(&c));
		me_bytes_uleb(&s->added, mp_cursor_uleb(&c));
	}
	for (uint32_t i = 0; i < nr_new; i++)
		me_bytes_u16(&s->added, 0);
	return c.bad ? -EBADMSG : 0;
}

/* Count the entries of the copies by writing them and dropping the result. */
static int count_copies(struct me_unit *unit, uint64_t off, uint32_t *nr)
{
	struct me_debug_section *s = section_of(unit);
	size_t start = s->added.size;
	int rc = put_copies(unit, off, nr);

	s->added.size = start;
	return rc;
}

static int append(struct me_unit *unit, uint32_t off, uint64_t size, uint32_t *new_off)
{
	struct me_debug_section *s = section_of(unit);
	uint32_t nr;
	int rc;

	if (!me_debug_section_has_room(s, size) || !me_debug_spend(unit->file, size / 16))
		return -EPERM;
	*new_off = (uint32_t)(s->size + s->added.size);
	me_bytes_put(&s->added, s->data + off, size);
	rc = put_copies(unit, off, &nr);
	if (!rc)
		put_end(unit, &s->added);
	return s->added.failed ? -ENOMEM : rc;
}

int me_loc_extend(struct me_unit *unit, uint32_t *off, uint32_t *views)
{
	uint32_t nr_old, nr_new = 0;
	uint64_t size;
	bool moved;
	int rc = scan_list(unit, *off, &nr_old, &moved, &size);

	if (rc || !moved)
		return rc;
	if (unit->version >= 5 && !unit->loclists.begun)
		me_list_begin(&unit->file->loclists, &unit->loclists, 0);
	if (views) {
		rc = count_copies(unit, *off, &nr_new);
		if (!rc)
			rc = put_views(unit, *views, nr_old, nr_new, views);
		if (rc)
			return rc;
	}
	return append(unit, *off, size, off);
}

int me_loc_renumber(struct me_unit *unit)
{
	struct me_debug_section *s = &unit->file->loclists;
	uint32_t nr;
	int rc = me_list_count(s, unit->loclists_base, &nr);

	if (rc || !nr)
		return rc;
	if (!me_debug_section_has_room(s, ME_LIST_HEADER + UINT64_C(4) * nr))
		return -EPERM;
	me_list_begin(s, &unit->loclists, nr);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t nr_bounded, new_off, first = (uint32_t)unit->loclists.off + ME_LIST_HEADER;
		uint64_t old, size;
		bool moved;

		rc = me_list_indexed(s, unit->loclists_base, i, &old);
		if (!rc)
			rc = scan_list(unit, old, &nr_bounded, &moved, &size);
		if (!rc)
			rc = append(unit, (uint32_t)old, size, &new_off);
		if (rc)
			return rc;
		me_bytes_patch_u32(&s->added, first - s->size + 4 * i, new_off - first);
	}
	return 0;
}

int me_loc_empty(struct me_unit *unit, uint32_t *off)
{
	struct me_debug_section *s = section_of(unit);

	if (!me_debug_section_has_room(s, ME_LIST_HEADER + 16))
		return -EPERM;
	if (unit->version >= 5 && !unit->loclists.begun)
		me_list_begin(s, &unit->loclists, 0);
	*off = (uint32_t)(s->size + s->added.size);
	put_end(unit, &s->added);
	return s->added.failed ? -ENOMEM : 0;
}

int me_loc_write(struct me_unit *unit, const struct me_ranges *ranges, const uint8_t *expr,
		 uint64_t size, uint32_t *off)
{
	struct me_debug_section *s = section_of(unit);
	const struct me_list_entry e = {.expr = expr, .expr_size = size};

	if (size > UINT16_MAX || !me_debug_spend(unit->file, ranges->nr) ||
	    !me_debug_section_has_room(s, ME_LIST_HEADER + 32 + ranges->nr * (size + 30)))
		return -EPERM;
	if (unit->version >= 5 && !unit->loclists.begun)
		me_list_begin(s, &unit->loclists, 0);
	*off = (uint32_t)(s->size + s->added.size);
	if (unit->version < 5) {
		me_bytes_u64(&s->added, UINT64_MAX);
		me_bytes_u64(&s->added, 0);
	}
	for (uint32_t i = 0; i < ranges->nr; i++)
		put_entry(unit, &s->added, &ranges->ranges[i], &e);
	put_end(unit, &s->added);
	return s->added.failed ? -ENOMEM : 0;
}

void me_loc_end(struct me_unit *unit)
{
	me_list_end(&unit->file->loclists, &unit->loclists);
}
