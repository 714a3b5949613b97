// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_lists - reads lists of ranges and of locations, DWARF 2 to 5. Called by
 * object_debug_entry.
 */
#include <errno.h>

#include "editor/object/debug/object_debug_private.h"
#include "libprof/base/grow.h"

/* A section of lists, and the unit that they are of. */
struct lists {
	struct me_odebug *d;
	const struct me_ounit *unit;
	uint32_t section;
};

static struct me_addr field(const void *ctx, const uint8_t *p)
{
	const struct lists *l = ctx;

	return me_odebug_field(l->d, l->section,
			       (uint64_t)(p - me_odebug_section(l->d, l->section)->data), 8);
}

static bool indexed(const void *ctx, uint64_t index, struct me_addr *out)
{
	const struct lists *l = ctx;
	uint64_t at;

	return !me_odebug_indexed(l->d, l->unit, index, out, &at);
}

/* Return: 1: *@out is an entry of code; 0: there is no code; -EPERM. */
static int read_entry(const struct me_list_entry *e, const uint8_t *data, struct me_oentry *out)
{
	*out = (struct me_oentry){.section = e->start.section,
				  .start = e->start.off,
				  .end = e->end.off,
				  .expr = e->expr ? (uint64_t)(e->expr - data) : 0,
				  .expr_size = e->expr_size,
				  .anywhere = !e->bounded};
	if (!e->bounded)
		return e->expr != NULL;
	if (e->start.section != e->end.section)
		return -EPERM;
	if (out->start == out->end)
		return 0;
	/* Such a range is not in code of the object, or ends before it begins. */
	return out->section && out->start < out->end ? 1 : -EPERM;
}

int me_odebug_read_list(struct me_odebug *d, const struct me_ounit *unit, enum me_olists_kind kind,
			uint64_t off, struct me_olist *out)
{
	const struct lists lists = {d, unit, d->lists[kind].section};
	const struct mp_relobj_section *s = me_odebug_section(d, lists.section);
	struct me_list_reader r = {
		.c = mp_cursor_at(s->data, s->header.sh_size, off),
		.from = {field, indexed, &lists},
		.version = unit->version,
		.locations = kind == ME_OLISTS_LOC || kind == ME_OLISTS_LOCLISTS,
		.base = unit->base,
	};
	struct me_list_entry next = {0};
	int rc = !lists.section || !s->data || off >= s->header.sh_size ? -EPERM : 0;

	out->nr = 0;
	while (!rc) {
		struct me_oentry e;

		rc = me_list_next(&r, &next);
		if (rc || next.last)
			break;
		rc = read_entry(&next, s->data, &e);
		if (rc != 1)
			continue;
		if (mp_grow(out->entries, out->cap, (uint64_t)out->nr + 1))
			return me_odebug_no_memory(d);
		e.entry = !r.locations && !out->nr;
		out->entries[out->nr++] = e;
		rc = 0;
	}
	return !rc ? 0
		   : me_odebug_refuse(d, r.locations
						 ? "has a list of locations that is not understood"
						 : "has a list of ranges that is not understood");
}

int me_odebug_list_off(struct me_odebug *d, const struct me_ounit *unit, enum me_olists_kind kind,
		       uint64_t index, uint64_t *off)
{
	bool ranges = kind == ME_OLISTS_RNGLISTS;
	uint64_t base = ranges ? unit->rnglists_base : unit->loclists_base;
	const struct mp_relobj_section *s = me_odebug_section(d, d->lists[kind].section);
	struct mp_cursor c = mp_cursor_at(s->data, s->header.sh_size, base);

	if (!(ranges ? unit->has_rnglists_base : unit->has_loclists_base) || base < 4 ||
	    index >= s->header.sh_size)
		return me_odebug_refuse(d, "has a number of no list");
	mp_cursor_skip(&c, 4 * index);
	*off = base + mp_cursor_u32(&c);
	return c.bad ? me_odebug_refuse(d, "has a number of no list") : 0;
}
