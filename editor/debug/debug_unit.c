// SPDX-License-Identifier: Apache-2.0
/*
 * debug_unit - walks over a unit's entries twice. The first walk finds the entries whose code
 * was copied. The second changes a copy of the unit, which replaces the unit if there was no error.
 */
#include "editor/debug/debug_unit.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/debug/debug_clone.h"
#include "editor/debug/debug_entry_private.h"
#include "editor/debug/debug_function.h"
#include "editor/debug/debug_line.h"
#include "editor/debug/debug_loc.h"
#include "editor/debug/debug_ranges.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* ---- first walk: find the entries whose code was copied ---- */

static int mark_entry(struct me_unit *u, const struct me_entry *e)
{
	struct me_range r;
	bool moved;

	if (!e->low.p || !e->high.p || !me_entry_range(u, e, &r))
		return 0;
	moved = me_moves_any(u->file->moves, r.lo, r.hi);
	if (e->abbrev->change == ME_ABBREV_NONE)
		u->file->nr_scopes_left += moved;
	else if (moved || me_entry_leaves(u, e))
		e->abbrev->touched = true;
	return 0;
}

static int note_frame_base(struct me_unit *u, const struct me_entry *e)
{
	if (e->frame_base.p)
		u->frame_base |= me_value_registers(u, &e->frame_base, 0);
	return 0;
}

static int walk(struct me_unit *u, int (*visit)(struct me_unit *, const struct me_entry *))
{
	const uint8_t *data = u->file->info.data;
	struct mp_cursor c = mp_cursor_over(data + u->first, data + u->end);
	struct me_entry e;
	int rc = me_entry_read(u, &c, &e); /* the unit's own entry, see extend() */

	while (!rc && c.p < c.end) {
		rc = me_entry_read(u, &c, &e);
		if (!rc && e.abbrev && !(e.abbrev->plain && e.abbrev->size >= 0))
			rc = visit(u, &e);
	}
	return rc;
}

/* ---- second walk: change the entries ---- */

static void put_u32(struct me_unit *u, const struct me_value *v, uint32_t to)
{
	memcpy(me_unit_field(u, v->p), &to, sizeof(to));
}

/* The code of functions that move to an added unit is not this unit's. @is_own: of the unit's own entry. */
static int leave_out(struct me_unit *u, bool is_own)
{
	struct me_debug_sections *file = u->file;

	if (!is_own || !u->taken.nr)
		return 0;
	if (!me_debug_spend(file, (uint64_t)file->new.nr *(u->taken.nr + 1)))
		return -EPERM;
	me_ranges_subtract(&file->new, &u->taken);
	return file->new.failed ? -ENOMEM : 0;
}

/* Replace the range @r by a list: @r and its copies, or @r alone if it did not move. */
static int change_range(struct me_unit *u, const struct me_entry *e, struct me_range r,
			enum me_abbrev_change change)
{
	struct me_debug_sections *file = u->file;
	uint32_t off;
	int rc;

	file->old.nr = 0;
	me_ranges_add(&file->old, r.lo, r.hi);
	if (!me_ranges_extend(file, e->abbrev->tag == DW_TAG_subprogram, me_entry_leaves(u, e))) {
		struct me_ranges tmp = file->new;

		file->new = file->old;
		file->old = tmp;
	} else {
		file->nr_scopes++;
	}
	rc = leave_out(u, e->start == u->file->info.data + u->first);
	if (!rc)
		rc = me_ranges_write(u, &off);
	/* The value of low_pc stays, even if the attribute is DW_AT_entry_pc now. */
	if (!rc)
		me_abbrev_fill(me_unit_field(u, me_entry_list_field(e)),
			       change == ME_ABBREV_BOTH ? e->low.size + e->high.size : e->high.size,
			       off);
	return rc;
}

static int apply_one_range(struct me_unit *u, const struct me_entry *e)
{
	struct me_abbrev *a = e->abbrev;
	struct me_range r;

	if (!a->touched)
		return 0;
	if (!me_entry_range(u, e, &r))
		return -EBADMSG;
	if (!me_entry_is_changed(u, e))
		return 0;
	if (a->new_code) {
		uint8_t *code = me_unit_field(u, e->start);
		uint64_t left = a->new_code;

		for (unsigned int i = 0; i < e->code_size; i++, left >>= 7)
			code[i] = (uint8_t)((left & 0x7f) | (i + 1 < e->code_size ? 0x80 : 0));
		if (left)
			return -EPERM;
	}
	return change_range(u, e, r, a->change);
}

/* Replace a list by a longer one if anything in it moved. */
static int apply_ranges(struct me_unit *u, const struct me_entry *e)
{
	const struct me_value *v = &e->ranges;
	struct me_debug_sections *file = u->file;
	uint32_t off;
	int rc;

	if (!me_value_is_offset(u, v))
		return 0;
	rc = me_ranges_read(u, me_value_fixed(v), &file->old);
	if (rc ||
	    !me_ranges_extend(file, e->abbrev->tag == DW_TAG_subprogram, me_entry_leaves(u, e)))
		return rc;
	rc = leave_out(u, e->start == file->info.data + u->first);
	if (!rc)
		rc = me_ranges_write(u, &off);
	if (!rc)
		put_u32(u, v, off);
	file->nr_scopes++;
	return rc;
}

/* A failure here does not fail the unit: the variable then has no value in the copies. */
static int apply_locations(struct me_unit *u, const struct me_value *v,
			   const struct me_value *views)
{
	struct me_debug_section *s = u->version >= 5 ? &u->file->loclists : &u->file->loc;
	struct me_list_table before = u->loclists;
	size_t size = s->added.size;
	bool has_views = me_value_is_offset(u, views);
	uint32_t off, view_off = 0;
	int rc;

	if (!me_value_is_offset(u, v))
		return 0;
	off = (uint32_t)me_value_fixed(v);
	if (has_views)
		view_off = (uint32_t)me_value_fixed(views);
	rc = me_loc_extend(u, &off, has_views ? &view_off : NULL);
	if (rc == -ENOMEM)
		return rc;
	if (rc) {
		s->added.size = size;
		u->loclists = before;
		return 0;
	}
	put_u32(u, v, off);
	if (has_views)
		put_u32(u, views, view_off);
	return 0;
}

static int apply_entry(struct me_unit *u, const struct me_entry *e)
{
	struct me_value none = {0};
	uint64_t entry;
	int rc = 0;

	if (e->low.p && e->high.p)
		rc = apply_one_range(u, e);
	if (!rc && e->ranges.p)
		rc = apply_ranges(u, e);
	if (!rc && e->location.p)
		rc = apply_locations(u, &e->location, &e->locviews);
	if (!rc && e->frame_base.p)
		rc = apply_locations(u, &e->frame_base, &none);
	if (rc || !e->entry_pc.p || e->entry_pc.form != DW_FORM_addr ||
	    e->abbrev->tag == DW_TAG_subprogram)
		return rc;
	if (me_moves_address(u->file->moves, me_value_fixed(&e->entry_pc), &entry))
		memcpy(me_unit_field(u, e->entry_pc.p), &entry, sizeof(entry));
	return 0;
}

/* ---- the unit's own entry ---- */

static int read_base(const struct me_unit *u, const struct me_value *v, uint64_t *base, bool *has)
{
	*has = v->p;
	if (!v->p)
		return 0;
	if (!me_value_is_offset(u, v))
		return -EPERM;
	*base = me_value_fixed(v);
	return 0;
}

/* Read the bases of all other entries' lists and addresses. */
static int read_bases(struct me_unit *u, const struct me_entry *e)
{
	int rc = read_base(u, &e->addr_base, &u->addr_base, &u->has_addr_base);

	if (!rc)
		rc = read_base(u, &e->rnglists_base, &u->rnglists_base, &u->has_rnglists_base);
	if (!rc)
		rc = read_base(u, &e->loclists_base, &u->loclists_base, &u->has_loclists_base);
	if (!rc && e->low.p && !me_value_address(u, &e->low, &u->base))
		rc = -EBADMSG;
	return rc;
}

int me_unit_read_ranges(struct me_unit *u, const struct me_entry *own)
{
	return me_entry_read_ranges(u, own, &u->file->old);
}

static bool any_moved(const struct me_debug_sections *file)
{
	for (uint32_t i = 0; i < file->old.nr; i++)
		if (me_moves_any(file->moves, file->old.ranges[i].lo, file->old.ranges[i].hi))
			return true;
	return false;
}

/* Extend the numbered lists. They come first in their tables. */
static int renumber(struct me_unit *u, const struct me_entry *e)
{
	struct me_list_table none = {0};
	size_t size = u->file->loclists.added.size;
	int rc = u->has_rnglists_base ? me_ranges_renumber(u) : 0;

	if (!rc && u->rnglists.nr_offsets)
		put_u32(u, &e->rnglists_base, (uint32_t)u->rnglists.off + ME_LIST_HEADER);
	if (rc || !u->has_loclists_base)
		return rc;
	rc = me_loc_renumber(u);
	if (rc == -ENOMEM)
		return rc;
	if (rc) {
		u->file->loclists.added.size = size;
		u->loclists = none;
	} else if (u->loclists.nr_offsets) {
		put_u32(u, &e->loclists_base, (uint32_t)u->loclists.off + ME_LIST_HEADER);
	}
	return 0;
}

static int change_unit_entry(struct me_unit *u, const struct me_entry *e)
{
	struct me_range r;

	if (e->ranges.p)
		return apply_ranges(u, e);
	if (e->abbrev->change != ME_ABBREV_HIGH_ONLY)
		return apply_one_range(u, e);
	return me_entry_range(u, e, &r) ? change_range(u, e, r, ME_ABBREV_HIGH_ONLY) : -EBADMSG;
}

static int change_line(struct me_unit *u, const struct me_entry *e)
{
	uint32_t off;
	int rc;

	if (!e->stmt_list.p)
		return 0;
	if (!me_value_is_offset(u, &e->stmt_list))
		return -EPERM;
	rc = me_line_extend(u->file, me_value_fixed(&e->stmt_list), u->taken.nr ? &u->taken : NULL,
			    &off, &u->added_line);
	if (!rc)
		put_u32(u, &e->stmt_list, off);
	return rc;
}

/* Write a table for this unit if attributes of any entry changed. */
static int change_abbrevs(struct me_unit *u)
{
	struct me_debug_section *s = &u->file->abbrev;
	const struct me_abbrevs *t = &u->file->abbrevs;
	uint32_t off = (uint32_t)(s->size + s->added.size);
	bool any = false;

	for (uint32_t i = 0; i < t->nr; i++)
		any |= t->abbrevs[i].touched;
	if (!any)
		return 0;
	/* Limit the size: a declaration may be far longer than the entries that use it. */
	if (!me_debug_section_has_room(s, 0) ||
	    s->added.size > s->size + u->file->info.size + (1 << 20))
		return -EPERM;
	me_abbrevs_write(t, u->version, &s->added);
	memcpy(u->bytes + u->abbrev_field, &off, sizeof(off));
	return s->added.failed ? -ENOMEM : 0;
}

static int change(struct me_unit *u, const struct me_entry *own)
{
	int rc = u->file->inlined.nr ? walk(u, note_frame_base) : 0;

	if (!rc)
		rc = me_functions_plan(u, own);
	if (!rc)
		rc = walk(u, mark_entry);
	if (rc)
		return rc;
	if (!own->ranges.p) {
		me_abbrev_choose_own(&u->file->abbrevs, own->abbrev, u->version);
		if (own->abbrev->change == ME_ABBREV_NONE)
			return -EPERM;
		own->abbrev->touched = true;
	}
	me_abbrevs_choose(&u->file->abbrevs);
	rc = renumber(u, own);
	if (!rc)
		rc = change_unit_entry(u, own);
	if (!rc)
		rc = walk(u, apply_entry);
	if (!rc)
		rc = change_abbrevs(u);
	/* The lines tell where inlined calls stand. */
	if (!rc)
		rc = change_line(u, own);
	if (!rc)
		rc = me_functions_move(u, own);
	if (rc)
		return rc;
	me_ranges_end(u);
	me_loc_end(u);
	return 0;
}

/* ---- the unit ---- */

/* Return: 0, -EBADMSG, -EPERM. *@next: offset of the next unit; 0 if the length is damaged. */
static int read_header(struct me_unit *u, uint64_t *next)
{
	const struct me_debug_section *s = &u->file->info;
	struct me_unit_header h;
	int rc = me_unit_header_read(s->data, s->size, u->off, DW_UT_compile, &h);

	*next = u->end = h.end;
	u->first = h.first;
	u->version = h.version;
	u->type = h.type;
	u->abbrev_off = h.abbrev_off;
	u->abbrev_field = h.abbrev_field - u->off;
	return rc;
}

static int load_abbrevs(struct me_unit *u)
{
	struct me_debug_sections *file = u->file;
	int rc = 0;

	if (!file->abbrevs.nr || file->abbrevs.off != u->abbrev_off ||
	    file->abbrevs_version != u->version) {
		me_abbrevs_fini(&file->abbrevs);
		rc = me_abbrevs_read(file->abbrev.data, file->abbrev.size, u->abbrev_off,
				     u->version, &file->abbrevs);
		file->abbrevs_version = u->version;
	}
	if (!rc && !me_debug_spend(file, file->abbrevs.nr + 1))
		rc = -EPERM;
	if (!rc)
		me_abbrevs_begin(&file->abbrevs, u->version);
	return rc;
}

/* State to restore if the unit cannot be extended. */
struct sizes {
	size_t info, abbrev, ranges, rnglists, loc, loclists;
	uint32_t nr_scopes, nr_scopes_left, nr_described, nr_added;
};

static struct sizes sizes_now(const struct me_debug_sections *f)
{
	return (struct sizes){f->info.added.size,   f->abbrev.added.size,
			      f->ranges.added.size, f->rnglists.added.size,
			      f->loc.added.size,    f->loclists.added.size,
			      f->nr_scopes,	    f->nr_scopes_left,
			      f->nr_described,	    f->nr_added};
}

static void go_back(struct me_debug_sections *f, const struct sizes *to)
{
	f->info.added.size = to->info;
	f->abbrev.added.size = to->abbrev;
	f->ranges.added.size = to->ranges;
	f->rnglists.added.size = to->rnglists;
	f->loc.added.size = to->loc;
	f->loclists.added.size = to->loclists;
	f->nr_scopes = to->nr_scopes;
	f->nr_scopes_left = to->nr_scopes_left;
	f->nr_described = to->nr_described;
	while (f->nr_added > to->nr_added)
		me_ranges_fini(&f->added[--f->nr_added].ranges);
}

static int remember(struct me_debug_sections *file, uint64_t off)
{
	if (mp_grow(file->extended, file->cap_extended, file->nr_extended + 1))
		return -ENOMEM;
	file->extended[file->nr_extended++] = (uint32_t)off;
	return 0;
}

static int replace(struct me_unit *u, const struct me_entry *own)
{
	struct me_debug_sections *file = u->file;
	struct sizes before = sizes_now(file);
	uint64_t size = u->end - u->off;
	int rc;

	u->bytes = malloc(size);
	if (!u->bytes)
		return -ENOMEM;
	memcpy(u->bytes, file->info.data + u->off, size);
	rc = change(u, own);
	if (!rc)
		rc = remember(file, u->off);
	if (rc) {
		free(u->bytes);
		go_back(file, &before);
		return rc;
	}
	return me_debug_section_replace(&file->info, u->off, u->bytes, size);
}

int me_unit_open(struct me_unit *u, struct me_entry *own, uint64_t *next)
{
	struct mp_cursor c;
	int rc = read_header(u, next);

	*own = (struct me_entry){0};
	if (!rc)
		rc = load_abbrevs(u);
	if (rc)
		return rc;
	c = mp_cursor_over(u->file->info.data + u->first, u->file->info.data + u->end);
	if (c.p == c.end)
		return 0;
	rc = me_entry_read(u, &c, own);
	if (rc || !own->abbrev)
		return rc;
	/* me_entry_read() read no values: the unit has no attribute of interest, hence no code. */
	if (own->abbrev->plain) {
		own->abbrev = NULL;
		return 0;
	}
	return read_bases(u, own);
}

static int extend(struct me_unit *u, uint64_t *next)
{
	struct me_entry own;
	int rc = me_unit_open(u, &own, next);

	if (rc || !own.abbrev)
		return rc;
	rc = me_unit_read_ranges(u, &own);
	if (rc || !any_moved(u->file))
		return rc;
	rc = replace(u, &own);
	me_functions_fini(u);
	return rc;
}

int me_unit_extend(struct me_debug_sections *file, uint64_t off, uint64_t *next)
{
	struct me_unit unit = {.file = file, .off = off};
	int rc = extend(&unit, next);

	file->nr_units++;
	if (rc == -ENOMEM || file->old.failed || file->new.failed)
		return -ENOMEM;
	if (rc) {
		file->nr_left++;
		if (!file->why)
			file->why = rc == -EBADMSG ? "damaged" : "in an unsupported form";
	}
	return 0;
}

const struct me_added_unit *me_unit_added(const struct me_debug_sections *file, uint64_t off)
{
	uint32_t i = mp_search(k, 0, file->nr_added, file->added[k].old_off < off);

	return i < file->nr_added && file->added[i].old_off == off ? &file->added[i] : NULL;
}

bool me_unit_is_extended(const struct me_debug_sections *file, uint64_t off)
{
	uint32_t i = mp_search(k, 0, file->nr_extended, file->extended[k] < off);

	return i < file->nr_extended && file->extended[i] == off;
}
