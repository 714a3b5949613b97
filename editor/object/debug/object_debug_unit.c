// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_unit - units of .debug_info and .debug_types, their tables of abbreviations, and
 * addresses that have numbers. Called by object_debug.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/grow.h"
#include "editor/object/debug/object_debug_private.h"

/* Attributes in the vendors' range that no known vendor uses: filler behind a list's offset, and in
 * place of view numbers. A reader may object to an attribute that an entry has twice. */
#define FILLER_ATTR	  0x2d4d
#define NO_LOCVIEWS_ATTR  0x2d4e
#define NO_ENTRYVIEW_ATTR 0x2d4f

static bool has_units(const struct mp_relobj_section *s)
{
	return me_object_is_debug(s) &&
	       (!strcmp(s->name, ".debug_info") || !strcmp(s->name, ".debug_types"));
}

void me_object_debug_needs(const struct me_object *o, bool *ranges, bool *rnglists)
{
	*ranges = *rnglists = false;
	for (uint32_t i = 1; i < o->in->nr_sections; i++) {
		const struct mp_relobj_section *s = &o->in->sections[i];
		struct mp_cursor c = mp_cursor_at(s->data, s->header.sh_size, 0);

		while (has_units(s) && !c.bad && c.p < c.end) {
			uint32_t size = mp_cursor_u32(&c);
			uint16_t version = mp_cursor_u16(&c);

			if (size < 2)
				break;
			*ranges |= !c.bad && version < 5;
			*rnglists |= !c.bad && version >= 5;
			mp_cursor_skip(&c, size - 2);
		}
	}
	*ranges &= !mp_relobj_section(o->in, ".debug_ranges");
	*rnglists &= !mp_relobj_section(o->in, ".debug_rnglists");
}

/* ---- abbreviations ---------------------------------------------------------------------------- */

static int find_table(struct me_odebug *d, uint64_t off, unsigned int version, uint32_t *table)
{
	const struct mp_relobj_section *s = me_odebug_section(d, d->abbrev);
	struct me_otable *to;
	int rc;

	for (*table = 0; *table < d->nr_abbrevs; ++*table)
		if (d->abbrevs[*table].abbrevs.off == off)
			return d->abbrevs[*table].version == version
				       ? 0
				       : me_odebug_refuse(d, "has units of two versions that share "
							     "a table");
	if (!me_grow(&d->abbrevs, &d->cap_abbrevs, (uint64_t)d->nr_abbrevs + 1,
		     sizeof(*d->abbrevs)))
		return me_odebug_no_memory(d);
	to = &d->abbrevs[d->nr_abbrevs];
	*to = (struct me_otable){.version = version};
	rc = me_abbrevs_read(s->data, s->header.sh_size, off, version, &to->abbrevs);
	if (rc == -ENOMEM)
		return me_odebug_no_memory(d);
	if (rc)
		return me_odebug_refuse(d, "has abbreviations that are not understood");
	d->nr_abbrevs++;
	me_abbrevs_begin(&to->abbrevs, version);
	return 0;
}

static void put_attr(struct me_bytes *out, uint64_t name, uint64_t form)
{
	me_bytes_uleb(out, name);
	me_bytes_uleb(out, form);
}

/*
 * Attribute @i, whose form is at [p, end). @split: entries have lists in place of one range. View
 * numbers count rows of the line table, which may have moved apart: they are left out.
 */
static void put_declared(const struct me_otable *t, const struct me_abbrev *a, uint32_t i,
			 bool split, const uint8_t *p, const uint8_t *end, struct me_bytes *out)
{
	const struct me_abbrev_attr *attr = &t->abbrevs.attrs[a->first_attr + i];
	unsigned int offset = t->version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4;
	bool both = split && a->change == ME_ABBREV_BOTH;

	if (both && i == (a->low < a->high ? a->low : a->high)) {
		put_attr(out, DW_AT_ranges, offset);
		put_attr(out, FILLER_ATTR, DW_FORM_block1);
	} else if (both && (i == a->low || i == a->high)) {
		return;
	} else if (split && i == a->high) {
		put_attr(out, DW_AT_ranges, offset);
		if (me_form_size(attr->form, t->version) > 4)
			put_attr(out, FILLER_ATTR, DW_FORM_block1);
	} else if (split && i == a->low) {
		put_attr(out, DW_AT_entry_pc, DW_FORM_addr);
	} else if (attr->name == DW_AT_GNU_locviews) {
		put_attr(out, NO_LOCVIEWS_ATTR, DW_FORM_data4);
	} else if (attr->name == DW_AT_GNU_entry_view) {
		me_bytes_uleb(out, NO_ENTRYVIEW_ATTR);
		me_bytes_put(out, p, (size_t)(end - p));
	} else {
		me_bytes_uleb(out, attr->name);
		me_bytes_put(out, p, (size_t)(end - p));
	}
}

static void put_abbrev(const struct me_otable *t, const struct me_abbrev *a, bool split,
		       uint64_t code, struct me_bytes *out)
{
	struct mp_cursor c = {.p = a->bytes, .end = a->end};

	mp_cursor_uleb(&c);
	me_bytes_uleb(out, code);
	me_bytes_uleb(out, mp_cursor_uleb(&c));
	me_bytes_u8(out, mp_cursor_u8(&c));
	for (uint32_t i = 0; i < a->nr_attrs; i++) {
		const uint8_t *form;

		mp_cursor_uleb(&c);
		form = c.p;
		if (mp_cursor_uleb(&c) == DW_FORM_implicit_const)
			mp_cursor_sleb(&c);
		put_declared(t, a, i, split, form, c.p, out);
	}
	me_bytes_u16(out, 0);
}

int me_odebug_put_abbrevs(struct me_odebug *d)
{
	struct me_bytes *out = &d->o->debug[d->abbrev].bytes;

	if (!d->nr_abbrevs)
		return 0;
	d->o->debug[d->abbrev].written = true;
	for (uint32_t i = 0; i < d->nr_abbrevs; i++) {
		struct me_otable *t = &d->abbrevs[i];

		me_abbrevs_choose(&t->abbrevs);
		if (!me_odebug_add_shift(&d->tables, t->abbrevs.off, out->size))
			return me_odebug_no_memory(d);
		for (uint32_t k = 0; k < t->abbrevs.nr; k++) {
			const struct me_abbrev *a = &t->abbrevs.abbrevs[k];

			put_abbrev(t, a, a->touched && !a->new_code, a->code, out);
			if (a->touched && a->new_code)
				put_abbrev(t, a, true, a->new_code, out);
		}
		me_bytes_u8(out, 0);
	}
	/* find_table() met them in the order of the units. */
	for (uint32_t i = 1; i < d->tables.nr; i++)
		for (uint32_t k = i; k && d->tables.list[k - 1].old > d->tables.list[k].old; k--) {
			struct me_oshift swap = d->tables.list[k];

			d->tables.list[k] = d->tables.list[k - 1];
			d->tables.list[k - 1] = swap;
		}
	return 0;
}

/* ---- units ------------------------------------------------------------------------------------ */

static int damaged(struct me_odebug *d)
{
	return me_odebug_refuse(d, "has a unit that is not understood");
}

static int read_unit(struct me_odebug *d, uint32_t section, uint64_t off, uint64_t *next)
{
	const struct mp_relobj_section *s = me_odebug_section(d, section);
	struct mp_cursor c = mp_cursor_at(s->data, s->header.sh_size, off);
	uint32_t size = mp_cursor_u32(&c);
	struct me_ounit unit = {.section = section, .off = off, .version = mp_cursor_u16(&c)};
	unsigned int type = strcmp(s->name, ".debug_types") ? DW_UT_compile : DW_UT_type, bytes = 0;
	struct me_oaddr table;

	if (c.bad || size >= 0xfffffff0 || size > s->header.sh_size - off - 4 || unit.version < 2 ||
	    unit.version > 5)
		return damaged(d);
	*next = unit.end = off + 4 + size;
	if (unit.version == 5) {
		type = mp_cursor_u8(&c);
		bytes = mp_cursor_u8(&c);
	}
	table = me_odebug_field(d, section, (uint64_t)(c.p - s->data), 4);
	mp_cursor_skip(&c, 4);
	if (unit.version < 5)
		bytes = mp_cursor_u8(&c);
	if (type == DW_UT_type)
		mp_cursor_skip(&c, 12);
	unit.first = (uint64_t)(c.p - s->data);
	if (type == DW_UT_skeleton)
		return me_odebug_refuse(d, "is split (-gsplit-dwarf)");
	if (c.bad || bytes != 8 || unit.first > unit.end ||
	    (type != DW_UT_compile && type != DW_UT_type && type != DW_UT_partial) ||
	    (table.section && table.section != d->abbrev) || !d->abbrev)
		return damaged(d);
	if (!me_grow(&d->units, &d->cap_units, (uint64_t)d->nr_units + 1, sizeof(*d->units)))
		return me_odebug_no_memory(d);
	d->units[d->nr_units++] = unit;
	return find_table(d, table.off, unit.version, &d->units[d->nr_units - 1].table);
}

int me_odebug_units(struct me_odebug *d)
{
	int rc = 0;

	if (d->addr) {
		d->uses = calloc(me_odebug_section(d, d->addr)->header.sh_size + 1, 1);
		if (!d->uses)
			return me_odebug_no_memory(d);
	}
	for (uint32_t i = 1; !rc && i < d->o->in->nr_sections; i++) {
		const struct mp_relobj_section *s = me_odebug_section(d, i);
		uint64_t off = 0;

		while (!rc && has_units(s) && off < s->header.sh_size)
			rc = read_unit(d, i, off, &off);
	}
	for (uint32_t i = 0; !rc && i < d->nr_units; i++)
		rc = me_odebug_bases(d, &d->units[i]);
	return rc;
}

/* An offset in the section @wanted. */
static int read_base(struct me_odebug *d, const struct me_ounit *unit, uint64_t off,
		     uint32_t wanted, uint64_t *base)
{
	struct me_oaddr addr = me_odebug_field(d, unit->section, off, 4);

	*base = addr.off;
	return wanted && (!addr.section || addr.section == wanted) ? 0 : damaged(d);
}

int me_odebug_bases(struct me_odebug *d, struct me_ounit *unit)
{
	const struct mp_relobj_section *s = me_odebug_section(d, unit->section);
	struct me_abbrevs *t = &d->abbrevs[unit->table].abbrevs;
	struct mp_cursor c = mp_cursor_at(s->data, unit->end, unit->first);
	const struct me_abbrev *a = me_abbrevs_find(t, mp_cursor_uleb(&c));
	uint64_t low_at = 0;
	unsigned int low_form = 0;
	int rc = 0;

	for (uint32_t i = 0; !rc && a && i < a->nr_attrs; i++) {
		const struct me_abbrev_attr *attr = &t->attrs[a->first_attr + i];
		uint64_t at = (uint64_t)(c.p - s->data);

		me_form_skip(&c, attr->form, unit->version);
		if (c.bad)
			return damaged(d);
		if (attr->name == DW_AT_low_pc) {
			low_at = at;
			low_form = attr->form;
		} else if (attr->name == DW_AT_addr_base) {
			rc = read_base(d, unit, at, d->addr, &unit->addr_base);
		} else if (attr->name == DW_AT_rnglists_base) {
			unit->has_rnglists_base = true;
			rc = read_base(d, unit, at, d->lists[ME_OLISTS_RNGLISTS].section,
				       &unit->rnglists_base);
		} else if (attr->name == DW_AT_loclists_base) {
			unit->has_loclists_base = true;
			rc = read_base(d, unit, at, d->lists[ME_OLISTS_LOCLISTS].section,
				       &unit->loclists_base);
		}
	}
	/* Its number needs the base of addresses. */
	return !rc && low_at ? me_odebug_address(d, unit, low_form, low_at, &unit->base) : rc;
}

/* ---- addresses -------------------------------------------------------------------------------- */

int me_odebug_indexed(struct me_odebug *d, const struct me_ounit *unit, uint64_t index,
		      struct me_oaddr *out, uint64_t *at)
{
	uint64_t size = d->addr ? me_odebug_section(d, d->addr)->header.sh_size : 0;

	if (unit->addr_base > size || index >= (size - unit->addr_base) / 8)
		return me_odebug_refuse(d, "has a number of no address");
	*at = unit->addr_base + 8 * index;
	*out = me_odebug_field(d, d->addr, *at, 8);
	return 0;
}

int me_odebug_address(struct me_odebug *d, const struct me_ounit *unit, unsigned int form,
		      uint64_t off, struct me_oaddr *out)
{
	const struct mp_relobj_section *s = me_odebug_section(d, unit->section);
	struct mp_cursor c = mp_cursor_at(s->data, unit->end, off);
	uint64_t at;

	switch (form) {
	case DW_FORM_addr: *out = me_odebug_field(d, unit->section, off, 8); return 0;
	case DW_FORM_addrx: return me_odebug_indexed(d, unit, mp_cursor_uleb(&c), out, &at);
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
		return me_odebug_indexed(
			d, unit,
			mp_cursor_fixed(&c, (unsigned int)me_form_size(form, unit->version)), out,
			&at);
	default: return me_odebug_refuse(d, "has an address of an unknown form");
	}
}
