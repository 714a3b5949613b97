// SPDX-License-Identifier: Apache-2.0
/* debug_form - sizes of attribute values, and numbers in them. */
#include "editor/debug/read/debug_form.h"

/* The table holds each size plus a constant, since forms that it leaves out have 0 there. */
#define BYTES(n) ((n)-ME_FORM_UNKNOWN)
#define VARIES	 BYTES(ME_FORM_VARIES)

int me_form_size(unsigned int form, unsigned int version)
{
	static const uint8_t sizes[] = {
		[DW_FORM_flag_present] = BYTES(0), [DW_FORM_implicit_const] = BYTES(0),
		[DW_FORM_data1] = BYTES(1),	   [DW_FORM_ref1] = BYTES(1),
		[DW_FORM_flag] = BYTES(1),	   [DW_FORM_strx1] = BYTES(1),
		[DW_FORM_addrx1] = BYTES(1),	   [DW_FORM_data2] = BYTES(2),
		[DW_FORM_ref2] = BYTES(2),	   [DW_FORM_strx2] = BYTES(2),
		[DW_FORM_addrx2] = BYTES(2),	   [DW_FORM_strx3] = BYTES(3),
		[DW_FORM_addrx3] = BYTES(3),	   [DW_FORM_data4] = BYTES(4),
		[DW_FORM_ref4] = BYTES(4),	   [DW_FORM_strp] = BYTES(4),
		[DW_FORM_sec_offset] = BYTES(4),   [DW_FORM_line_strp] = BYTES(4),
		[DW_FORM_strp_sup] = BYTES(4),	   [DW_FORM_ref_sup4] = BYTES(4),
		[DW_FORM_strx4] = BYTES(4),	   [DW_FORM_addrx4] = BYTES(4),
		[DW_FORM_addr] = BYTES(8),	   [DW_FORM_data8] = BYTES(8),
		[DW_FORM_ref8] = BYTES(8),	   [DW_FORM_ref_sig8] = BYTES(8),
		[DW_FORM_ref_sup8] = BYTES(8),	   [DW_FORM_data16] = BYTES(16),
		[DW_FORM_string] = VARIES,	   [DW_FORM_block] = VARIES,
		[DW_FORM_block1] = VARIES,	   [DW_FORM_block2] = VARIES,
		[DW_FORM_block4] = VARIES,	   [DW_FORM_exprloc] = VARIES,
		[DW_FORM_sdata] = VARIES,	   [DW_FORM_udata] = VARIES,
		[DW_FORM_ref_udata] = VARIES,	   [DW_FORM_strx] = VARIES,
		[DW_FORM_addrx] = VARIES,	   [DW_FORM_loclistx] = VARIES,
		[DW_FORM_rnglistx] = VARIES,	   [DW_FORM_indirect] = VARIES};

	switch (form) {
	/* An address in version 2, an offset since version 3. */
	case DW_FORM_ref_addr: return version <= 2 ? 8 : 4;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt: return 4;
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index: return ME_FORM_VARIES;
	default: return (form < sizeof(sizes) ? sizes[form] : 0) - BYTES(0);
	}
}

void me_form_skip(struct mp_cursor *c, unsigned int form, unsigned int version)
{
	int size = me_form_size(form, version);

	if (size >= 0) {
		mp_cursor_skip(c, (uint64_t)size);
		return;
	}
	switch (form) {
	case DW_FORM_string: mp_cursor_string(c); break;
	case DW_FORM_block1: mp_cursor_skip(c, mp_cursor_u8(c)); break;
	case DW_FORM_block2: mp_cursor_skip(c, mp_cursor_u16(c)); break;
	case DW_FORM_block4: mp_cursor_skip(c, mp_cursor_u32(c)); break;
	case DW_FORM_block:
	case DW_FORM_exprloc: mp_cursor_skip(c, mp_cursor_uleb(c)); break;
	default:
		/* DW_FORM_indirect: no producer writes it. */
		c->bad |= size == ME_FORM_UNKNOWN || form == DW_FORM_indirect;
		/* A LEB128 number: find its end. */
		while (!c->bad && mp_cursor_u8(c) & 0x80)
			;
	}
}

/* Is the form an index into .debug_addr? */
static bool form_is_addrx(unsigned int form)
{
	return form == DW_FORM_addrx || (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4);
}

bool me_form_is_address(unsigned int form)
{
	return form == DW_FORM_addr || form_is_addrx(form);
}

bool me_form_is_reference(unsigned int form)
{
	return form == DW_FORM_ref1 || form == DW_FORM_ref2 || form == DW_FORM_ref4 ||
	       form == DW_FORM_ref8 || form == DW_FORM_ref_udata;
}

bool me_form_is_expression(unsigned int form)
{
	return form == DW_FORM_exprloc || form == DW_FORM_block || form == DW_FORM_block1 ||
	       form == DW_FORM_block2 || form == DW_FORM_block4;
}

struct mp_cursor me_value_cursor(const struct me_value *v)
{
	return mp_cursor_over(v->p, v->p ? v->p + v->size : NULL);
}

uint64_t me_value_fixed(const struct me_value *v)
{
	struct mp_cursor c = me_value_cursor(v);

	return mp_cursor_fixed(&c, v->size > 8 ? 8 : (unsigned int)v->size);
}

uint64_t me_value_index(const struct me_value *v)
{
	struct mp_cursor c = me_value_cursor(v);

	switch (v->form) {
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_rnglistx:
	case DW_FORM_loclistx: return mp_cursor_uleb(&c);
	default: return me_value_fixed(v);
	}
}

struct mp_cursor me_value_expression(const struct me_value *v)
{
	struct mp_cursor c = me_value_cursor(v);

	switch (v->form) {
	case DW_FORM_block1: mp_cursor_skip(&c, 1); break;
	case DW_FORM_block2: mp_cursor_skip(&c, 2); break;
	case DW_FORM_block4: mp_cursor_skip(&c, 4); break;
	default: mp_cursor_uleb(&c); break;
	}
	return c;
}
