// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_lsda - reads landing pads from a language-specific data area (the call-site table
 * that GCC's and LLVM's personality routines share). Actions and types are not read. Called
 * by cfg_target.
 */
#include <errno.h>

#include "libprof/base/dwarf_cursor.h"
#include "libprof/cfg/cfg_private.h"

int mp_lsda_pads(const struct mp_cfg_index *index, const struct mp_fde *fde,
		 void (*pad)(void *ctx, uint64_t vaddr), void *ctx)
{
	uint32_t at = mp_space_at(index, fde->lsda);
	uint64_t lp_start = fde->start, length;
	const struct mp_span *span;
	struct mp_cursor c;
	uint8_t encoding;

	if (at == MP_NONE)
		return -EBADMSG;
	span = mp_space_span(index, at);
	c = (struct mp_cursor){
		.p = span->bytes + (at - span->at),
		.end = span->bytes + span->size,
		.vaddr = fde->lsda,
	};
	encoding = (uint8_t)mp_cursor_fixed(&c, 1);
	if ((encoding & 0xf0) == MP_EH_PE_FUNCREL) { /* written by Morph, for Rust */
		lp_start += mp_cursor_pointer(&c, encoding & 0x0f, 0);
	} else if (encoding != MP_EH_PE_OMIT) {
		/* Relative to data, or indirect: no known tool writes that. */
		if ((encoding & 0x70) > 0x10 || (encoding & 0x80))
			return -EBADMSG;
		lp_start = mp_cursor_pointer(&c, encoding, 0);
	}
	encoding = (uint8_t)mp_cursor_fixed(&c, 1);
	if (encoding != MP_EH_PE_OMIT)
		mp_cursor_uleb(&c);
	encoding = (uint8_t)mp_cursor_fixed(&c, 1);
	length = mp_cursor_uleb(&c);
	if (c.bad || length > (uint64_t)(c.end - c.p) || (encoding & 0xf0))
		return -EBADMSG;
	c.end = c.p + length;
	while (c.p < c.end) {
		uint64_t start, size, offset;

		start = mp_cursor_pointer(&c, encoding, 0);
		size = mp_cursor_pointer(&c, encoding, 0);
		offset = mp_cursor_pointer(&c, encoding, 0);
		mp_cursor_uleb(&c);
		if (c.bad || start > fde->size || size > fde->size - start)
			return -EBADMSG;
		if (offset)
			pad(ctx, lp_start + offset);
	}
	return c.bad ? -EBADMSG : 0;
}
