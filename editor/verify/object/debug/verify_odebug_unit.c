// SPDX-License-Identifier: Apache-2.0
/* verify_odebug_unit - units of .debug_info and .debug_types: headers, abbreviations, bases of lists. */
#include <errno.h>
#include <string.h>

#include "editor/verify/object/debug/verify_odebug_private.h"

/* Does a value lead into another file? Or has it a number in a table of GNU's split DWARF? */
static bool leads_elsewhere(unsigned int form)
{
	switch (form) {
	case DW_FORM_strp_sup:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index: return true;
	default: return false;
	}
}

/* Units that follow one another often share a table. Return: 0, -ENOMEM, -EBADMSG. */
static int read_abbrevs(struct od_side *side, uint64_t off, const struct vd_unit *last)
{
	struct vd_unit *u = &side->unit.u;
	int rc;

	u->abbrev_off = off;
	if (side->unit.has_table && last->abbrev_off == off && last->version == u->version)
		return 0;
	rc = vd_abbrevs_read(od_cursor_at(side, side->abbrev, off), u->version, u->work,
			     &u->abbrevs);
	side->unit.has_table = !rc;
	for (uint32_t i = 0; !rc && i < u->abbrevs.nr_attrs; i++)
		if (leads_elsewhere(u->abbrevs.attrs[i].form))
			rc = -EBADMSG;
	return rc;
}

/* Bases are attributes of the unit's own entry. */
static bool read_bases(struct od_side *side)
{
	struct od_unit *unit = &side->unit;
	struct vf_cursor c = vd_unit_at(&unit->u, unit->u.first);
	struct vd_value low = {0};
	struct vd_values w;
	struct vd_entry own;

	unit->base = (struct vd_addr){0, 0};
	unit->u.addr_base = unit->u.rnglists_base = unit->u.loclists_base = 0;
	if (!vd_entry_read(&unit->u, &c, &own))
		return false;
	for (w = vd_values_of(&unit->u, &own); own.abbrev && vd_values_next(&w);) {
		uint64_t at = od_offset(side, unit->section, w.value.p);

		switch (w.attr->name) {
		case DW_AT_low_pc: low = w.value; break;
		case DW_AT_addr_base:
			unit->u.addr_base = od_field(side, unit->section, at, 4).off;
			break;
		case DW_AT_rnglists_base:
			unit->u.rnglists_base = od_field(side, unit->section, at, 4).off;
			break;
		case DW_AT_loclists_base:
			unit->u.loclists_base = od_field(side, unit->section, at, 4).off;
			break;
		default: break;
		}
	}
	if (low.p && low.form == DW_FORM_addr)
		unit->base =
			od_field(side, unit->section, od_offset(side, unit->section, low.p), 8);
	else if (low.p && low.form == DW_FORM_addrx)
		return od_indexed(side, vd_value_index(&low), &unit->base);
	return true;
}

int od_unit(struct od *od, struct od_side *side, uint32_t section, uint64_t off)
{
	const struct mp_relobj_section *s = &side->side->obj->sections[section];
	struct od_unit *unit = &side->unit;
	struct vd_unit *u = &unit->u, last = *u;
	bool types = !strcmp(s->name, ".debug_types");
	int rc;

	unit->section = section;
	u->work = &od->work;
	if (!vd_unit_header(s->data, s->header.sh_size, off, types ? DW_UT_type : DW_UT_compile,
			    u) ||
	    !side->abbrev ||
	    (u->type != DW_UT_compile && u->type != DW_UT_type && u->type != DW_UT_partial))
		return od_refuse(od, side, section, off, "is no unit");
	rc = read_abbrevs(side, od_field(side, section, u->abbrev_field, 4).off, &last);
	if (rc)
		return rc == -ENOMEM
			       ? rc
			       : od_refuse(od, side, section, off, "has damaged abbreviations");
	return read_bases(side) ? 0 : od_refuse(od, side, section, off, "has damaged bases");
}
