// SPDX-License-Identifier: Apache-2.0
/*
 * verify_object_decode - one instruction of an object, by verify's own decoder: the writer uses another one. Only
 * branches on whose targets processors disagree are no instructions here.
 */
#include <string.h>

#include "editor/verify/base/verify_decode.h"
#include "editor/verify/object/verify_object_private.h"

/* What stands before the opcode. */
struct prefixes {
	uint8_t nr;
	bool bnd, narrow; /* @narrow: branches have 16 bits on some processors */
};

static struct prefixes read_prefixes(const uint8_t *b, uint8_t len)
{
	struct prefixes p = {0};

	for (;
	     p.nr + 1 < len && memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", b[p.nr], 11);
	     p.nr++) {
		p.narrow |= b[p.nr] == 0x66;
		p.bnd |= b[p.nr] == 0xf2;
	}
	if (p.nr + 1 < len && (b[p.nr] & 0xf0) == 0x40)
		p.narrow &= !(b[p.nr++] & 8);
	return p;
}

bool vo_decode(const uint8_t *bytes, size_t avail, uint64_t at, struct vo_insn *insn)
{
	struct prefixes p;
	struct vf_insn v;

	if (!vf_decode(bytes, avail, at, &v) || v.eip_relative)
		return false;
	p = read_prefixes(bytes, v.len);
	if (v.kind != VF_OTHER && v.kind != VF_STOP && (p.narrow || v.rel_size == 2))
		return false;
	*insn = (struct vo_insn){
		.at = at,
		.len = v.len,
		.kind = v.kind,
		.cc = v.cc,
		.bnd = p.bnd,
		.nop = v.nop,
		.rip_relative = v.disp_off,
		.breakpoint = bytes[p.nr] == 0xcc || bytes[p.nr] == 0xf1,
		.disp_off = v.disp_off ? v.disp_off : v.rel_off,
		.disp_size = v.disp_off ? 4 : v.rel_size,
		.mem_disp_off = v.abs_off,
		.imm_off = v.imm_off,
		.imm_size = v.imm_size,
		.target = v.target,
	};
	return true;
}
