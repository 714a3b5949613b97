// SPDX-License-Identifier: Apache-2.0
/*
 * debug_callee - reads all units with code of inlined functions once, before any unit is extended: the functions
 * may belong to a later unit than their callers.
 */
#include "editor/debug/debug_callee.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/debug/debug_entry_private.h"
#include "editor/debug/debug_line.h"
#include "libprof/base/search.h"

static bool any_within(const struct me_inlined_calls *calls, const struct me_ranges *ranges)
{
	for (uint32_t i = 0; i < ranges->nr; i++) {
		uint32_t low = mp_search(k, 0, calls->nr_callees,
					 calls->callees[k].vaddr < ranges->ranges[i].lo);

		if (low < calls->nr_callees && calls->callees[low].vaddr < ranges->ranges[i].hi)
			return true;
	}
	return false;
}

static void note_callee(const struct me_unit *u, const struct me_entry *own,
			const struct me_entry *e, struct me_callee *callee)
{
	callee->abstract = me_value_target(u, &e->abstract_origin);
	callee->declaration = me_value_target(u, &e->specification);
	callee->name = me_value_name(u, &own->str_offsets_base, &e->name);
	callee->linkage_name = me_value_name(u, &own->str_offsets_base, &e->linkage_name);
	callee->line_off = me_value_fixed(&own->stmt_list);
	callee->comp_dir = me_value_name(u, &own->str_offsets_base, &own->comp_dir);
	callee->found = callee->abstract || callee->declaration || callee->name.form;
}

/* The place in a unit's entries, and the function that replaces calls whose entry is around. */
struct walk {
	struct me_unit *u;
	const struct me_entry *own;
	uint32_t depth;
	struct me_callee *callee; /* NULL: none */
	uint32_t callee_depth;
	uint32_t scopes[ME_CALLEE_SCOPES_MAX]; /* depths of the scopes around */
	uint32_t nr_scopes;
};

/* Is @e the entry of a function that replaces calls? */
static void note_function(struct walk *w, const struct me_entry *e)
{
	struct me_debug_sections *file = w->u->file;

	if (e->abbrev->tag != DW_TAG_subprogram || (!e->low.p && !e->ranges.p) ||
	    me_entry_read_ranges(w->u, e, &file->old))
		return;
	for (uint32_t i = 0; i < file->old.nr; i++) {
		struct me_callee *callee = me_callee_at(&file->inlined, file->old.ranges[i].lo);

		if (!callee || callee->found)
			continue;
		note_callee(w->u, w->own, e, callee);
		if (!e->abbrev->children)
			continue;
		w->callee = callee;
		w->callee_depth = w->depth;
		w->nr_scopes = 0;
	}
}

/* Is @e code that the compiler inlined into this function? Return: 0, -ENOMEM, -EPERM. */
static int note_scope(struct walk *w, const struct me_entry *e)
{
	struct me_debug_sections *file = w->u->file;
	struct me_callee *callee = w->callee;
	uint64_t origin = me_value_target(w->u, &e->abstract_origin);
	struct me_callee_scope *scope;

	if (e->abbrev->tag != DW_TAG_inlined_subroutine || !origin ||
	    callee->nr_scopes == ME_CALLEE_SCOPES_MAX ||
	    me_entry_read_ranges(w->u, e, &file->old) || !file->old.nr)
		return 0;
	if (!callee->scopes)
		callee->scopes = calloc(ME_CALLEE_SCOPES_MAX, sizeof(*callee->scopes));
	if (!callee->scopes)
		return -ENOMEM;
	if (!me_debug_spend(file, file->old.nr))
		return -EPERM;
	scope = &callee->scopes[callee->nr_scopes++];
	scope->origin = origin;
	scope->place = (struct me_call_place){me_value_number(&e->call_file),
					      me_value_number(&e->call_line),
					      me_value_number(&e->call_column)};
	scope->depth = w->nr_scopes;
	scope->first_range = callee->ranges.nr;
	for (uint32_t i = 0; i < file->old.nr; i++)
		me_ranges_add(&callee->ranges, file->old.ranges[i].lo, file->old.ranges[i].hi);
	scope->nr_ranges = callee->ranges.nr - scope->first_range;
	if (e->abbrev->children)
		w->scopes[w->nr_scopes++] = w->depth;
	return callee->ranges.failed ? -ENOMEM : 0;
}

static int note_entry(struct walk *w, const struct me_entry *e)
{
	int rc = 0;

	if (!e->abbrev) {
		w->depth -= w->depth > 0;
		if (w->callee && w->depth <= w->callee_depth)
			w->callee = NULL;
		if (w->nr_scopes && w->depth <= w->scopes[w->nr_scopes - 1])
			w->nr_scopes--;
		return 0;
	}
	if (w->callee)
		rc = note_scope(w, e);
	else
		note_function(w, e);
	w->depth += e->abbrev->children;
	return rc;
}

static int read_unit(struct me_unit *u, const struct me_entry *own)
{
	struct me_debug_sections *file = u->file;
	struct walk w = {.u = u, .own = own};
	struct mp_cursor c = mp_cursor_over(own->start, file->info.data + u->end);
	struct me_entry e;
	int rc = me_unit_read_ranges(u, own);

	if (rc || !me_value_is_offset(u, &own->stmt_list) ||
	    !any_within(&file->inlined, &file->old))
		return rc;
	rc = me_entry_read(u, &c, &e);
	while (!rc && c.p < c.end) {
		rc = me_entry_read(u, &c, &e);
		if (!rc)
			rc = note_entry(&w, &e);
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
	return me_inlined_make_files(&file->inlined);
}
