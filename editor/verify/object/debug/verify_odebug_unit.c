// SPDX-License-Identifier: Apache-2.0
/* verify_odebug_unit - units of .debug_info and .debug_types: headers, abbreviations, bases of lists. */
#include <errno.h>
#include <string.h>

#include "editor/base/grow.h"
#include "editor/verify/object/debug/verify_odebug_private.h"

void od_skip_form(struct od_cursor *c, uint64_t form, unsigned int version)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const: break;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1: od_skip(c, 1); break;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2: od_skip(c, 2); break;
	case DW_FORM_strx3:
	case DW_FORM_addrx3: od_skip(c, 3); break;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt: od_skip(c, 4); break;
	case DW_FORM_addr:
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8: od_skip(c, 8); break;
	case DW_FORM_data16: od_skip(c, 16); break;
	case DW_FORM_ref_addr: od_skip(c, version <= 2 ? 8 : 4); break;
	case DW_FORM_string:
		while (!c->bad && od_fixed(c, 1))
			;
		break;
	case DW_FORM_block1: od_skip(c, od_fixed(c, 1)); break;
	case DW_FORM_block2: od_skip(c, od_fixed(c, 2)); break;
	case DW_FORM_block4: od_skip(c, od_fixed(c, 4)); break;
	case DW_FORM_block:
	case DW_FORM_exprloc: od_skip(c, od_uleb(c)); break;
	case DW_FORM_sdata: od_sleb(c); break;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx: od_uleb(c); break;
	default: c->bad = true;
	}
}

static bool read_attrs(struct od_side *side, struct od_abbrev *a, struct od_cursor *c)
{
	struct od_unit *unit = &side->unit;

	a->first = unit->nr_attrs;
	for (;; a->nr++) {
		struct od_attr attr = {od_uleb(c), od_uleb(c), 0};

		if (attr.form == DW_FORM_implicit_const)
			attr.constant = od_sleb(c);
		if (c->bad || (!attr.name && !attr.form))
			return !c->bad;
		if (!me_grow(&unit->attrs, &unit->cap_attrs, (uint64_t)unit->nr_attrs + 1,
			     sizeof(*unit->attrs))) {
			side->side->no_memory = true;
			return false;
		}
		unit->attrs[unit->nr_attrs++] = attr;
	}
}

static int compare_codes(const void *a, const void *b)
{
	const struct od_abbrev *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

static bool read_abbrevs(struct od_side *side, struct od_cursor *c)
{
	struct od_unit *unit = &side->unit;

	unit->nr_abbrevs = unit->nr_attrs = 0;
	for (;;) {
		struct od_abbrev a = {.code = od_uleb(c)};

		if (c->bad || !a.code)
			break;
		a.tag = od_uleb(c);
		a.children = od_fixed(c, 1) != 0;
		if (!read_attrs(side, &a, c))
			return false;
		if (!me_grow(&unit->abbrevs, &unit->cap_abbrevs, (uint64_t)unit->nr_abbrevs + 1,
			     sizeof(*unit->abbrevs))) {
			side->side->no_memory = true;
			return false;
		}
		unit->abbrevs[unit->nr_abbrevs++] = a;
	}
	if (unit->nr_abbrevs)
		qsort(unit->abbrevs, unit->nr_abbrevs, sizeof(*unit->abbrevs), compare_codes);
	for (uint32_t i = 1; i < unit->nr_abbrevs; i++)
		if (unit->abbrevs[i - 1].code == unit->abbrevs[i].code)
			return false;
	return !c->bad;
}

const struct od_abbrev *od_abbrev(const struct od_unit *unit, uint64_t code)
{
	uint32_t low = 0, high = unit->nr_abbrevs;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (unit->abbrevs[mid].code < code)
			low = mid + 1;
		else
			high = mid;
	}
	return low < unit->nr_abbrevs && unit->abbrevs[low].code == code ? &unit->abbrevs[low]
									 : NULL;
}

/* Bases are attributes of the unit's own entry. */
static bool read_bases(struct od_side *side)
{
	struct od_unit *unit = &side->unit;
	struct od_cursor c = od_cursor_at(side, unit->section, unit->first);
	const struct od_abbrev *a;
	struct od_cursor low = {.bad = true};
	uint64_t form = 0;

	unit->base = (struct od_addr){0, 0};
	unit->addr_base = unit->rnglists_base = unit->loclists_base = 0;
	c.end = unit->end;
	a = od_abbrev(unit, od_uleb(&c));
	for (uint32_t i = 0; a && i < a->nr; i++) {
		const struct od_attr *attr = &unit->attrs[a->first + i];
		uint64_t value = od_field(side, unit->section, c.at, 4).off;

		if (attr->name == DW_AT_low_pc) {
			low = c;
			form = attr->form;
		}
		if (attr->name == DW_AT_addr_base)
			unit->addr_base = value;
		if (attr->name == DW_AT_rnglists_base)
			unit->rnglists_base = value;
		if (attr->name == DW_AT_loclists_base)
			unit->loclists_base = value;
		od_skip_form(&c, attr->form, unit->version);
	}
	if (!low.bad && form == DW_FORM_addr)
		unit->base = od_field(side, unit->section, low.at, 8);
	else if (!low.bad && form == DW_FORM_addrx)
		return od_indexed(side, od_uleb(&low), &unit->base);
	return !c.bad;
}

int od_unit(struct od *od, struct od_side *side, uint32_t section, uint64_t off)
{
	struct od_unit *unit = &side->unit;
	struct od_cursor c = od_cursor_at(side, section, off), table;
	uint64_t size = od_fixed(&c, 4), type = DW_UT_compile, bytes = 8;
	struct od_addr abbrevs;
	bool known = unit->nr_abbrevs && unit->abbrevs_off != UINT64_MAX;

	unit->section = section;
	unit->off = off;
	unit->version = (unsigned int)od_fixed(&c, 2);
	if (!strcmp(c.s->name, ".debug_types"))
		type = DW_UT_type;
	if (unit->version >= 5) {
		type = od_fixed(&c, 1);
		bytes = od_fixed(&c, 1);
	}
	abbrevs = od_field(side, section, c.at, 4);
	od_skip(&c, 4);
	if (unit->version < 5)
		bytes = od_fixed(&c, 1);
	if (type == DW_UT_type)
		od_skip(&c, 12);
	unit->first = c.at;
	unit->end = off + 4 + size;
	if (c.bad || size > c.s->header.sh_size - off - 4 || unit->version < 2 ||
	    unit->version > 5 || bytes != 8 || unit->first > unit->end || !side->abbrev ||
	    (type != DW_UT_compile && type != DW_UT_type && type != DW_UT_partial))
		return od_refuse(od, side, section, off, "is no unit");
	table = od_cursor_at(side, side->abbrev, abbrevs.off);
	if (!known || unit->abbrevs_off != abbrevs.off) {
		unit->abbrevs_off = abbrevs.off;
		if (!read_abbrevs(side, &table))
			return od_refuse(od, side, section, off, "has damaged abbreviations");
	}
	return read_bases(side) ? 0 : od_refuse(od, side, section, off, "has damaged bases");
}
