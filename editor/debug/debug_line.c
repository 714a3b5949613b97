// SPDX-License-Identifier: Apache-2.0
/*
 * debug_line - reads a line program, and writes it with rows for the copies appended.
 * The state machine is that of DWARF 5, section 6.2.
 */
#include "editor/debug/debug_line.h"

#include <errno.h>
#include <stdlib.h>

#include "editor/debug/debug_form.h"
#include "editor/debug/debug_line_private.h"

/* Make room for one more element. The array holds @nr of at most *@cap elements of @size bytes. */
static bool grow(void **array, uint32_t nr, uint32_t *cap, size_t size)
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
	struct me_cursor c = me_cursor_at(s->data, s->size, off);
	uint32_t length = me_cursor_u32(&c), header_length;
	unsigned int version, nr;

	if (c.bad)
		return -EBADMSG;
	if (length >= 0xfffffff0)
		return -EPERM;
	if (length > (uint64_t)(c.end - c.p))
		return -EBADMSG;
	p->data = s->data + off;
	p->end = c.end = c.p + length;
	version = me_cursor_u16(&c);
	if (version < 2 || version > 5 || (version == 5 && me_cursor_u16(&c) != 8))
		return c.bad ? -EBADMSG : -EPERM;
	header_length = me_cursor_u32(&c);
	if (c.bad || header_length > (uint64_t)(c.end - c.p))
		return -EBADMSG;
	p->code = c.p + header_length;
	c.end = p->code;
	/* x86: instructions of at least one byte, one operation in each. */
	if (me_cursor_u8(&c) != 1 || (version >= 4 && me_cursor_u8(&c) != 1))
		return c.bad ? -EBADMSG : -EPERM;
	p->default_stmt = me_cursor_u8(&c);
	p->line_base = (int8_t)me_cursor_u8(&c);
	p->line_range = me_cursor_u8(&c);
	p->opcode_base = me_cursor_u8(&c);
	if (c.bad || !p->line_range || p->opcode_base < 10)
		return -EBADMSG;
	nr = p->opcode_base - 1u;
	p->lengths = me_cursor_skip(&c, nr);
	if (c.bad)
		return -EBADMSG;
	return memcmp(p->lengths, usual, nr < sizeof(usual) ? nr : sizeof(usual)) ? -EPERM : 0;
}

/* ---- reading: collect the rows, and copy the opcodes to @out ---- */

struct machine {
	struct me_line_row now;
	uint32_t first_row; /* of the current sequence */
	bool disordered;
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
	if (!grow((void **)&p->rows, p->nr_rows, &p->cap_rows, sizeof(*p->rows)))
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
	struct me_line_sequence s = {m->first_row, p->nr_rows - m->first_row, 0, m->now.address};

	if (s.nr_rows)
		s.start = p->rows[m->first_row].address;
	if (!s.nr_rows || !me_moves_any(p->file->moves, s.start, s.end)) {
		p->nr_rows = m->first_row;
	} else {
		if (m->disordered || p->rows[p->nr_rows - 1].address > s.end)
			return -EBADMSG;
		if (!grow((void **)&p->sequences, p->nr_sequences, &p->cap_sequences,
			  sizeof(*p->sequences)))
			return -ENOMEM;
		p->sequences[p->nr_sequences++] = s;
	}
	reset(p, m);
	p->out_stmt = p->default_stmt;
	return 0;
}

static int extended_opcode(struct me_line_program *p, struct machine *m, struct me_cursor *c)
{
	uint64_t length = me_cursor_uleb(c);
	struct me_cursor e = *c;

	if (!me_cursor_skip(c, length) || !length)
		return -EBADMSG;
	e.end = c->p;
	switch (me_cursor_u8(&e)) {
	case DW_LNE_end_sequence: return end_sequence(p, m);
	case DW_LNE_set_address:
		if (length != 9)
			return -EPERM;
		m->now.address = me_cursor_u64(&e);
		return 0;
	case DW_LNE_set_discriminator: m->now.state.discriminator = me_cursor_uleb(&e); break;
	case DW_LNE_define_file: break;
	default: return -EPERM;
	}
	return e.bad ? -EBADMSG : 0;
}

static int standard_opcode(struct me_line_program *p, struct machine *m, uint8_t opcode,
			   struct me_cursor *c)
{
	struct me_line_state *s = &m->now.state;

	switch (opcode) {
	case DW_LNS_copy: return add_row(p, m);
	case DW_LNS_advance_pc: m->now.address += me_cursor_uleb(c); break;
	case DW_LNS_advance_line: s->line += (uint64_t)me_cursor_sleb(c); break;
	case DW_LNS_set_file: s->file = me_cursor_uleb(c); break;
	case DW_LNS_set_column: s->column = me_cursor_uleb(c); break;
	case DW_LNS_negate_stmt: s->flags ^= ME_LINE_STMT; break;
	case DW_LNS_set_basic_block: s->flags |= ME_LINE_BLOCK; break;
	case DW_LNS_const_add_pc: m->now.address += (255u - p->opcode_base) / p->line_range; break;
	case DW_LNS_fixed_advance_pc: m->now.address += me_cursor_u16(c); break;
	case DW_LNS_set_prologue_end: s->flags |= ME_LINE_PROLOGUE_END; break;
	case DW_LNS_set_epilogue_begin: s->flags |= ME_LINE_EPILOGUE_BEGIN; break;
	case DW_LNS_set_isa: s->isa = me_cursor_uleb(c); break;
	default:
		for (uint8_t i = 0; i < p->lengths[opcode - 1]; i++)
			me_cursor_uleb(c);
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
static int read_opcode(struct me_line_program *p, struct machine *m, struct me_cursor *c)
{
	const uint8_t *start = c->p;
	uint8_t opcode = me_cursor_u8(c);
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
	return 0;
}

static int read_program(struct me_line_program *p)
{
	struct me_cursor c = {.p = p->code, .end = p->end};
	struct machine m;

	reset(p, &m);
	p->out_stmt = p->default_stmt;
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
	if (!rc)
		rc = me_line_find_foreign(p);
	if (!rc)
		rc = me_line_put_header(p);
	return rc ? rc : read_program(p);
}

void me_line_program_fini(struct me_line_program *p)
{
	free(p->rows);
	free(p->sequences);
	free(p->parts);
	free(p->foreign);
}

/* ---- writing: sequences of the copies ---- */

static int add_part(struct me_line_program *p, uint32_t move, uint32_t sequence)
{
	const struct me_move *m = &p->file->moves->by_old[move];
	const struct me_line_sequence *s = &p->sequences[sequence];
	struct me_line_part part = {m->new_vaddr, m->new_end, move, sequence};

	if (!me_debug_spend(p->file, 1))
		return -EPERM;
	if (s->start > m->old_vaddr && !me_move_address(m, s->start, &part.start))
		return 0;
	if (s->end - m->old_vaddr < m->old_size && s->end - m->old_vaddr <= m->body_size)
		part.end = m->new_vaddr + (s->end - m->old_vaddr);
	if (!grow((void **)&p->parts, p->nr_parts, &p->cap_parts, sizeof(*p->parts)))
		return -ENOMEM;
	p->parts[p->nr_parts++] = part;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct me_line_part *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static int find_parts(struct me_line_program *p)
{
	const struct me_moves *moves = p->file->moves;

	for (uint32_t s = 0; s < p->nr_sequences; s++) {
		const struct me_line_sequence *seq = &p->sequences[s];

		for (uint32_t i = me_moves_from(moves, seq->start);
		     i < moves->nr && moves->by_old[i].old_vaddr < seq->end; i++) {
			int rc = add_part(p, i, s);

			if (rc)
				return rc;
		}
	}
	if (p->nr_parts)
		qsort(p->parts, p->nr_parts, sizeof(*p->parts), by_start);
	return 0;
}

static void put_number(struct me_bytes *out, uint8_t opcode, uint64_t v)
{
	me_bytes_u8(out, opcode);
	me_bytes_uleb(out, v);
}

static void put_discriminator(struct me_bytes *out, uint64_t v)
{
	me_bytes_u8(out, 0);
	me_bytes_uleb(out, 1 + me_uleb_size(v));
	put_number(out, DW_LNE_set_discriminator, v);
}

/* Write opcodes that append a row after advancing line and address. */
static void put_step(const struct me_line_program *p, uint64_t lines, uint64_t bytes)
{
	int64_t line = (int64_t)lines;
	uint64_t base;

	if (line < p->line_base || line >= p->line_base + p->line_range) {
		me_bytes_u8(p->out, DW_LNS_advance_line);
		me_bytes_sleb(p->out, line);
		line = 0;
		if (p->line_base > 0 || p->line_base + p->line_range <= 0) {
			put_number(p->out, DW_LNS_advance_pc, bytes);
			me_bytes_u8(p->out, DW_LNS_copy);
			return;
		}
	}
	base = (uint64_t)(line - p->line_base) + p->opcode_base;
	/* Even a line step in the header's range may have no special opcode. */
	if (base > 255) {
		put_number(p->out, DW_LNS_advance_pc, bytes);
		me_bytes_u8(p->out, DW_LNS_advance_line);
		me_bytes_sleb(p->out, line);
		me_bytes_u8(p->out, DW_LNS_copy);
		return;
	}
	if (bytes > (255 - base) / p->line_range) {
		put_number(p->out, DW_LNS_advance_pc, bytes);
		bytes = 0;
	}
	me_bytes_u8(p->out, (uint8_t)(base + bytes * p->line_range));
}

void me_line_put_row(struct me_line_program *p, struct me_line_row *now,
		     const struct me_line_row *want)
{
	const struct me_line_state *w = &want->state;

	if (now->state.file != w->file)
		put_number(p->out, DW_LNS_set_file, w->file);
	if (now->state.column != w->column)
		put_number(p->out, DW_LNS_set_column, w->column);
	if (now->state.isa != w->isa)
		put_number(p->out, DW_LNS_set_isa, w->isa);
	if ((now->state.flags ^ w->flags) & ME_LINE_STMT)
		me_bytes_u8(p->out, DW_LNS_negate_stmt);
	if (w->flags & ME_LINE_BLOCK)
		me_bytes_u8(p->out, DW_LNS_set_basic_block);
	if (w->flags & ME_LINE_PROLOGUE_END)
		me_bytes_u8(p->out, DW_LNS_set_prologue_end);
	if (w->flags & ME_LINE_EPILOGUE_BEGIN)
		me_bytes_u8(p->out, DW_LNS_set_epilogue_begin);
	if (w->discriminator)
		put_discriminator(p->out, w->discriminator);
	put_step(p, w->line - now->state.line, want->address - now->address);
	*now = *want;
	now->state.flags &= ME_LINE_STMT;
	now->state.discriminator = 0;
}

static void put_start(struct me_line_program *p, struct me_line_row *now, uint64_t address)
{
	me_bytes_u8(p->out, 0);
	me_bytes_uleb(p->out, 9);
	me_bytes_u8(p->out, DW_LNE_set_address);
	me_bytes_u64(p->out, address);
	*now = (struct me_line_row){
		address, {.file = 1, .line = 1, .flags = p->default_stmt ? ME_LINE_STMT : 0}};
}

static void put_end(struct me_line_program *p, const struct me_line_row *now, uint64_t end)
{
	put_number(p->out, DW_LNS_advance_pc, end - now->address);
	me_bytes_u8(p->out, 0);
	me_bytes_uleb(p->out, 1);
	me_bytes_u8(p->out, DW_LNE_end_sequence);
}

uint32_t me_line_covering_row(const struct me_line_program *p, const struct me_line_sequence *s,
			      uint64_t address)
{
	uint32_t low = s->first_row, high = s->first_row + s->nr_rows;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (p->rows[mid].address < address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < s->first_row + s->nr_rows && p->rows[low].address == address)
		return low;
	return low > s->first_row ? low - 1 : s->first_row;
}

/* The call at the end of @m whose code debug information describes; NULL: none. */
static struct me_inlined *described(const struct me_line_program *p, const struct me_move *m)
{
	const struct me_inlined_calls *calls = &p->file->inlined;
	struct me_inlined *call = m->inlined ? me_inlined_at(calls, m->old_vaddr + m->body_size,
							     m->new_vaddr + m->body_size)
					     : NULL;

	return call && call->described && call->line_off == p->off ? call : NULL;
}

static int put_part(struct me_line_program *p, const struct me_line_part *part,
		    struct me_line_row *now)
{
	const struct me_line_sequence *s = &p->sequences[part->sequence];
	const struct me_move *m = &p->file->moves->by_old[part->move];
	uint64_t old = m->old_vaddr > s->start ? m->old_vaddr : s->start;
	struct me_inlined *call = described(p, m);
	uint64_t end = call && call->new_vaddr < part->end ? call->new_vaddr : part->end;
	uint32_t i = me_line_covering_row(p, s, old);

	/* The copy starts within a statement: same line, but no statement begins here. */
	if (p->rows[i].address < old) {
		struct me_line_row row = p->rows[i++];

		row.address = part->start;
		row.state.flags = 0;
		if (row.address < end)
			me_line_put_row(p, now, &row);
	}
	for (; i < s->first_row + s->nr_rows && p->rows[i].address < m->old_vaddr + m->old_size;
	     i++) {
		struct me_line_row row = p->rows[i];

		if (!me_debug_spend(p->file, 1))
			return -EPERM;
		if (me_move_address(m, p->rows[i].address, &row.address) && row.address < end)
			me_line_put_row(p, now, &row);
	}
	if (!call || end == part->end)
		return 0;
	i = me_line_covering_row(p, s, call->call);
	/* Of rows at one address, readers take the last one. */
	while (i + 1 < s->first_row + s->nr_rows && p->rows[i + 1].address <= call->call)
		i++;
	return me_line_put_inlined(p, call, &p->rows[i], part->end, now);
}

static int put_sequences(struct me_line_program *p)
{
	struct me_line_row now;
	uint64_t end = 0;
	bool open = false;

	for (uint32_t i = 0; i < p->nr_parts; i++) {
		const struct me_line_part *part = &p->parts[i];
		int rc;

		if (part->start >= part->end)
			continue;
		/* Not adjacent, or described by two sequences: start another sequence. */
		if (open && part->start != end) {
			put_end(p, &now, end);
			open = false;
		}
		if (!open)
			put_start(p, &now, part->start);
		open = true;
		rc = put_part(p, part, &now);
		if (rc)
			return rc;
		end = part->end;
	}
	if (open)
		put_end(p, &now, end);
	return 0;
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

static int extend(struct me_line_program *p, uint64_t off, uint32_t *new_off)
{
	struct me_debug_section *s = &p->file->line;
	size_t start = s->added.size;
	int rc = me_line_program_read(p, off);

	if (!rc)
		rc = find_parts(p);
	if (!rc)
		rc = put_sequences(p);
	if (s->added.failed)
		return -ENOMEM;
	if (!rc && !me_debug_section_has_room(s, 0))
		rc = -EPERM;
	if (rc || !p->nr_parts) {
		s->added.size = start;
		*new_off = (uint32_t)off;
		return rc;
	}
	me_bytes_patch_u32(&s->added, start, (uint32_t)(s->added.size - start - 4));
	*new_off = (uint32_t)(s->size + start);
	return 0;
}

int me_line_extend(struct me_debug_sections *file, uint64_t off, uint32_t *new_off)
{
	struct me_line_program p = {.file = file, .out = &file->line.added};
	uint32_t i = find_move(file, off);
	int rc;

	if (off > UINT32_MAX)
		return -EBADMSG;
	if (i < file->nr_line_moves && file->line_moves[i].old_off == off) {
		*new_off = file->line_moves[i].new_off;
		return 0;
	}
	rc = extend(&p, off, new_off);
	me_line_program_fini(&p);
	return rc ? rc : remember(file, off, *new_off);
}
