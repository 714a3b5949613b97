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
	struct od_addr low_at, high_at, entry_at;
	bool high_is_size;
};

/* One of two entries that are compared. */
struct entry {
	struct od_side *side;
	struct od_cursor c;
	const struct od_abbrev *abbrev;
	uint32_t next; /* attribute */
	struct code code;
	struct od_list *list;
};

struct value {
	struct od_attr attr;
	uint64_t at, size;
};

static int differs(struct od *od, const char *why)
{
	od->why = od->why ? od->why : why;
	return -EPERM;
}

static bool is_addrx(uint64_t form)
{
	return form == DW_FORM_addrx || (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

static bool read_address(const struct od_side *side, const struct value *v, struct od_addr *out)
{
	struct od_cursor c = od_cursor_at(side, side->unit.section, v->at);

	if (v->attr.form == DW_FORM_addr)
		*out = od_field(side, side->unit.section, v->at, 8);
	else if (v->attr.form == DW_FORM_addrx)
		return od_indexed(side, od_uleb(&c), out);
	else if (is_addrx(v->attr.form))
		return od_indexed(side, od_fixed(&c, (unsigned int)v->size), out);
	else
		return false;
	return true;
}

/* The offset of the list that the value names. */
static bool list_off(const struct od_side *side, const struct value *v, uint64_t *off)
{
	struct od_cursor c = od_cursor_at(side, side->unit.section, v->at);
	bool ranges = v->attr.form == DW_FORM_rnglistx;
	uint64_t base = ranges ? side->unit.rnglists_base : side->unit.loclists_base;
	struct od_cursor table;

	if (v->attr.form != DW_FORM_rnglistx && v->attr.form != DW_FORM_loclistx) {
		*off = od_field(side, side->unit.section, v->at, 4).off;
		return v->size == 4;
	}
	table = od_cursor_at(side, ranges ? side->rnglists : side->loclists, base);
	od_skip(&table, 4 * (od_uleb(&c) & UINT32_MAX));
	*off = base + od_fixed(&table, 4);
	return !c.bad && !table.bad;
}

static struct value next_value(struct entry *e)
{
	struct value v = {e->side->unit.attrs[e->abbrev->first + e->next++], e->c.at, 0};

	od_skip_form(&e->c, v.attr.form, e->side->unit.version);
	v.size = e->c.at - v.at;
	return v;
}

/* Reads what the value says of the entry's code. Return: 1: it was such a value; 0; -EPERM, -ENOMEM. */
static int read_code(struct od *od, struct entry *e, const struct value *v)
{
	struct od_cursor c = od_cursor_at(e->side, e->side->unit.section, v->at);
	uint64_t off;
	int rc;

	switch (v->attr.name) {
	case DW_AT_low_pc:
		e->code.low = true;
		return read_address(e->side, v, &e->code.low_at) ? 1 : -EPERM;
	case DW_AT_high_pc:
		e->code.high = true;
		if (read_address(e->side, v, &e->code.high_at))
			return 1;
		e->code.high_is_size = true;
		if (v->attr.form == DW_FORM_udata)
			e->code.high_at.off = od_uleb(&c);
		else if (v->size && v->size <= 8)
			e->code.high_at.off = od_fixed(&c, (unsigned int)v->size);
		else
			return -EPERM;
		return 1;
	case DW_AT_ranges:
		e->code.ranges = true;
		if (!list_off(e->side, v, &off))
			return -EPERM;
		rc = od_read_list(od, e->side, false, off, e->list);
		return rc ? rc : 1;
	case DW_AT_entry_pc:
		e->code.entry = true;
		return read_address(e->side, v, &e->code.entry_at) ? 1 : -EPERM;
	case OD_FILLER: return e->side == &od->new ? 1 : -EPERM;
	default: return 0;
	}
}

/* The next value that says nothing of the entry's code. Return: 1: there is one; 0: none; -EPERM, -ENOMEM. */
static int next_other(struct od *od, struct entry *e, struct value *v)
{
	while (e->next < e->abbrev->nr) {
		int rc;

		*v = next_value(e);
		rc = e->c.bad ? -EPERM : read_code(od, e, v);
		if (rc <= 0)
			return rc ? rc : 1;
	}
	return 0;
}

static struct vo_place place_of(struct od_addr addr)
{
	return (struct vo_place){addr.section, (uint32_t)addr.off};
}

static bool in_code(const struct od_side *side, struct od_addr addr)
{
	return addr.section && mp_relobj_is_code(&side->side->obj->sections[addr.section]);
}

static bool same_address(const struct od *od, struct od_addr old, struct od_addr new, bool behind)
{
	if (!in_code(&od->old, old))
		return old.section == new.section &&old.off == new.off;
	return in_code(&od->new, new) && od_is_pair(od, place_of(old), place_of(new), behind);
}

/* Two lists of locations: the same holds at all pairs. Return: 0, -ENOMEM, -EPERM. */
static int same_locations(struct od *od, const struct value *a, const struct value *b)
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
static bool is_list(const struct od_side *side, const struct value *v)
{
	struct od_addr addr = {0, 0};

	if (v->attr.form == DW_FORM_loclistx)
		return true;
	if (v->size == 4)
		addr = od_field(side, side->unit.section, v->at, 4);
	return addr.section && (addr.section == side->loc || addr.section == side->loclists);
}

static int same_value(struct od *od, const struct entry *old, const struct value *a,
		      const struct value *b)
{
	const struct vo_place x = {od->old.unit.section, (uint32_t)a->at};
	const struct vo_place y = {od->new.unit.section, (uint32_t)b->at};
	struct od_addr was, now;
	bool behind = a->attr.name == DW_AT_call_return_pc ||
		      old->abbrev->tag == DW_TAG_GNU_call_site;

	if ((a->attr.name == DW_AT_GNU_locviews && b->attr.name == OD_LOCVIEWS) ||
	    (a->attr.name == DW_AT_GNU_entry_view && b->attr.name == OD_ENTRY_VIEW))
		return a->at == b->at && a->size == b->size ? 0 : -EPERM;
	if (a->attr.name != b->attr.name || a->attr.form != b->attr.form || a->at != b->at ||
	    a->size != b->size || a->attr.constant != b->attr.constant)
		return -EPERM;
	if (is_base(a->attr.name))
		return 0;
	if (a->attr.form == DW_FORM_addr || is_addrx(a->attr.form))
		return read_address(&od->old, a, &was) && read_address(&od->new, b, &now) &&
				       same_address(od, was, now, behind)
			       ? 0
			       : differs(od, "has another address in the new object");
	if (is_list(&od->old, a))
		return is_list(&od->new, b) ? same_locations(od, a, b) : -EPERM;
	return od_same_bytes(od, x, y, a->size) ? 0 : -EPERM;
}

/* The code as a list; and the place where readers take it to begin. Return: false: it has none. */
static bool finish_code(struct entry *e, struct od_addr *entry)
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
	*entry = (struct od_addr){0, 0};
	if (code->entry)
		*entry = code->entry_at;
	else if (code->low && (code->high || !code->ranges))
		*entry = code->low_at;
	else if (e->list->nr)
		*entry = (struct od_addr){e->list->list[0].section, e->list->list[0].start};
	return true;
}

static int same_code(struct od *od, struct entry *old, struct entry *new)
{
	const struct code *a = &old->code, *b = &new->code;
	struct od_addr from, to;
	bool is_unit = old->abbrev->tag == DW_TAG_compile_unit ||
		       old->abbrev->tag == DW_TAG_partial_unit ||
		       old->abbrev->tag == DW_TAG_type_unit;
	bool behind = old->abbrev->tag == DW_TAG_GNU_call_site;

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

static int compare_entry(struct od *od, struct entry *old, struct entry *new)
{
	uint64_t at = old->c.at;
	const struct od_abbrev *x = od_abbrev(&od->old.unit, od_uleb(&old->c));
	const struct od_abbrev *y = od_abbrev(&od->new.unit, od_uleb(&new->c));
	int a = 0, b = 0, rc = 0;

	old->abbrev = x;
	new->abbrev = y;
	old->next = new->next = 0;
	old->code = new->code = (struct code){0};
	old->list = &od->code_was;
	new->list = &od->code_now;
	if (old->c.bad || new->c.bad || !x != !y || old->c.at != new->c.at)
		rc = -EPERM;
	if (rc || !x)
		goto out;
	if (x->tag != y->tag || x->children != y->children)
		rc = -EPERM;
	while (!rc) {
		struct value v, w;

		a = next_other(od, old, &v);
		b = next_other(od, new, &w);
		if (a != 1 || b != 1)
			break;
		rc = same_value(od, old, &v, &w);
	}
	if (!rc && (a || b))
		rc = a == -ENOMEM || b == -ENOMEM ? -ENOMEM : -EPERM;
	if (!rc && old->c.at != new->c.at)
		rc = -EPERM;
	if (!rc)
		rc = same_code(od, old, new);
out:
	return rc == -EPERM ? od_refuse(od, &od->old, od->old.unit.section, at,
					od->why ? od->why : "is another entry in the new object")
			    : rc;
}

static int compare_unit(struct od *od, uint32_t section, uint64_t off)
{
	struct entry old = {.side = &od->old}, new = {.side = &od->new};
	struct od_unit *unit = &od->old.unit;
	uint64_t header;
	int rc = od_unit(od, &od->old, section, off);

	if (!rc)
		rc = od_unit(od, &od->new, section, off);
	if (rc)
		return rc;
	old.c = od_cursor_at(&od->old, section, unit->first);
	new.c = od_cursor_at(&od->new, section, unit->first);
	header = unit->version >= 5 ? 8 : 6; /* where the offset of the abbreviations is */
	if (memcmp(old.c.s->data + off, new.c.s->data + off, header) ||
	    memcmp(old.c.s->data + off + header + 4, new.c.s->data + off + header + 4,
		   unit->first - off - header - 4) ||
	    unit->end != od->new.unit.end || unit->first != od->new.unit.first ||
	    unit->version != od->new.unit.version)
		return od_refuse(od, &od->new, section, off, "is another unit");
	old.c.end = new.c.end = unit->end;
	while (!rc && old.c.at < unit->end)
		rc = compare_entry(od, &old, &new);
	return rc;
}

int od_entries(struct od *od, uint32_t section)
{
	uint64_t size = od->vo->old.obj->sections[section].header.sh_size;
	int rc = 0;

	od->old.unit.abbrevs_off = od->new.unit.abbrevs_off = UINT64_MAX;
	for (uint64_t off = 0; !rc && off < size; off = od->old.unit.end)
		rc = compare_unit(od, section, off);
	return rc;
}
