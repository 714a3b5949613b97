// SPDX-License-Identifier: Apache-2.0
/* verify_odebug_lists - lists of ranges and locations, whose addresses are relocated. */
#include <errno.h>

#include "editor/verify/object/debug/verify_odebug_private.h"

/* A section of lists. */
struct lists {
	const struct od_side *side;
	uint32_t section;
};

bool od_indexed(const struct od_side *side, uint64_t index, struct vd_addr *out)
{
	uint64_t size = side->addr ? side->side->obj->sections[side->addr].header.sh_size : 0;

	if (side->unit.u.addr_base > size || index >= (size - side->unit.u.addr_base) / 8)
		return false;
	*out = od_field(side, side->addr, side->unit.u.addr_base + 8 * index, 8);
	return true;
}

static struct vd_addr field(const void *ctx, const uint8_t *p)
{
	const struct lists *lists = ctx;

	return od_field(lists->side, lists->section, od_offset(lists->side, lists->section, p), 8);
}

static bool indexed(const void *ctx, uint64_t index, struct vd_addr *out)
{
	return od_indexed(((const struct lists *)ctx)->side, index, out);
}

int od_read_list(struct od *od, struct od_side *side, bool locations, uint64_t off,
		 struct od_list *out)
{
	bool five = side->unit.u.version >= 5;
	struct lists lists = {.side = side};
	struct vd_list l = {.work = &od->work,
			    .from = {field, indexed, &lists},
			    .version = side->unit.u.version,
			    .locations = locations,
			    .base = side->unit.base};
	struct vd_range r;

	lists.section = locations ? (five ? side->loclists : side->loc)
				  : (five ? side->rnglists : side->ranges);
	out->nr = 0;
	out->section = lists.section;
	if (!lists.section)
		return od_refuse(od, side, side->unit.section, side->unit.u.off, "names a list");
	l.c = od_cursor_at(side, lists.section, off);
	while (vd_list_next(&l, &r)) {
		struct od_range range = {.section = r.start.section,
					 .start = r.start.off,
					 .end = r.end.off,
					 .anywhere = r.anywhere};

		if (locations) {
			range.expr = od_offset(side, lists.section, r.expr.p);
			range.expr_size = (uint64_t)(r.expr.end - r.expr.p);
		}
		if (r.start.section != r.end.section || range.start > range.end)
			l.c.bad = true;
		else if ((range.anywhere || range.start < range.end) && !od_add_range(out, &range))
			return -ENOMEM;
	}
	return l.c.bad ? od_refuse(od, side, lists.section, off, "is a damaged list") : 0;
}
