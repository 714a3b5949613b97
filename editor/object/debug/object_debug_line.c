// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_line - reads the line programs of an object. Sequences of code that moves are
 * written anew, others are copied. Called by object_debug.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/debug/object_debug_line_private.h"
#include "libprof/base/grow.h"

/* The state of a line program. */
struct machine {
	struct me_line_reader r;
	struct me_addr start; /* of the first row */
	bool placed, strange; /* an address was set; it is of no code that moves */
	uint32_t first_row, nr_relocs;
	uint64_t from; /* offset in .debug_line where the sequence begins */
};

static int damaged(const struct me_olines *lines)
{
	return me_odebug_refuse(lines->d, "has a line table that is not understood");
}

/* A sequence begins at the next opcode. */
static void reset(const struct me_olines *lines, struct machine *m)
{
	const uint8_t *data = me_odebug_section(lines->d, lines->d->line)->data;

	*m = (struct machine){
		.r = m->r, .first_row = lines->nr_rows, .from = (uint64_t)(m->r.c.p - data)};
	me_line_reset(&m->r);
}

static int read_header(struct me_olines *lines, struct me_oprogram *p)
{
	const struct mp_relobj_section *s = me_odebug_section(lines->d, lines->d->line);

	/* Rows are written with usual opcodes only. */
	if (me_line_header_read(s->data, s->header.sh_size, p->off, &p->h) || p->h.opcode_base > 13)
		return damaged(lines);
	p->code = (uint64_t)(p->h.code - s->data);
	p->end = (uint64_t)(p->h.end - s->data);
	return 0;
}

static int add_row(struct me_olines *lines, struct machine *m)
{
	struct me_line_row *row = &m->r.row;

	row->line &= UINT32_MAX;
	if (lines->nr_rows > m->first_row && lines->rows[lines->nr_rows - 1].address > row->address)
		return damaged(lines);
	if (mp_grow(lines->rows, lines->cap_rows, (uint64_t)lines->nr_rows + 1))
		return me_odebug_no_memory(lines->d);
	lines->rows[lines->nr_rows++] = *row;
	me_line_next_row(&m->r);
	return 0;
}

/* A sequence of code that stays, or of none, is copied. */
static int keep_sequence(struct me_olines *lines, struct me_oprogram *p, struct machine *m,
			 uint64_t to)
{
	struct me_odebug *d = lines->d;
	int64_t by = (int64_t)p->bytes.size - (int64_t)m->from;

	me_bytes_put(&p->bytes, me_odebug_section(d, d->line)->data + m->from, to - m->from);
	lines->nr_rows = m->first_row;
	return me_odebug_put_relocs(d, d->line, m->from, to, by, false, &p->relocs);
}

static int end_sequence(struct me_olines *lines, struct me_oprogram *p, struct machine *m,
			uint64_t to)
{
	struct me_odebug *d = lines->d;
	struct me_osequence *s;

	if (!m->placed || m->strange)
		return keep_sequence(lines, p, m, to);
	if (me_odebug_nr_relocs(d, d->line, m->from, to) != m->nr_relocs ||
	    (lines->nr_rows > m->first_row &&
	     lines->rows[lines->nr_rows - 1].address > m->r.row.address) ||
	    m->r.row.address > me_odebug_section(d, m->start.section)->header.sh_size)
		return damaged(lines);
	if (lines->nr_rows == m->first_row)
		return 0;
	if (mp_grow(lines->sequences, lines->cap_sequences, (uint64_t)lines->nr_sequences + 1))
		return me_odebug_no_memory(d);
	s = &lines->sequences[lines->nr_sequences++];
	*s = (struct me_osequence){
		.section = m->start.section,
		.program = (uint32_t)(p - lines->programs),
		.first_row = m->first_row,
		.nr_rows = lines->nr_rows - m->first_row,
		.start = lines->rows[m->first_row].address,
		.end = m->r.row.address,
	};
	return 0;
}

static int set_address(struct me_olines *lines, struct machine *m)
{
	struct me_odebug *d = lines->d;
	uint64_t off = (uint64_t)(m->r.address - me_odebug_section(d, d->line)->data);
	const Elf64_Rela *r = me_odebug_reloc_at(d, d->line, off);
	struct me_addr addr = me_odebug_field(d, d->line, off, 8);

	if (!r || !me_odebug_moves(d, addr)) {
		if (m->placed && !m->strange)
			return damaged(lines);
		m->placed = m->strange = true;
		return 0;
	}
	if (ELF64_R_TYPE(r->r_info) != R_X86_64_64 || m->strange ||
	    (m->placed && m->start.section != addr.section))
		return damaged(lines);
	m->start = addr;
	m->placed = true;
	m->nr_relocs++;
	m->r.row.address = addr.off;
	return 0;
}

static int read_opcode(struct me_olines *lines, struct me_oprogram *p, struct machine *m)
{
	const uint8_t *data = me_odebug_section(lines->d, lines->d->line)->data;
	enum me_line_event event;
	int rc;

	if (me_line_step(&m->r, &event) || m->r.rest)
		return damaged(lines);
	switch (event) {
	case ME_LINE_ROW: return add_row(lines, m);
	case ME_LINE_ADDRESS: return set_address(lines, m);
	case ME_LINE_END:
		rc = end_sequence(lines, p, m, (uint64_t)(m->r.c.p - data));
		reset(lines, m);
		return rc;
	case ME_LINE_FILE: return damaged(lines);
	default: return 0;
	}
}

static int read_program(struct me_olines *lines, struct me_oprogram *p)
{
	struct machine m = {.r = me_line_open(&p->h)};
	int rc = 0;

	reset(lines, &m);
	while (!rc && m.r.c.p < m.r.c.end)
		rc = read_opcode(lines, p, &m);
	/* Rows that no end_sequence closes. */
	return !rc && lines->nr_rows > m.first_row ? damaged(lines) : rc;
}

static int compare_sequences(const void *a, const void *b)
{
	const struct me_osequence *x = a, *y = b;

	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static int sort_sequences(struct me_olines *lines)
{
	struct me_osequence *s = lines->sequences;

	if (lines->nr_sequences)
		qsort(s, lines->nr_sequences, sizeof(*s), compare_sequences);
	for (uint32_t i = 1; i < lines->nr_sequences; i++)
		if (s[i - 1].section == s[i].section && s[i - 1].end > s[i].start)
			return me_odebug_refuse(lines->d, "has two lines for one instruction");
	return 0;
}

static int read_programs(struct me_olines *lines)
{
	uint64_t size = me_odebug_section(lines->d, lines->d->line)->header.sh_size;
	int rc = 0;

	for (uint64_t off = 0; !rc && off < size;) {
		struct me_oprogram *p;

		if (mp_grow(lines->programs, lines->cap_programs, (uint64_t)lines->nr_programs + 1))
			return me_odebug_no_memory(lines->d);
		p = &lines->programs[lines->nr_programs++];
		*p = (struct me_oprogram){.off = off};
		rc = read_header(lines, p);
		if (!rc)
			rc = read_program(lines, p);
		off = p->end;
	}
	return rc ? rc : sort_sequences(lines);
}

/* The section: the old headers, and the new opcodes. */
static int put_section(struct me_olines *lines)
{
	struct me_odebug *d = lines->d;
	const struct mp_relobj_section *s = me_odebug_section(d, d->line);
	struct me_odebug_section *to = &d->o->debug[d->line];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < lines->nr_programs; i++) {
		struct me_oprogram *p = &lines->programs[i];
		uint64_t start = to->bytes.size, opcodes;

		if (!me_odebug_add_shift(&d->lines, p->off, start))
			return me_odebug_no_memory(d);
		me_bytes_put(&to->bytes, s->data + p->off, p->code - p->off);
		rc = me_odebug_put_relocs(d, d->line, p->off, p->code, (int64_t)(start - p->off),
					  false, &to->relocs);
		opcodes = to->bytes.size;
		for (size_t k = 0; k < p->relocs.size; k += sizeof(Elf64_Rela)) {
			Elf64_Rela r;

			memcpy(&r, p->relocs.data + k, sizeof(r));
			r.r_offset += opcodes;
			me_bytes_put(&to->relocs, &r, sizeof(r));
		}
		me_bytes_put(&to->bytes, p->bytes.data, p->bytes.size);
		if (p->bytes.failed || p->relocs.failed || to->bytes.failed)
			return me_odebug_no_memory(d);
		me_bytes_patch_u32(&to->bytes, start, (uint32_t)(to->bytes.size - start - 4));
	}
	to->written = true;
	return rc;
}

int me_odebug_lines(struct me_odebug *d)
{
	struct me_olines lines = {.d = d};
	int rc = d->line ? read_programs(&lines) : 0;

	if (!rc && d->line) {
		me_olines_put(&lines);
		rc = put_section(&lines);
	}
	for (uint32_t i = 0; i < lines.nr_programs; i++) {
		me_bytes_fini(&lines.programs[i].bytes);
		me_bytes_fini(&lines.programs[i].relocs);
	}
	free(lines.programs);
	free(lines.sequences);
	free(lines.rows);
	return rc;
}
