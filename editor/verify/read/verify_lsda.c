// SPDX-License-Identifier: Apache-2.0
/*
 * verify_lsda - reads what the C and C++ personality routines find for an instruction: its
 * landing pad, and the types of exceptions that lead there. Used for old and new tables, by
 * verify_unwind and others.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/elf/elf.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_lsda.h"
#include "libprof/base/search.h"

#define VF_CHAIN_MAX 4096

static int read_sites(struct vf_cursor *c, const uint8_t *end, uint8_t enc, uint64_t func_start,
		      uint64_t lpstart, struct vf_lsda *lsda)
{
	uint64_t prev = func_start;

	if (enc & 0xf0)
		return -EBADMSG;
	while (c->p < end) {
		struct vf_call_site site;
		uint64_t len, pad;
		int ret;

		site.start = func_start + vf_cursor_encoded(c, enc);
		len = vf_cursor_encoded(c, enc);
		pad = vf_cursor_encoded(c, enc);
		site.action = vf_cursor_uleb(c);
		site.end = site.start + len;
		site.pad = pad ? lpstart + pad : 0;
		/* Order counts: the personality routines stop at the first range behind the
		 * address. */
		if (c->bad || c->p > end || site.start < prev || site.end < site.start)
			return -EBADMSG;
		prev = site.end;
		ret = mp_push(lsda->site, lsda->nr, lsda->cap, site);
		if (ret)
			return ret;
	}
	return 0;
}

int vf_lsda_read(const struct mp_elf *elf, uint64_t vaddr, uint64_t func_start,
		 struct vf_lsda *lsda)
{
	const struct mp_section *sec = vaddr ? mp_elf_section_at(elf, vaddr) : NULL;
	uint64_t room, lpstart = func_start, off;
	struct vf_cursor c = {.vaddr = vaddr};
	uint8_t enc;

	lsda->elf = elf;
	lsda->nr = 0;
	lsda->ttype_vaddr = 0;
	lsda->base_enc = lsda->ttype_enc = DW_EH_PE_omit;
	lsda->present = vaddr != 0;
	if (!vaddr)
		return 0;
	if (!sec)
		return -EBADMSG;
	room = sec->size - (vaddr - sec->vaddr);
	c.p = mp_elf_bytes(elf, vaddr, room);
	if (!c.p)
		return -EBADMSG;
	c.end = c.p + room;
	lsda->base_enc = enc = (uint8_t)vf_cursor_fixed(&c, 1);
	if ((enc & 0xf0) == DW_EH_PE_funcrel)
		lpstart += vf_cursor_encoded(&c, enc & 0x0f);
	else if (enc != DW_EH_PE_omit)
		lpstart = vf_cursor_encoded(&c, enc);
	lsda->ttype_enc = (uint8_t)vf_cursor_fixed(&c, 1);
	if (lsda->ttype_enc != DW_EH_PE_omit) {
		off = vf_cursor_uleb(&c);
		if (c.bad || off > (uint64_t)(c.end - c.p))
			return -EBADMSG;
		lsda->ttype_vaddr = c.vaddr + off;
	}
	lsda->site_enc = enc = (uint8_t)vf_cursor_fixed(&c, 1);
	off = vf_cursor_uleb(&c);
	if (c.bad || off > (uint64_t)(c.end - c.p))
		return -EBADMSG;
	lsda->actions = c.p + off;
	lsda->actions_vaddr = c.vaddr + off;
	lsda->end = c.end;
	lsda->base = lpstart;
	c.terse = lsda->terse;
	return read_sites(&c, lsda->actions, enc, func_start, lpstart, lsda);
}

void vf_lsda_fini(struct vf_lsda *lsda)
{
	free(lsda->site);
	memset(lsda, 0, sizeof(*lsda));
}

const struct vf_call_site *vf_lsda_at(const struct vf_lsda *lsda, uint64_t vaddr)
{
	uint32_t lo = mp_search(i, 0, lsda->nr, lsda->site[i].end <= vaddr);

	return lo < lsda->nr && lsda->site[lo].start <= vaddr ? &lsda->site[lo] : NULL;
}

/* An absolute pointer in a position-independent file cannot be read: a relocation fills it. */
bool vf_lsda_type(const struct vf_lsda *lsda, uint64_t index, uint64_t *type)
{
	unsigned int size = vf_pointer_size(lsda->ttype_enc);
	struct vf_cursor c;
	uint64_t at;

	if (!lsda->ttype_vaddr || !size || !index || index > 1 << 20)
		return false;
	if ((lsda->ttype_enc & 0x70) == DW_EH_PE_absptr && lsda->elf->ehdr.e_type != ET_EXEC)
		return false;
	at = lsda->ttype_vaddr - index * size;
	c = (struct vf_cursor){.p = mp_elf_bytes(lsda->elf, at, size), .vaddr = at};
	if (!c.p)
		return false;
	c.end = c.p + size;
	*type = vf_cursor_encoded(&c, lsda->ttype_enc & (uint8_t)~DW_EH_PE_indirect);
	return !c.bad;
}

/* An exception specification: a list of type indexes behind the type table, ended by 0. */
static bool same_specification(const struct vf_lsda *a, int64_t fa, const struct vf_lsda *b,
			       int64_t fb)
{
	struct vf_cursor x = {.vaddr = a->ttype_vaddr + (uint64_t)(-fa - 1)};
	struct vf_cursor y = {.vaddr = b->ttype_vaddr + (uint64_t)(-fb - 1)};

	if (!a->ttype_vaddr || !b->ttype_vaddr)
		return false;
	for (int i = 0; i < VF_CHAIN_MAX; i++) {
		uint64_t ia, ib, ta, tb;

		/* The table's end is not known. Read byte by byte, at most to the section's
		 * end. */
		x.p = mp_elf_bytes(a->elf, x.vaddr, 1);
		y.p = mp_elf_bytes(b->elf, y.vaddr, 1);
		if (!x.p || !y.p)
			return false;
		x.end = a->end;
		y.end = b->end;
		if (x.p >= x.end || y.p >= y.end)
			return false;
		ia = vf_cursor_uleb(&x);
		ib = vf_cursor_uleb(&y);
		if (x.bad || y.bad || !ia != !ib)
			return false;
		if (!ia)
			return true;
		if (!vf_lsda_type(a, ia, &ta) || !vf_lsda_type(b, ib, &tb) || ta != tb)
			return false;
	}
	return false;
}

static bool same_filter(const struct vf_lsda *a, int64_t fa, const struct vf_lsda *b, int64_t fb)
{
	uint64_t ta, tb;

	if (!fa || !fb)
		return fa == fb;
	if ((fa > 0) != (fb > 0))
		return false;
	/* Landing pads compare with these numbers, so they must be equal, too. */
	if (fa != fb || (a->ttype_enc ^ b->ttype_enc) & DW_EH_PE_indirect)
		return false;
	if (fa > 0)
		return vf_lsda_type(a, (uint64_t)fa, &ta) && vf_lsda_type(b, (uint64_t)fb, &tb) &&
		       ta == tb;
	return same_specification(a, fa, b, fb);
}

static bool next_action(const struct vf_lsda *lsda, uint64_t *action, int64_t *filter)
{
	uint64_t off = *action - 1, at;
	struct vf_cursor c = {.p = lsda->actions, .end = lsda->end, .vaddr = 0};
	int64_t disp;

	if (!vf_cursor_skip(&c, off))
		return false;
	*filter = vf_cursor_sleb(&c);
	at = c.vaddr;
	disp = vf_cursor_sleb(&c);
	*action = disp ? at + (uint64_t)disp + 1 : 0;
	return !c.bad;
}

bool vf_lsda_same_actions(const struct vf_lsda *a, uint64_t action_a, const struct vf_lsda *b,
			  uint64_t action_b)
{
	for (int i = 0; i < VF_CHAIN_MAX; i++) {
		int64_t fa, fb;

		if (!action_a || !action_b)
			return action_a == action_b;
		if (!next_action(a, &action_a, &fa) || !next_action(b, &action_b, &fb) ||
		    !same_filter(a, fa, b, fb))
			return false;
	}
	return false;
}

uint64_t vf_lsda_site_end(const struct vf_lsda *lsda, uint64_t vaddr)
{
	const struct vf_call_site *site = vf_lsda_at(lsda, vaddr);
	uint32_t lo;

	if (site)
		return site->end;
	lo = mp_search(i, 0, lsda->nr, lsda->site[i].start <= vaddr);
	return lo < lsda->nr ? lsda->site[lo].start : UINT64_MAX;
}
