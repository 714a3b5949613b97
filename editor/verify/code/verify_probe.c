// SPDX-License-Identifier: Apache-2.0
/*
 * verify_probe - finds the static probes (SystemTap notes) where tracers put breakpoints:
 * control must still reach them in the old code. Called by verify_scan and verify.
 */
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_probe.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_parts.h"
#include "editor/verify/read/verify_piece_index.h"

#define NT_STAPSDT 3

static uint64_t pad4(uint64_t size)
{
	return (size + 3) & ~UINT64_C(3);
}

/* Call @act for each probe. Return: its first result that is not 0. */
static int each_probe(const struct vf *vf, int (*act)(const struct vf *vf, void *ctx, uint64_t at),
		      void *ctx)
{
	const struct mp_section *sec = mp_elf_section(vf->o, ".note.stapsdt");
	struct vf_cursor c = {0};

	if (!sec || sec->type == SHT_NOBITS || sec->off > vf->o->size ||
	    sec->size > vf->o->size - sec->off)
		return 0;
	c.p = vf->o->data + sec->off;
	c.end = c.p + sec->size;
	while (c.p < c.end) {
		uint32_t name_size = (uint32_t)vf_cursor_fixed(&c, 4);
		uint32_t desc_size = (uint32_t)vf_cursor_fixed(&c, 4);
		uint32_t type = (uint32_t)vf_cursor_fixed(&c, 4);
		const uint8_t *name = vf_cursor_skip(&c, pad4(name_size));
		const uint8_t *desc = vf_cursor_skip(&c, pad4(desc_size));
		uint64_t at;
		int ret;

		if (c.bad)
			return 0;
		if (type != NT_STAPSDT || name_size != 8 || memcmp(name, "stapsdt", 8) ||
		    desc_size < sizeof(at))
			continue;
		memcpy(&at, desc, sizeof(at));
		ret = act(vf, ctx, at);
		if (ret)
			return ret;
	}
	return 0;
}

static int mark(const struct vf *vf, void *targets, uint64_t at)
{
	if (vf_is_text(vf, at))
		vf_bits_set(targets, at);
	return 0;
}

static int check(const struct vf *vf, void *unused, uint64_t at)
{
	(void)unused;
	return vf_piece_holding(vf, at) || vf_inlined_holds(vf, at)
		       ? vf_refuse(vf, at, "a block with a static probe was copied")
		       : 0;
}

void vf_mark_probes(struct vf *vf)
{
	each_probe(vf, mark, &vf->old.target);
}

int vf_check_probes(const struct vf *vf)
{
	return each_probe(vf, check, NULL);
}
