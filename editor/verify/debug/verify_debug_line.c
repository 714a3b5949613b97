// SPDX-License-Identifier: Apache-2.0
/*
 * verify_debug_line - where replaced calls stand in the source, by the original's line program. Of rows at one address,
 * the last one holds, up to the next address.
 */
#include <dwarf.h>
#include <errno.h>

#include "editor/verify/debug/verify_debug_private.h"

struct row {
	uint64_t address, file, line, column;
};

struct program {
	struct vd_cursor c;
	int8_t line_base;
	uint8_t line_range, opcode_base;
	const uint8_t *lengths; /* operands of standard opcodes */
	struct row now;
	struct row last; /* the last row before */
	bool has_last;
	struct vd_call *calls;
	uint32_t nr_calls;
};

static bool read_header(const struct vd_section *line, uint64_t off, struct program *p)
{
	struct vd_cursor c = vd_cursor_at(line, off);
	uint64_t length = vd_fixed(&c, 4), version, header;
	const uint8_t *code;

	if (c.bad || length >= 0xfffffff0 || length > (uint64_t)(c.end - c.p))
		return false;
	c.end = c.p + length;
	version = vd_fixed(&c, 2);
	if (version == 5)
		vd_skip(&c, 2);
	header = vd_fixed(&c, 4);
	if (c.bad || version < 2 || version > 5 || header > (uint64_t)(c.end - c.p))
		return false;
	code = c.p + header;
	vd_skip(&c, version >= 4 ? 3 : 2);
	p->line_base = (int8_t)vd_fixed(&c, 1);
	p->line_range = (uint8_t)vd_fixed(&c, 1);
	p->opcode_base = (uint8_t)vd_fixed(&c, 1);
	p->lengths = c.p;
	vd_skip(&c, p->opcode_base ? p->opcode_base - 1u : 0);
	p->c = (struct vd_cursor){code, c.end, c.bad || !p->line_range || p->opcode_base < 10};
	return !p->c.bad;
}

static void reset(struct program *p)
{
	p->now = (struct row){.file = 1, .line = 1};
	p->has_last = false;
}

static uint32_t first_call(const struct program *p, uint64_t address)
{
	uint32_t low = 0, high = p->nr_calls;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (p->calls[mid].call < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The last row is that of all code up to @end. */
static void let_go(struct program *p, uint64_t end)
{
	const struct row *r = &p->last;

	if (!p->has_last)
		return;
	for (uint32_t i = first_call(p, r->address); i < p->nr_calls && p->calls[i].call < end;
	     i++) {
		struct vd_call *call = &p->calls[i];

		call->seen = true;
		call->good |= call->file == r->file && call->line == r->line &&
			      call->column == r->column;
	}
}

static void put_row(struct program *p)
{
	let_go(p, p->now.address);
	p->last = p->now;
	p->has_last = true;
}

static void extended(struct program *p)
{
	uint64_t length = vd_uleb(&p->c);
	struct vd_cursor e = p->c;

	vd_skip(&p->c, length);
	if (p->c.bad)
		return;
	switch (vd_fixed(&e, 1)) {
	case DW_LNE_end_sequence:
		let_go(p, p->now.address);
		reset(p);
		break;
	case DW_LNE_set_address: p->now.address = vd_fixed(&e, 8); break;
	default: break;
	}
}

static void standard(struct program *p, uint8_t opcode)
{
	switch (opcode) {
	case DW_LNS_copy: put_row(p); break;
	case DW_LNS_advance_pc: p->now.address += vd_uleb(&p->c); break;
	case DW_LNS_advance_line: p->now.line += (uint64_t)vd_sleb(&p->c); break;
	case DW_LNS_set_file: p->now.file = vd_uleb(&p->c); break;
	case DW_LNS_set_column: p->now.column = vd_uleb(&p->c); break;
	case DW_LNS_const_add_pc: p->now.address += (255u - p->opcode_base) / p->line_range; break;
	case DW_LNS_fixed_advance_pc: p->now.address += vd_fixed(&p->c, 2); break;
	default:
		for (uint8_t i = 0; i < p->lengths[opcode - 1]; i++)
			vd_uleb(&p->c);
		break;
	}
}

bool vd_line_is_program(const struct vd_section *line, uint64_t off)
{
	struct program p;

	return read_header(line, off, &p);
}

int vd_line_compare(const struct vd_section *line, uint64_t off, struct vd_call *calls, uint32_t nr)
{
	struct program p = {.calls = calls, .nr_calls = nr};

	if (!nr)
		return 0;
	if (!read_header(line, off, &p))
		return -EBADMSG;
	reset(&p);
	while (p.c.p < p.c.end && !p.c.bad) {
		uint8_t opcode = (uint8_t)vd_fixed(&p.c, 1), step;

		if (!opcode) {
			extended(&p);
		} else if (opcode < p.opcode_base) {
			standard(&p, opcode);
		} else {
			step = opcode - p.opcode_base;
			p.now.address += step / p.line_range;
			p.now.line += (uint64_t)(int64_t)(p.line_base + step % p.line_range);
			put_row(&p);
		}
	}
	return p.c.bad ? -EBADMSG : 0;
}
