// SPDX-License-Identifier: Apache-2.0
/*
 * verify_odebug_line - the rows of both objects' line programs. Each pair of instructions must have
 * the same line, and the same statements must begin at both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/object/debug/verify_odebug_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* Opens the program at @off. */
static bool open_program(struct od *od, const struct od_side *side, uint64_t off, struct vd_line *l)
{
	return vd_line_open(od_cursor_at(side, side->line, off), &od->work, l) &&
	       l->min_insn == 1 && l->max_ops == 1;
}

static bool add_row(struct od_side *side, const struct od_row *row)
{
	if (mp_grow(side->rows, side->cap_rows, (uint64_t)side->nr_rows + 1)) {
		side->side->no_memory = true;
		return false;
	}
	side->rows[side->nr_rows++] = *row;
	return true;
}

/* Adds the rows of code. */
static bool read_program(struct od_side *side, struct vd_line *l, uint32_t program)
{
	struct vd_addr at = {0, 0};

	while (!l->c.bad && l->c.p < l->c.end) {
		enum vd_line_event event = vd_line_step(l);

		switch (event) {
		case VD_LINE_ROW:
		case VD_LINE_END:
			l->row.line &= UINT32_MAX;
			if (at.section &&
			    !add_row(side, &(struct od_row){at.section, program,
							    event == VD_LINE_END, l->row}))
				return false;
			vd_line_next_row(l);
			if (event == VD_LINE_ROW)
				break;
			vd_line_reset(l);
			at.section = 0;
			break;
		case VD_LINE_ADDRESS:
			at = od_field(side, side->line, od_offset(side, side->line, l->field), 8);
			l->row.address = at.off;
			if (!mp_relobj_is_code(&side->side->obj->sections[at.section]))
				at.section = 0;
			break;
		case VD_LINE_UNKNOWN: return false;
		default: break;
		}
	}
	return !l->c.bad;
}

/* A row's number before sorting says its order among those of one place. */
static int compare_rows(const void *a, const void *b)
{
	const struct od_row *x = a, *y = b;

	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	if (x->row.address != y->row.address)
		return x->row.address < y->row.address ? -1 : 1;
	return y->end - x->end;
}

/* qsort() is not stable; a merge sort is. */
static bool sort_rows(struct od_side *side)
{
	struct od_row *from = side->rows, *to = malloc(side->nr_rows * sizeof(*to) + 1);

	if (!to)
		return false;
	for (uint32_t width = 1; width < side->nr_rows; width *= 2) {
		struct od_row *swap;

		for (uint32_t i = 0, k; i < side->nr_rows; i = k) {
			uint32_t mid = side->nr_rows - i > width ? i + width : side->nr_rows;
			uint32_t end = side->nr_rows - mid > width ? mid + width : side->nr_rows;
			uint32_t a = i, b = mid;

			for (k = i; k < end; k++)
				to[k] = b == end || (a < mid &&
						     compare_rows(&from[a], &from[b]) <= 0)
						? from[a++]
						: from[b++];
		}
		swap = from;
		from = to;
		to = swap;
		if (width > UINT32_MAX / 2)
			break;
	}
	side->rows = from;
	side->cap_rows = side->nr_rows;
	free(to);
	return true;
}

static int read_side(struct od *od, struct od_side *side)
{
	uint64_t size = side->side->obj->sections[side->line].header.sh_size;

	for (uint64_t off = 0; off < size;) {
		struct vd_line l;

		if (mp_grow(side->programs, side->cap_programs, (uint64_t)side->nr_programs + 1))
			return -ENOMEM;
		side->programs[side->nr_programs++] = off;
		if (!open_program(od, side, off, &l))
			return od_refuse(od, side, side->line, off, "is no line program");
		if (!read_program(side, &l, side->nr_programs - 1))
			return od_refuse(od, side, side->line, off, "is a damaged line program");
		off = od_offset(side, side->line, l.c.end);
	}
	return sort_rows(side) ? 0 : -ENOMEM;
}

/* Headers name the files: they are the same, but for the length in their first 4 bytes. */
static int compare_headers(struct od *od)
{
	if (od->old.nr_programs != od->new.nr_programs)
		return od_refuse(od, &od->new, od->new.line, 0, "has other line programs");
	for (uint32_t i = 0; i < od->old.nr_programs; i++) {
		struct vo_place a = {od->old.line, (uint32_t)od->old.programs[i] + 4};
		struct vo_place b = {od->new.line, (uint32_t)od->new.programs[i] + 4};
		struct vd_line l;

		if (!open_program(od, &od->old, od->old.programs[i], &l) ||
		    !od_same_bytes(od, a, b, od_offset(&od->old, a.section, l.code) - a.off))
			return od_refuse(od, &od->new, b.section, b.off, "names other files");
	}
	return 0;
}

/* The last row at or before @place; NULL: it has no line. */
static const struct od_row *row_at(const struct od_side *side, struct vo_place place)
{
	const struct od_row *row = side->rows;
	uint32_t low =
		mp_search(i, 0, side->nr_rows,
			  row[i].section < place.section || (row[i].section == place.section &&
							     row[i].row.address <= place.off));

	row = low ? &side->rows[low - 1] : NULL;
	return row && row->section == place.section && !row->end ? row : NULL;
}

static bool same_line(const struct od_row *x, const struct od_row *y)
{
	const struct vd_row *a = &x->row, *b = &y->row;

	return x->program == y->program && a->file == b->file && a->line == b->line &&
	       a->column == b->column && a->isa == b->isa && a->discriminator == b->discriminator;
}

/* The row before @row at the same place that begins a statement; with @row itself if @self. */
static const struct od_row *statement(struct od *od, const struct od_side *side,
				      const struct od_row *row, struct vo_place place, bool self)
{
	if (!self)
		row--;
	for (; row >= side->rows && row->section == place.section &&
	       row->row.address == place.off && !row->end;
	     row--, vd_spend(&od->work, 1))
		if (row->row.flags & VD_STMT)
			return row;
	return NULL;
}

static bool same_rows(struct od *od, const struct od_pair *p)
{
	const struct od_row *a = row_at(&od->old, p->old), *b = row_at(&od->new, p->new);
	bool self = true;

	if (!a || !b)
		return !a && !b;
	if (!same_line(a, b))
		return false;
	for (;; self = false) {
		a = statement(od, &od->old, a, p->old, self);
		b = statement(od, &od->new, b, p->new, self);
		if (!a || !b)
			return !a && !b;
		if (!same_line(a, b) || a->row.flags != b->row.flags)
			return false;
	}
}

int od_lines(struct od *od)
{
	int rc;

	if (!od->old.line)
		return 0;
	rc = read_side(od, &od->old);
	if (!rc)
		rc = read_side(od, &od->new);
	if (!rc)
		rc = compare_headers(od);
	for (uint32_t i = 0; !rc && i < od->nr_pairs; i++)
		if (!vd_spend(&od->work, 1) || !same_rows(od, &od->by_old[i]))
			rc = od_refuse(od, &od->old, od->by_old[i].old.section,
				       od->by_old[i].old.off, "has another line in the new object");
	return rc;
}
