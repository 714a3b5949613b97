// SPDX-License-Identifier: Apache-2.0
/*
 * debug_callee - reads all units with code of inlined functions once, before any unit is extended: the functions
 * may belong to a later unit than their callers.
 */
#include "editor/debug/debug_callee.h"

#include <errno.h>

#include "editor/debug/debug_entry_private.h"
#include "editor/debug/debug_form.h"
#include "editor/debug/debug_line.h"

static bool any_within(const struct me_inlined_calls *calls, const struct me_ranges *ranges)
{
	for (uint32_t i = 0; i < ranges->nr; i++) {
		uint32_t low = 0, high = calls->nr_callees;

		while (low < high) {
			uint32_t mid = low + (high - low) / 2;

			if (calls->callees[mid].vaddr < ranges->ranges[i].lo)
				low = mid + 1;
			else
				high = mid;
		}
		if (low < calls->nr_callees && calls->callees[low].vaddr < ranges->ranges[i].hi)
			return true;
	}
	return false;
}

static uint64_t find_reference(const struct me_unit *u, const struct me_value *v)
{
	if (v->p && me_form_is_reference(v->form))
		return me_value_reference(u, v);
	return v->p && v->form == DW_FORM_ref_addr && v->size == 4 ? me_value_fixed(v) : 0;
}

static bool is_strx(unsigned int form)
{
	return form == DW_FORM_strx || (form >= DW_FORM_strx1 && form <= DW_FORM_strx4);
}

static struct me_callee_name find_name(const struct me_unit *u, const struct me_value *base,
				       const struct me_value *v)
{
	const struct me_debug_section *s = &u->file->str_offsets;
	struct me_cursor c = me_value_cursor(v);
	/* A table begins behind a header of 8 bytes. */
	uint64_t first = base->p ? me_value_fixed(base) : 8, index;

	if (v->p && (v->form == DW_FORM_strp || v->form == DW_FORM_line_strp))
		return (struct me_callee_name){v->form, me_cursor_u32(&c), NULL};
	if (v->p && v->form == DW_FORM_string)
		return (struct me_callee_name){v->form, 0, (const char *)v->p};
	if (!v->p || !is_strx(v->form))
		return (struct me_callee_name){0};
	index = v->form == DW_FORM_strx ? me_cursor_uleb(&c)
					: me_cursor_fixed(&c, (unsigned int)v->size);
	if (first > s->size || index > s->size / 4)
		return (struct me_callee_name){0};
	c = me_cursor_at(s->data, s->size, first + 4 * index);
	index = me_cursor_u32(&c);
	return c.bad ? (struct me_callee_name){0}
		     : (struct me_callee_name){DW_FORM_strp, (uint32_t)index, NULL};
}

static void note_callee(const struct me_unit *u, const struct me_entry *own,
			const struct me_entry *e, struct me_callee *callee)
{
	bool fixed = own->comp_dir.form == DW_FORM_strp || own->comp_dir.form == DW_FORM_line_strp;

	callee->abstract = find_reference(u, &e->abstract_origin);
	callee->declaration = find_reference(u, &e->specification);
	callee->name = find_name(u, &own->str_offsets_base, &e->name);
	callee->linkage_name = find_name(u, &own->str_offsets_base, &e->linkage_name);
	callee->line_off = me_value_fixed(&own->stmt_list);
	callee->dir_form = fixed ? own->comp_dir.form : 0;
	callee->dir = fixed ? me_value_fixed(&own->comp_dir) : 0;
	callee->found = callee->abstract || callee->declaration || callee->name.form;
}

/* Is @e the entry of an inlined function? */
static void note_entry(struct me_unit *u, const struct me_entry *own, const struct me_entry *e)
{
	struct me_debug_sections *file = u->file;

	if (e->abbrev->tag != DW_TAG_subprogram || (!e->low.p && !e->ranges.p) ||
	    me_entry_read_ranges(u, e, &file->old))
		return;
	for (uint32_t i = 0; i < file->old.nr; i++) {
		struct me_callee *callee = me_callee_at(&file->inlined, file->old.ranges[i].lo);

		if (callee && !callee->found)
			note_callee(u, own, e, callee);
	}
}

static int read_unit(struct me_unit *u, const struct me_entry *own)
{
	struct me_debug_sections *file = u->file;
	struct me_cursor c = {own->start, file->info.data + u->end, false};
	struct me_entry e;
	int rc = me_unit_read_ranges(u, own);

	if (rc || !me_value_is_offset(u, &own->stmt_list) ||
	    !any_within(&file->inlined, &file->old))
		return rc;
	rc = me_entry_read(u, &c, &e);
	while (!rc && c.p < c.end) {
		rc = me_entry_read(u, &c, &e);
		if (!rc && e.abbrev)
			note_entry(u, own, &e);
	}
	return rc ? rc : me_line_find_callees(file, me_value_fixed(&own->stmt_list));
}

int me_callees_find(struct me_debug_sections *file)
{
	uint64_t next;

	for (uint64_t off = 0; off < file->info.size && file->inlined.nr; off = next) {
		struct me_unit u = {.file = file, .off = off};
		struct me_entry own;
		int rc = me_unit_open(&u, &own, &next);

		if (!rc && own.abbrev)
			rc = read_unit(&u, &own);
		if (rc == -ENOMEM || file->old.failed)
			return -ENOMEM;
		if (!next)
			break;
	}
	for (uint32_t i = 0; i < file->inlined.nr_callees; i++)
		file->inlined.callees[i].found &= file->inlined.callees[i].nr_rows > 0;
	return 0;
}
