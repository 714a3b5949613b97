// SPDX-License-Identifier: Apache-2.0
/* debug_form - sizes of attribute values. */
#include "editor/debug/read/debug_form.h"

int me_form_size(unsigned int form, unsigned int version)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const: return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1: return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2: return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3: return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt: return 4;
	case DW_FORM_addr:
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8: return 8;
	case DW_FORM_data16: return 16;
	/* An address in version 2, an offset since version 3. */
	case DW_FORM_ref_addr: return version <= 2 ? 8 : 4;
	case DW_FORM_string:
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_exprloc:
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
	case DW_FORM_indirect: return ME_FORM_VARIES;
	default: return ME_FORM_UNKNOWN;
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
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		/* A LEB128 number: find its end. */
		while (!c->bad && mp_cursor_u8(c) & 0x80)
			;
		break;
	/* DW_FORM_indirect: no producer writes it. */
	default: c->bad = true; break;
	}
}
