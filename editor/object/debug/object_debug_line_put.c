// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_line_put - writes the lines of code that moved: a sequence for each new section and
 * each line program that describes some of its code. Called by object_debug_line.
 *
 * An instruction at which rows began has the same rows now. If it stands behind code of another
 * row, the row that held for it is repeated there, but begins no statement: a debugger finds the
 * line of the address, and sets no additional breakpoints.
 */
#include "editor/object/debug/object_debug_line_private.h"
#include "libprof/base/search.h"

/* The state that a reader of the line program has behind the last byte written. */
struct writer {
	struct me_olines *lines;
	struct me_oprogram *program; /* whose sequence is open; NULL: none */
	uint32_t out;
	struct me_line_row now;
	uint32_t row; /* the last one of the original that was written */
};

static const struct me_osequence *sequence_at(const struct me_olines *lines, uint32_t section,
					      uint64_t off)
{
	const struct me_osequence *s = lines->sequences;
	/* One more than the index of the last sequence that begins at or before @off. */
	uint32_t low =
		mp_search(i, 0, lines->nr_sequences,
			  s[i].section < section || (s[i].section == section && s[i].start <= off));

	s = low ? &lines->sequences[low - 1] : NULL;
	return s && s->section == section && off < s->end ? s : NULL;
}

/* The last row at or before @off. */
static uint32_t row_at(const struct me_olines *lines, const struct me_osequence *s, uint64_t off)
{
	return mp_search(i, s->first_row, s->first_row + s->nr_rows,
			 lines->rows[i].address <= off) -
	       1;
}

static void advance(struct writer *w, uint64_t off)
{
	if (off == w->now.address)
		return;
	me_bytes_u8(&w->program->bytes, DW_LNS_advance_pc);
	me_bytes_uleb(&w->program->bytes, off - w->now.address);
	w->now.address = off;
}

static void close_sequence(struct writer *w, uint64_t off)
{
	if (!w->program)
		return;
	advance(w, off);
	me_bytes_u8(&w->program->bytes, 0);
	me_bytes_uleb(&w->program->bytes, 1);
	me_bytes_u8(&w->program->bytes, DW_LNE_end_sequence);
	w->program = NULL;
}

static void open_sequence(struct writer *w, struct me_oprogram *program, uint32_t out, uint64_t off)
{
	const struct me_object *o = w->lines->d->o;

	w->program = program;
	w->out = out;
	w->row = ME_NONE;
	w->now = me_line_first_row(&program->h, off);
	me_bytes_u8(&program->bytes, 0);
	me_bytes_uleb(&program->bytes, 9);
	me_bytes_u8(&program->bytes, DW_LNE_set_address);
	me_odebug_put_reloc(&program->relocs, program->bytes.size, o->outs[out].symbol, R_X86_64_64,
			    off);
	me_bytes_u64(&program->bytes, 0);
}

static void put_registers(struct writer *w, const struct me_line_row *row, uint32_t flags)
{
	struct me_bytes *out = &w->program->bytes;

	if (row->file != w->now.file) {
		me_bytes_u8(out, DW_LNS_set_file);
		me_bytes_uleb(out, row->file);
	}
	if (row->column != w->now.column) {
		me_bytes_u8(out, DW_LNS_set_column);
		me_bytes_uleb(out, row->column);
	}
	if (row->isa != w->now.isa) {
		me_bytes_u8(out, DW_LNS_set_isa);
		me_bytes_uleb(out, row->isa);
	}
	if (row->discriminator) {
		me_bytes_u8(out, 0);
		me_bytes_uleb(out, 1 + me_uleb_size(row->discriminator));
		me_bytes_u8(out, DW_LNE_set_discriminator);
		me_bytes_uleb(out, row->discriminator);
	}
	if ((flags ^ w->now.flags) & ME_LINE_STMT)
		me_bytes_u8(out, DW_LNS_negate_stmt);
	if (flags & ME_LINE_BLOCK)
		me_bytes_u8(out, DW_LNS_set_basic_block);
	if (flags & ME_LINE_PROLOGUE_END)
		me_bytes_u8(out, DW_LNS_set_prologue_end);
	if (flags & ME_LINE_EPILOGUE_BEGIN)
		me_bytes_u8(out, DW_LNS_set_epilogue_begin);
}

/* The row at @off of the output. */
static void put_row(struct writer *w, uint32_t index, uint64_t off, uint32_t flags)
{
	const struct me_line_row *row = &w->lines->rows[index];
	const struct me_line_header *p = &w->program->h;
	struct me_bytes *out = &w->program->bytes;
	int64_t by = (int64_t)(row->line - w->now.line);
	uint64_t distance = off - w->now.address, opcode;

	put_registers(w, row, flags);
	if (by < p->line_base || by >= p->line_base + p->line_range) {
		me_bytes_u8(out, DW_LNS_advance_line);
		me_bytes_sleb(out, by);
		by = 0;
	}
	if (distance > 255)
		advance(w, off);
	distance = off - w->now.address;
	opcode = (uint64_t)(by - p->line_base) + p->line_range * distance + p->opcode_base;
	if (by < p->line_base || by >= p->line_base + p->line_range) {
		advance(w, off); /* no special opcode leaves the line as it is */
		me_bytes_u8(out, DW_LNS_copy);
	} else if (opcode > 255) {
		advance(w, off);
		me_bytes_u8(out, (uint8_t)(by - p->line_base + p->opcode_base));
	} else {
		me_bytes_u8(out, (uint8_t)opcode);
	}
	w->now = *row;
	w->now.address = off;
	w->now.flags = flags & ME_LINE_STMT;
	w->row = index;
}

static void put_item(struct writer *w, const struct me_item *item)
{
	struct me_olines *lines = w->lines;
	const struct me_object *o = lines->d->o;
	const struct me_oinsn *insn = &o->insns[item->row];
	const struct me_osequence *s;
	uint32_t row, first;

	if (!item->size)
		return;
	s = sequence_at(lines, o->codes[insn->code].section, insn->off);
	if (w->program && (!s || w->program != &lines->programs[s->program] || w->out != item->out))
		close_sequence(w, item->off);
	if (!s)
		return;
	if (!w->program)
		open_sequence(w, &lines->programs[s->program], item->out, item->off);
	row = first = row_at(lines, s, insn->off);
	while (first > s->first_row && lines->rows[first - 1].address == insn->off)
		first--;
	if (item->insn != item->row || lines->rows[row].address != insn->off) {
		if (row != w->row)
			put_row(w, row, item->off, 0);
		return;
	}
	for (; first <= row; first++)
		put_row(w, first, item->off, lines->rows[first].flags);
}

void me_olines_put(struct me_olines *lines)
{
	const struct me_object *o = lines->d->o;
	struct writer w = {.lines = lines};

	for (uint32_t f = 0; f < o->nr_fragments; f++) {
		const struct me_fragment *fragment = &o->fragments[f];

		for (uint32_t i = fragment->first_item;
		     i < fragment->first_item + fragment->nr_items; i++)
			put_item(&w, &o->items[i]);
		/* The sequence goes on behind, unless this is the section's end. */
		if (w.program &&
		    (f + 1 == o->nr_fragments || o->fragments[f + 1].out != fragment->out))
			close_sequence(&w, fragment->end);
	}
}
