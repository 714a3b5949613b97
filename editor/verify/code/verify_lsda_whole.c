// SPDX-License-Identifier: Apache-2.0
/*
 * verify_lsda_whole - checks that every byte of the new exception tables has a meaning: tables
 * follow one another without gaps; actions, types and specifications are the original's,
 * wherever they stand.
 *
 * verify_unwind, the caller, compares what each copied instruction finds in its table.
 */
#include <dwarf.h>
#include <errno.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_lsda_whole.h"
#include "editor/verify/code/verify_unwind_private.h"
#include "editor/verify/dwarf/verify_dwarf.h"
#include "editor/verify/read/verify_lsda.h"
#include "editor/verify/read/verify_parallel.h"

/* Alignment of tables, and of their types. */
#define VF_LSDA_ALIGN 4

static bool is_padding(const uint8_t *p, uint64_t len)
{
	if (len >= VF_LSDA_ALIGN)
		return false;
	for (uint64_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/* Number of equal bytes at the front of both. */
static uint64_t common_prefix(const uint8_t *a, const uint8_t *b, uint64_t len)
{
	uint64_t i = 0;

	while (i < len && a[i] == b[i])
		i++;
	return i;
}

/* Bytes of equal types, counted from the table's end. */
static uint64_t common_types(const struct vf_lsda *a, const struct vf_lsda *b, uint64_t size,
			     uint64_t room)
{
	uint64_t k = 0, ta, tb;

	while (size && (k + 1) * size <= room && vf_lsda_type(a, k + 1, &ta) &&
	       vf_lsda_type(b, k + 1, &tb) && ta == tb)
		k++;
	return k * size;
}

/* Is @new, which ends at @end but for padding, made of parts of @old? */
static bool is_composed(const struct vf_lsda *old, const struct vf_lsda *new, uint64_t end)
{
	const uint8_t *types, *specs;
	uint64_t between, from, room, left;

	if (new->ttype_enc == DW_EH_PE_omit)
		return is_padding(new->actions, end - new->actions_vaddr);
	if (new->ttype_enc != old->ttype_enc || new->ttype_vaddr > end ||
	    new->ttype_vaddr < new->actions_vaddr)
		return false;
	between = new->ttype_vaddr - new->actions_vaddr;
	types = new->actions + between;
	/* Actions, padding, types: equal bytes tell where each ends. */
	left = (uint64_t)(old->end - old->actions);
	from = common_prefix(old->actions, new->actions, between < left ? between : left);
	room = common_types(old, new, vf_pointer_size(new->ttype_enc), between);
	if (from + room < between && !is_padding(new->actions + from, between - room - from))
		return false;
	if (old->ttype_vaddr < old->actions_vaddr ||
	    old->ttype_vaddr - old->actions_vaddr > (uint64_t)(old->end - old->actions))
		return false;
	specs = old->actions + (old->ttype_vaddr - old->actions_vaddr);
	left = (uint64_t)(old->end - specs);
	room = end - new->ttype_vaddr;
	from = common_prefix(specs, types, room < left ? room : left);
	return is_padding(types + from, room - from);
}

/* Does @site begin and end in copies, *@i or later ones? Then verify_unwind compares it with the original's. */
static bool is_in_copies(const struct vf *vf, const struct vf_call_site *site, uint32_t *i)
{
	const struct mp_map_piece *piece = vf->map->pieces;
	const uint64_t ends[] = {site->start, site->end - 1};

	for (int k = 0; k < 2; k++) {
		while (*i < vf->map->nr_pieces &&
		       piece[*i].new_vaddr + piece[*i].new_size <= ends[k])
			++*i;
		if (*i == vf->map->nr_pieces || piece[*i].new_vaddr > ends[k])
			return false;
	}
	return site->start < site->end;
}

/*
 * Are the call sites within the FDE, and in the form that emit uses? Neighbours differ, and the landing pads' base is
 * right below the lowest one, so that an offset of 0 means "none". @plain: C's tables have no base, and numbers of four
 * bytes.
 */
static bool are_own_sites(const struct vf *vf, const struct vf_lsda *lsda, const struct vf_fde *fde,
			  bool plain)
{
	uint32_t piece = vf_first_piece(vf, fde->start);
	uint64_t lowest = UINT64_MAX;

	for (uint32_t i = 0; i < lsda->nr; i++) {
		const struct vf_call_site *site = &lsda->site[i];
		const struct vf_call_site *last = i ? &lsda->site[i - 1] : NULL;

		if (!is_in_copies(vf, site, &piece) ||
		    (last && last->end == site->start && last->pad == site->pad &&
		     last->action == site->action))
			return false;
		if (site->pad && site->pad < lowest)
			lowest = site->pad;
	}
	if (plain || lowest == UINT64_MAX
		    ? lsda->base_enc != DW_EH_PE_omit
		    : lsda->base_enc == DW_EH_PE_omit || lsda->base != lowest - 1)
		return false;
	return lsda->site_enc == (plain ? DW_EH_PE_sdata4 : DW_EH_PE_uleb128) &&
	       (!lsda->nr || lsda->site[lsda->nr - 1].end <= fde->start + fde->size);
}

static const struct vf_fde *old_fde(const struct vf *vf, uint64_t new_vaddr)
{
	const struct mp_map_piece *piece = vf->map->pieces;
	uint32_t i = vf_first_piece(vf, new_vaddr);

	/* An empty copy (a dropped jump) of the function before may have the same address, and so may
	 * empty parts of inlined code. Inlined instructions belong to the function with the call. */
	while (i + 1 < vf->map->nr_pieces && !piece[i].new_size &&
	       piece[i + 1].new_vaddr == new_vaddr &&
	       (vf->index.inlined[i].behind || !vf->index.inlined[i + 1].behind))
		i++;
	if (i == vf->map->nr_pieces)
		return NULL;
	piece = vf_is_inlined(vf, &piece[i]) ? vf_inlined_caller(vf, &piece[i]) : &piece[i];
	return vf_eh_find(&vf->old.eh, piece->old_vaddr);
}

static uint64_t next_table(const struct vf *vf, uint32_t i, uint64_t end)
{
	for (i++; i < vf->now.eh.nr_fdes; i++)
		if (vf->now.eh.fdes[i].lsda)
			return vf->now.eh.fdes[i].lsda;
	return end;
}

int vf_check_lsdas(const struct vf *vf)
{
	const struct mp_section *sec = mp_elf_section(vf->n, ".gcc_except_table.morph");
	struct vf_lsda old = {0}, new = {.terse = true};
	uint64_t at, end;
	int ret = 0;

	if (!sec)
		return vf_refuse(vf, vf->now.segment->p_vaddr, "no section for exception tables");
	at = sec->vaddr;
	for (uint32_t i = 0; !ret && i < vf->now.eh.nr_fdes; i++) {
		const struct vf_fde *fde = &vf->now.eh.fdes[i], *from;

		if (!fde->lsda || fde->start < vf->now.text->vaddr)
			continue;
		from = old_fde(vf, fde->start);
		end = next_table(vf, i, sec->vaddr + sec->size);
		if (fde->lsda != at || end <= at || end > sec->vaddr + sec->size || !from ||
		    !from->lsda) {
			ret = vf_refuse(vf, fde->lsda,
					"exception tables do not follow one another");
			break;
		}
		ret = vf_lsda_read(vf->o, from->lsda, from->start, &old);
		if (!ret)
			ret = vf_lsda_read(vf->n, fde->lsda, fde->start, &new);
		if (ret != -ENOMEM &&
		    (ret || new.actions_vaddr > end ||
		     !are_own_sites(vf, &new, fde, vf->old.eh.cies[from->cie].language == VF_C) ||
		     !is_composed(&old, &new, end)))
			ret = vf_go_on(vf, vf_refuse(vf, fde->start,
						     "an exception table is not made of the old "
						     "one"));
		if (!ret)
			ret = vf_spend_sites(vf, &old);
		if (!ret)
			vf_own_at(vf, at, end - at, ME_OWNER_LSDA);
		at = end;
	}
	if (!ret && at != sec->vaddr + sec->size)
		ret = vf_refuse(vf, at, "no copy has this exception table");
	vf_lsda_fini(&old);
	vf_lsda_fini(&new);
	return ret;
}
