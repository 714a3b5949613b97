// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_lists - reads lists of ranges and of locations, DWARF 2 to 5. Called by
 * object_debug_entry.
 */
#include <errno.h>

#include "editor/base/grow.h"
#include "editor/object/debug/object_debug_private.h"

struct reader {
	struct me_odebug *d;
	const struct me_ounit *unit;
	uint32_t section;
	const uint8_t *data;
	struct mp_cursor c;
	struct me_oaddr base;
	bool locations;
};

static int damaged(const struct reader *r)
{
	return me_odebug_refuse(r->d, r->locations
					      ? "has a list of locations that is not understood"
					      : "has a list of ranges that is not understood");
}

static struct me_oaddr address(struct reader *r)
{
	uint64_t off = (uint64_t)(r->c.p - r->data);

	mp_cursor_skip(&r->c, 8);
	return me_odebug_field(r->d, r->section, off, 8);
}

static struct me_oaddr indexed(struct reader *r)
{
	struct me_oaddr addr = {0, 0};
	uint64_t at;

	if (me_odebug_indexed(r->d, r->unit, mp_cursor_uleb(&r->c), &addr, &at))
		r->c.bad = true;
	return addr;
}

static void set_range(struct me_oentry *e, struct me_oaddr start, uint64_t end)
{
	e->section = start.section;
	e->start = start.off;
	e->end = end;
}

/* An address without relocation counts from the base. */
static struct me_oaddr from_base(const struct reader *r, struct me_oaddr addr)
{
	if (addr.section || !r->base.section)
		return addr;
	return (struct me_oaddr){r->base.section, r->base.off + addr.off};
}

/* An entry of version 2 to 4. *@last: the end of the list. *@none: a new base. */
static int next_pair(struct reader *r, struct me_oentry *e, bool *last, bool *none)
{
	struct me_oaddr start = address(r), end = address(r);

	if (!start.section && !end.section && !start.off && !end.off) {
		*last = true;
		return 0;
	}
	if (!start.section && start.off == UINT64_MAX) {
		r->base = end;
		*none = true;
		return 0;
	}
	start = from_base(r, start);
	end = from_base(r, end);
	if (start.section != end.section)
		return damaged(r);
	set_range(e, start, end.off);
	return 0;
}

/* The kinds of entries have the same numbers for ranges and locations, apart from two. */
static int kind_of(const struct reader *r, unsigned int kind)
{
	if (!r->locations)
		return kind <= DW_RLE_start_length ? (int)kind : -1;
	switch (kind) {
	case DW_LLE_end_of_list: return DW_RLE_end_of_list;
	case DW_LLE_base_addressx: return DW_RLE_base_addressx;
	case DW_LLE_startx_endx: return DW_RLE_startx_endx;
	case DW_LLE_startx_length: return DW_RLE_startx_length;
	case DW_LLE_offset_pair: return DW_RLE_offset_pair;
	case DW_LLE_base_address: return DW_RLE_base_address;
	case DW_LLE_start_end: return DW_RLE_start_end;
	case DW_LLE_start_length: return DW_RLE_start_length;
	default: return -1;
	}
}

static int next_entry(struct reader *r, struct me_oentry *e, bool *last, bool *none)
{
	unsigned int kind = mp_cursor_u8(&r->c);
	struct me_oaddr start = {0, 0}, end;

	if (r->locations && kind == DW_LLE_default_location) {
		e->anywhere = true;
		return 0;
	}
	switch (kind_of(r, kind)) {
	case DW_RLE_end_of_list: *last = true; return 0;
	case DW_RLE_base_addressx:
		r->base = indexed(r);
		*none = true;
		return 0;
	case DW_RLE_base_address:
		r->base = address(r);
		*none = true;
		return 0;
	case DW_RLE_startx_endx:
		start = indexed(r);
		end = indexed(r);
		break;
	case DW_RLE_startx_length:
		start = indexed(r);
		end = (struct me_oaddr){start.section, start.off + mp_cursor_uleb(&r->c)};
		break;
	case DW_RLE_offset_pair:
		start.off = mp_cursor_uleb(&r->c);
		end = (struct me_oaddr){0, mp_cursor_uleb(&r->c)};
		start = from_base(r, start);
		end = from_base(r, end);
		break;
	case DW_RLE_start_end:
		start = address(r);
		end = address(r);
		break;
	case DW_RLE_start_length:
		start = address(r);
		end = (struct me_oaddr){start.section, start.off + mp_cursor_uleb(&r->c)};
		break;
	default: return damaged(r);
	}
	if (start.section != end.section)
		return damaged(r);
	set_range(e, start, end.off);
	return 0;
}

static int read_entries(struct reader *r, struct me_olist *out)
{
	bool last = false;
	int rc = 0;

	while (!rc) {
		struct me_oentry e = {0};
		bool none = false;

		rc = r->unit->version >= 5 ? next_entry(r, &e, &last, &none)
					   : next_pair(r, &e, &last, &none);
		if (!rc && r->locations && !last && !none) {
			e.expr_size = r->unit->version >= 5 ? mp_cursor_uleb(&r->c)
							    : mp_cursor_u16(&r->c);
			e.expr = (uint64_t)(r->c.p - r->data);
			mp_cursor_skip(&r->c, e.expr_size);
		}
		if (rc || r->c.bad)
			return damaged(r);
		if (last)
			return 0;
		if (none || (!e.anywhere && e.start == e.end))
			continue;
		/* Such a range is not in code of the object, or ends before it begins. */
		if (!e.anywhere && (!e.section || e.start > e.end))
			return damaged(r);
		if (!me_grow(&out->entries, &out->cap, (uint64_t)out->nr + 1,
			     sizeof(*out->entries)))
			return me_odebug_no_memory(r->d);
		e.entry = !r->locations && !out->nr;
		out->entries[out->nr++] = e;
	}
	return rc;
}

int me_odebug_read_list(struct me_odebug *d, const struct me_ounit *unit, enum me_olists_kind kind,
			uint64_t off, struct me_olist *out)
{
	struct reader r = {
		.d = d,
		.unit = unit,
		.section = d->lists[kind].section,
		.base = unit->base,
		.locations = kind == ME_OLISTS_LOC || kind == ME_OLISTS_LOCLISTS,
	};
	const struct mp_relobj_section *s = me_odebug_section(d, r.section);

	out->nr = 0;
	if (!r.section || !s->data || off >= s->header.sh_size)
		return damaged(&r);
	r.data = s->data;
	r.c = mp_cursor_at(s->data, s->header.sh_size, off);
	return read_entries(&r, out);
}

int me_odebug_list_off(struct me_odebug *d, const struct me_ounit *unit, enum me_olists_kind kind,
		       uint64_t index, uint64_t *off)
{
	bool ranges = kind == ME_OLISTS_RNGLISTS;
	uint64_t base = ranges ? unit->rnglists_base : unit->loclists_base;
	const struct mp_relobj_section *s = me_odebug_section(d, d->lists[kind].section);
	struct mp_cursor c = mp_cursor_at(s->data, s->header.sh_size, base);

	if (!(ranges ? unit->has_rnglists_base : unit->has_loclists_base) || base < 4 ||
	    index >= s->header.sh_size)
		return me_odebug_refuse(d, "has a number of no list");
	mp_cursor_skip(&c, 4 * index);
	*off = base + mp_cursor_u32(&c);
	return c.bad ? me_odebug_refuse(d, "has a number of no list") : 0;
}
