// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_cfa - computes the CFA that an unwind program gives at an address. This is enough to
 * tell a tail call (the frame is torn down, CFA = rsp + 8 as on entry) from a jump inside a
 * function. It tracks no other registers. Called by cfg_cold, cfg_label and cfg_taken.
 */
#include "libprof/base/dwarf_cursor.h"
#include "libprof/cfg/cfg_private.h"

#define MAX_DEPTH 16

struct row {
	uint64_t reg, off;
	bool expr;
};

struct program {
	uint64_t code_align, loc;
	int64_t data_align;
	uint8_t fde_encoding;
	struct row row, stack[MAX_DEPTH];
	unsigned int depth;
};

static bool open_entry(const struct mp_cfg_index *index, uint64_t vaddr, struct mp_cursor *c)
{
	uint32_t at = mp_space_at(index, vaddr);
	const struct mp_span *span;
	uint64_t length;

	if (at == MP_NONE)
		return false;
	span = mp_space_span(index, at);
	*c = (struct mp_cursor){
		.p = span->bytes + (at - span->at),
		.end = span->bytes + span->size,
		.vaddr = vaddr,
	};
	length = mp_cursor_fixed(c, 4);
	if (length == UINT32_MAX)
		length = mp_cursor_fixed(c, 8);
	if (c->bad || length > (uint64_t)(c->end - c->p))
		return false;
	c->end = c->p + length;
	mp_cursor_skip(c, 4); /* CIE id, or the distance back to the CIE */
	return !c->bad;
}

/* Runs an instruction that defines the CFA. Return: false if @op is none. */
static bool define_cfa(struct program *prog, struct mp_cursor *c, uint8_t op)
{
	switch (op) {
	case 0x0c: /* def_cfa */
		prog->row.reg = mp_cursor_uleb(c);
		prog->row.off = mp_cursor_uleb(c);
		prog->row.expr = false;
		break;
	case 0x0d: /* def_cfa_register */
		prog->row.reg = mp_cursor_uleb(c);
		prog->row.expr = false;
		break;
	case 0x0e: /* def_cfa_offset */ prog->row.off = mp_cursor_uleb(c); break;
	case 0x0f: /* def_cfa_expression */
		mp_cursor_skip(c, mp_cursor_uleb(c));
		prog->row.expr = true;
		break;
	case 0x12: /* def_cfa_sf */
		prog->row.reg = mp_cursor_uleb(c);
		prog->row.off = (uint64_t)(mp_cursor_sleb(c) * prog->data_align);
		prog->row.expr = false;
		break;
	case 0x13: /* def_cfa_offset_sf */
		prog->row.off = (uint64_t)(mp_cursor_sleb(c) * prog->data_align);
		break;
	default: return false;
	}
	return true;
}

/* Skips an instruction about another register's rule. Return: false if @op is none. */
static bool skip_rule(struct mp_cursor *c, uint8_t op)
{
	switch (op) {
	case 0x05: /* offset_extended */
	case 0x09: /* register */
	case 0x14: /* val_offset */
		mp_cursor_uleb(c);
		mp_cursor_uleb(c);
		break;
	case 0x06: /* restore_extended */
	case 0x07: /* undefined */
	case 0x08: /* same_value */
	case 0x2e: /* GNU_args_size */ mp_cursor_uleb(c); break;
	case 0x10: /* expression */
	case 0x16: /* val_expression */
		mp_cursor_uleb(c);
		mp_cursor_skip(c, mp_cursor_uleb(c));
		break;
	case 0x11: /* offset_extended_sf */
	case 0x15: /* val_offset_sf */
		mp_cursor_uleb(c);
		mp_cursor_sleb(c);
		break;
	default: return false;
	}
	return true;
}

/* Runs until the first row beyond @stop. Return: false for an unknown instruction. */
static bool run(struct program *prog, struct mp_cursor *c, uint64_t stop)
{
	while (c->p < c->end && !c->bad) {
		uint8_t op = (uint8_t)mp_cursor_fixed(c, 1);
		uint64_t advance = 0;

		switch (op >> 6) {
		case 1: advance = op & 0x3f; break;
		case 2: mp_cursor_uleb(c); continue;
		case 3: continue;
		default: break;
		}
		switch (op >> 6 ? 0x100 : op) {
		case 0x100: /* advance_loc in the opcode */
		case 0x00: /* nop */ break;
		case 0x01: /* set_loc */
			prog->loc = mp_cursor_pointer(c, prog->fde_encoding, 0);
			if (prog->loc > stop)
				return true;
			break;
		case 0x02: advance = mp_cursor_fixed(c, 1); break;
		case 0x03: advance = mp_cursor_fixed(c, 2); break;
		case 0x04: advance = mp_cursor_fixed(c, 4); break;
		case 0x0a: /* remember_state */
			if (prog->depth == MAX_DEPTH)
				return false;
			prog->stack[prog->depth++] = prog->row;
			break;
		case 0x0b: /* restore_state */
			if (!prog->depth)
				return false;
			prog->row = prog->stack[--prog->depth];
			break;
		default:
			if (!define_cfa(prog, c, op) && !skip_rule(c, op))
				return false;
			break;
		}
		prog->loc += advance * prog->code_align;
		if (prog->loc > stop)
			return true;
	}
	return !c->bad;
}

static bool read_cie(struct program *prog, struct mp_cursor *c, bool *augmented)
{
	uint8_t version = (uint8_t)mp_cursor_fixed(c, 1);
	const char *augmentation = (const char *)c->p;
	struct mp_cursor data;
	uint64_t length;

	while (mp_cursor_fixed(c, 1))
		;
	if (c->bad || (augmentation[0] && augmentation[0] != 'z'))
		return false;
	if (version == 4)
		mp_cursor_skip(c, 2);
	prog->code_align = mp_cursor_uleb(c);
	prog->data_align = mp_cursor_sleb(c);
	if (version == 1)
		mp_cursor_skip(c, 1);
	else
		mp_cursor_uleb(c);
	*augmented = augmentation[0] == 'z';
	if (!*augmented)
		return !c->bad;
	length = mp_cursor_uleb(c);
	data = *c;
	mp_cursor_skip(c, length);
	for (const char *a = augmentation + 1; *a; a++) {
		uint8_t encoding;

		switch (*a) {
		case 'R': prog->fde_encoding = (uint8_t)mp_cursor_fixed(&data, 1); break;
		case 'P':
			encoding = (uint8_t)mp_cursor_fixed(&data, 1);
			mp_cursor_pointer(&data, encoding & 0x0f, 0);
			break;
		case 'L': mp_cursor_skip(&data, 1); break;
		case 'S':
		case 'B': break;
		default: return false;
		}
	}
	return !c->bad && !data.bad;
}

bool mp_cfa_is_entry_row(const struct mp_cfg_index *index, const struct mp_fde *fde, uint64_t vaddr)
{
	struct program prog = {.loc = fde->start};
	struct mp_cursor cie, c;
	bool augmented;

	if (!open_entry(index, fde->cie_vaddr, &cie) || !read_cie(&prog, &cie, &augmented))
		return false;
	if (!run(&prog, &cie, UINT64_MAX) || !open_entry(index, fde->fde_vaddr, &c))
		return false;
	mp_cursor_skip(&c, 2 * mp_pe_size(prog.fde_encoding));
	if (augmented)
		mp_cursor_skip(&c, mp_cursor_uleb(&c));
	prog.loc = fde->start;
	if (c.bad || !mp_pe_size(prog.fde_encoding) || !run(&prog, &c, vaddr))
		return false;
	return !prog.row.expr && prog.row.reg == 7 && prog.row.off == 8;
}
