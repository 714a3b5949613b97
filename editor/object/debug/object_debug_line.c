// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_line - reads the line programs of an object. Sequences of code that moves are
 * written anew, others are copied. Called by object_debug.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/grow.h"
#include "editor/object/debug/object_debug_line_private.h"

/* The state of a line program. */
struct machine {
	struct me_orow row;
	struct me_oaddr start; /* of the first row */
	bool placed, strange;  /* an address was set; it is of no code that moves */
	uint32_t first_row, nr_relocs;
	uint64_t from; /* offset in .debug_line where the sequence begins */
};

static int damaged(const struct me_olines *lines)
{
	return me_odebug_refuse(lines->d, "has a line table that is not understood");
}

static void reset(const struct me_olines *lines, const struct me_oprogram *p, uint64_t from,
		  struct machine *m)
{
	*m = (struct machine){
		.row = {.file = 1, .line = 1, .flags = p->default_stmt ? ME_OROW_STMT : 0},
		.first_row = lines->nr_rows,
		.from = from,
	};
}

static int read_header(struct me_olines *lines, struct me_oprogram *p)
{
	static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	const struct mp_relobj_section *s = me_odebug_section(lines->d, lines->d->line);
	struct mp_cursor c = mp_cursor_at(s->data, s->header.sh_size, p->off);
	uint32_t size = mp_cursor_u32(&c), header;
	unsigned int version = mp_cursor_u16(&c), nr;
	const uint8_t *operands;

	if (c.bad || size >= 0xfffffff0 || size > s->header.sh_size - p->off - 4 || version < 2 ||
	    version > 5)
		return damaged(lines);
	p->end = p->off + 4 + size;
	if (version == 5 && mp_cursor_u16(&c) != 8) /* of an address; of a segment: 0 */
		return damaged(lines);
	header = mp_cursor_u32(&c);
	p->code = (uint64_t)(c.p - s->data) + header;
	if (mp_cursor_u8(&c) != 1 || (version >= 4 && mp_cursor_u8(&c) != 1))
		return damaged(lines);
	p->default_stmt = mp_cursor_u8(&c);
	p->line_base = (int8_t)mp_cursor_u8(&c);
	p->line_range = mp_cursor_u8(&c);
	p->opcode_base = mp_cursor_u8(&c);
	nr = p->opcode_base - 1u;
	operands = mp_cursor_skip(&c, nr);
	if (c.bad || !p->line_range || p->opcode_base < 10 || nr > sizeof(lengths) ||
	    memcmp(operands, lengths, nr) || p->code > p->end || p->code < p->off)
		return damaged(lines);
	return 0;
}

static int add_row(struct me_olines *lines, struct machine *m)
{
	uint8_t flags = m->row.flags;

	if (lines->nr_rows > m->first_row && lines->rows[lines->nr_rows - 1].off > m->row.off)
		return damaged(lines);
	if (!me_grow(&lines->rows, &lines->cap_rows, (uint64_t)lines->nr_rows + 1,
		     sizeof(*lines->rows)))
		return me_odebug_no_memory(lines->d);
	lines->rows[lines->nr_rows++] = m->row;
	m->row.flags = flags & ME_OROW_STMT;
	m->row.discriminator = 0;
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
	    (lines->nr_rows > m->first_row && lines->rows[lines->nr_rows - 1].off > m->row.off) ||
	    m->row.off > me_odebug_section(d, m->start.section)->header.sh_size)
		return damaged(lines);
	if (lines->nr_rows == m->first_row)
		return 0;
	if (!me_grow(&lines->sequences, &lines->cap_sequences, (uint64_t)lines->nr_sequences + 1,
		     sizeof(*lines->sequences)))
		return me_odebug_no_memory(d);
	s = &lines->sequences[lines->nr_sequences++];
	*s = (struct me_osequence){
		.section = m->start.section,
		.program = (uint32_t)(p - lines->programs),
		.first_row = m->first_row,
		.nr_rows = lines->nr_rows - m->first_row,
		.start = lines->rows[m->first_row].off,
		.end = m->row.off,
	};
	return 0;
}

static int set_address(struct me_olines *lines, struct machine *m, uint64_t off)
{
	struct me_odebug *d = lines->d;
	const Elf64_Rela *r = me_odebug_reloc_at(d, d->line, off);
	struct me_oaddr addr = me_odebug_field(d, d->line, off, 8);

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
	m->row.off = addr.off;
	return 0;
}

static int extended(struct me_olines *lines, struct me_oprogram *p, struct machine *m,
		    struct mp_cursor *c)
{
	const uint8_t *data = me_odebug_section(lines->d, lines->d->line)->data;
	uint64_t size = mp_cursor_uleb(c);
	const uint8_t *start = mp_cursor_skip(c, size);
	struct mp_cursor in = {.p = start, .end = c->p, .bad = c->bad};
	int rc = 0;

	if (c->bad)
		return damaged(lines);
	switch (mp_cursor_u8(&in)) {
	case DW_LNE_end_sequence:
		rc = end_sequence(lines, p, m, (uint64_t)(c->p - data));
		reset(lines, p, (uint64_t)(c->p - data), m);
		break;
	case DW_LNE_set_address:
		if (size != 9)
			return damaged(lines);
		return set_address(lines, m, (uint64_t)(in.p - data));
	case DW_LNE_set_discriminator: m->row.discriminator = mp_cursor_uleb(&in); break;
	default: return damaged(lines);
	}
	return rc ? rc : in.bad || in.p != in.end ? damaged(lines) : 0;
}

static int standard(struct me_olines *lines, const struct me_oprogram *p, struct machine *m,
		    uint8_t opcode, struct mp_cursor *c)
{
	switch (opcode) {
	case DW_LNS_copy: return add_row(lines, m);
	case DW_LNS_advance_pc: m->row.off += mp_cursor_uleb(c); break;
	case DW_LNS_advance_line: m->row.line += (uint64_t)mp_cursor_sleb(c); break;
	case DW_LNS_set_file: m->row.file = mp_cursor_uleb(c); break;
	case DW_LNS_set_column: m->row.column = mp_cursor_uleb(c); break;
	case DW_LNS_negate_stmt: m->row.flags ^= ME_OROW_STMT; break;
	case DW_LNS_set_basic_block: m->row.flags |= ME_OROW_BLOCK; break;
	case DW_LNS_const_add_pc: m->row.off += (255u - p->opcode_base) / p->line_range; break;
	case DW_LNS_fixed_advance_pc: m->row.off += mp_cursor_u16(c); break;
	case DW_LNS_set_prologue_end: m->row.flags |= ME_OROW_PROLOGUE_END; break;
	case DW_LNS_set_epilogue_begin: m->row.flags |= ME_OROW_EPILOGUE_BEGIN; break;
	case DW_LNS_set_isa: m->row.isa = mp_cursor_uleb(c); break;
	default: return damaged(lines);
	}
	m->row.line &= UINT32_MAX;
	return 0;
}

static int read_program(struct me_olines *lines, struct me_oprogram *p)
{
	const struct mp_relobj_section *s = me_odebug_section(lines->d, lines->d->line);
	struct mp_cursor c = mp_cursor_at(s->data, p->end, p->code);
	struct machine m;
	int rc = 0;

	reset(lines, p, p->code, &m);
	while (!rc && c.p < c.end) {
		uint8_t opcode = mp_cursor_u8(&c);

		if (opcode >= p->opcode_base) {
			uint8_t value = (uint8_t)(opcode - p->opcode_base);

			m.row.off += value / p->line_range;
			m.row.line += (uint64_t)(int64_t)(p->line_base + value % p->line_range);
			m.row.line &= UINT32_MAX;
			rc = add_row(lines, &m);
		} else if (!opcode) {
			rc = extended(lines, p, &m, &c);
		} else {
			rc = standard(lines, p, &m, opcode, &c);
		}
		if (!rc && c.bad)
			rc = damaged(lines);
	}
	/* Rows that no end_sequence closes. */
	return rc ? rc : lines->nr_rows > m.first_row ? damaged(lines) : 0;
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

		if (!me_grow(&lines->programs, &lines->cap_programs,
			     (uint64_t)lines->nr_programs + 1, sizeof(*lines->programs)))
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
