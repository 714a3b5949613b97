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

bool me_line_grow(void **array, uint32_t nr, uint32_t *cap, size_t size)
{
	void *grown;

	if (nr < *cap)
		return true;
	grown = realloc(*array, (*cap ? 2 * (size_t)*cap : 64) * size);
	if (!grown)
		return false;
	*array = grown;
	*cap = *cap ? 2 * *cap : 64;
	return true;
}

static int read_header(struct me_line_program *p, uint64_t off)
{
	static const uint8_t usual[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	const struct me_debug_section *s = &p->file->line;
	struct mp_cursor c = mp_cursor_at(s->data, s->size, off);
	uint32_t length = mp_cursor_u32(&c), header_length;
	unsigned int version, nr;

	if (c.bad)
		return -EBADMSG;
	if (length >= 0xfffffff0)
		return -EPERM;
	if (length > (uint64_t)(c.end - c.p))
		return -EBADMSG;
	p->data = s->data + off;
	p->end = c.end = c.p + length;
	version = mp_cursor_u16(&c);
	if (version < 2 || version > 5 || (version == 5 && mp_cursor_u16(&c) != 8))
		return c.bad ? -EBADMSG : -EPERM;
	header_length = mp_cursor_u32(&c);
	if (c.bad || header_length > (uint64_t)(c.end - c.p))
		return -EBADMSG;
	p->code = c.p + header_length;
	c.end = p->code;
	/* x86: instructions of at least one byte, one operation in each. */
	if (mp_cursor_u8(&c) != 1 || (version >= 4 && mp_cursor_u8(&c) != 1))
		return c.bad ? -EBADMSG : -EPERM;
	p->default_stmt = mp_cursor_u8(&c);
	p->line_base = (int8_t)mp_cursor_u8(&c);
	p->line_range = mp_cursor_u8(&c);
	p->opcode_base = mp_cursor_u8(&c);
	if (c.bad || !p->line_range || p->opcode_base < 10)
		return -EBADMSG;
	nr = p->opcode_base - 1u;
	p->lengths = mp_cursor_skip(&c, nr);
	if (c.bad)
		return -EBADMSG;
	return memcmp(p->lengths, usual, nr < sizeof(usual) ? nr : sizeof(usual)) ? -EPERM : 0;
}

/* ---- reading: collect the rows, and copy the opcodes to @out ---- */

struct machine {
	struct me_line_row now;
	uint32_t first_row; /* of the current sequence */
	bool disordered;
	bool ended, split; /* the last opcode ended a sequence, whose opcodes are not copied */
};

static void reset(const struct me_line_program *p, struct machine *m)
{
	*m = (struct machine){.first_row = p->nr_rows};
	m->now.state = (struct me_line_state){
		.file = 1, .line = 1, .flags = p->default_stmt ? ME_LINE_STMT : 0};
}

static int add_row(struct me_line_program *p, struct machine *m)
{
	if (!me_debug_spend(p->file, 1))
		return -EPERM;
	if (!me_line_grow((void **)&p->rows, p->nr_rows, &p->cap_rows, sizeof(*p->rows)))
		return -ENOMEM;
	if (p->nr_rows > m->first_row && p->rows[p->nr_rows - 1].address > m->now.address)
		m->disordered = true;
	p->rows[p->nr_rows++] = m->now;
	m->now.state.flags &= ME_LINE_STMT;
	m->now.state.discriminator = 0;
	return 0;
}

/*
 * Before an opcode that appends a row: clears is_stmt if the row's code was copied. A debugger
 * then sets breakpoints only in the copies.
 */
static void set_stmt(struct me_line_program *p, const struct machine *m)
{
	bool copied = me_moves_any(p->file->moves, m->now.address, m->now.address + 1);
	bool want = m->now.state.flags & ME_LINE_STMT && !copied;

	if (want != p->out_stmt)
		me_bytes_u8(p->out, DW_LNS_negate_stmt);
	p->out_stmt = want;
}

static int end_sequence(struct me_line_program *p, struct machine *m)
{
	struct me_line_sequence s = {.first_row = m->first_row,
				     .nr_rows = p->nr_rows - m->first_row,
				     .end = m->now.address};

	if (s.nr_rows)
		s.start = p->rows[m->first_row].address;
	if (!s.nr_rows || !me_moves_any(p->file->moves, s.start, s.end)) {
		p->nr_rows = m->first_row;
	} else {
		if (m->disordered || p->rows[p->nr_rows - 1].address > s.end)
			return -EBADMSG;
		s.split = p->taken && me_ranges_any(p->taken, s.start, s.end);
		if (!me_line_grow((void **)&p->sequences, p->nr_sequences, &p->cap_sequences,
				  sizeof(*p->sequences)))
			return -ENOMEM;
		p->sequences[p->nr_sequences++] = s;
	}
	reset(p, m);
	m->ended = true;
	m->split = s.split;
	p->out_stmt = p->default_stmt;
	return 0;
}

static int extended_opcode(struct me_line_program *p, struct machine *m, struct mp_cursor *c)
{
	uint64_t length = mp_cursor_uleb(c);
	struct mp_cursor e = *c;

	if (!mp_cursor_skip(c, length) || !length)
		return -EBADMSG;
	e.end = c->p;
	switch (mp_cursor_u8(&e)) {
	case DW_LNE_end_sequence: return end_sequence(p, m);
	case DW_LNE_set_address:
		if (length != 9)
			return -EPERM;
		m->now.address = mp_cursor_u64(&e);
		return 0;
	case DW_LNE_set_discriminator: m->now.state.discriminator = mp_cursor_uleb(&e); break;
	case DW_LNE_define_file: break;
	default: return -EPERM;
	}
	return e.bad ? -EBADMSG : 0;
}

static int standard_opcode(struct me_line_program *p, struct machine *m, uint8_t opcode,
			   struct mp_cursor *c)
{
	struct me_line_state *s = &m->now.state;

	switch (opcode) {
	case DW_LNS_copy: return add_row(p, m);
	case DW_LNS_advance_pc: m->now.address += mp_cursor_uleb(c); break;
	case DW_LNS_advance_line: s->line += (uint64_t)mp_cursor_sleb(c); break;
	case DW_LNS_set_file: s->file = mp_cursor_uleb(c); break;
	case DW_LNS_set_column: s->column = mp_cursor_uleb(c); break;
	case DW_LNS_negate_stmt: s->flags ^= ME_LINE_STMT; break;
	case DW_LNS_set_basic_block: s->flags |= ME_LINE_BLOCK; break;
	case DW_LNS_const_add_pc: m->now.address += (255u - p->opcode_base) / p->line_range; break;
	case DW_LNS_fixed_advance_pc: m->now.address += mp_cursor_u16(c); break;
	case DW_LNS_set_prologue_end: s->flags |= ME_LINE_PROLOGUE_END; break;
	case DW_LNS_set_epilogue_begin: s->flags |= ME_LINE_EPILOGUE_BEGIN; break;
	case DW_LNS_set_isa: s->isa = mp_cursor_uleb(c); break;
	default:
		for (uint8_t i = 0; i < p->lengths[opcode - 1]; i++)
			mp_cursor_uleb(c);
		break;
	}
	return 0;
}

static int special_opcode(struct me_line_program *p, struct machine *m, uint8_t opcode)
{
	uint8_t step = opcode - p->opcode_base;

	m->now.address += step / p->line_range;
	m->now.state.line += (uint64_t)(int64_t)(p->line_base + step % p->line_range);
	return add_row(p, m);
}

/*
 * Copy one opcode to @out. If it appends a row, DW_LNS_negate_stmt may precede it,
 * depending on the row's address.
 */
static int read_opcode(struct me_line_program *p, struct machine *m, struct mp_cursor *c)
{
	const uint8_t *start = c->p;
	uint8_t opcode = mp_cursor_u8(c);
	struct machine row = *m;
	int rc;

	if (opcode >= p->opcode_base) {
		row.now.address += (uint8_t)(opcode - p->opcode_base) / p->line_range;
		set_stmt(p, &row);
		rc = special_opcode(p, m, opcode);
	} else if (opcode == 0) {
		rc = extended_opcode(p, m, c);
	} else {
		if (opcode == DW_LNS_copy)
			set_stmt(p, &row);
		rc = standard_opcode(p, m, opcode, c);
	}
	if (rc || c->bad)
		return rc ? rc : -EBADMSG;
	if (opcode != DW_LNS_negate_stmt)
		me_bytes_put(p->out, start, (size_t)(c->p - start));
	if (m->ended) {
		if (m->split && !p->out->failed)
			p->out->size = p->sequence_at;
		p->sequence_at = p->out->size;
		m->ended = false;
	}
	return 0;
}

static int read_program(struct me_line_program *p)
{
	struct mp_cursor c = {.p = p->code, .end = p->end};
	struct machine m;

	reset(p, &m);
	p->out_stmt = p->default_stmt;
	p->sequence_at = p->out->size;
	while (c.p < c.end) {
		int rc = read_opcode(p, &m, &c);

		if (rc)
			return rc;
	}
	/* The last rows lack an end_sequence, and readers differ in what they make of such rows. */
	return p->nr_rows > m.first_row ? -EBADMSG : 0;
}

int me_line_program_read(struct me_line_program *p, uint64_t off)
{
	int rc = read_header(p, off);

	p->off = off;
	if (rc)
		return rc;
	me_bytes_put(p->out, p->data, (size_t)(p->code - p->data));
	return read_program(p);
}

void me_line_program_fini(struct me_line_program *p)
{
	free(p->rows);
	free(p->sequences);
	free(p->parts);
	free(p->foreign);
}

/* ---- the whole program ---- */

static uint32_t find_move(const struct me_debug_sections *file, uint64_t off)
{
	uint32_t low = 0, high = file->nr_line_moves;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (file->line_moves[mid].old_off < off)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int remember(struct me_debug_sections *file, uint64_t off, uint32_t new_off)
{
	uint32_t nr = file->nr_line_moves, at = find_move(file, off);
	struct me_line_move *grown = file->line_moves;

	if ((nr & (nr - 1)) == 0) /* 0, 1, 2, 4, 8, ... */
		grown = realloc(grown, (nr ? 2 * (size_t)nr : 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	file->line_moves = grown;
	memmove(grown + at + 1, grown + at, (nr - at) * sizeof(*grown));
	grown[at] = (struct me_line_move){(uint32_t)off, new_off};
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
	int rc = me_line_program_read(p, off);

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
	me_line_program_fini(&p);
	return rc ? rc : remember(file, off, *new_off);
}
