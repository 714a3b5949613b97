// SPDX-License-Identifier: Apache-2.0
/*
 * debug_function - walks over a unit once. A function moves if the added unit can have all of its entry: every
 * reference and expression is understood, and its ranges can be taken from the old entry.
 */
#include "editor/debug/debug_function.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/debug/debug_entry_private.h"
#include "editor/debug/debug_expr.h"
#include "editor/debug/debug_line_files.h"
#include "editor/debug/debug_loc.h"
#include "editor/debug/debug_ranges.h"
#include "libprof/base/grow.h"

#define PARENTS_MAX (sizeof(((struct me_moved_function *)0)->parents) / sizeof(uint64_t))

struct planner {
	struct me_unit *u;
	const struct me_entry *own;
	uint64_t line_off;
	const char *comp_dir;
	struct me_line_files files; /* of the unit's line program */
	bool has_files;
	uint32_t cap;
	struct me_ranges code; /* of the function at hand */
};

/* ---- is it understood? --------------------------------------------------------------------- */

static uint64_t offset_of(const struct me_unit *u, const uint8_t *p)
{
	return (uint64_t)(p - u->file->info.data);
}

/* The list of locations that @v names by its number. Return: false: there is none. */
static bool find_numbered(const struct me_unit *u, const struct me_value *v, uint64_t *off)
{
	struct mp_cursor c = me_value_cursor(v);

	return v->form == DW_FORM_loclistx && u->has_loclists_base &&
	       !me_list_indexed(&u->file->loclists, u->loclists_base, mp_cursor_uleb(&c), off);
}

uint64_t me_value_registers(const struct me_unit *u, const struct me_value *v, uint64_t frame_base)
{
	uint64_t registers = 0, off;

	if (me_form_is_expression(v->form)) {
		struct mp_cursor c = me_value_expression(v);

		return me_expr_registers(u, c.p, (uint64_t)(c.end - c.p), frame_base);
	}
	if (me_value_is_offset(u, v))
		off = me_value_fixed(v);
	else if (!find_numbered(u, v, &off))
		return v->form == DW_FORM_loclistx ? UINT64_MAX : 0;
	return me_loc_registers(u, off, &registers) ? UINT64_MAX : registers;
}

static bool value_is_portable(const struct me_unit *u, unsigned int name, const struct me_value *v)
{
	if (me_form_is_reference(v->form))
		return me_value_reference(u, v) < u->end;
	if (me_form_is_expression(v->form) && name != DW_AT_const_value) {
		struct mp_cursor c = me_value_expression(v);

		return me_expr_is_portable(u, c.p, (uint64_t)(c.end - c.p));
	}
	/* Versions 2 and 3 do not tell lists from numbers. */
	if (v->form == DW_FORM_sec_offset || (u->version < 4 && v->form == DW_FORM_data4))
		switch (name) {
		case DW_AT_location:
		case DW_AT_frame_base:
		case DW_AT_data_member_location:
		case DW_AT_string_length:
		case DW_AT_return_addr:
		case DW_AT_static_link:
		case DW_AT_use_location:
		case DW_AT_vtable_elem_location:
		case DW_AT_segment: return !me_loc_each(u, me_value_fixed(v), me_expr_is_portable);
		default: return true;
		}
	if (v->form == DW_FORM_loclistx) {
		uint64_t off;

		return find_numbered(u, v, &off) && !me_loc_each(u, off, me_expr_is_portable);
	}
	return v->form != DW_FORM_indirect;
}

bool me_location_is_lost(const struct me_unit *u, const struct me_value *v)
{
	return v->p && !value_is_portable(u, DW_AT_location, v);
}

/* Can the added unit say that a variable has no location, in this form? */
static bool may_be_lost(const struct me_unit *u, const struct me_value *v)
{
	return v->form == DW_FORM_exprloc || v->form == DW_FORM_block1 || me_value_is_offset(u, v);
}

bool me_entry_is_call_site(const struct me_entry *e)
{
	switch (e->abbrev->tag) {
	case DW_TAG_call_site:
	case DW_TAG_call_site_parameter:
	case DW_TAG_GNU_call_site:
	case DW_TAG_GNU_call_site_parameter: return true;
	default: return false;
	}
}

/*
 * Does the value hold in code in place of calls that changes registers @changed? Locations of variables may be left out
 * there. What call sites say holds at calls only.
 */
static bool holds(const struct me_unit *u, const struct me_entry *e, unsigned int name,
		  const struct me_value *v, uint64_t changed)
{
	if (me_entry_is_call_site(e) || name == DW_AT_location || name == DW_AT_frame_base ||
	    name == DW_AT_const_value || !me_form_is_expression(v->form))
		return true;
	return !(me_value_registers(u, v, u->frame_base) & changed);
}

static bool entry_is_portable(const struct me_unit *u, const struct me_entry *e, uint64_t changed)
{
	const struct me_abbrevs *t = &u->file->abbrevs;
	struct mp_cursor c = mp_cursor_over(e->start + e->code_size, u->file->info.data + u->end);

	for (uint32_t i = 0; i < e->abbrev->nr_attrs; i++) {
		const struct me_abbrev_attr *a = &t->attrs[e->abbrev->first_attr + i];
		struct me_value v = {c.p, 0, a->form};

		me_form_skip(&c, a->form, u->version);
		v.size = (uint64_t)(c.p - v.p);
		if (c.bad)
			return false;
		if (a->name != DW_AT_sibling && !value_is_portable(u, a->name, &v) &&
		    (a->name != DW_AT_location || !may_be_lost(u, &v)))
			return false;
		if (!holds(u, e, a->name, &v, changed))
			return false;
	}
	return true;
}

/* Does the entry describe code of the original only? What is damaged might describe new code by chance. */
static bool is_old(const struct me_unit *u, const struct me_entry *e)
{
	struct me_debug_sections *file = u->file;

	if (e->abbrev->plain)
		return true;
	if (me_entry_read_ranges(u, e, &file->old))
		return false;
	for (uint32_t i = 0; i < file->old.nr; i++)
		if (file->old.ranges[i].hi > file->moves->first_new)
			return false;
	return true;
}

/*
 * Moves @c, which is behind the function's own entry, to the end of all entries below it. *@good: are all
 * portable, and has no function in it code of its own? @changed: by code in place of its calls. Return: 0, -EBADMSG,
 * -EPERM.
 */
static int read_below(struct me_unit *u, const struct me_entry *function, uint64_t changed,
		      struct mp_cursor *c, bool *good)
{
	uint32_t depth = function->abbrev->children;

	*good = changed && is_old(u, function) && entry_is_portable(u, function, changed);
	while (depth) {
		struct me_entry e;
		int rc = me_entry_read(u, c, &e);

		if (rc)
			return rc;
		if (!me_debug_spend(u->file, 1))
			return -EPERM;
		if (!e.abbrev) {
			depth--;
			continue;
		}
		depth += e.abbrev->children;
		if (*good)
			*good = is_old(u, &e) && entry_is_portable(u, &e, changed) &&
				(e.abbrev->tag != DW_TAG_subprogram || (!e.low.p && !e.ranges.p));
	}
	return 0;
}

/* The number of the list of ranges that @e has; UINT32_MAX: none, or its list is not numbered. */
static uint32_t list_of(const struct me_unit *u, const struct me_entry *e)
{
	struct mp_cursor c = me_value_cursor(&e->ranges);
	uint64_t nr = e->ranges.p && e->ranges.form == DW_FORM_rnglistx ? mp_cursor_uleb(&c)
									: UINT32_MAX;

	return nr < u->nr_lists ? (uint32_t)nr : UINT32_MAX;
}

/* Find out how often the unit uses each of its numbered lists of ranges. */
static int count_lists(struct me_unit *u, const struct me_entry *own)
{
	struct mp_cursor c = mp_cursor_over(own->start, u->file->info.data + u->end);
	uint32_t nr;
	int rc;

	if (!u->has_rnglists_base)
		return 0;
	rc = me_list_count(&u->file->rnglists, u->rnglists_base, &nr);
	if (rc || !me_debug_spend(u->file, nr))
		return rc ? rc : -EPERM;
	u->lists = calloc(nr + 1, 1);
	if (!u->lists)
		return -ENOMEM;
	u->nr_lists = nr;
	while (c.p < c.end) {
		struct me_entry e;
		uint32_t list;

		rc = me_entry_read(u, &c, &e);
		if (rc)
			return rc;
		list = list_of(u, &e);
		if (list == UINT32_MAX)
			continue;
		u->lists[list] |= u->lists[list] ? ME_LIST_SHARED : ME_LIST_USED;
		if (e.start == own->start)
			u->lists[list] |= ME_LIST_OWN;
	}
	return 0;
}

/* Can the old entry lose its ranges? */
static bool may_lose_ranges(const struct me_unit *u, const struct me_entry *e)
{
	uint32_t list = list_of(u, e);

	if (list != UINT32_MAX)
		return u->lists[list] == ME_LIST_USED;
	if (e->ranges.p)
		return me_value_is_offset(u, &e->ranges);
	return e->low.p && e->high.p && e->abbrev->change != ME_ABBREV_NONE;
}

/* ---- calls --------------------------------------------------------------------------------- */

static bool is_same_dir(const struct planner *p, const struct me_callee *callee)
{
	const char *dir = me_name_text(p->u->file, &callee->comp_dir);

	return p->comp_dir && dir && !strcmp(p->comp_dir, dir);
}

/* Can files of the called function be named in this unit's line program? */
static bool can_name(struct planner *p, const struct me_callee *callee)
{
	struct me_line_files from;

	if (!callee->found)
		return false;
	if (callee->line_off == p->line_off)
		return true;
	return p->has_files && me_line_files_read(p->u->file, callee->line_off, &from) &&
	       me_debug_spend(p->u->file, from.dirs.nr + from.files.nr) &&
	       me_line_files_fit(
		       &p->files, &from,
		       is_same_dir(p, callee) ? NULL : me_name_text(p->u->file, &callee->comp_dir));
}

/* Marks the calls in the function's code that can be described. Return: their number. */
static uint32_t mark_calls(struct planner *p, bool mark)
{
	struct me_inlined_calls *calls = &p->u->file->inlined;
	uint32_t nr = 0;

	for (uint32_t r = 0; r < p->code.nr; r++) {
		uint64_t end = p->code.ranges[r].hi;

		for (uint32_t i = me_inlined_from(calls, p->code.ranges[r].lo);
		     i < calls->nr && calls->calls[i].call < end; i++) {
			struct me_inlined *call = &calls->calls[i];

			if (call->described || !can_name(p, &calls->callees[call->callee]))
				continue;
			nr++;
			call->described = mark;
			if (!mark)
				continue;
			call->line_off = p->line_off;
			call->other_dir = !is_same_dir(p, &calls->callees[call->callee]);
		}
	}
	return nr;
}

/* The registers that code in place of any call in the function changes. */
static uint64_t changed_by_calls(const struct planner *p)
{
	const struct me_inlined_calls *calls = &p->u->file->inlined;
	uint64_t changed = 0;

	for (uint32_t r = 0; r < p->code.nr; r++)
		for (uint32_t i = me_inlined_from(calls, p->code.ranges[r].lo);
		     i < calls->nr && calls->calls[i].call < p->code.ranges[r].hi; i++)
			changed |= calls->callees[calls->calls[i].callee].changed;
	return changed;
}

/* ---- functions ----------------------------------------------------------------------------- */

static int take_code(struct planner *p)
{
	struct me_unit *u = p->u;

	for (uint32_t r = 0; r < p->code.nr; r++) {
		struct me_range range = p->code.ranges[r];

		me_ranges_add(&u->taken, range.lo, range.hi);
		me_moves_map(u->file->moves, range.lo, range.hi, &u->taken);
	}
	return u->taken.failed ? -ENOMEM : 0;
}

static int add_function(struct planner *p, const struct me_entry *e, const uint8_t *end,
			const uint64_t *parents, uint8_t nr_parents)
{
	struct me_unit *u = p->u;
	struct me_moved_function *f;

	if (mp_grow(u->functions, p->cap, u->nr_functions + 1))
		return -ENOMEM;
	f = &u->functions[u->nr_functions++];
	*f = (struct me_moved_function){
		.start = offset_of(u, e->start),
		.end = offset_of(u, end),
		.nr_parents = nr_parents,
	};
	for (uint8_t i = 0; i < nr_parents; i++)
		f->parents[i] = parents[i];
	if (!e->ranges.p)
		e->abbrev->touched = true;
	mark_calls(p, true);
	return take_code(p);
}

/* Reads function @e, and moves @c behind all of it. */
static int plan_function(struct planner *p, const struct me_entry *e, struct mp_cursor *c,
			 const uint64_t *parents, uint8_t nr_parents)
{
	bool good = false;
	int rc = me_entry_read_ranges(p->u, e, &p->code);

	if (rc == -ENOMEM)
		return rc;
	if (rc)
		p->code.nr = 0;
	me_ranges_join(&p->code, 0);
	rc = read_below(p->u, e, changed_by_calls(p), c, &good);
	if (rc || !good || !may_lose_ranges(p->u, e) || !mark_calls(p, false))
		return rc;
	return add_function(p, e, c->p, parents, nr_parents);
}

static int plan_all(struct planner *p, struct mp_cursor *c)
{
	uint64_t parents[PARENTS_MAX];
	uint32_t depth = 1, nr_parents = 0;

	while (depth && c->p < c->end) {
		struct me_entry e;
		int rc = me_entry_read(p->u, c, &e);

		if (rc)
			return rc;
		if (!e.abbrev) {
			depth--;
			if (nr_parents >= depth)
				nr_parents = depth ? depth - 1 : 0;
			continue;
		}
		/* Functions elsewhere than in namespaces stay. */
		if (depth == 1 + nr_parents && e.abbrev->tag == DW_TAG_subprogram &&
		    (e.low.p || e.ranges.p)) {
			rc = plan_function(p, &e, c, parents, (uint8_t)nr_parents);
			if (rc)
				return rc;
			continue;
		}
		if (!e.abbrev->children)
			continue;
		if (depth == 1 + nr_parents && e.abbrev->tag == DW_TAG_namespace &&
		    nr_parents < PARENTS_MAX && entry_is_portable(p->u, &e, 0))
			parents[nr_parents++] = offset_of(p->u, e.start);
		depth++;
	}
	return 0;
}

/* The added unit begins like the old one, up to the first entry that is no base type. */
static int find_prefix(struct me_unit *u, struct mp_cursor c)
{
	struct me_entry e;
	int rc = 0;

	u->prefix_end = offset_of(u, c.p);
	while (c.p < c.end) {
		rc = me_entry_read(u, &c, &e);
		if (rc || !e.abbrev || e.abbrev->tag != DW_TAG_base_type || e.abbrev->children)
			break;
		u->prefix_end = offset_of(u, c.p);
	}
	return rc;
}

/* Numbered lists of the functions that move are lists of the added unit. */
static int give_up_lists(struct me_unit *u)
{
	const uint8_t *data = u->file->info.data;

	for (uint32_t i = 0; i < u->nr_functions && u->nr_lists; i++) {
		struct mp_cursor c =
			mp_cursor_over(data + u->functions[i].start, data + u->functions[i].end);

		while (c.p < c.end) {
			struct me_entry e;
			int rc = me_entry_read(u, &c, &e);
			uint32_t list = rc ? UINT32_MAX : list_of(u, &e);

			if (rc)
				return rc;
			if (list != UINT32_MAX && u->lists[list] == ME_LIST_USED)
				u->lists[list] |= ME_LIST_LOST;
		}
	}
	return 0;
}

static bool may_add(const struct me_unit *u, const struct me_entry *own)
{
	const struct me_debug_sections *file = u->file;

	/* An index by name would lack the added unit. */
	return file->inlined.nr && !file->has_names && u->version >= 3 &&
	       u->type == DW_UT_compile && own->abbrev->tag == DW_TAG_compile_unit &&
	       own->abbrev->children && me_abbrevs_free_code(&file->abbrevs) < UINT16_MAX &&
	       me_value_is_offset(u, &own->stmt_list) &&
	       (!own->ranges.p || me_value_is_offset(u, &own->ranges) ||
		(own->ranges.form == DW_FORM_rnglistx && u->has_rnglists_base));
}

int me_functions_plan(struct me_unit *unit, const struct me_entry *own)
{
	struct planner p = {.u = unit, .own = own};
	struct mp_cursor c = mp_cursor_over(own->start, unit->file->info.data + unit->end);
	struct me_callee_name name;
	struct me_entry e;
	int rc;

	if (!may_add(unit, own))
		return 0;
	name = me_value_name(unit, &own->str_offsets_base, &own->comp_dir);
	p.comp_dir = me_name_text(unit->file, &name);
	p.line_off = me_value_fixed(&own->stmt_list);
	p.has_files = me_line_files_read(unit->file, p.line_off, &p.files);
	rc = me_entry_read(unit, &c, &e);
	if (!rc)
		rc = find_prefix(unit, c);
	if (!rc)
		rc = count_lists(unit, own);
	if (!rc)
		rc = plan_all(&p, &c);
	if (!rc)
		rc = give_up_lists(unit);
	me_ranges_join(&unit->taken, 0);
	if (unit->taken.failed || p.code.failed)
		rc = -ENOMEM;
	me_ranges_fini(&p.code);
	return rc;
}

void me_functions_fini(struct me_unit *unit)
{
	free(unit->functions);
	free(unit->lists);
	me_ranges_fini(&unit->taken);
	unit->functions = NULL;
	unit->lists = NULL;
	unit->nr_functions = unit->nr_lists = 0;
}
