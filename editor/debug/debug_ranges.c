// SPDX-License-Identifier: Apache-2.0
/* debug_ranges - reads and writes range lists, and the tables of numbered lists. */
#include "editor/debug/debug_ranges.h"

#include <errno.h>

#include "editor/debug/read/debug_form.h"

#define ADDRESS_SIZE 8

struct me_list_reader me_list_open(const struct me_unit *unit, bool locations, uint64_t off)
{
	const struct me_debug_sections *f = unit->file;
	const struct me_debug_section *s = locations ? &f->loc : &f->ranges;

	if (unit->version >= 5)
		s = locations ? &f->loclists : &f->rnglists;
	return (struct me_list_reader){.c = mp_cursor_at(s->data, s->size, off),
				       .from = {.indexed = me_unit_indexed, .ctx = unit},
				       .version = unit->version,
				       .locations = locations,
				       .base = {0, unit->base}};
}

int me_list_step(const struct me_unit *unit, struct me_list_reader *r, struct me_list_entry *e)
{
	int rc = me_list_next(r, e);

	return !rc && !me_debug_spend(unit->file, 1) ? -EPERM : rc;
}

int me_ranges_read(const struct me_unit *unit, uint64_t off, struct me_ranges *out)
{
	struct me_list_reader r = me_list_open(unit, false, off);
	struct me_list_entry e = {0};
	int rc = 0;

	out->nr = 0;
	while (!rc && !e.last) {
		rc = me_list_step(unit, &r, &e);
		if (!rc)
			me_ranges_add(out, e.start.off, e.end.off);
	}
	return out->failed ? -ENOMEM : rc;
}

int me_ranges_indexed(const struct me_unit *unit, uint64_t index, uint64_t *off)
{
	if (!unit->has_rnglists_base)
		return -EPERM;
	return me_list_indexed(&unit->file->rnglists, unit->rnglists_base, index, off);
}

/*
 * Rotate @out so that it begins with address @entry; the range that contains @entry is
 * split there.
 */
static void begin_with(struct me_ranges *out, uint64_t entry)
{
	for (uint32_t i = 0; i < out->nr; i++) {
		struct me_range r = out->ranges[i];

		if (entry < r.lo || entry >= r.hi)
			continue;
		if (entry > r.lo) {
			out->ranges[i].hi = entry;
			me_ranges_add(out, entry, r.hi);
			if (out->failed)
				return;
			i = out->nr - 1;
			r = out->ranges[i];
		}
		for (; i > 0; i--)
			out->ranges[i] = out->ranges[i - 1];
		out->ranges[0] = r;
		return;
	}
}

/* Append the old ranges to file->new. */
static void add_old(struct me_debug_sections *file)
{
	for (uint32_t i = 0; i < file->old.nr; i++)
		me_ranges_add(&file->new, file->old.ranges[i].lo, file->old.ranges[i].hi);
}

/* Was all code of the function copied, and does the copy of its entry come first? */
static bool is_whole(const struct me_debug_sections *file, uint64_t entry)
{
	for (uint32_t i = 0; i < file->old.nr; i++)
		if (me_moves_any_uncopied(file->moves, file->old.ranges[i].lo,
					  file->old.ranges[i].hi))
			return false;
	return file->new.nr && file->new.ranges[0].lo == entry;
}

bool me_ranges_extend(struct me_debug_sections *file, bool is_function, bool whole)
{
	struct me_ranges *new = &file->new;
	uint64_t entry;

	new->nr = 0;
	for (uint32_t i = 0; i < file->old.nr; i++)
		me_moves_map(file->moves, file->old.ranges[i].lo, file->old.ranges[i].hi, new);
	if (!whole && new->nr && file->inlined.saving.nr)
		me_ranges_subtract(new, &file->inlined.saving);
	if (!new->nr)
		return false;
	me_ranges_join(new, 0);
	if (!me_moves_address(file->moves, file->old.ranges[0].lo, &entry))
		entry = 0;
	if (is_function && !is_whole(file, entry)) {
		uint32_t nr = new->nr;

		/* The old ranges come first. */
		add_old(file);
		for (uint32_t i = 0; i < nr; i++)
			me_ranges_add(new, new->ranges[i].lo, new->ranges[i].hi);
		if (!new->failed)
			memmove(new->ranges, new->ranges + nr,
				(new->nr - nr) * sizeof(*new->ranges));
		new->nr -= nr;
		return true;
	}
	begin_with(new, entry);
	add_old(file);
	return true;
}

static int write_pairs(struct me_unit *unit, uint32_t *off)
{
	struct me_debug_section *s = &unit->file->ranges;
	const struct me_ranges *list = &unit->file->new;

	if (!me_debug_section_has_room(s, ((uint64_t)list->nr + 2) * 2 * ADDRESS_SIZE))
		return -EPERM;
	*off = (uint32_t)(s->size + s->added.size);
	if (unit->base) {
		me_bytes_u64(&s->added, UINT64_MAX);
		me_bytes_u64(&s->added, 0);
	}
	for (uint32_t i = 0; i < list->nr; i++) {
		me_bytes_u64(&s->added, list->ranges[i].lo);
		me_bytes_u64(&s->added, list->ranges[i].hi);
	}
	me_bytes_u64(&s->added, 0);
	me_bytes_u64(&s->added, 0);
	return s->added.failed ? -ENOMEM : 0;
}

/* Number of ranges from @first on that end at most 2 MiB above the start of @first. */
static uint32_t near(const struct me_ranges *list, uint32_t first)
{
	uint32_t nr = 1;

	while (first + nr < list->nr &&
	       list->ranges[first + nr].hi - list->ranges[first].lo < UINT64_C(1) << 21)
		nr++;
	return nr;
}

static void put_entries(struct me_bytes *out, const struct me_ranges *list)
{
	for (uint32_t i = 0, nr; i < list->nr; i += nr) {
		const struct me_range *r = &list->ranges[i];

		nr = near(list, i);
		if (nr == 1) {
			me_bytes_u8(out, DW_RLE_start_length);
			me_bytes_u64(out, r->lo);
			me_bytes_uleb(out, r->hi - r->lo);
			continue;
		}
		me_bytes_u8(out, DW_RLE_base_address);
		me_bytes_u64(out, r->lo);
		for (uint32_t k = 0; k < nr; k++) {
			me_bytes_u8(out, DW_RLE_offset_pair);
			me_bytes_uleb(out, r[k].lo - r->lo);
			me_bytes_uleb(out, r[k].hi - r->lo);
		}
	}
	me_bytes_u8(out, DW_RLE_end_of_list);
}

static int write_entries(struct me_unit *unit, uint32_t *off)
{
	struct me_debug_section *s = &unit->file->rnglists;

	if (!me_debug_section_has_room(s, ((uint64_t)unit->file->new.nr + 2) * 20))
		return -EPERM;
	if (!unit->rnglists.begun)
		me_list_begin(s, &unit->rnglists, 0);
	*off = (uint32_t)(s->size + s->added.size);
	put_entries(&s->added, &unit->file->new);
	return s->added.failed ? -ENOMEM : 0;
}

int me_ranges_write(struct me_unit *unit, uint32_t *off)
{
	if (unit->file->new.failed)
		return -ENOMEM;
	return unit->version >= 5 ? write_entries(unit, off) : write_pairs(unit, off);
}

/* Set file->new to what list @nr is in the changed unit, or in the added one. */
static int extend_list(struct me_unit *unit, uint32_t nr, bool added)
{
	struct me_debug_sections *file = unit->file;
	uint8_t use = unit->lists && nr < unit->nr_lists ? unit->lists[nr] : 0;
	uint64_t off;
	int rc = me_ranges_indexed(unit, nr, &off);

	if (!rc)
		rc = me_ranges_read(unit, off, &file->old);
	if (rc)
		return rc;
	if (!me_ranges_extend(file, false, added)) {
		struct me_ranges tmp = file->new;

		file->new = file->old;
		file->old = tmp;
	}
	if (use & ME_LIST_LOST)
		file->new.nr = 0;
	if (!(use & ME_LIST_OWN) || !unit->taken.nr)
		return 0;
	if (!me_debug_spend(file, (uint64_t)file->new.nr *(unit->taken.nr + 1)))
		return -EPERM;
	me_ranges_subtract(&file->new, &unit->taken);
	return file->new.failed ? -ENOMEM : 0;
}

/* The first of @nr offsets is behind the header of the table. */
static uint32_t first_offset(const struct me_unit *unit)
{
	return (uint32_t)unit->rnglists.off + ME_LIST_HEADER;
}

/* Write file->new as list @nr of the table. */
static int put_list(struct me_unit *unit, uint32_t nr)
{
	struct me_debug_section *s = &unit->file->rnglists;
	uint32_t off, first = first_offset(unit);
	int rc = me_ranges_write(unit, &off);

	if (!rc)
		me_bytes_patch_u32(&s->added, first - s->size + 4 * nr, off - first);
	return rc;
}

int me_ranges_renumber(struct me_unit *unit)
{
	struct me_debug_section *s = &unit->file->rnglists;
	uint32_t nr;
	int rc = me_list_count(s, unit->rnglists_base, &nr);

	if (rc || !nr)
		return rc;
	if (!me_debug_section_has_room(s, ME_LIST_HEADER + UINT64_C(4) * nr))
		return -EPERM;
	me_list_begin(s, &unit->rnglists, nr);
	for (uint32_t i = 0; i < nr && !rc; i++) {
		rc = extend_list(unit, i, false);
		if (!rc)
			rc = put_list(unit, i);
	}
	return rc;
}

/* Set file->new to the code of the added unit. */
static int own_list(struct me_unit *unit)
{
	struct me_ranges *new = &unit->file->new;

	new->nr = 0;
	for (uint32_t i = 0; i < unit->taken.nr; i++)
		me_ranges_add(new, unit->taken.ranges[i].lo, unit->taken.ranges[i].hi);
	return new->failed ? -ENOMEM : 0;
}

int me_ranges_added(struct me_unit *unit, uint32_t *base)
{
	struct me_debug_section *s = &unit->file->rnglists;
	uint32_t nr = unit->rnglists.nr_offsets, empty = 0;
	int rc;

	me_ranges_end(unit);
	if (!me_debug_section_has_room(s, ME_LIST_HEADER + UINT64_C(4) * nr))
		return -EPERM;
	me_list_begin(s, &unit->rnglists, nr);
	*base = first_offset(unit);
	unit->file->new.nr = 0;
	rc = me_ranges_write(unit, &empty);
	for (uint32_t i = 0; i < nr && !rc; i++) {
		uint8_t use = i < unit->nr_lists ? unit->lists[i] : 0;

		if (use & ME_LIST_ADDED) {
			unit->lists[i] &= ~(ME_LIST_LOST | ME_LIST_OWN);
			rc = extend_list(unit, i, true);
			unit->lists[i] = use;
		} else if (use & ME_LIST_OWN) {
			rc = own_list(unit);
		} else {
			me_bytes_patch_u32(&s->added, *base - s->size + 4 * i, empty - *base);
			continue;
		}
		if (!rc)
			rc = put_list(unit, i);
	}
	return rc;
}

void me_ranges_end(struct me_unit *unit)
{
	me_list_end(&unit->file->rnglists, &unit->rnglists);
}

int me_list_count(const struct me_debug_section *section, uint64_t base, uint32_t *nr)
{
	struct mp_cursor c = {.bad = true};
	uint64_t length;
	unsigned int version, address_size, segment_size;

	if (base >= ME_LIST_HEADER)
		c = mp_cursor_at(section->data, section->size, base - ME_LIST_HEADER);
	length = mp_cursor_u32(&c);
	version = mp_cursor_u16(&c);
	address_size = mp_cursor_u8(&c);
	segment_size = mp_cursor_u8(&c);
	*nr = mp_cursor_u32(&c);
	if (c.bad || version != 5 || address_size != ADDRESS_SIZE || segment_size ||
	    length < ME_LIST_HEADER - 4 || length - (ME_LIST_HEADER - 4) < UINT64_C(4) * *nr ||
	    length - (ME_LIST_HEADER - 4) > (uint64_t)(c.end - c.p))
		return -EBADMSG;
	return 0;
}

int me_list_indexed(const struct me_debug_section *section, uint64_t base, uint64_t index,
		    uint64_t *off)
{
	struct mp_cursor c;
	uint32_t nr;
	int rc = me_list_count(section, base, &nr);

	if (rc)
		return rc;
	if (index >= nr)
		return -EBADMSG;
	c = mp_cursor_at(section->data, section->size, base + 4 * index);
	*off = base + mp_cursor_u32(&c);
	return c.bad ? -EBADMSG : 0;
}

void me_list_begin(struct me_debug_section *section, struct me_list_table *table,
		   uint32_t nr_offsets)
{
	*table = (struct me_list_table){true, section->size + section->added.size, nr_offsets};
	me_bytes_u32(&section->added, 0);
	me_bytes_u16(&section->added, 5);
	me_bytes_u8(&section->added, ADDRESS_SIZE);
	me_bytes_u8(&section->added, 0);
	me_bytes_u32(&section->added, nr_offsets);
	for (uint32_t i = 0; i < nr_offsets; i++)
		me_bytes_u32(&section->added, 0);
}

void me_list_end(struct me_debug_section *section, const struct me_list_table *table)
{
	uint64_t start = table->off - section->size;

	if (table->begun)
		me_bytes_patch_u32(&section->added, start,
				   (uint32_t)(section->added.size - start - 4));
}
