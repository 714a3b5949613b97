// SPDX-License-Identifier: Apache-2.0
/*
 * verify_odebug_entry - the entries of both objects, one by one. All have their old place and size. A range may have
 * become a list of ranges; addresses and lists must say of new code what they said of old code.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/object/debug/verify_odebug_private.h"

/* The attributes of one entry that describe its code. */
struct code {
	bool low, high, ranges, entry;
	struct vd_addr low_at, high_at, entry_at;
	bool high_is_size;
};

/* One of two entries that are compared. */
struct entry {
	struct od_side *side;
	struct vf_cursor c;
	struct vd_entry e;
	struct vd_values at; /* the attribute at hand */
	struct code code;
	struct od_list *list;
};

static int differs(struct od *od, const char *why)
{
	od->why = od->why ? od->why : why;
	return -EPERM;
}

/* Where the value stands in the unit's section. */
static uint64_t place(const struct od_side *side, const struct vd_value *v)
{
	return od_offset(side, side->unit.section, v->p);
}

static bool read_address(const struct od_side *side, const struct vd_value *v, struct vd_addr *out)
{
	if (!vd_form_is_address(v->form))
		return false;
	if (v->form != DW_FORM_addr)
		return od_indexed(side, vd_value_index(v), out);
	*out = od_field(side, side->unit.section, place(side, v), 8);
	return true;
}

/* The offset of the list that the value names. */
static bool list_off(const struct od_side *side, const struct vd_value *v, uint64_t *off)
{
	bool ranges = v->form == DW_FORM_rnglistx;
	uint64_t base = ranges ? side->unit.u.rnglists_base : side->unit.u.loclists_base;
	struct vf_cursor table;

	if (v->form != DW_FORM_rnglistx && v->form != DW_FORM_loclistx) {
		*off = od_field(side, side->unit.section, place(side, v), 4).off;
		return v->size == 4;
	}
	table = od_cursor_at(side, ranges ? side->rnglists : side->loclists, base);
	vf_cursor_skip(&table, 4 * (vd_value_index(v) & UINT32_MAX));
	*off = base + vf_cursor_fixed(&table, 4);
	return !table.bad;
}

/* Reads what the attribute at hand says of the entry's code. Return: 1: it was such a one; 0; -EPERM, -ENOMEM. */
static int read_code(struct od *od, struct entry *e)
{
	const struct vd_value *v = &e->at.value;
	uint64_t off;
	int rc;

	switch (e->at.attr->name) {
	case DW_AT_low_pc:
		e->code.low = true;
		return read_address(e->side, v, &e->code.low_at) ? 1 : -EPERM;
	case DW_AT_high_pc:
		e->code.high = true;
		if (read_address(e->side, v, &e->code.high_at))
			return 1;
		e->code.high_is_size = true;
		e->code.high_at.off = vd_value_index(v);
		return v->form == DW_FORM_udata || (v->size && v->size <= 8) ? 1 : -EPERM;
	case DW_AT_ranges:
		e->code.ranges = true;
		if (!list_off(e->side, v, &off))
			return -EPERM;
		rc = od_read_list(od, e->side, false, off, e->list);
		return rc ? rc : 1;
	case DW_AT_entry_pc:
		e->code.entry = true;
		return read_address(e->side, v, &e->code.entry_at) ? 1 : -EPERM;
	case VD_FILLER: return e->side == &od->new ? 1 : -EPERM;
	default: return 0;
	}
}

/* Goes to the next attribute that says nothing of the entry's code. Return: 1: there is one; 0: none; -EPERM, -ENOMEM. */
static int next_other(struct od *od, struct entry *e)
{
	while (vd_values_next(&e->at)) {
		int rc = read_code(od, e);

		if (rc <= 0)
			return rc ? rc : 1;
	}
	return 0;
}

static struct vo_place place_of(struct vd_addr addr)
{
	return (struct vo_place){addr.section, (uint32_t)addr.off};
}

static bool in_code(const struct od_side *side, struct vd_addr addr)
{
	return addr.section && mp_relobj_is_code(&side->side->obj->sections[addr.section]);
}

static bool same_address(struct od *od, struct vd_addr was, struct vd_addr now, bool behind)
{
	if (!in_code(&od->old, was))
		return was.section == now.section && was.off == now.off;
	return in_code(&od->new, now) && od_is_pair(od, place_of(was), place_of(now), behind);
}

/* Two lists of locations: the same holds at all pairs. Return: 0, -ENOMEM, -EPERM. */
static int same_locations(struct od *od, const struct vd_value *a, const struct vd_value *b)
{
	uint64_t x, y;
	int rc;

	if (!list_off(&od->old, a, &x) || !list_off(&od->new, b, &y))
		return -EPERM;
	rc = od_read_list(od, &od->old, true, x, &od->was);
	if (!rc)
		rc = od_read_list(od, &od->new, true, y, &od->now);
	return rc ? rc
	       : od_same_lists(od, &od->was, &od->now)
		       ? 0
		       : differs(od, "has another location in the new object");
}

static bool is_base(uint64_t name)
{
	return name == DW_AT_rnglists_base || name == DW_AT_loclists_base;
}

/* Does the value name a list of locations? */
static bool is_list(const struct od_side *side, const struct vd_value *v)
{
	struct vd_addr addr = {0, 0};

	if (v->form == DW_FORM_loclistx)
		return true;
	if (v->size == 4)
		addr = od_field(side, side->unit.section, place(side, v), 4);
	return addr.section && (addr.section == side->loc || addr.section == side->loclists);
}

static int same_value(struct od *od, const struct entry *old, const struct entry *new)
{
	const struct vd_attr *x = old->at.attr, *y = new->at.attr;
	const struct vd_value *a = &old->at.value, *b = &new->at.value;
	const struct vo_place from = {od->old.unit.section, (uint32_t)place(&od->old, a)};
	const struct vo_place to = {od->new.unit.section, (uint32_t)place(&od->new, b)};
	bool behind = x->name == DW_AT_call_return_pc || old->e.abbrev->tag == DW_TAG_GNU_call_site;
	struct vd_addr was, now;

	if (from.off != to.off || a->size != b->size)
		return -EPERM;
	if ((x->name == DW_AT_GNU_locviews && y->name == OD_LOCVIEWS) ||
	    (x->name == DW_AT_GNU_entry_view && y->name == OD_ENTRY_VIEW))
		return 0;
	if (!vd_same_attr(x, y))
		return -EPERM;
	if (is_base(x->name))
		return 0;
	if (vd_form_is_address(a->form))
		return read_address(&od->old, a, &was) && read_address(&od->new, b, &now) &&
				       same_address(od, was, now, behind)
			       ? 0
			       : differs(od, "has another address in the new object");
	if (is_list(&od->old, a))
		return is_list(&od->new, b) ? same_locations(od, a, b) : -EPERM;
	return od_same_bytes(od, from, to, a->size) ? 0 : -EPERM;
}

/* The code as a list; and the place where readers take it to begin. Return: false: it has none. */
static bool finish_code(struct entry *e, struct vd_addr *entry)
{
	struct code *code = &e->code;
	struct od_range range = {.section = code->low_at.section, .start = code->low_at.off};

	if (!code->ranges) {
		e->list->nr = 0;
		range.end = code->high_is_size ? range.start + code->high_at.off
					       : code->high_at.off;
		if (code->low && code->high && range.section && !od_add_range(e->list, &range))
			return false;
	}
	*entry = (struct vd_addr){0, 0};
	if (code->entry)
		*entry = code->entry_at;
	else if (code->low && (code->high || !code->ranges))
		*entry = code->low_at;
	else if (e->list->nr)
		*entry = (struct vd_addr){e->list->list[0].section, e->list->list[0].start};
	return true;
}

static int same_code(struct od *od, struct entry *old, struct entry *new)
{
	const struct code *a = &old->code, *b = &new->code;
	struct vd_addr from, to;
	bool is_unit = old->e.abbrev->tag == DW_TAG_compile_unit ||
		       old->e.abbrev->tag == DW_TAG_partial_unit ||
		       old->e.abbrev->tag == DW_TAG_type_unit;
	bool behind = old->e.abbrev->tag == DW_TAG_GNU_call_site;

	if ((a->high || a->ranges) != (b->high || b->ranges) || (a->high && !a->low) ||
	    (b->high && !b->low) || (b->high && b->ranges))
		return -EPERM;
	if (!finish_code(old, &from) || !finish_code(new, &to))
		return -ENOMEM;
	if (!a->low && !a->ranges && !a->entry)
		return b->low || b->entry ? -EPERM : 0;
	if (!is_unit && (old->list->nr || a->entry || a->low) &&
	    (new->list->nr || b->entry || b->low) && !same_address(od, from, to, behind))
		return differs(od, "begins elsewhere in the new object");
	return od_same_lists(od, old->list, new->list)
		       ? 0
		       : differs(od, "has other ranges in the new object");
}

/* Reads the next entry. Return: false: there is none. */
static bool read_entry(struct entry *e, struct od_list *list)
{
	const struct vd_unit *u = &e->side->unit.u;
	bool good = vd_entry_read(u, &e->c, &e->e);

	e->at = vd_values_of(u, &e->e);
	e->code = (struct code){0};
	e->list = list;
	return good;
}

static int compare_entry(struct od *od, struct entry *old, struct entry *new)
{
	bool read = read_entry(old, &od->code_was), good = read_entry(new, &od->code_now) && read;
	const struct vd_abbrev *x = old->e.abbrev, *y = new->e.abbrev;
	const uint8_t *o = od->old.unit.u.data, *n = od->new.unit.u.data;
	int a = 0, b = 0, rc = 0;

	good &= !x == !y && old->e.values - o == new->e.values - n;
	if (good && !x)
		return 0;
	if (!good || x->tag != y->tag || x->children != y->children)
		rc = -EPERM;
	while (!rc) {
		a = next_other(od, old);
		b = next_other(od, new);
		if (a != 1 || b != 1)
			break;
		rc = same_value(od, old, new);
	}
	if (!rc && (a || b))
		rc = a == -ENOMEM || b == -ENOMEM ? -ENOMEM : -EPERM;
	if (!rc && old->c.p - o != new->c.p - n)
		rc = -EPERM;
	if (!rc)
		rc = same_code(od, old, new);
	return rc == -EPERM ? od_refuse(od, &od->old, od->old.unit.section, old->e.off,
					od->why ? od->why : "is another entry in the new object")
			    : rc;
}

static int compare_unit(struct od *od, uint32_t section, uint64_t off)
{
	struct entry old = {.side = &od->old}, new = {.side = &od->new};
	const struct vd_unit *a = &od->old.unit.u, *b = &od->new.unit.u;
	uint64_t behind;
	int rc = od_unit(od, &od->old, section, off);

	if (!rc)
		rc = od_unit(od, &od->new, section, off);
	if (rc)
		return rc;
	behind = a->abbrev_field + 4;
	if (a->end != b->end || a->first != b->first || a->version != b->version ||
	    memcmp(a->data + off, b->data + off, a->abbrev_field - off) ||
	    memcmp(a->data + behind, b->data + behind, a->first - behind))
		return od_refuse(od, &od->new, section, off, "is another unit");
	old.c = vd_unit_at(a, a->first);
	new.c = vd_unit_at(b, b->first);
	while (!rc && old.c.p < old.c.end)
		rc = compare_entry(od, &old, &new);
	return rc;
}

int od_entries(struct od *od, uint32_t section)
{
	uint64_t size = od->vo->old.obj->sections[section].header.sh_size;
	int rc = 0;

	for (uint64_t off = 0; !rc && off < size; off = od->old.unit.u.end)
		rc = compare_unit(od, section, off);
	return rc;
}
