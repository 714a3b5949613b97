// SPDX-License-Identifier: Apache-2.0
/* verify_odebug_lists - reads lists of ranges and locations, DWARF 2 to 5, as verify understands them. */
#include <errno.h>

#include "editor/verify/object/debug/verify_odebug_private.h"

struct list_reader {
	struct od_side *side;
	struct od_cursor c;
	uint32_t section;
	struct od_addr base;
	bool locations, last, bad;
};

bool od_indexed(const struct od_side *side, uint64_t index, struct od_addr *out)
{
	uint64_t size = side->addr ? side->side->obj->sections[side->addr].header.sh_size : 0;

	if (side->unit.addr_base > size || index >= (size - side->unit.addr_base) / 8)
		return false;
	*out = od_field(side, side->addr, side->unit.addr_base + 8 * index, 8);
	return true;
}

static struct od_addr address(struct list_reader *r)
{
	uint64_t at = r->c.at;

	od_skip(&r->c, 8);
	return od_field(r->side, r->section, at, 8);
}

static struct od_addr numbered(struct list_reader *r)
{
	struct od_addr addr = {0, 0};

	r->bad |= !od_indexed(r->side, od_uleb(&r->c), &addr);
	return addr;
}

static struct od_addr plus(struct od_addr addr, uint64_t more)
{
	addr.off += more;
	return addr;
}

static bool make(struct list_reader *r, struct od_addr start, struct od_addr end,
		 struct od_range *out)
{
	r->bad |= start.section != end.section || start.off > end.off;
	out->section = start.section;
	out->start = start.off;
	out->end = end.off;
	return true;
}

/* Return: true if there is a range. */
static bool next_4(struct list_reader *r, struct od_range *out)
{
	struct od_addr start = address(r), end = address(r);

	if (!start.section && !end.section && !start.off && !end.off) {
		r->last = true;
		return false;
	}
	if (!start.section && start.off == UINT64_MAX) {
		r->base = end;
		return false;
	}
	if (!start.section)
		start = plus(r->base, start.off);
	if (!end.section)
		end = plus(r->base, end.off);
	return make(r, start, end, out);
}

/* Numbers of entries: the first of a pair for ranges, the second for locations. */
static bool is(const struct list_reader *r, uint64_t kind, unsigned int range,
	       unsigned int location)
{
	return kind == (r->locations ? location : range);
}

static bool next_5(struct list_reader *r, struct od_range *out)
{
	uint64_t kind = od_fixed(&r->c, 1);
	struct od_addr start;

	if (!kind) {
		r->last = true;
	} else if (r->locations && kind == DW_LLE_default_location) {
		return out->anywhere = true;
	} else if (is(r, kind, DW_RLE_base_addressx, DW_LLE_base_addressx)) {
		r->base = numbered(r);
	} else if (is(r, kind, DW_RLE_base_address, DW_LLE_base_address)) {
		r->base = address(r);
	} else if (is(r, kind, DW_RLE_startx_endx, DW_LLE_startx_endx)) {
		start = numbered(r);
		return make(r, start, numbered(r), out);
	} else if (is(r, kind, DW_RLE_startx_length, DW_LLE_startx_length)) {
		start = numbered(r);
		return make(r, start, plus(start, od_uleb(&r->c)), out);
	} else if (is(r, kind, DW_RLE_offset_pair, DW_LLE_offset_pair)) {
		start = plus(r->base, od_uleb(&r->c));
		return make(r, start, plus(r->base, od_uleb(&r->c)), out);
	} else if (is(r, kind, DW_RLE_start_end, DW_LLE_start_end)) {
		start = address(r);
		return make(r, start, address(r), out);
	} else if (is(r, kind, DW_RLE_start_length, DW_LLE_start_length)) {
		start = address(r);
		return make(r, start, plus(start, od_uleb(&r->c)), out);
	} else {
		r->bad = true;
	}
	return false;
}

int od_read_list(struct od *od, struct od_side *side, bool locations, uint64_t off,
		 struct od_list *out)
{
	bool five = side->unit.version >= 5;
	struct list_reader r = {.side = side, .locations = locations, .base = side->unit.base};

	r.section = locations ? (five ? side->loclists : side->loc)
			      : (five ? side->rnglists : side->ranges);
	out->nr = 0;
	out->section = r.section;
	if (!r.section)
		return od_refuse(od, side, side->unit.section, side->unit.off, "names a list");
	r.c = od_cursor_at(side, r.section, off);
	while (!r.last) {
		struct od_range range = {0};
		bool any = five ? next_5(&r, &range) : next_4(&r, &range);

		if (any && locations) {
			range.expr_size = five ? od_uleb(&r.c) : od_fixed(&r.c, 2);
			range.expr = r.c.at;
			od_skip(&r.c, range.expr_size);
		}
		if (r.bad || r.c.bad || !od_may_look(od))
			return od_refuse(od, side, r.section, off, "is a damaged list");
		if (any && (range.anywhere || range.start < range.end) &&
		    !od_add_range(out, &range))
			return -ENOMEM;
	}
	return 0;
}
