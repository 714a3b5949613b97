// SPDX-License-Identifier: Apache-2.0
/* debug_line_rows - one row of a line program: finds it, or writes it. Called by debug_line*. */
#include "editor/debug/read/debug_form.h"
#include "editor/debug/debug_line_private.h"
#include "libprof/base/search.h"

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

	if (line < p->h.line_base || line >= p->h.line_base + p->h.line_range) {
		me_bytes_u8(p->out, DW_LNS_advance_line);
		me_bytes_sleb(p->out, line);
		line = 0;
		if (p->h.line_base > 0 || p->h.line_base + p->h.line_range <= 0) {
			put_number(p->out, DW_LNS_advance_pc, bytes);
			me_bytes_u8(p->out, DW_LNS_copy);
			return;
		}
	}
	base = (uint64_t)(line - p->h.line_base) + p->h.opcode_base;
	/* Even a line step in the header's range may have no special opcode. */
	if (base > 255) {
		put_number(p->out, DW_LNS_advance_pc, bytes);
		me_bytes_u8(p->out, DW_LNS_advance_line);
		me_bytes_sleb(p->out, line);
		me_bytes_u8(p->out, DW_LNS_copy);
		return;
	}
	if (bytes > (255 - base) / p->h.line_range) {
		put_number(p->out, DW_LNS_advance_pc, bytes);
		bytes = 0;
	}
	me_bytes_u8(p->out, (uint8_t)(base + bytes * p->h.line_range));
}

void me_line_put_row(struct me_line_program *p, struct me_line_row *now,
		     const struct me_line_row *want)
{
	const struct me_line_row *w = want;

	if (now->file != w->file)
		put_number(p->out, DW_LNS_set_file, w->file);
	if (now->column != w->column)
		put_number(p->out, DW_LNS_set_column, w->column);
	if (now->isa != w->isa)
		put_number(p->out, DW_LNS_set_isa, w->isa);
	if ((now->flags ^ w->flags) & ME_LINE_STMT)
		me_bytes_u8(p->out, DW_LNS_negate_stmt);
	if (w->flags & ME_LINE_BLOCK)
		me_bytes_u8(p->out, DW_LNS_set_basic_block);
	if (w->flags & ME_LINE_PROLOGUE_END)
		me_bytes_u8(p->out, DW_LNS_set_prologue_end);
	if (w->flags & ME_LINE_EPILOGUE_BEGIN)
		me_bytes_u8(p->out, DW_LNS_set_epilogue_begin);
	if (w->discriminator)
		put_discriminator(p->out, w->discriminator);
	put_step(p, w->line - now->line, want->address - now->address);
	*now = *want;
	now->flags &= ME_LINE_STMT;
	now->discriminator = 0;
}

uint32_t me_line_covering_row(const struct me_line_program *p, const struct me_line_sequence *s,
			      uint64_t address)
{
	uint32_t low =
		mp_search(i, s->first_row, s->first_row + s->nr_rows, p->rows[i].address < address);

	if (low < s->first_row + s->nr_rows && p->rows[low].address == address)
		return low;
	return low > s->first_row ? low - 1 : s->first_row;
}
