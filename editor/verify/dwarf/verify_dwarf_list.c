// SPDX-License-Identifier: Apache-2.0
/* verify_dwarf_list - lists of ranges and of locations: pairs up to version 4, entries of several kinds since 5. */
#include <dwarf.h>

#include "editor/verify/dwarf/verify_dwarf.h"

static struct vd_addr field(struct vd_list *l)
{
	const uint8_t *p = vf_cursor_skip(&l->c, 8);
	struct vd_addr addr = {0, 0};

	if (p && l->from.field)
		return l->from.field(l->from.ctx, p);
	if (p)
		memcpy(&addr.off, p, sizeof(addr.off));
	return addr;
}

static struct vd_addr indexed(struct vd_list *l)
{
	struct vd_addr addr = {0, 0};
	uint64_t index = vf_cursor_uleb(&l->c);

	if (!l->c.bad && !l->from.indexed(l->from.ctx, index, &addr))
		l->c.bad = true;
	return addr;
}

static struct vd_addr plus(struct vd_addr addr, uint64_t more)
{
	addr.off += more;
	return addr;
}

/* Return: is it a range? */
static bool next_pair(struct vd_list *l, struct vd_range *r)
{
	r->start = field(l);
	r->end = field(l);
	l->last = !r->start.section && !r->end.section && !r->start.off && !r->end.off;
	if (l->last)
		return false;
	if (!r->start.section && r->start.off == UINT64_MAX) {
		l->base = r->end;
		return false;
	}
	if (!r->start.section)
		r->start = plus(l->base, r->start.off);
	if (!r->end.section)
		r->end = plus(l->base, r->end.off);
	return true;
}

static bool next_entry(struct vd_list *l, struct vd_range *r)
{
	unsigned int kind = (unsigned int)vf_cursor_fixed(&l->c, 1);

	if (l->locations && kind == DW_LLE_default_location)
		return r->anywhere = true;
	/* The kinds behind it have the numbers of ranges' kinds, and one more. */
	kind -= l->locations && kind > DW_LLE_default_location;
	switch (kind) {
	case DW_RLE_end_of_list: l->last = true; return false;
	case DW_RLE_base_addressx: l->base = indexed(l); return false;
	case DW_RLE_base_address: l->base = field(l); return false;
	case DW_RLE_startx_endx:
		r->start = indexed(l);
		r->end = indexed(l);
		return true;
	case DW_RLE_startx_length:
		r->start = indexed(l);
		r->end = plus(r->start, vf_cursor_uleb(&l->c));
		return true;
	case DW_RLE_offset_pair:
		r->start = plus(l->base, vf_cursor_uleb(&l->c));
		r->end = plus(l->base, vf_cursor_uleb(&l->c));
		return true;
	case DW_RLE_start_end:
		r->start = field(l);
		r->end = field(l);
		return true;
	case DW_RLE_start_length:
		r->start = field(l);
		r->end = plus(r->start, vf_cursor_uleb(&l->c));
		return true;
	default: l->c.bad = true; return false;
	}
}

bool vd_list_next(struct vd_list *l, struct vd_range *r)
{
	bool five = l->version >= 5, any = false;
	uint64_t size;

	while (!any && !l->last && !l->c.bad) {
		*r = (struct vd_range){.anywhere = false};
		l->c.bad |= !vd_spend(l->work, 1);
		any = five ? next_entry(l, r) : next_pair(l, r);
	}
	if (!any || !l->locations)
		return any && !l->c.bad;
	size = five ? vf_cursor_uleb(&l->c) : vf_cursor_fixed(&l->c, 2);
	r->expr = vf_cursor_over(l->c.p, l->c.p);
	if (vf_cursor_skip(&l->c, size))
		r->expr.end = l->c.p;
	l->c.bad |= !vd_spend(l->work, size);
	return !l->c.bad;
}
