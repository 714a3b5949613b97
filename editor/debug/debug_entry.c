// SPDX-License-Identifier: Apache-2.0
/*
 * debug_entry - reads one entry of a unit, and those values of its attributes that name
 * code.
 */
#include "editor/debug/debug_entry_private.h"

#include <errno.h>

#include "editor/debug/debug_ranges.h"
#include "libprof/base/search.h"

bool me_value_address(const struct me_unit *u, const struct me_value *v, uint64_t *address)
{
	struct me_addr addr = {0, me_value_index(v)};

	if (!me_form_is_address(v->form) ||
	    (v->form != DW_FORM_addr && !me_unit_indexed(u, addr.off, &addr)))
		return false;
	*address = addr.off;
	return true;
}

uint64_t me_value_reference(const struct me_unit *u, const struct me_value *v)
{
	return u->off + me_value_index(v);
}

uint64_t me_value_number(const struct me_value *v)
{
	struct mp_cursor c = me_value_cursor(v);

	switch (v->p ? v->form : 0) {
	case DW_FORM_sdata:
	case DW_FORM_implicit_const: return (uint64_t)mp_cursor_sleb(&c);
	case DW_FORM_udata:
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8: return me_value_index(v);
	default: return 0;
	}
}

uint64_t me_value_target(const struct me_unit *u, const struct me_value *v)
{
	if (v->p && me_form_is_reference(v->form))
		return me_value_reference(u, v);
	return v->p && v->form == DW_FORM_ref_addr && v->size == 4 ? me_value_fixed(v) : 0;
}

bool me_value_is_offset(const struct me_unit *u, const struct me_value *v)
{
	return v->p && v->form == (u->version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4);
}

static bool is_strx(unsigned int form)
{
	return form == DW_FORM_strx || (form >= DW_FORM_strx1 && form <= DW_FORM_strx4);
}

struct me_callee_name me_value_name(const struct me_unit *u, const struct me_value *base,
				    const struct me_value *v)
{
	const struct me_debug_section *s = &u->file->str_offsets;
	struct mp_cursor c = me_value_cursor(v);
	/* A table begins behind a header of 8 bytes. */
	uint64_t first = base->p ? me_value_fixed(base) : 8, index;

	if (v->p && (v->form == DW_FORM_strp || v->form == DW_FORM_line_strp))
		return (struct me_callee_name){v->form, mp_cursor_u32(&c), NULL};
	if (v->p && v->form == DW_FORM_string)
		return (struct me_callee_name){v->form, 0, (const char *)v->p};
	if (!v->p || !is_strx(v->form))
		return (struct me_callee_name){0};
	index = me_value_index(v);
	if (first > s->size || index > s->size / 4)
		return (struct me_callee_name){0};
	c = mp_cursor_at(s->data, s->size, first + 4 * index);
	index = mp_cursor_u32(&c);
	return c.bad ? (struct me_callee_name){0}
		     : (struct me_callee_name){DW_FORM_strp, (uint32_t)index, NULL};
}

const char *me_name_text(const struct me_debug_sections *file, const struct me_callee_name *name)
{
	const struct me_debug_section *s = name->form == DW_FORM_strp ? &file->str
								      : &file->line_str;
	struct mp_cursor c;

	if (!name->form || name->form == DW_FORM_string)
		return name->string;
	c = mp_cursor_at(s->data, s->size, name->off);
	return mp_cursor_string(&c);
}

bool me_entry_range(const struct me_unit *u, const struct me_entry *e, struct me_range *r)
{
	if (!me_value_address(u, &e->low, &r->lo))
		return false;
	if (me_form_is_address(e->high.form))
		return me_value_address(u, &e->high, &r->hi);
	r->hi = r->lo + me_value_index(&e->high);
	return true;
}

static void note_value(struct me_entry *e, unsigned int name, struct me_value v)
{
	switch (name) {
	case DW_AT_low_pc: e->low = v; break;
	case DW_AT_high_pc: e->high = v; break;
	case DW_AT_ranges: e->ranges = v; break;
	case DW_AT_entry_pc: e->entry_pc = v; break;
	case DW_AT_stmt_list: e->stmt_list = v; break;
	case DW_AT_location: e->location = v; break;
	case DW_AT_GNU_locviews: e->locviews = v; break;
	case DW_AT_frame_base: e->frame_base = v; break;
	case DW_AT_addr_base: e->addr_base = v; break;
	case DW_AT_rnglists_base: e->rnglists_base = v; break;
	case DW_AT_loclists_base: e->loclists_base = v; break;
	case DW_AT_comp_dir: e->comp_dir = v; break;
	case DW_AT_abstract_origin: e->abstract_origin = v; break;
	case DW_AT_specification: e->specification = v; break;
	case DW_AT_name: e->name = v; break;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name: e->linkage_name = v; break;
	case DW_AT_str_offsets_base: e->str_offsets_base = v; break;
	case DW_AT_call_file: e->call_file = v; break;
	case DW_AT_call_line: e->call_line = v; break;
	case DW_AT_call_column: e->call_column = v; break;
	default: break;
	}
}

static bool is_place(unsigned int name)
{
	return name == DW_AT_call_file || name == DW_AT_call_line || name == DW_AT_call_column;
}

/* Read the values of the entry whose code was read; moves the cursor after them. */
static void read_values(const struct me_unit *u, struct mp_cursor *c, struct me_entry *e)
{
	const struct me_abbrevs *t = &u->file->abbrevs;

	for (uint32_t i = 0; i < e->abbrev->nr_attrs && !c->bad; i++) {
		const struct me_abbrev_attr *a = &t->attrs[e->abbrev->first_attr + i];
		const uint8_t *p = c->p;

		me_form_skip(c, a->form, u->version);
		if (a->form == DW_FORM_implicit_const && is_place(a->name)) {
			struct mp_cursor v = me_abbrev_constant(e->abbrev, i);

			note_value(e, a->name,
				   (struct me_value){v.p, (uint64_t)(v.end - v.p), a->form});
			continue;
		}
		note_value(e, a->name, (struct me_value){p, (uint64_t)(c->p - p), a->form});
	}
}

int me_entry_read(struct me_unit *u, struct mp_cursor *c, struct me_entry *e)
{
	uint64_t code;

	*e = (struct me_entry){.start = c->p};
	code = mp_cursor_uleb(c);
	e->code_size = (unsigned int)(c->p - e->start);
	if (c->bad || !code)
		return c->bad ? -EBADMSG : 0;
	e->abbrev = me_abbrevs_find(&u->file->abbrevs, code);
	if (!e->abbrev)
		return -EBADMSG;
	e->abbrev->used = true;
	if (e->abbrev->plain && e->abbrev->size >= 0)
		mp_cursor_skip(c, (uint64_t)e->abbrev->size);
	else
		read_values(u, c, e);
	return c->bad ? -EBADMSG : 0;
}

const uint8_t *me_entry_list_field(const struct me_entry *e)
{
	if (e->ranges.p)
		return e->ranges.p;
	return e->abbrev->change == ME_ABBREV_BOTH && e->low.p < e->high.p ? e->low.p : e->high.p;
}

bool me_entry_is_changed(const struct me_unit *u, const struct me_entry *e)
{
	struct me_range r;

	/*
	 * With a new code, only entries of moved code and in functions that go to an added unit change; without one,
	 * every entry of the abbreviation.
	 */
	return e->low.p && e->high.p && e->abbrev->touched && me_entry_range(u, e, &r) &&
	       (!e->abbrev->new_code || me_moves_any(u->file->moves, r.lo, r.hi) ||
		me_entry_leaves(u, e));
}

bool me_entry_leaves(const struct me_unit *u, const struct me_entry *e)
{
	uint64_t off = (uint64_t)(e->start - u->file->info.data);
	uint32_t i = mp_search(k, 0, u->nr_functions, u->functions[k].end <= off);

	return i < u->nr_functions && u->functions[i].start <= off;
}

int me_entry_read_ranges(const struct me_unit *u, const struct me_entry *e, struct me_ranges *out)
{
	struct me_range r;
	uint64_t off;
	int rc;

	out->nr = 0;
	if (e->ranges.p && me_value_is_offset(u, &e->ranges))
		return me_ranges_read(u, me_value_fixed(&e->ranges), out);
	if (e->ranges.p && e->ranges.form == DW_FORM_rnglistx) {
		rc = me_ranges_indexed(u, me_value_index(&e->ranges), &off);
		return rc ? rc : me_ranges_read(u, off, out);
	}
	if (e->ranges.p)
		return -EPERM;
	if (!e->low.p || !e->high.p)
		return 0;
	if (!me_entry_range(u, e, &r))
		return -EBADMSG;
	me_ranges_add(out, r.lo, r.hi);
	return out->failed ? -ENOMEM : 0;
}
