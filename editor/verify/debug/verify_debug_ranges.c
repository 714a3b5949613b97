// SPDX-License-Identifier: Apache-2.0
/* verify_debug_ranges - which code an entry describes: one range, or a list of ranges. */
#include <dwarf.h>
#include <errno.h>

#include "editor/verify/debug/verify_debug_private.h"
#include "libprof/base/grow.h"

#define ADDRESS_SIZE 8

static bool indexed_address(const void *unit, uint64_t index, struct vd_addr *out)
{
	const struct vd_unit *u = unit;
	const struct vd_section *s = &u->file->addr;
	struct vf_cursor c;

	if (u->addr_base > s->size || index > s->size / ADDRESS_SIZE)
		return false;
	c = vd_section_at(s, u->addr_base + ADDRESS_SIZE * index);
	out->off = vf_cursor_fixed(&c, ADDRESS_SIZE);
	return !c.bad;
}

/* The address that the value is, or whose number it is. Return: false: it is none. */
static bool address_of(const struct vd_unit *u, const struct vd_value *v, uint64_t *address)
{
	struct vd_addr addr = {0, v->p ? vd_value_index(v) : 0};

	if (!v->p || !vd_form_is_address(v->form) ||
	    (v->form != DW_FORM_addr && !indexed_address(u, addr.off, &addr)))
		return false;
	*address = addr.off;
	return true;
}

bool vd_unit_read_bases(struct vd_unit *u)
{
	struct vf_cursor c = vd_unit_at(u, u->first);
	struct vd_value low, v;
	struct vd_entry own;

	if (!vd_entry_read(u, &c, &own) || !own.abbrev)
		return false;
	v = vd_entry_find(u, &own, DW_AT_addr_base);
	u->addr_base = v.p ? vd_value_fixed(&v) : UINT64_MAX;
	v = vd_entry_find(u, &own, DW_AT_rnglists_base);
	u->rnglists_base = v.p ? vd_value_fixed(&v) : UINT64_MAX;
	v = vd_entry_find(u, &own, DW_AT_loclists_base);
	u->loclists_base = v.p ? vd_value_fixed(&v) : UINT64_MAX;
	v = vd_entry_find(u, &own, DW_AT_str_offsets_base);
	/* A table begins behind a header of 8 bytes. */
	u->str_offsets_base = v.p ? vd_value_fixed(&v) : 8;
	v = vd_entry_find(u, &own, DW_AT_stmt_list);
	u->line_off = vd_value_is_offset(u, &v) ? vd_value_fixed(&v) : UINT64_MAX;
	low = vd_entry_find(u, &own, DW_AT_low_pc);
	return !low.p || address_of(u, &low, &u->base);
}

bool vd_ranges_add(struct vd_ranges *out, uint64_t start, uint64_t end)
{
	if (start >= end)
		return true;
	if (mp_grow(out->list, out->cap, out->nr + 1)) {
		out->failed = true;
		return false;
	}
	out->list[out->nr++] = (struct vf_range){start, end};
	return true;
}

const struct vd_section *vd_list_section(const struct vd_file *f, const struct vd_unit *u,
					 bool locations)
{
	if (locations)
		return u->version >= 5 ? &f->loclists : &f->loc;
	return u->version >= 5 ? &f->rnglists : &f->ranges;
}

bool vd_list_find(const struct vd_unit *u, const struct vd_value *v, bool locations, uint64_t *off)
{
	const struct vd_section *s = vd_list_section(u->file, u, locations);
	uint64_t base = locations ? u->loclists_base : u->rnglists_base, nr = vd_value_index(v);
	struct vf_cursor c;

	*off = nr;
	if (vd_value_is_offset(u, v))
		return true;
	if (v->form != (locations ? DW_FORM_loclistx : DW_FORM_rnglistx) || base > s->size ||
	    base < 4)
		return false;
	/* The number of lists stands before the table. */
	c = vd_section_at(s, base - 4);
	if (nr >= vf_cursor_fixed(&c, 4))
		return false;
	vf_cursor_skip(&c, 4 * nr);
	*off = base + vf_cursor_fixed(&c, 4);
	return !c.bad;
}

struct vd_list vd_list_open(const struct vd_unit *u, bool locations, uint64_t off)
{
	return (struct vd_list){.work = u->work,
				.c = vd_section_at(vd_list_section(u->file, u, locations), off),
				.from = {.indexed = indexed_address, .ctx = u},
				.version = u->version,
				.locations = locations,
				.base = {0, u->base}};
}

static bool read_list(const struct vd_unit *u, const struct vd_value *v, struct vd_ranges *out)
{
	struct vd_list l;
	struct vd_range r;
	uint64_t off;

	if (!vd_list_find(u, v, false, &off))
		return false;
	for (l = vd_list_open(u, false, off); vd_list_next(&l, &r);)
		if (!vd_ranges_add(out, r.start.off, r.end.off))
			return false;
	return !l.c.bad;
}

static bool read_one(const struct vd_unit *u, const struct vd_value *low,
		     const struct vd_value *high, struct vd_ranges *out)
{
	uint64_t start, end;

	if (!address_of(u, low, &start))
		return false;
	if (!vd_form_is_address(high->form))
		end = start + vd_value_index(high);
	else if (!address_of(u, high, &end))
		return false;
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

bool vd_ranges_hold(const struct vd *vd, const struct vd_ranges *ranges, uint64_t vaddr)
{
	for (uint32_t i = 0; i < ranges->nr && vd_spend(vd->work, 1); i++)
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
