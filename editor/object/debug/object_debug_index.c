// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug_index - .debug_addr, the addresses that entries name by number, and .debug_aranges,
 * the code of each unit. Called by object_debug.
 */
#include <errno.h>

#include "editor/object/debug/object_debug_private.h"

/* ---- .debug_addr ------------------------------------------------------------------------------ */

/* The address at @off is the place of an instruction, that behind one, or is not used. */
static int put_addr(struct me_odebug *d, const Elf64_Rela *r, struct me_addr addr)
{
	struct me_odebug_section *to = &d->o->debug[d->addr];
	uint8_t uses = d->uses[r->r_offset];
	uint32_t out, off, out2, off2;
	bool start = me_odebug_place(d, addr, ME_OUSE_START, &out, &off);
	bool behind = me_odebug_place(d, addr, ME_OUSE_BEHIND, &out2, &off2);

	if (uses == (ME_OUSE_START | ME_OUSE_BEHIND) &&
	    (!start || !behind || out != out2 || off != off2))
		return me_odebug_refuse(d, "has one number for two addresses");
	if (uses == ME_OUSE_BEHIND || (!uses && !start)) {
		start = behind;
		out = out2;
		off = off2;
	}
	if (!start || ELF64_R_TYPE(r->r_info) != R_X86_64_64)
		return me_odebug_refuse(d, "names code that is not there");
	me_odebug_put_reloc(&to->relocs, r->r_offset, d->o->outs[out].symbol, R_X86_64_64, off);
	return 0;
}

int me_odebug_addrs(struct me_odebug *d)
{
	const struct mp_relobj_section *s = me_odebug_section(d, d->addr);
	struct me_odebug_section *to = &d->o->debug[d->addr];
	int rc = 0;

	if (!d->addr)
		return 0;
	me_bytes_put(&to->bytes, s->data, s->data ? s->header.sh_size : 0);
	to->written = true;
	for (uint32_t i = 0; !rc && i < s->nr_relocs; i++) {
		const Elf64_Rela *r = &s->relocs[i];
		struct me_addr addr = me_odebug_field(d, d->addr, r->r_offset, 8);
		const Elf64_Sym *symbol = &d->o->in->symbols[ELF64_R_SYM(r->r_info)];

		if (me_odebug_moves(d, addr) &&
		    (ELF64_ST_TYPE(symbol->st_info) == STT_SECTION || r->r_addend))
			rc = put_addr(d, r, addr);
		else
			rc = me_odebug_put_relocs(d, d->addr, r->r_offset, r->r_offset + 1, 0, true,
						  &to->relocs);
	}
	return rc;
}

/* ---- .debug_aranges --------------------------------------------------------------------------- */

static int damaged(struct me_odebug *d)
{
	return me_odebug_refuse(d, "has a table of ranges that is not understood");
}

static int put_arange(struct me_odebug *d, uint64_t off, struct me_odebug_section *to)
{
	struct me_addr addr = me_odebug_field(d, d->aranges, off, 8);
	struct me_addr size = me_odebug_field(d, d->aranges, off + 8, 8);
	int rc;

	if (!addr.section)
		return size.off ? damaged(d) : 0;
	d->now.nr = 0;
	rc = size.section || size.off > UINT32_MAX
		     ? damaged(d)
		     : me_odebug_map(d, addr.section, addr.off, addr.off + size.off, &d->now);
	for (uint32_t i = 0; !rc && i < d->now.nr; i++) {
		const struct me_ointerval *at = &d->now.list[i];

		me_odebug_put_reloc(&to->relocs, to->bytes.size, d->o->outs[at->out].symbol,
				    R_X86_64_64, at->start);
		me_bytes_u64(&to->bytes, 0);
		me_bytes_u64(&to->bytes, at->end - at->start);
	}
	return rc;
}

/* The table of one unit at *@off. */
static int put_table(struct me_odebug *d, uint64_t *off)
{
	const struct mp_relobj_section *s = me_odebug_section(d, d->aranges);
	struct me_odebug_section *to = &d->o->debug[d->aranges];
	struct mp_cursor c = mp_cursor_at(s->data, s->header.sh_size, *off);
	uint64_t start = to->bytes.size, at = *off, end;
	uint32_t size = mp_cursor_u32(&c);
	int rc;

	/* version, offset of the unit, bytes of an address and of a segment; pairs are aligned */
	if (c.bad || size < 12 || size > s->header.sh_size - at - 4 || mp_cursor_u16(&c) != 2 ||
	    start % 16 != at % 16)
		return damaged(d);
	mp_cursor_u32(&c);
	if (mp_cursor_u16(&c) != 8)
		return damaged(d);
	*off = end = at + 4 + size;
	me_bytes_put(&to->bytes, s->data + at, 16);
	rc = me_odebug_put_relocs(d, d->aranges, at, at + 16, (int64_t)(start - at), false,
				  &to->relocs);
	for (at += 16; !rc && at + 16 <= end; at += 16)
		rc = put_arange(d, at, to);
	if (rc || to->bytes.failed)
		return rc ? rc : me_odebug_no_memory(d);
	me_bytes_u64(&to->bytes, 0);
	me_bytes_u64(&to->bytes, 0);
	me_bytes_patch_u32(&to->bytes, start, (uint32_t)(to->bytes.size - start - 4));
	return 0;
}

int me_odebug_aranges(struct me_odebug *d)
{
	uint64_t size = me_odebug_section(d, d->aranges)->header.sh_size;
	int rc = 0;

	if (!d->aranges)
		return 0;
	d->o->debug[d->aranges].written = true;
	for (uint64_t off = 0; !rc && off < size;)
		rc = put_table(d, &off);
	return rc;
}
