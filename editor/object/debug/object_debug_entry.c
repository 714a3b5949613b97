// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_entry - the entries of .debug_info and .debug_types. An entry whose code is in
 * several ranges now gets a list of ranges; addresses and lists follow the code; all else stays.
 * Called by object_debug.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/debug/object_debug_private.h"

/* One attribute of an entry. */
struct value {
	unsigned int name;
	uint64_t at; /* of the value, in its section */
	struct me_value v;
};

/* One entry, and what is written of its section. */
struct walk {
	struct me_odebug *d;
	const struct me_ounit *unit;
	struct me_otable *table;
	const uint8_t *data;
	struct mp_cursor c;
	struct me_abbrev *abbrev; /* NULL: the end of a list of siblings */
	uint64_t at;		  /* of the entry */
	bool one_range;		  /* it has DW_AT_low_pc and DW_AT_high_pc */
	struct value low, high;
	struct me_odebug_section *to;
	uint64_t done; /* relocations before this offset are written */
	struct me_olist list;
};

static int damaged(const struct walk *w)
{
	return me_odebug_refuse(w->d, "has an entry that is not understood");
}

static struct value value_of(struct walk *w, uint32_t i)
{
	const struct me_abbrev_attr *attr = &w->table->abbrevs.attrs[w->abbrev->first_attr + i];
	struct value v = {attr->name, (uint64_t)(w->c.p - w->data), {w->c.p, 0, attr->form}};

	me_form_skip(&w->c, attr->form, w->unit->version);
	v.v.size = (uint64_t)(w->c.p - v.v.p);
	return v;
}

/* The next entry: its abbreviation and its range. The cursor stays at its first value. */
static int begin_entry(struct walk *w)
{
	const uint8_t *start = w->c.p, *values;
	uint64_t code = mp_cursor_uleb(&w->c);

	w->at = (uint64_t)(start - w->data);
	w->abbrev = code ? me_abbrevs_find(&w->table->abbrevs, code) : NULL;
	w->one_range = false;
	if (w->c.bad || (code && !w->abbrev))
		return damaged(w);
	if (!code || w->abbrev->low == ME_NO_ATTR || w->abbrev->high == ME_NO_ATTR)
		return 0;
	values = w->c.p;
	w->one_range = true;
	for (uint32_t i = 0; i < w->abbrev->nr_attrs; i++) {
		struct value v = value_of(w, i);

		if (i == w->abbrev->low)
			w->low = v;
		if (i == w->abbrev->high)
			w->high = v;
	}
	if (w->c.bad)
		return damaged(w);
	w->c.p = values;
	return 0;
}

/* The range of the entry, as a list. */
static int read_range(struct walk *w)
{
	struct me_odebug *d = w->d;
	struct me_oentry e = {0};
	struct me_addr start = {0, 0}, end;
	int rc = me_odebug_address(d, w->unit, &w->low.v, &start);

	end = start;
	if (!rc && me_form_is_address(w->high.v.form))
		rc = me_odebug_address(d, w->unit, &w->high.v, &end);
	else
		end.off += me_value_index(&w->high.v);
	if (rc)
		return rc;
	w->list.nr = 0;
	if (start.section != end.section || (!start.section && start.off != end.off) ||
	    start.off > end.off || w->low.v.form == DW_FORM_implicit_const ||
	    w->high.v.form == DW_FORM_implicit_const ||
	    (w->high.v.form != DW_FORM_udata && w->high.v.size > 8))
		return damaged(w);
	e.section = start.section;
	e.start = start.off;
	e.end = end.off;
	e.entry = true;
	if (!w->list.entries) {
		w->list.entries = calloc(1, sizeof(*w->list.entries));
		if (!w->list.entries)
			return me_odebug_no_memory(d);
		w->list.cap = 1;
	}
	if (start.section)
		w->list.entries[w->list.nr++] = e;
	d->more.nr = 0;
	return start.section ? me_odebug_map_entry(d, &e, &d->more) : 0;
}

static int begin_unit(struct walk *w, uint32_t i)
{
	w->unit = &w->d->units[i];
	w->table = &w->d->abbrevs[w->unit->table];
	w->data = me_odebug_section(w->d, w->unit->section)->data;
	w->c = mp_cursor_at(w->data, w->unit->end, w->unit->first);
	return w->c.bad ? damaged(w) : 0;
}

/* ---- which entries need a list --------------------------------------------------------------- */

static int find_in_unit(struct walk *w)
{
	int rc = 0;

	while (!rc && w->c.p < w->c.end) {
		rc = begin_entry(w);
		if (rc || !w->abbrev)
			continue;
		if (w->one_range) {
			rc = read_range(w);
			if (!rc && w->list.nr && w->d->more.nr != 1)
				w->abbrev->touched = true;
			if (w->abbrev->touched && w->abbrev->change == ME_ABBREV_NONE)
				return me_odebug_refuse(
					w->d, "has an entry without room for a list of ranges");
		}
		for (uint32_t i = 0; i < w->abbrev->nr_attrs; i++)
			value_of(w, i);
		if (w->c.bad)
			rc = damaged(w);
	}
	return rc;
}

int me_odebug_find_split(struct me_odebug *d)
{
	struct walk w = {.d = d};
	int rc = 0;

	for (uint32_t i = 0; !rc && i < d->nr_units; i++) {
		rc = begin_unit(&w, i);
		if (!rc)
			rc = find_in_unit(&w);
	}
	free(w.list.entries);
	return rc;
}

/* ---- values ------------------------------------------------------------------------------------ */

/* Relocations before @to stay. */
static int flush(struct walk *w, uint64_t to)
{
	int rc = me_odebug_put_relocs(w->d, w->unit ? w->unit->section : 0, w->done, to, 0, false,
				      &w->to->relocs);

	w->done = to;
	return rc;
}

/* The bytes of @v are written by the caller, as are their relocations. */
static int replace(struct walk *w, const struct value *v)
{
	int rc = flush(w, v->at);

	w->done = v->at + v->v.size;
	return rc;
}

static int put_point(struct walk *w, const struct value *v, enum me_ouse use)
{
	struct me_odebug *d = w->d;
	struct me_addr addr;
	uint32_t out, off;
	uint64_t at;
	int rc;

	if (!me_form_is_address(v->v.form))
		return damaged(w);
	if (v->v.form != DW_FORM_addr) {
		rc = me_odebug_indexed(d, w->unit, me_value_index(&v->v), &addr, &at);
		if (!rc)
			d->uses[at] |= use;
		return rc;
	}
	rc = me_odebug_address(d, w->unit, &v->v, &addr);
	if (rc || !me_odebug_moves(d, addr))
		return rc;
	if (!me_odebug_place(d, addr, use, &out, &off))
		return me_odebug_refuse(d, "names code that is not there");
	rc = replace(w, v);
	me_odebug_put_reloc(&w->to->relocs, v->at, d->o->outs[out].symbol, R_X86_64_64, off);
	return rc;
}

/* @v holds the offset of a list, and filler. */
static int put_list(struct walk *w, const struct value *v, enum me_olists_kind kind)
{
	struct me_odebug *d = w->d;
	uint64_t off;
	int rc = me_odebug_put_list(d, w->unit, kind, &w->list, &off);

	if (!rc)
		rc = replace(w, v);
	if (rc)
		return rc;
	me_abbrev_fill(w->to->bytes.data + v->at, v->v.size, (uint32_t)off);
	me_odebug_put_reloc(&w->to->relocs, v->at, d->lists[kind].symbol, R_X86_64_32, off);
	return d->lists[kind].symbol ? 0 : damaged(w);
}

/* A list that has a number in the unit's table. */
static int put_numbered(struct walk *w, const struct value *v, enum me_olists_kind kind)
{
	struct me_odebug *d = w->d;
	uint64_t index = me_value_index(&v->v), off;
	int rc = me_odebug_list_off(d, w->unit, kind, index, &off);

	if (!rc)
		rc = me_odebug_read_list(d, w->unit, kind, off, &w->list);
	if (!rc)
		rc = me_odebug_put_list(d, w->unit, kind, &w->list, &off);
	return rc ? rc : me_odebug_number_list(d, w->unit, kind, index, off);
}

/* The offset at @v, in the section of @kind, of a list or of the unit's table of lists. */
static int put_offset(struct walk *w, const struct value *v, enum me_olists_kind kind, uint64_t old)
{
	struct me_odebug *d = w->d;
	int rc;

	if (v->name == DW_AT_GNU_locviews) {
		rc = replace(w, v);
		memset(w->to->bytes.data + v->at, 0, v->v.size);
		return rc;
	}
	if (v->name == DW_AT_rnglists_base || v->name == DW_AT_loclists_base) {
		rc = me_odebug_open_lists(d, w->unit, kind);
		if (!rc)
			rc = replace(w, v);
		me_odebug_put_reloc(&w->to->relocs, v->at, d->lists[kind].symbol, R_X86_64_32,
				    d->lists[kind].table);
		return rc;
	}
	if (kind != me_odebug_kind(w->unit, v->name != DW_AT_ranges) || v->v.size != 4)
		return damaged(w);
	rc = me_odebug_read_list(d, w->unit, kind, old, &w->list);
	return rc ? rc : put_list(w, v, kind);
}

static int put_value(struct walk *w, const struct value *v)
{
	struct me_odebug *d = w->d;
	struct me_addr addr;
	int rc;

	if (v->name == DW_AT_dwo_name || v->name == DW_AT_GNU_dwo_name)
		return me_odebug_refuse(d, "is split (-gsplit-dwarf)");
	if (v->name == DW_AT_call_return_pc ||
	    (v->name == DW_AT_low_pc && w->abbrev->tag == DW_TAG_GNU_call_site))
		return put_point(w, v, ME_OUSE_BEHIND);
	if (v->name == DW_AT_entry_pc || me_form_is_address(v->v.form))
		return put_point(w, v, ME_OUSE_START);
	if (v->v.form == DW_FORM_rnglistx)
		return put_numbered(w, v, ME_OLISTS_RNGLISTS);
	if (v->v.form == DW_FORM_loclistx)
		return put_numbered(w, v, ME_OLISTS_LOCLISTS);
	if (me_form_is_expression(v->v.form)) {
		rc = flush(w, v->at);
		if (!rc)
			rc = me_odebug_put_relocs(d, w->unit->section, v->at, v->at + v->v.size, 0,
						  true, &w->to->relocs);
		w->done = v->at + v->v.size;
		return rc;
	}
	if (v->v.size != 4)
		return 0;
	addr = me_odebug_field(d, w->unit->section, v->at, 4);
	for (int k = 0; addr.section && k < ME_OLISTS_NR; k++)
		if (addr.section == d->lists[k].section)
			return put_offset(w, v, (enum me_olists_kind)k, addr.off);
	/* Not relocated, it would be a list in a section that no linker may put elsewhere. */
	return v->name == DW_AT_ranges || v->name == DW_AT_GNU_locviews ? damaged(w) : 0;
}

/* ---- ranges ----------------------------------------------------------------------------------- */

/* The entry keeps DW_AT_low_pc and DW_AT_high_pc. */
static int put_low_high(struct walk *w, const struct value *v)
{
	const struct me_ointerval at = w->d->more.nr ? w->d->more.list[0]
						     : (struct me_ointerval){0};
	uint64_t size = at.end - at.start;
	int rc = 0;

	if (!w->d->more.nr)
		return 0;
	if (v->v.form == DW_FORM_addr) {
		rc = replace(w, v);
		me_odebug_put_reloc(&w->to->relocs, v->at, w->d->o->outs[at.out].symbol,
				    R_X86_64_64, v->at == w->low.at ? at.start : at.end);
		return rc;
	}
	if (v->at == w->low.at)
		return put_point(w, v, ME_OUSE_START);
	if (me_form_is_address(v->v.form))
		return me_odebug_refuse(w->d, "has an address of an unknown form");
	if (v->v.form == DW_FORM_udata || (v->v.size < 8 && size >> (8 * v->v.size)))
		return size == w->list.entries[0].end - w->list.entries[0].start
			       ? 0
			       : me_odebug_refuse(w->d, "has an entry without room for its size");
	memcpy(w->to->bytes.data + v->at, &size, v->v.size);
	return 0;
}

/* The entry gets DW_AT_ranges. */
static int put_ranges(struct walk *w, const struct value *v)
{
	const struct value *first = w->low.at < w->high.at ? &w->low : &w->high;
	struct value both = *first;

	if (w->abbrev->change == ME_ABBREV_ENTRY_PC)
		return v->at == w->low.at ? put_point(w, v, ME_OUSE_START)
					  : put_list(w, v, me_odebug_kind(w->unit, false));
	if (v->at != first->at)
		return 0;
	both.v.size = w->low.v.size + w->high.v.size;
	return put_list(w, &both, me_odebug_kind(w->unit, false));
}

static int put_entry(struct walk *w)
{
	struct me_abbrev *a = w->abbrev;
	bool split = false;
	int rc = w->one_range ? read_range(w) : 0;

	if (!rc && w->one_range && a->touched)
		split = !a->new_code || (w->list.nr && w->d->more.nr != 1);
	if (split && a->new_code) {
		struct me_bytes code = {0};

		me_bytes_uleb(&code, a->new_code);
		if (code.failed)
			return me_odebug_no_memory(w->d);
		if (w->at + code.size > (uint64_t)(w->c.p - w->data) ||
		    w->at + code.size != (uint64_t)(w->c.p - w->data))
			rc = damaged(w);
		else
			memcpy(w->to->bytes.data + w->at, code.data, code.size);
		me_bytes_fini(&code);
	}
	for (uint32_t i = 0; !rc && i < a->nr_attrs; i++) {
		const struct value v = value_of(w, i);

		if (w->c.bad)
			return damaged(w);
		if (!w->one_range || (i != a->low && i != a->high)) {
			rc = put_value(w, &v);
			continue;
		}
		/* Lists that other values named have taken its place. */
		rc = read_range(w);
		if (!rc)
			rc = split ? put_ranges(w, &v) : put_low_high(w, &v);
	}
	return rc;
}

static int put_unit(struct walk *w, uint32_t i)
{
	struct me_odebug *d = w->d;
	uint32_t before = w->unit ? w->unit->section : 0;
	const struct mp_relobj_section *s;
	int rc = begin_unit(w, i);

	if (rc)
		return rc;
	if (w->unit->section != before) {
		s = me_odebug_section(d, w->unit->section);
		w->to = &d->o->debug[w->unit->section];
		w->to->written = true;
		w->done = 0;
		me_bytes_put(&w->to->bytes, s->data, s->header.sh_size);
		if (w->to->bytes.failed)
			return me_odebug_no_memory(d);
	}
	while (!rc && w->c.p < w->c.end) {
		rc = begin_entry(w);
		if (!rc && w->abbrev)
			rc = put_entry(w);
	}
	if (!rc)
		rc = flush(w, w->unit->end);
	me_odebug_close_lists(d);
	return rc;
}

int me_odebug_entries(struct me_odebug *d)
{
	struct walk w = {.d = d};
	int rc = 0;

	for (uint32_t i = 0; !rc && i < d->nr_units; i++)
		rc = put_unit(&w, i);
	free(w.list.entries);
	return rc;
}
