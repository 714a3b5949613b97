// SPDX-License-Identifier: Apache-2.0
/*
 * verify_debug_line - where replaced calls stand in the source, by the original's line program. Of rows at one address,
 * the last one holds, up to the next address.
 */
#include <dwarf.h>
#include <errno.h>

#include "editor/verify/debug/verify_debug_private.h"
#include "libprof/base/search.h"

struct program {
	struct vd_line line;
	struct vd_row last; /* the last row before */
	bool has_last;
	struct vd_call *calls;
	uint32_t nr_calls;
};

static uint32_t first_call(const struct program *p, uint64_t address)
{
	return mp_search(i, 0, p->nr_calls, p->calls[i].call < address);
}

/* The last row is that of all code up to @end. */
static void let_go(struct program *p, uint64_t end)
{
	const struct vd_row *r = &p->last;

	if (!p->has_last)
		return;
	for (uint32_t i = first_call(p, r->address);
	     i < p->nr_calls && p->calls[i].call < end && vd_spend(p->line.work, 1); i++) {
		struct vd_call *call = &p->calls[i];

		call->seen = true;
		call->good |= call->file == r->file && call->line == r->line &&
			      call->column == r->column;
	}
}

static bool read_header(const struct vd *vd, const struct vd_file *file, uint64_t off,
			struct vd_line *l)
{
	return vd_line_open(vd_section_at(&file->line, off), vd->work, l) && l->opcode_base >= 10;
}

bool vd_line_is_program(const struct vd *vd, const struct vd_file *file, uint64_t off)
{
	struct vd_line l;

	return read_header(vd, file, off, &l);
}

int vd_line_compare(const struct vd *vd, uint64_t off, struct vd_call *calls, uint32_t nr)
{
	struct program p = {.calls = calls, .nr_calls = nr};
	struct vd_line *l = &p.line;

	if (!nr)
		return 0;
	if (!read_header(vd, &vd->o, off, l))
		return -EBADMSG;
	while (l->c.p < l->c.end && !l->c.bad) {
		enum vd_line_event event = vd_line_step(l);

		if (event != VD_LINE_ROW && event != VD_LINE_END)
			continue;
		let_go(&p, l->row.address);
		p.last = l->row;
		p.has_last = event == VD_LINE_ROW;
		if (event == VD_LINE_END)
			vd_line_reset(l);
	}
	return l->c.bad ? -EBADMSG : 0;
}
