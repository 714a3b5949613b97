// SPDX-License-Identifier: Apache-2.0
/* verify_debug_ranges - which code an entry describes: one range, or a list of ranges. */
#include <dwarf.h>
#include <errno.h>

#include "editor/verify/debug/verify_debug_private.h"

#define ADDRESS_SIZE 8

static bool indexed_address(const struct vd_unit *u, uint64_t index, uint64_t *address)
{
	const struct vd_section *s = &u->file->addr;
	struct vd_cursor c;

	if (u->addr_base > s->size || index > s->size / ADDRESS_SIZE)
		return false;
	c = vd_cursor_at(s, u->addr_base + ADDRESS_SIZE * index);
	*address = vd_fixed(&c, ADDRESS_SIZE);
	return !c.bad;
}

bool vd_address(const struct vd_unit *u, const struct vd_value *v, uint64_t *address)
{
	struct vd_cursor c = {v->p, v->p ? v->p + v->size : NULL, false};

	switch (v->p ? v->form : 0) {
	case DW_FORM_addr: *address = vd_value_fixed(v); return true;
	case DW_FORM_addrx: return indexed_address(u, vd_uleb(&c), address);
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4: return indexed_address(u, vd_value_fixed(v), address);
	default: return false;
	}
}

bool vd_ranges_add(struct vd_ranges *out, uint64_t start, uint64_t end)
{
	if (start >= end)
		return true;
	if (!vd_grow(&out->list, out->nr, &out->cap, sizeof(*out->list))) {
		out->failed = true;
		return false;
	}
	out->list[out->nr++] = (struct vf_range){start, end};
	return true;
}

static bool read_pairs(const struct vd_unit *u, uint64_t off, struct vd_ranges *out)
{
	struct vd_cursor c = vd_cursor_at(&u->file->ranges, off);
	uint64_t base = u->base;

	for (;;) {
		uint64_t start = vd_fixed(&c, ADDRESS_SIZE), end = vd_fixed(&c, ADDRESS_SIZE);

		if (c.bad || (!start && !end))
			return !c.bad;
		if (start == UINT64_MAX)
			base = end;
		else if (!vd_ranges_add(out, base + start, base + end))
			return false;
	}
}

static uint64_t next_indexed(const struct vd_unit *u, struct vd_cursor *c)
{
	uint64_t address = 0;

	if (!indexed_address(u, vd_uleb(c), &address))
		c->bad = true;
	return address;
}

static bool read_entries(const struct vd_unit *u, uint64_t off, struct vd_ranges *out)
{
	struct vd_cursor c = vd_cursor_at(&u->file->rnglists, off);
	uint64_t base = u->base;

	for (;;) {
		uint64_t start = 0, end = 0;

		switch (vd_fixed(&c, 1)) {
		case DW_RLE_end_of_list: return !c.bad;
		case DW_RLE_base_addressx: base = next_indexed(u, &c); break;
		case DW_RLE_base_address: base = vd_fixed(&c, ADDRESS_SIZE); break;
		case DW_RLE_startx_endx:
			start = next_indexed(u, &c);
			end = next_indexed(u, &c);
			break;
		case DW_RLE_startx_length:
			start = next_indexed(u, &c);
			end = start + vd_uleb(&c);
			break;
		case DW_RLE_offset_pair:
			start = base + vd_uleb(&c);
			end = base + vd_uleb(&c);
			break;
		case DW_RLE_start_end:
			start = vd_fixed(&c, ADDRESS_SIZE);
			end = vd_fixed(&c, ADDRESS_SIZE);
			break;
		case DW_RLE_start_length:
			start = vd_fixed(&c, ADDRESS_SIZE);
			end = start + vd_uleb(&c);
			break;
		default: return false;
		}
		if (c.bad || !vd_ranges_add(out, start, end))
			return false;
	}
}

/* Offset of the unit's list @nr. */
static bool find_list(const struct vd_unit *u, uint64_t nr, uint64_t *off)
{
	const struct vd_section *s = &u->file->rnglists;
	struct vd_cursor c;

	/* The number of lists stands before the table. */
	if (u->rnglists_base > s->size || u->rnglists_base < 4)
		return false;
	c = vd_cursor_at(s, u->rnglists_base - 4);
	if (nr >= vd_fixed(&c, 4))
		return false;
	vd_skip(&c, 4 * nr);
	*off = u->rnglists_base + vd_fixed(&c, 4);
	return !c.bad;
}

static bool read_list(const struct vd_unit *u, const struct vd_value *v, struct vd_ranges *out)
{
	struct vd_cursor c = {v->p, v->p + v->size, false};
	uint64_t off;

	if (vd_value_is_offset(u, v))
		off = vd_value_fixed(v);
	else if (v->form != DW_FORM_rnglistx || !find_list(u, vd_uleb(&c), &off))
		return false;
	return u->version >= 5 ? read_entries(u, off, out) : read_pairs(u, off, out);
}

static bool is_address(unsigned int form)
{
	return form == DW_FORM_addr || form == DW_FORM_addrx ||
	       (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

static bool read_one(const struct vd_unit *u, const struct vd_value *low,
		     const struct vd_value *high, struct vd_ranges *out)
{
	struct vd_cursor c = {high->p, high->p + high->size, false};
	uint64_t start, end;

	if (!vd_address(u, low, &start))
		return false;
	if (is_address(high->form) && !vd_address(u, high, &end))
		return false;
	if (!is_address(high->form))
		end = start + (high->form == DW_FORM_udata ? vd_uleb(&c) : vd_value_fixed(high));
	return vd_ranges_add(out, start, end);
}

int vd_entry_ranges(const struct vd_unit *u, const struct vd_entry *e, struct vd_ranges *out)
{
	struct vd_value list = vd_entry_find(u, e, DW_AT_ranges);
	struct vd_value low = vd_entry_find(u, e, DW_AT_low_pc);
	struct vd_value high = vd_entry_find(u, e, DW_AT_high_pc);
	bool good = true;

	out->nr = 0;
	if (list.p)
		good = read_list(u, &list, out);
	else if (low.p && high.p)
		good = read_one(u, &low, &high, out);
	if (out->failed)
		return -ENOMEM;
	return good ? 0 : -EBADMSG;
}

bool vd_ranges_hold(const struct vd_ranges *ranges, uint64_t vaddr)
{
	for (uint32_t i = 0; i < ranges->nr; i++)
		if (vaddr >= ranges->list[i].start && vaddr < ranges->list[i].end)
			return true;
	return false;
}

static int by_start(const void *a, const void *b)
{
	const struct vf_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void vd_ranges_join(struct vd_ranges *ranges)
{
	struct vf_range *r = ranges->list;
	uint32_t nr = 0;

	if (ranges->nr)
		qsort(r, ranges->nr, sizeof(*r), by_start);
	for (uint32_t i = 0; i < ranges->nr; i++)
		if (!nr || r[i].start > r[nr - 1].end)
			r[nr++] = r[i];
		else if (r[i].end > r[nr - 1].end)
			r[nr - 1].end = r[i].end;
	ranges->nr = nr;
}
