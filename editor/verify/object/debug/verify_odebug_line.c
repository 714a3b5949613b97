// SPDX-License-Identifier: Apache-2.0
/*
 * verify_odebug_line - the rows of both objects' line programs. Each pair of instructions must have
 * the same line, and the same statements must begin at both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/grow.h"
#include "editor/verify/object/debug/verify_odebug_private.h"

enum {
	STMT = 1,
	BLOCK = 2,
	PROLOGUE_END = 4,
	EPILOGUE_BEGIN = 8
};

struct program {
	struct od_cursor c;
	uint64_t code; /* where the opcodes begin */
	uint8_t default_stmt, line_range, opcode_base;
	int8_t line_base;
	const uint8_t *lengths;
	struct od_row row;
	bool in_code;
};

static bool read_header(struct program *p)
{
	struct od_cursor *c = &p->c;
	uint64_t size = od_fixed(c, 4), version;

	if (c->bad || size > c->end - c->at)
		return false;
	c->end = c->at + size;
	version = od_fixed(c, 2);
	if (version == 5)
		od_skip(c, 2);
	p->code = od_fixed(c, 4);
	p->code += c->at;
	if (version < 2 || version > 5 || od_fixed(c, 1) != 1 ||
	    (version >= 4 && od_fixed(c, 1) != 1))
		return false;
	p->default_stmt = od_fixed(c, 1) != 0;
	p->line_base = (int8_t)od_fixed(c, 1);
	p->line_range = (uint8_t)od_fixed(c, 1);
	p->opcode_base = (uint8_t)od_fixed(c, 1);
	if (c->bad || p->code > c->end || p->code < c->at || !p->line_range || !p->opcode_base ||
	    p->opcode_base - 1u > p->code - c->at)
		return false;
	p->lengths = c->s->data + c->at;
	c->at = p->code;
	return true;
}

static void begin_sequence(struct program *p)
{
	p->row = (struct od_row){.program = p->row.program,
				 .file = 1,
				 .line = 1,
				 .flags = p->default_stmt ? STMT : 0};
	p->in_code = false;
}

static bool add_row(struct od_side *side, struct program *p, bool end)
{
	if (!me_grow(&side->rows, &side->cap_rows, (uint64_t)side->nr_rows + 1,
		     sizeof(*side->rows))) {
		side->side->no_memory = true;
		return false;
	}
	p->row.end = end;
	if (p->in_code)
		side->rows[side->nr_rows++] = p->row;
	p->row.flags &= STMT;
	p->row.discriminator = 0;
	return true;
}

static bool extended(struct od_side *side, struct program *p)
{
	uint64_t size = od_uleb(&p->c), next = p->c.at + size, at;
	struct od_addr addr;

	switch (od_fixed(&p->c, 1)) {
	case DW_LNE_end_sequence:
		if (!add_row(side, p, true))
			return false;
		begin_sequence(p);
		break;
	case DW_LNE_set_address:
		at = p->c.at;
		addr = od_field(side, side->line, at, 8);
		p->row.section = addr.section;
		p->row.off = addr.off;
		p->in_code = addr.section &&
			     mp_relobj_is_code(&side->side->obj->sections[addr.section]);
		break;
	case DW_LNE_set_discriminator: p->row.discriminator = od_uleb(&p->c); break;
	default: return false;
	}
	p->c.bad |= next > p->c.end || next < p->c.at;
	p->c.at = next;
	return true;
}

static bool standard(struct od_side *side, struct program *p, uint64_t opcode)
{
	struct od_cursor *c = &p->c;

	switch (opcode) {
	case DW_LNS_copy: return add_row(side, p, false);
	case DW_LNS_advance_pc: p->row.off += od_uleb(c); break;
	case DW_LNS_advance_line: p->row.line += (uint64_t)od_sleb(c); break;
	case DW_LNS_set_file: p->row.file = od_uleb(c); break;
	case DW_LNS_set_column: p->row.column = od_uleb(c); break;
	case DW_LNS_negate_stmt: p->row.flags ^= STMT; break;
	case DW_LNS_set_basic_block: p->row.flags |= BLOCK; break;
	case DW_LNS_const_add_pc: p->row.off += (255u - p->opcode_base) / p->line_range; break;
	case DW_LNS_fixed_advance_pc: p->row.off += od_fixed(c, 2); break;
	case DW_LNS_set_prologue_end: p->row.flags |= PROLOGUE_END; break;
	case DW_LNS_set_epilogue_begin: p->row.flags |= EPILOGUE_BEGIN; break;
	case DW_LNS_set_isa: p->row.isa = od_uleb(c); break;
	default:
		for (unsigned int i = 0; i < p->lengths[opcode - 1]; i++)
			od_uleb(c);
	}
	return true;
}

static bool read_program(struct od_side *side, struct program *p)
{
	while (!p->c.bad && p->c.at < p->c.end) {
		uint64_t opcode = od_fixed(&p->c, 1);
		bool good;

		if (opcode >= p->opcode_base) {
			p->row.off += (opcode - p->opcode_base) / p->line_range;
			p->row.line +=
				(uint64_t)(p->line_base +
					   (int64_t)((opcode - p->opcode_base) % p->line_range));
			good = add_row(side, p, false);
		} else {
			good = opcode ? standard(side, p, opcode) : extended(side, p);
		}
		p->row.line &= UINT32_MAX;
		if (!good)
			return false;
	}
	return !p->c.bad;
}

/* A row's number before sorting says its order among those of one place. */
static int compare_rows(const void *a, const void *b)
{
	const struct od_row *x = a, *y = b;

	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
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
		struct program p = {.c = od_cursor_at(side, side->line, off)};

		p.row.program = side->nr_programs;
		if (!me_grow(&side->programs, &side->cap_programs, (uint64_t)side->nr_programs + 1,
			     sizeof(*side->programs)))
			return -ENOMEM;
		side->programs[side->nr_programs++] = off;
		if (!read_header(&p))
			return od_refuse(od, side, side->line, off, "is no line program");
		begin_sequence(&p);
		if (!read_program(side, &p))
			return od_refuse(od, side, side->line, off, "is a damaged line program");
		off = p.c.end;
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
		struct program p = {.c = od_cursor_at(&od->old, a.section, od->old.programs[i])};

		if (!read_header(&p) || !od_same_bytes(od, a, b, p.code - a.off))
			return od_refuse(od, &od->new, b.section, b.off, "names other files");
	}
	return 0;
}

/* The last row at or before @place; NULL: it has no line. */
static const struct od_row *row_at(const struct od_side *side, struct vo_place place)
{
	uint32_t low = 0, high = side->nr_rows;
	const struct od_row *row;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		row = &side->rows[mid];
		if (row->section < place.section ||
		    (row->section == place.section && row->off <= place.off))
			low = mid + 1;
		else
			high = mid;
	}
	row = low ? &side->rows[low - 1] : NULL;
	return row && row->section == place.section && !row->end ? row : NULL;
}

static bool same_line(const struct od_row *a, const struct od_row *b)
{
	return a->program == b->program && a->file == b->file && a->line == b->line &&
	       a->column == b->column && a->isa == b->isa && a->discriminator == b->discriminator;
}

/* The row before @row at the same place that begins a statement; with @row itself if @self. */
static const struct od_row *statement(const struct od_side *side, const struct od_row *row,
				      struct vo_place place, bool self)
{
	if (!self)
		row--;
	for (; row >= side->rows && row->section == place.section && row->off == place.off &&
	       !row->end;
	     row--)
		if (row->flags & STMT)
			return row;
	return NULL;
}

static bool same_rows(const struct od *od, const struct od_pair *p)
{
	const struct od_row *a = row_at(&od->old, p->old), *b = row_at(&od->new, p->new);
	bool self = true;

	if (!a || !b)
		return !a && !b;
	if (!same_line(a, b))
		return false;
	for (;; self = false) {
		a = statement(&od->old, a, p->old, self);
		b = statement(&od->new, b, p->new, self);
		if (!a || !b)
			return !a && !b;
		if (!same_line(a, b) || a->flags != b->flags)
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
		if (!same_rows(od, &od->by_old[i]))
			rc = od_refuse(od, &od->old, od->by_old[i].old.section,
				       od->by_old[i].old.off, "has another line in the new object");
	return rc;
}
