// SPDX-License-Identifier: Apache-2.0
/*
 * verify_odebug - does the debug information of both objects say the same of their code? Sections;
 * .debug_aranges. Called by verify_object.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/object/debug/verify_odebug_private.h"

/* ---- .debug_aranges --------------------------------------------------------------------------- */

/* The next unit's table; *@unit: the field with its offset. */
static bool read_aranges(struct od_side *side, struct vf_cursor *c, uint64_t *unit,
			 struct od_list *out)
{
	uint64_t size = vf_cursor_fixed(c, 4);
	struct vf_cursor t = *c;

	out->nr = 0;
	if (!vf_cursor_skip(c, size) || vf_cursor_fixed(&t, 2) != 2)
		return false;
	t.end = c->p;
	*unit = od_offset(side, side->aranges, t.p);
	vf_cursor_skip(&t, 4);
	if (vf_cursor_fixed(&t, 2) != 8 || size < 12)
		return false;
	vf_cursor_skip(&t, -od_offset(side, side->aranges, t.p) & 15);
	while (!t.bad && t.end - t.p >= 16) {
		struct vd_addr start =
			od_field(side, side->aranges, od_offset(side, side->aranges, t.p), 8);
		struct od_range range = {.section = start.section, .start = start.off};

		vf_cursor_skip(&t, 8);
		range.end = range.start + vf_cursor_fixed(&t, 8);
		if (range.section && !od_add_range(out, &range))
			return false;
	}
	return !t.bad;
}

static int compare_aranges(struct od *od)
{
	struct vf_cursor a = od_cursor_at(&od->old, od->old.aranges, 0);
	struct vf_cursor b = od_cursor_at(&od->new, od->new.aranges, 0);

	while (a.p < a.end && b.p < b.end) {
		struct vo_place x = {od->old.aranges, 0}, y = {od->new.aranges, 0};
		uint64_t old, new;

		if (!read_aranges(&od->old, &a, &old, &od->was) ||
		    !read_aranges(&od->new, &b, &new, &od->now))
			return od_refuse(od, &od->new, y.section, 0, "has a damaged table");
		x.off = (uint32_t)old;
		y.off = (uint32_t) new;
		if (!od_same_bytes(od, x, y, 6) || !od_same_lists(od, &od->was, &od->now))
			return od_refuse(od, &od->new, y.section, y.off, "has other ranges");
	}
	return a.p < a.end || b.p < b.end
		       ? od_refuse(od, &od->new, od->new.aranges, 0, "has other tables")
		       : 0;
}

/* ---- sections --------------------------------------------------------------------------------- */

static int find_sections(struct od *od, struct od_side *side)
{
	static const char *const names[] = {".debug_line",     ".debug_abbrev",	  ".debug_addr",
					    ".debug_ranges",   ".debug_rnglists", ".debug_loc",
					    ".debug_loclists", ".debug_aranges"};
	uint32_t *const to[] = {&side->line,	 &side->abbrev, &side->addr,	 &side->ranges,
				&side->rnglists, &side->loc,	&side->loclists, &side->aranges};
	const struct mp_relobj *obj = side->side->obj;

	for (uint32_t i = 1; i < obj->nr_sections; i++) {
		if (!vo_is_debug(&obj->sections[i]))
			continue;
		if (i >= od->vo->old.obj->nr_sections &&
		    strcmp(obj->sections[i].name, ".debug_ranges") &&
		    strcmp(obj->sections[i].name, ".debug_rnglists"))
			return od_refuse(od, side, i, 0, "is an unexpected section");
		for (int k = 0; k < 8; k++) {
			if (strcmp(obj->sections[i].name, names[k]))
				continue;
			if (*to[k])
				return od_refuse(od, side, i, 0, "is there twice");
			*to[k] = i;
		}
	}
	return 0;
}

/* Addresses with numbers: those of code are compared where entries name them. */
static int compare_addrs(struct od *od)
{
	uint32_t section = od->old.addr;
	const struct mp_relobj_section *a = &od->vo->old.obj->sections[section];
	const struct mp_relobj_section *b = &od->vo->new.obj->sections[section];
	bool same = a->header.sh_size == b->header.sh_size && a->nr_relocs == b->nr_relocs &&
		    (!a->data || !memcmp(a->data, b->data, a->header.sh_size));

	for (uint32_t i = 0; same && i < a->nr_relocs; i++) {
		struct vd_addr x = od_field(&od->old, section, a->relocs[i].r_offset, 8);
		struct vd_addr y = od_field(&od->new, section, b->relocs[i].r_offset, 8);

		same = a->relocs[i].r_offset == b->relocs[i].r_offset &&
		       (vo_same_symbol(od->vo, &a->relocs[i], &b->relocs[i]) ||
			(x.section && mp_relobj_is_code(&od->vo->old.obj->sections[x.section]) &&
			 y.section && mp_relobj_is_code(&od->vo->new.obj->sections[y.section])));
	}
	return same ? 0 : od_refuse(od, &od->new, section, 0, "has other addresses");
}

static int compare_section(struct od *od, uint32_t i)
{
	const struct mp_relobj_section *a = &od->vo->old.obj->sections[i];
	const struct mp_relobj_section *b = &od->vo->new.obj->sections[i];
	const struct od_side *s = &od->old;

	if (!strcmp(a->name, ".debug_info") || !strcmp(a->name, ".debug_types"))
		return a->header.sh_size == b->header.sh_size
			       ? od_entries(od, i)
			       : od_refuse(od, &od->new, i, 0, "has another size");
	if (i == s->aranges)
		return compare_aranges(od);
	if (i == s->addr)
		return compare_addrs(od);
	/* Read from the entries that refer to them; lines are compared already. */
	if (i == s->line || i == s->abbrev || i == s->ranges || i == s->rnglists || i == s->loc ||
	    i == s->loclists)
		return 0;
	return a->header.sh_size == b->header.sh_size &&
			       od_same_bytes(od, (struct vo_place){i, 0}, (struct vo_place){i, 0},
					     a->data ? a->header.sh_size : 0)
		       ? 0
		       : od_refuse(od, &od->new, i, 0, "has other bytes");
}

static void side_fini(struct od_side *side)
{
	free(side->rows);
	free(side->programs);
	vd_abbrevs_fini(&side->unit.u.abbrevs);
}

int vo_debug(struct vo *vo)
{
	struct od od = {
		.vo = vo,
		.old = {.side = &vo->old},
		.new = {.side = &vo->new},
		/* The rest of an object is code, and relocations of three times the size. */
		.work = vd_work_for(((uint64_t)vo->old.obj->size + vo->new.obj->size) / 4)};
	const struct mp_relobj *obj = vo->old.obj;
	bool any = false;
	int rc;

	for (uint32_t i = 1; i < vo->new.obj->nr_sections; i++)
		any |= vo_is_debug(&vo->new.obj->sections[i]);
	if (!any)
		return 0;
	rc = find_sections(&od, &od.old);
	if (!rc)
		rc = find_sections(&od, &od.new);
	if (!rc)
		rc = od_pairs(&od);
	if (!rc)
		rc = od_lines(&od);
	for (uint32_t i = 1; !rc && i < obj->nr_sections; i++)
		if (vo_is_debug(&obj->sections[i]))
			rc = compare_section(&od, i);
	if (!rc && !od.work.left)
		rc = od_refuse(&od, &od.old, 0, 0, VD_TOO_LONG);
	side_fini(&od.old);
	side_fini(&od.new);
	free(od.by_old);
	free(od.by_new);
	free(od.was.list);
	free(od.now.list);
	free(od.code_was.list);
	free(od.code_now.list);
	return rc;
}
