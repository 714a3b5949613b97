// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_unit - units of .debug_info and .debug_types, their tables of abbreviations, and
 * addresses that have numbers. Called by object_debug.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/debug/object_debug_private.h"
#include "libprof/base/grow.h"

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
	if (mp_grow(d->abbrevs, d->cap_abbrevs, (uint64_t)d->nr_abbrevs + 1))
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

			/* View numbers count rows of the line table, which may have moved apart. */
			me_abbrev_declare(&t->abbrevs, a, t->version, a->code,
					  a->touched && !a->new_code, true, out);
			if (a->touched && a->new_code)
				me_abbrev_declare(&t->abbrevs, a, t->version, a->new_code, true,
						  true, out);
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
	bool types = !strcmp(s->name, ".debug_types");
	struct me_unit_header h;
	struct me_addr table;
	int rc = me_unit_header_read(s->data, s->header.sh_size, off,
				     types ? DW_UT_type : DW_UT_compile, &h);

	if (!rc && h.type == DW_UT_skeleton)
		return me_odebug_refuse(d, "is split (-gsplit-dwarf)");
	if (rc || (h.type != DW_UT_compile && h.type != DW_UT_type && h.type != DW_UT_partial))
		return damaged(d);
	*next = h.end;
	table = me_odebug_field(d, section, h.abbrev_field, 4);
	if ((table.section && table.section != d->abbrev) || !d->abbrev)
		return damaged(d);
	if (mp_grow(d->units, d->cap_units, (uint64_t)d->nr_units + 1))
		return me_odebug_no_memory(d);
	d->units[d->nr_units++] = (struct me_ounit){.section = section,
						    .off = off,
						    .first = h.first,
						    .end = h.end,
						    .version = h.version};
	return find_table(d, table.off, h.version, &d->units[d->nr_units - 1].table);
}

/* An offset in the section @wanted. */
static int read_base(struct me_odebug *d, const struct me_ounit *unit, uint64_t off,
		     uint32_t wanted, uint64_t *base)
{
	struct me_addr addr = me_odebug_field(d, unit->section, off, 4);

	*base = addr.off;
	return wanted && (!addr.section || addr.section == wanted) ? 0 : damaged(d);
}

/* Reads the bases of a unit: those of its lists, and of its addresses. */
static int read_bases(struct me_odebug *d, struct me_ounit *unit)
{
	const struct mp_relobj_section *s = me_odebug_section(d, unit->section);
	struct me_abbrevs *t = &d->abbrevs[unit->table].abbrevs;
	struct mp_cursor c = mp_cursor_at(s->data, unit->end, unit->first);
	const struct me_abbrev *a = me_abbrevs_find(t, mp_cursor_uleb(&c));
	struct me_value low = {0};
	int rc = 0;

	for (uint32_t i = 0; !rc && a && i < a->nr_attrs; i++) {
		const struct me_abbrev_attr *attr = &t->attrs[a->first_attr + i];
		uint64_t at = (uint64_t)(c.p - s->data);

		me_form_skip(&c, attr->form, unit->version);
		if (c.bad)
			return damaged(d);
		if (attr->name == DW_AT_low_pc) {
			low = (struct me_value){s->data + at, (uint64_t)(c.p - s->data) - at,
						attr->form};
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
	return !rc && low.p ? me_odebug_address(d, unit, &low, &unit->base) : rc;
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
		rc = read_bases(d, &d->units[i]);
	return rc;
}

/* ---- addresses -------------------------------------------------------------------------------- */

int me_odebug_indexed(struct me_odebug *d, const struct me_ounit *unit, uint64_t index,
		      struct me_addr *out, uint64_t *at)
{
	uint64_t size = d->addr ? me_odebug_section(d, d->addr)->header.sh_size : 0;

	if (unit->addr_base > size || index >= (size - unit->addr_base) / 8)
		return me_odebug_refuse(d, "has a number of no address");
	*at = unit->addr_base + 8 * index;
	*out = me_odebug_field(d, d->addr, *at, 8);
	return 0;
}

int me_odebug_address(struct me_odebug *d, const struct me_ounit *unit, const struct me_value *v,
		      struct me_addr *out)
{
	uint64_t at = (uint64_t)(v->p - me_odebug_section(d, unit->section)->data);

	if (!me_form_is_address(v->form))
		return me_odebug_refuse(d, "has an address of an unknown form");
	if (v->form != DW_FORM_addr)
		return me_odebug_indexed(d, unit, me_value_index(v), out, &at);
	*out = me_odebug_field(d, unit->section, at, 8);
	return 0;
}
