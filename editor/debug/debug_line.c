// SPDX-License-Identifier: Apache-2.0
/*
 * debug_line - reads a line program, and writes it with rows for the copies appended.
 * The state machine is that of DWARF 5, section 6.2.
 */
#include "editor/debug/debug_line.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/debug/read/debug_form.h"
#include "editor/debug/debug_line_private.h"
#include "libprof/base/search.h"

/* ---- reading: collect the rows, and copy the opcodes to @out ---- */

struct machine {
	struct me_line_reader r;
	uint32_t first_row; /* of the current sequence */
	bool disordered;
};

static int add_row(struct me_line_program *p, struct machine *m)
{
	if (!me_debug_spend(p->file, 1))
		return -EPERM;
	if (mp_grow(p->rows, p->cap_rows, p->nr_rows + 1))
		return -ENOMEM;
	if (p->nr_rows > m->first_row && p->rows[p->nr_rows - 1].address > m->r.row.address)
		m->disordered = true;
	p->rows[p->nr_rows++] = m->r.row;
	me_line_next_row(&m->r);
	return 0;
}

/*
 * Before an opcode that appends a row: clears is_stmt if the row's code was copied. A debugger
 * then sets breakpoints only in the copies.
 */
static void set_stmt(struct me_line_program *p, const struct machine *m)
{
	const struct me_line_row *row = &m->r.row;
	bool copied = me_moves_any(p->file->moves, row->address, row->address + 1);
	bool want = row->flags & ME_LINE_STMT && !copied;

	if (want != p->out_stmt)
		me_bytes_u8(p->out, DW_LNS_negate_stmt);
	p->out_stmt = want;
}

static int end_sequence(struct me_line_program *p, struct machine *m, bool *split)
{
	struct me_line_sequence s = {.first_row = m->first_row,
				     .nr_rows = p->nr_rows - m->first_row,
				     .end = m->r.row.address};

	if (s.nr_rows)
		s.start = p->rows[m->first_row].address;
	if (!s.nr_rows || !me_moves_any(p->file->moves, s.start, s.end)) {
		p->nr_rows = m->first_row;
	} else {
		if (m->disordered || p->rows[p->nr_rows - 1].address > s.end)
			return -EBADMSG;
		s.split = p->taken && me_ranges_any(p->taken, s.start, s.end);
		if (mp_grow(p->sequences, p->cap_sequences, p->nr_sequences + 1))
			return -ENOMEM;
		p->sequences[p->nr_sequences++] = s;
	}
	me_line_reset(&m->r);
	m->first_row = p->nr_rows;
	m->disordered = false;
	*split = s.split;
	p->out_stmt = p->h.default_stmt;
	return 0;
}

/*
 * Copy one opcode to @out. If it appends a row, DW_LNS_negate_stmt may precede it,
 * depending on the row's address. A sequence that is split is not copied.
 */
static int read_opcode(struct me_line_program *p, struct machine *m)
{
	const uint8_t *start = m->r.c.p;
	enum me_line_event event;
	bool split = false;
	int rc = me_line_step(&m->r, &event);

	if (!rc && event == ME_LINE_ROW) {
		set_stmt(p, m);
		rc = add_row(p, m);
	}
	if (!rc && event == ME_LINE_END)
		rc = end_sequence(p, m, &split);
	if (rc)
		return rc;
	if (*start != DW_LNS_negate_stmt)
		me_bytes_put(p->out, start, (size_t)(m->r.c.p - start));
	if (split && !p->out->failed)
		p->out->size = p->sequence_at;
	if (event == ME_LINE_END)
		p->sequence_at = p->out->size;
	return 0;
}

/* Read the program at @off into @p: rows and sequences of moved code. Return: 0, -ENOMEM, -EBADMSG, -EPERM. */
static int line_program_read(struct me_line_program *p, uint64_t off)
{
	const struct me_debug_section *s = &p->file->line;
	struct machine m = {.first_row = 0};
	int rc = me_line_header_read(s->data, s->size, off, &p->h);

	p->off = off;
	if (rc)
		return rc;
	me_bytes_put(p->out, p->h.start, (size_t)(p->h.code - p->h.start));
	m.r = me_line_open(&p->h);
	p->out_stmt = p->h.default_stmt;
	p->sequence_at = p->out->size;
	while (!rc && m.r.c.p < m.r.c.end)
		rc = read_opcode(p, &m);
	/* The last rows lack an end_sequence, and readers differ in what they make of such rows. */
	return !rc && p->nr_rows > m.first_row ? -EBADMSG : rc;
}

static void line_program_fini(struct me_line_program *p)
{
	free(p->rows);
	free(p->sequences);
	free(p->parts);
	free(p->foreign);
}

/* ---- the whole program ---- */

static uint32_t find_move(const struct me_debug_sections *file, uint64_t off)
{
	return mp_search(i, 0, file->nr_line_moves, file->line_moves[i].old_off < off);
}

static int remember(struct me_debug_sections *file, uint64_t off, uint32_t new_off)
{
	uint32_t at = find_move(file, off);
	struct me_line_move *to;

	if (mp_grow(file->line_moves, file->cap_line_moves, file->nr_line_moves + 1))
		return -ENOMEM;
	to = file->line_moves + at;
	memmove(to + 1, to, (file->nr_line_moves - at) * sizeof(*to));
	*to = (struct me_line_move){(uint32_t)off, new_off};
	file->nr_line_moves++;
	return 0;
}

/* Fill in the length of the program that begins at @start of the added bytes. *@off: its offset. */
static int end_program(struct me_debug_section *s, size_t start, uint32_t *off)
{
	if (s->added.failed)
		return -ENOMEM;
	if (!me_debug_section_has_room(s, 0))
		return -EPERM;
	me_bytes_patch_u32(&s->added, start, (uint32_t)(s->added.size - start - 4));
	*off = (uint32_t)(s->size + start);
	return 0;
}

/* The program of the added unit: the code of its functions, with files of the functions inlined into them. */
static int add_program(struct me_line_program *p, uint32_t *off)
{
	size_t start = p->out->size;
	int rc = me_line_find_foreign(p);

	if (!rc)
		rc = me_line_put_header(p);
	if (!rc)
		rc = me_line_put_sequences(p, true);
	return rc ? rc : end_program(&p->file->line, start, off);
}

static int extend(struct me_line_program *p, uint64_t off, uint32_t *new_off, uint32_t *added_off)
{
	struct me_debug_section *s = &p->file->line;
	size_t start = s->added.size;
	int rc = line_program_read(p, off);

	if (!rc)
		rc = me_line_find_parts(p);
	if (!rc)
		rc = me_line_put_sequences(p, false);
	if (!rc)
		rc = end_program(s, start, new_off);
	*added_off = *new_off;
	if (!rc && p->taken)
		rc = add_program(p, added_off);
	if (s->added.failed)
		return -ENOMEM;
	if (rc || !p->nr_parts) {
		s->added.size = start;
		*new_off = *added_off = (uint32_t)off;
	}
	return rc;
}

int me_line_extend(struct me_debug_sections *file, uint64_t off, const struct me_ranges *taken,
		   uint32_t *new_off, uint32_t *added_off)
{
	struct me_line_program p = {.file = file, .out = &file->line.added, .taken = taken};
	uint32_t i = find_move(file, off);
	int rc;

	if (off > UINT32_MAX)
		return -EBADMSG;
	if (i < file->nr_line_moves && file->line_moves[i].old_off == off) {
		*new_off = *added_off = file->line_moves[i].new_off;
		return 0;
	}
	rc = extend(&p, off, new_off, added_off);
	line_program_fini(&p);
	return rc ? rc : remember(file, off, *new_off);
}

/* ---- rows of called functions -------------------------------------------------------------- */

/* Keep the rows of @callee. Return: 0, -ENOMEM. */
static int keep_rows(const struct me_line_program *p, const struct me_line_sequence *s,
		     struct me_callee *callee)
{
	uint32_t first = me_line_covering_row(p, s, callee->vaddr), end = s->first_row + s->nr_rows;
	uint32_t nr = 0;

	if (p->rows[first].address > callee->vaddr || callee->rows)
		return 0;
	while (first + nr < end && p->rows[first + nr].address < callee->end)
		nr++;
	callee->rows = malloc((size_t)nr * sizeof(*callee->rows));
	if (!callee->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++) {
		const struct me_line_row *row = &p->rows[first + i];

		callee->rows[i] = (struct me_callee_row){row->address, row->file, row->line,
							 row->column, row->flags & ME_LINE_STMT};
	}
	callee->nr_rows = nr;
	return 0;
}

int me_line_find_callees(struct me_debug_sections *file, uint64_t off)
{
	struct me_inlined_calls *calls = &file->inlined;
	struct me_bytes unused = {0};
	struct me_line_program p = {.file = file, .out = &unused};
	int rc = line_program_read(&p, off);

	for (uint32_t i = 0; i < p.nr_sequences && !rc; i++)
		for (uint32_t k = 0; k < calls->nr_callees && !rc; k++) {
			struct me_callee *callee = &calls->callees[k];

			if (!me_debug_spend(file, 1))
				rc = -EPERM;
			else if (callee->found && callee->line_off == off &&
				 p.sequences[i].start <= callee->vaddr &&
				 callee->end <= p.sequences[i].end)
				rc = keep_rows(&p, &p.sequences[i], callee);
		}
	if (unused.failed)
		rc = -ENOMEM;
	me_bytes_fini(&unused);
	line_program_fini(&p);
	return rc;
}
