// SPDX-License-Identifier: Apache-2.0
/*
 * object_lsda - exception tables of functions that are split. Landing pads all go to the cold
 * fragment, whose start is the base of the landing pads in the tables of both fragments. A table
 * that is not of the usual form keeps its function in one piece.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/object_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"
#include "libprof/elf/eh.h"

/* The chains of actions are longer only in damaged tables. */
#define MAX_CHAIN 256

static bool add_site(struct me_olsda *lsda, const struct me_osite *site)
{
	if (mp_grow(lsda->sites, lsda->cap_sites, lsda->nr_sites + 1))
		return false;
	lsda->sites[lsda->nr_sites++] = *site;
	return true;
}

/* Follows the actions of one site: the part of their table that is used, and the largest type. */
static bool follow_actions(struct me_olsda *lsda, const struct mp_cursor *table, uint64_t action)
{
	uint64_t at = action - 1;

	for (int i = 0; i < MAX_CHAIN; i++) {
		struct mp_cursor cur = *table;
		int64_t filter, next;
		uint64_t from;

		mp_cursor_skip(&cur, at);
		filter = mp_cursor_sleb(&cur);
		from = (uint64_t)(cur.p - table->p);
		next = mp_cursor_sleb(&cur);
		if (cur.bad || filter < 0 || filter > 10000)
			return false; /* negative: exception specifications */
		if ((uint64_t)filter > lsda->nr_types)
			lsda->nr_types = (uint32_t)filter;
		if ((uint64_t)(cur.p - table->p) > lsda->actions_size)
			lsda->actions_size = (size_t)(cur.p - table->p);
		if (!next)
			return true;
		at = from + (uint64_t)next;
	}
	return false;
}

static bool read_sites(struct me_olsda *lsda, struct mp_cursor *cur, const uint8_t *end)
{
	while (cur->p < end) {
		struct me_osite site = {0};
		uint64_t start = mp_cursor_uleb(cur), len = mp_cursor_uleb(cur);
		uint64_t pad = mp_cursor_uleb(cur), action = mp_cursor_uleb(cur);

		if (cur->bad || cur->p > end || start > INT32_MAX || len > INT32_MAX ||
		    pad > INT32_MAX || action > INT32_MAX ||
		    (lsda->nr_sites && start < lsda->sites[lsda->nr_sites - 1].end))
			return false;
		site.start = (uint32_t)start;
		site.end = (uint32_t)(start + len);
		site.pad = (uint32_t)pad;
		site.action = (uint32_t)action;
		if (!add_site(lsda, &site))
			return false;
	}
	return true;
}

static bool read_table(const struct mp_relobj_section *s, struct me_olsda *lsda)
{
	struct mp_cursor cur = {.p = s->data + lsda->off, .end = s->data + s->header.sh_size};
	const uint8_t *types = NULL, *end;
	uint64_t size;

	if (mp_cursor_u8(&cur) != MP_EH_PE_OMIT)
		return false;
	lsda->type_enc = mp_cursor_u8(&cur);
	if (lsda->type_enc != MP_EH_PE_OMIT) {
		size = mp_cursor_uleb(&cur);
		if (cur.bad || size > (uint64_t)(cur.end - cur.p) ||
		    mp_pe_size(lsda->type_enc & 0x7f) != 4)
			return false;
		types = cur.p + size;
	}
	if (mp_cursor_u8(&cur) != MP_EH_PE_ULEB128)
		return false;
	size = mp_cursor_uleb(&cur);
	if (cur.bad || size > (uint64_t)(cur.end - cur.p))
		return false;
	end = cur.p + size;
	if (!read_sites(lsda, &cur, end) || cur.p != end)
		return false;
	lsda->actions = cur.p;
	for (uint32_t i = 0; i < lsda->nr_sites; i++)
		if (lsda->sites[i].action && !follow_actions(lsda, &cur, lsda->sites[i].action))
			return false;
	if (!lsda->nr_types)
		return true;
	if (!types || (uint64_t)(types - cur.p) < lsda->actions_size + 4 * (uint64_t)lsda->nr_types)
		return false;
	lsda->types_end = (uint32_t)(types - s->data);
	return true;
}

/* Sites begin and end between instructions; pads are instructions of the function. */
static bool fits_code(struct me_object *o, const struct me_ofunc *func, struct me_olsda *lsda)
{
	uint32_t size = func->end - func->start;

	for (uint32_t i = 0; i < lsda->nr_sites; i++) {
		struct me_osite *site = &lsda->sites[i];
		uint32_t pad;

		if (site->end > size ||
		    o->codes[func->code].at[func->start + site->start] == ME_NONE ||
		    (site->end < size &&
		     o->codes[func->code].at[func->start + site->end] == ME_NONE))
			return false;
		if (!site->pad)
			continue;
		pad = site->pad < size ? o->codes[func->code].at[func->start + site->pad] : ME_NONE;
		if (pad == ME_NONE)
			return false;
	}
	for (uint32_t i = 0; i < lsda->nr_sites; i++)
		if (lsda->sites[i].pad)
			o->insns[o->codes[func->code].at[func->start + lsda->sites[i].pad]].flags |=
				ME_OINSN_TARGET | ME_OINSN_PAD;
	return true;
}

static bool is_known(const char *name)
{
	if (!strncmp(name, "DW.ref.", 7))
		name += 7;
	return !strcmp(name, "__gxx_personality_v0");
}

/* Is the personality routine of the CIE at @off one that reads tables as this file writes them? LLVM's for C is none: it
 * skips the base. */
static bool knows_personality(const struct me_object *o, uint32_t off)
{
	const struct mp_relobj_section *frame = &o->in->sections[o->eh_frame];
	uint32_t r = mp_relobj_reloc_at(frame, off), size;

	memcpy(&size, frame->data + off, sizeof(size));
	return r < frame->nr_relocs && frame->relocs[r].r_offset < (uint64_t)off + 4 + size &&
	       is_known(mp_relobj_symbol_name(o->in, ELF64_R_SYM(frame->relocs[r].r_info)));
}

bool me_object_read_lsda(struct me_object *o, struct me_ofunc *func)
{
	const struct mp_relobj_section *frame = &o->in->sections[o->eh_frame];
	const struct me_ofde *fde = &o->fdes[func->fde];
	uint32_t r = mp_relobj_reloc_at(frame, fde->off + 9);
	const Elf64_Sym *symbol = &o->in->symbols[ELF64_R_SYM(frame->relocs[r].r_info)];
	struct me_olsda *lsda = calloc(1, sizeof(*lsda));
	uint64_t off = symbol->st_value + (uint64_t)frame->relocs[r].r_addend;

	if (!lsda || frame->relocs[r].r_offset != fde->off + 17u ||
	    frame->data[fde->off + 16] != 4 || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_shndx >= o->in->nr_sections ||
	    off >= o->in->sections[symbol->st_shndx].header.sh_size ||
	    !o->in->sections[symbol->st_shndx].data ||
	    mp_relobj_is_code(&o->in->sections[symbol->st_shndx]) ||
	    !knows_personality(o, fde->cie_off))
		goto unknown;
	lsda->section = symbol->st_shndx;
	lsda->off = (uint32_t)off;
	lsda->value = symbol->st_value;
	if (!read_table(&o->in->sections[lsda->section], lsda) || !fits_code(o, func, lsda))
		goto unknown;
	func->lsda = lsda;
	return true;
unknown:
	me_olsda_free(lsda);
	return false;
}

void me_olsda_free(struct me_olsda *lsda)
{
	if (lsda)
		free(lsda->sites);
	free(lsda);
}

/* ---- writing -------------------------------------------------------------------------------- */

static const struct me_osite *site_at(const struct me_olsda *lsda, uint32_t off)
{
	uint32_t low = mp_search(i, 0, lsda->nr_sites, lsda->sites[i].end <= off);

	return low < lsda->nr_sites && lsda->sites[low].start <= off ? &lsda->sites[low] : NULL;
}

struct open_site {
	const struct me_osite *old;
	uint32_t start, end;
};

static bool put_site(const struct me_object *o, const struct me_ofunc *func,
		     const struct me_fragment *cold, const struct me_fragment *fragment,
		     const struct open_site *open, struct me_bytes *sites)
{
	uint32_t out, off, pad = 0;

	if (!open->old)
		return true;
	if (open->old->pad) {
		uint32_t insn = o->codes[func->code].at[func->start + open->old->pad];

		if (!cold || !me_object_place_of(o, insn, &out, &off) || out != cold->out)
			return false;
		pad = off - cold->start + 1; /* 0 would mean that there is none */
	}
	me_bytes_uleb(sites, open->start - fragment->start);
	me_bytes_uleb(sites, open->end - open->start);
	me_bytes_uleb(sites, pad);
	me_bytes_uleb(sites, open->old->action);
	return true;
}

/* Code that was added throws nothing, so it belongs to the site before it. */
static bool put_sites(const struct me_object *o, const struct me_ofunc *func,
		      const struct me_fragment *cold, const struct me_fragment *fragment,
		      struct me_bytes *sites)
{
	struct open_site open = {0};

	for (uint32_t i = fragment->first_item; i < fragment->first_item + fragment->nr_items;
	     i++) {
		const struct me_item *item = &o->items[i];
		const struct me_osite *old;

		if (item->kind != ME_ITEM_COPY)
			continue;
		old = site_at(func->lsda, o->insns[item->insn].off - func->start);
		if (old != open.old) {
			if (!put_site(o, func, cold, fragment, &open, sites))
				return false;
			open = (struct open_site){old, item->off, item->off};
		}
		open.end = item->off + item->size;
	}
	return put_site(o, func, cold, fragment, &open, sites);
}

static void put_types(struct me_object *o, const struct me_olsda *lsda, struct me_extra *to,
		      uint64_t base)
{
	const struct mp_relobj_section *s = &o->in->sections[lsda->section];
	uint32_t first = lsda->types_end - 4 * lsda->nr_types;

	for (uint32_t at = first; at < lsda->types_end; at += 4) {
		uint32_t r = mp_relobj_reloc_at(s, at);
		Elf64_Rela moved;

		if (r < s->nr_relocs && s->relocs[r].r_offset == at) {
			moved = s->relocs[r];
			moved.r_info = ELF64_R_INFO(
				(uint64_t)me_object_symbol(o, ELF64_R_SYM(moved.r_info)),
				ELF64_R_TYPE(moved.r_info));
			moved.r_offset = base + to->bytes.size;
			me_bytes_put(&to->relocs, &moved, sizeof(moved));
		}
		me_bytes_put(&to->bytes, s->data + at, 4);
	}
}

int me_object_put_lsda(struct me_object *o, const struct me_fragment *fragment, uint64_t *off,
		       struct mp_err *err)
{
	const struct me_ofunc *func = &o->funcs[fragment->func];
	const struct me_olsda *lsda = func->lsda;
	const struct me_fragment *last =
		&o->fragments[func->first_fragment + func->nr_fragments - 1];
	const struct me_fragment *cold = last->cold ? last : NULL;
	struct me_extra *to = &o->extras[lsda->section];
	uint64_t base = (o->in->sections[lsda->section].header.sh_size + 3) / 4 * 4, behind;
	struct me_bytes sites = {0};
	bool fits = put_sites(o, func, cold, fragment, &sites);

	me_bytes_align(&to->bytes, 4);
	*off = base + to->bytes.size;
	me_bytes_u8(&to->bytes, cold ? MP_EH_PE_PCREL | MP_EH_PE_SDATA4 : MP_EH_PE_OMIT);
	if (cold) {
		const Elf64_Rela r = {
			*off + 1, ELF64_R_INFO((uint64_t)o->outs[cold->out].symbol, R_X86_64_PC32),
			(int64_t)cold->start - 1};

		me_bytes_put(&to->relocs, &r, sizeof(r));
		me_bytes_u32(&to->bytes, 0);
	}
	me_bytes_u8(&to->bytes, lsda->nr_types ? lsda->type_enc : MP_EH_PE_OMIT);
	behind = 1 + me_uleb_size(sites.size) + sites.size + lsda->actions_size;
	if (lsda->nr_types) {
		/* Types are aligned: so much padding stands before them. */
		uint64_t pad = -(to->bytes.size + 5 + behind) & 3;

		me_bytes_uleb_padded(&to->bytes, behind + pad + 4 * (uint64_t)lsda->nr_types, 5);
	}
	me_bytes_u8(&to->bytes, MP_EH_PE_ULEB128);
	me_bytes_uleb(&to->bytes, sites.size);
	me_bytes_put(&to->bytes, sites.data, sites.size);
	me_bytes_put(&to->bytes, lsda->actions, lsda->actions_size);
	if (lsda->nr_types) {
		me_bytes_align(&to->bytes, 4);
		put_types(o, lsda, to, base);
	}
	fits &= !sites.failed && !to->bytes.failed && !to->relocs.failed;
	me_bytes_fini(&sites);
	return fits ? 0 : mp_err_set(err, EPERM, "an exception table does not fit the new code");
}
