// SPDX-License-Identifier: Apache-2.0
/* debug_header - reads headers, and executes line programs. */
#include "editor/debug/read/debug_header.h"

#include <dwarf.h>
#include <errno.h>

int me_unit_header_read(const uint8_t *data, uint64_t size, uint64_t off, unsigned int type,
			struct me_unit_header *h)
{
	struct mp_cursor c = mp_cursor_at(data, size, off);
	uint64_t length = mp_cursor_u32(&c);
	bool wide = length == UINT32_MAX;
	unsigned int address_size = 0;

	*h = (struct me_unit_header){.type = type};
	if (wide)
		length = mp_cursor_u64(&c);
	if (c.bad || (length >= 0xfffffff0 && !wide) || length > (uint64_t)(c.end - c.p))
		return -EBADMSG;
	c.end = c.p + length;
	h->end = (uint64_t)(c.end - data);
	if (wide)
		return -EPERM;
	h->version = mp_cursor_u16(&c);
	if (c.bad || h->version < 2 || h->version > 5)
		return -EPERM;
	if (h->version == 5) {
		h->type = mp_cursor_u8(&c);
		address_size = mp_cursor_u8(&c);
	}
	h->abbrev_field = (uint64_t)(c.p - data);
	h->abbrev_off = mp_cursor_u32(&c);
	if (h->version < 5)
		address_size = mp_cursor_u8(&c);
	if (h->type == DW_UT_skeleton || h->type == DW_UT_split_compile)
		mp_cursor_skip(&c, 8);
	if (h->type == DW_UT_type || h->type == DW_UT_split_type)
		mp_cursor_skip(&c, 12);
	h->first = (uint64_t)(c.p - data);
	if (c.bad)
		return -EBADMSG;
	return address_size == 8 ? 0 : -EPERM;
}

int me_line_header_read(const uint8_t *data, uint64_t size, uint64_t off, struct me_line_header *h)
{
	static const uint8_t usual[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	struct mp_cursor c = mp_cursor_at(data, size, off);
	uint32_t length = mp_cursor_u32(&c);
	unsigned int nr;

	if (c.bad)
		return -EBADMSG;
	if (length >= 0xfffffff0)
		return -EPERM;
	if (length > (uint64_t)(c.end - c.p))
		return -EBADMSG;
	*h = (struct me_line_header){.start = data + off, .end = c.p + length};
	c.end = h->end;
	h->version = mp_cursor_u16(&c);
	/* Bytes of an address; of a segment: 0. */
	if (h->version < 2 || h->version > 5 || (h->version == 5 && mp_cursor_u16(&c) != 8))
		return c.bad ? -EBADMSG : -EPERM;
	h->size = c.p;
	length = mp_cursor_u32(&c);
	if (c.bad || length > (uint64_t)(c.end - c.p))
		return -EBADMSG;
	h->code = c.end = c.p + length;
	/* x86: instructions of at least one byte, one operation in each. */
	if (mp_cursor_u8(&c) != 1 || (h->version >= 4 && mp_cursor_u8(&c) != 1))
		return c.bad ? -EBADMSG : -EPERM;
	h->default_stmt = mp_cursor_u8(&c);
	h->line_base = (int8_t)mp_cursor_u8(&c);
	h->line_range = mp_cursor_u8(&c);
	h->opcode_base = mp_cursor_u8(&c);
	if (c.bad || !h->line_range || h->opcode_base < 10)
		return -EBADMSG;
	nr = h->opcode_base - 1u;
	h->lengths = mp_cursor_skip(&c, nr);
	h->tables = c.p;
	if (c.bad)
		return -EBADMSG;
	return memcmp(h->lengths, usual, nr < sizeof(usual) ? nr : sizeof(usual)) ? -EPERM : 0;
}

struct me_line_row me_line_first_row(const struct me_line_header *h, uint64_t address)
{
	return (struct me_line_row){.address = address,
				    .file = 1,
				    .line = 1,
				    .flags = h->default_stmt ? ME_LINE_STMT : 0};
}

void me_line_reset(struct me_line_reader *r)
{
	r->row = me_line_first_row(r->h, 0);
}

struct me_line_reader me_line_open(const struct me_line_header *h)
{
	return (struct me_line_reader){
		.h = h, .c = mp_cursor_over(h->code, h->end), .row = me_line_first_row(h, 0)};
}

void me_line_next_row(struct me_line_reader *r)
{
	r->row.flags &= ME_LINE_STMT;
	r->row.discriminator = 0;
}

static int extended_opcode(struct me_line_reader *r, enum me_line_event *event)
{
	uint64_t length = mp_cursor_uleb(&r->c);
	struct mp_cursor e = r->c;

	if (!mp_cursor_skip(&r->c, length) || !length)
		return -EBADMSG;
	e.end = r->c.p;
	switch (mp_cursor_u8(&e)) {
	case DW_LNE_end_sequence: *event = ME_LINE_END; break;
	case DW_LNE_set_address:
		if (length != 9)
			return -EPERM;
		r->address = e.p;
		r->row.address = mp_cursor_u64(&e);
		*event = ME_LINE_ADDRESS;
		break;
	case DW_LNE_set_discriminator: r->row.discriminator = mp_cursor_uleb(&e); break;
	case DW_LNE_define_file: *event = ME_LINE_FILE; break;
	default: return -EPERM;
	}
	r->rest = e.p != e.end;
	return e.bad ? -EBADMSG : 0;
}

static void standard_opcode(struct me_line_reader *r, uint8_t opcode, enum me_line_event *event)
{
	const struct me_line_header *h = r->h;
	struct me_line_row *row = &r->row;

	switch (opcode) {
	case DW_LNS_copy: *event = ME_LINE_ROW; break;
	case DW_LNS_advance_pc: row->address += mp_cursor_uleb(&r->c); break;
	case DW_LNS_advance_line: row->line += (uint64_t)mp_cursor_sleb(&r->c); break;
	case DW_LNS_set_file: row->file = mp_cursor_uleb(&r->c); break;
	case DW_LNS_set_column: row->column = mp_cursor_uleb(&r->c); break;
	case DW_LNS_negate_stmt: row->flags ^= ME_LINE_STMT; break;
	case DW_LNS_set_basic_block: row->flags |= ME_LINE_BLOCK; break;
	case DW_LNS_const_add_pc: row->address += (255u - h->opcode_base) / h->line_range; break;
	case DW_LNS_fixed_advance_pc: row->address += mp_cursor_u16(&r->c); break;
	case DW_LNS_set_prologue_end: row->flags |= ME_LINE_PROLOGUE_END; break;
	case DW_LNS_set_epilogue_begin: row->flags |= ME_LINE_EPILOGUE_BEGIN; break;
	case DW_LNS_set_isa: row->isa = mp_cursor_uleb(&r->c); break;
	default:
		for (uint8_t i = 0; i < h->lengths[opcode - 1]; i++)
			mp_cursor_uleb(&r->c);
		break;
	}
}

int me_line_step(struct me_line_reader *r, enum me_line_event *event)
{
	const struct me_line_header *h = r->h;
	uint8_t opcode = mp_cursor_u8(&r->c), step;
	int rc = 0;

	*event = ME_LINE_NOTHING;
	r->rest = false;
	if (opcode >= h->opcode_base) {
		step = opcode - h->opcode_base;
		r->row.address += step / h->line_range;
		r->row.line += (uint64_t)(int64_t)(h->line_base + step % h->line_range);
		*event = ME_LINE_ROW;
	} else if (opcode) {
		standard_opcode(r, opcode, event);
	} else {
		rc = extended_opcode(r, event);
	}
	return !rc && r->c.bad ? -EBADMSG : rc;
}
