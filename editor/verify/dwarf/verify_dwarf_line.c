// SPDX-License-Identifier: Apache-2.0
/* verify_dwarf_line - executes line programs (DWARF 5, section 6.2), opcode by opcode. */
#include <dwarf.h>

#include "editor/verify/dwarf/verify_dwarf.h"

bool vd_line_open(struct vf_cursor c, struct vd_work *work, struct vd_line *l)
{
	uint64_t length = vf_cursor_fixed(&c, 4), header;

	*l = (struct vd_line){.work = work, .max_ops = 1};
	if (c.bad || length >= 0xfffffff0 || length > (uint64_t)(c.end - c.p))
		return false;
	c.end = c.p + length;
	l->c = c;
	l->version = (unsigned int)vf_cursor_fixed(&c, 2);
	if (l->version == 5)
		vf_cursor_skip(&c, 2);
	header = vf_cursor_fixed(&c, 4);
	if (c.bad || l->version < 2 || l->version > 5 || header > (uint64_t)(c.end - c.p))
		return false;
	l->code = l->c.p = c.end = c.p + header;
	l->min_insn = (uint8_t)vf_cursor_fixed(&c, 1);
	if (l->version >= 4)
		l->max_ops = (uint8_t)vf_cursor_fixed(&c, 1);
	l->default_stmt = (uint8_t)vf_cursor_fixed(&c, 1);
	l->line_base = (int8_t)vf_cursor_fixed(&c, 1);
	l->line_range = (uint8_t)vf_cursor_fixed(&c, 1);
	l->opcode_base = (uint8_t)vf_cursor_fixed(&c, 1);
	l->lengths = c.p;
	if (c.bad || !l->line_range || !l->opcode_base || !vf_cursor_skip(&c, l->opcode_base - 1u))
		return false;
	vd_line_reset(l);
	return true;
}

void vd_line_reset(struct vd_line *l)
{
	l->row = (struct vd_row){.file = 1, .line = 1, .flags = l->default_stmt ? VD_STMT : 0};
}

void vd_line_next_row(struct vd_line *l)
{
	l->row.flags &= VD_STMT;
	l->row.discriminator = 0;
}

static enum vd_line_event extended(struct vd_line *l)
{
	uint64_t length = vf_cursor_uleb(&l->c);
	struct vf_cursor e = l->c;
	enum vd_line_event event = VD_LINE_NOTHING;

	if (!vf_cursor_skip(&l->c, length))
		return event;
	e.end = l->c.p;
	switch (vf_cursor_fixed(&e, 1)) {
	case DW_LNE_end_sequence: event = VD_LINE_END; break;
	case DW_LNE_set_address:
		l->field = e.p;
		l->row.address = vf_cursor_fixed(&e, 8);
		event = VD_LINE_ADDRESS;
		break;
	case DW_LNE_set_discriminator: l->row.discriminator = vf_cursor_uleb(&e); break;
	default: event = VD_LINE_UNKNOWN; break;
	}
	l->c.bad |= e.bad;
	return event;
}

static enum vd_line_event standard(struct vd_line *l, uint8_t opcode)
{
	struct vd_row *r = &l->row;

	switch (opcode) {
	case DW_LNS_copy: return VD_LINE_ROW;
	case DW_LNS_advance_pc: r->address += vf_cursor_uleb(&l->c); break;
	case DW_LNS_advance_line: r->line += (uint64_t)vf_cursor_sleb(&l->c); break;
	case DW_LNS_set_file: r->file = vf_cursor_uleb(&l->c); break;
	case DW_LNS_set_column: r->column = vf_cursor_uleb(&l->c); break;
	case DW_LNS_negate_stmt: r->flags ^= VD_STMT; break;
	case DW_LNS_set_basic_block: r->flags |= VD_BLOCK; break;
	case DW_LNS_const_add_pc: r->address += (255u - l->opcode_base) / l->line_range; break;
	case DW_LNS_fixed_advance_pc: r->address += vf_cursor_fixed(&l->c, 2); break;
	case DW_LNS_set_prologue_end: r->flags |= VD_PROLOGUE_END; break;
	case DW_LNS_set_epilogue_begin: r->flags |= VD_EPILOGUE_BEGIN; break;
	case DW_LNS_set_isa: r->isa = vf_cursor_uleb(&l->c); break;
	default:
		for (unsigned int i = 0; i < l->lengths[opcode - 1]; i++)
			vf_cursor_uleb(&l->c);
	}
	return VD_LINE_NOTHING;
}

enum vd_line_event vd_line_step(struct vd_line *l)
{
	uint8_t opcode = (uint8_t)vf_cursor_fixed(&l->c, 1), step;

	l->c.bad |= !vd_spend(l->work, 1);
	if (l->c.bad)
		return VD_LINE_NOTHING;
	if (!opcode)
		return extended(l);
	if (opcode < l->opcode_base)
		return standard(l, opcode);
	step = opcode - l->opcode_base;
	l->row.address += step / l->line_range;
	l->row.line += (uint64_t)(int64_t)(l->line_base + step % l->line_range);
	return VD_LINE_ROW;
}
