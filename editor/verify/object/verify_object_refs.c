// SPDX-License-Identifier: Apache-2.0
/*
 * verify_object_refs - what relocations mean, and a first look at all code of the original: bases
 * of tables, and functions that may compute addresses in themselves.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/base/grow.h"
#include "editor/verify/object/verify_object_private.h"
#include "libprof/base/search.h"

static bool pc_relative(uint32_t type)
{
	return type == R_X86_64_PC32 || type == R_X86_64_PLT32;
}

static bool absolute(uint32_t type)
{
	return type == R_X86_64_64 || type == R_X86_64_32 || type == R_X86_64_32S;
}

struct vo_ref vo_ref_of(const struct vo_side *side, const Elf64_Rela *reloc, int64_t bias)
{
	uint32_t index = ELF64_R_SYM(reloc->r_info), type = ELF64_R_TYPE(reloc->r_info);
	const Elf64_Sym *symbol = &side->obj->symbols[index];
	struct vo_ref ref = {.reloc = reloc};

	if (!mp_relobj_in_code(side->obj, index) || ELF64_ST_BIND(symbol->st_info) != STB_LOCAL ||
	    !(pc_relative(type) || absolute(type)))
		return ref;
	ref.code = true;
	ref.place.section = symbol->st_shndx;
	ref.place.off = (uint32_t)(symbol->st_value + (uint64_t)reloc->r_addend +
				   (uint64_t)(absolute(type) ? 0 : bias));
	return ref;
}

bool vo_same_symbol(const struct vo *vo, const Elf64_Rela *old, const Elf64_Rela *new)
{
	uint32_t i = ELF64_R_SYM(old->r_info), k = ELF64_R_SYM(new->r_info);
	const Elf64_Sym *a = &vo->old.obj->symbols[i], *b = &vo->new.obj->symbols[k];
	bool in_code = mp_relobj_in_code(vo->old.obj, i);

	if (ELF64_R_TYPE(old->r_info) != ELF64_R_TYPE(new->r_info) ||
	    old->r_addend != new->r_addend || a->st_info != b->st_info ||
	    a->st_other != b->st_other || in_code != mp_relobj_in_code(vo->new.obj, k))
		return false;
	/* The place of a function is that of its symbol, which is compared with the symbols. */
	if (in_code)
		return ELF64_ST_TYPE(a->st_info) != STT_SECTION &&
		       !strcmp(mp_relobj_symbol_name(vo->old.obj, i),
			       mp_relobj_symbol_name(vo->new.obj, k));
	return a->st_shndx == b->st_shndx && a->st_value == b->st_value &&
	       !strcmp(mp_relobj_symbol_name(vo->old.obj, i),
		       mp_relobj_symbol_name(vo->new.obj, k));
}

static int compare_places(const void *a, const void *b)
{
	const struct vo_place *x = a, *y = b;

	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	return (x->off > y->off) - (x->off < y->off);
}

bool vo_table_distance(const struct vo_side *side, uint32_t section, const Elf64_Rela *reloc,
		       int64_t *distance)
{
	const struct vo_place at = {section, (uint32_t)reloc->r_offset};
	const struct mp_relobj_section *s = &side->obj->sections[section];
	uint32_t low = mp_search(i, 0, side->nr_bases, compare_places(&side->bases[i], &at) <= 0);
	uint32_t first;

	if (!low || side->bases[low - 1].section != section)
		return false;
	*distance = (int64_t)(at.off - side->bases[low - 1].off);
	/* Every word from the base to this one is an entry. */
	first = mp_relobj_reloc_at(s, side->bases[low - 1].off);
	for (int64_t k = 0; k <= *distance; k += 4, first++)
		if (first >= s->nr_relocs ||
		    s->relocs[first].r_offset != side->bases[low - 1].off + (uint64_t)k ||
		    ELF64_R_TYPE(s->relocs[first].r_info) != R_X86_64_PC32)
			return false;
	return *distance % 4 == 0;
}

/* ---- the first look ------------------------------------------------------------------------- */

static int add_base(struct vo_side *side, const uint8_t *code, const struct mp_insn *insn,
		    const Elf64_Rela *reloc)
{
	const Elf64_Sym *symbol = &side->obj->symbols[ELF64_R_SYM(reloc->r_info)];
	uint64_t off = symbol->st_value + (uint64_t)reloc->r_addend +
		       (insn->vaddr + insn->len - reloc->r_offset);

	if (insn->disp_off < 2 || code[insn->vaddr + insn->disp_off - 2] != 0x8d ||
	    ELF64_R_TYPE(reloc->r_info) != R_X86_64_PC32 || !symbol->st_shndx ||
	    symbol->st_shndx >= side->obj->nr_sections || off > UINT32_MAX)
		return 0;
	if (!me_grow(&side->bases, &side->cap_bases, side->nr_bases + 1, sizeof(*side->bases)))
		return -ENOMEM;
	side->bases[side->nr_bases++] = (struct vo_place){symbol->st_shndx, (uint32_t)off};
	return 0;
}

/* The function at @from takes the address @place. Only the function itself computes with its
 * entry; others call it. */
static void mark_label(struct vo_side *side, const struct vo_fde *from, struct vo_place place)
{
	struct vo_fde *fde = vo_frame_at(side, place);

	if (fde && (fde == from || compare_places(&fde->start, &place)))
		fde->takes_label = true;
}

static int scan_insn(struct vo_side *side, uint32_t section, const struct mp_insn *insn)
{
	const struct mp_relobj_section *s = &side->obj->sections[section];
	uint32_t r = mp_relobj_reloc_at(s, insn->vaddr);
	struct vo_fde *fde = vo_frame_at(side, (struct vo_place){section, (uint32_t)insn->vaddr});
	bool operand = insn->kind == MP_INSN_OTHER;
	int rc = 0;

	if (fde)
		fde->computes_jump |= insn->kind == MP_INSN_IJUMP;
	if (operand && insn->rip_relative &&
	    (r >= s->nr_relocs || s->relocs[r].r_offset >= insn->vaddr + insn->len))
		mark_label(side, fde, (struct vo_place){section, (uint32_t)insn->target});
	for (; !rc && r < s->nr_relocs && s->relocs[r].r_offset < insn->vaddr + insn->len; r++) {
		int64_t bias = (int64_t)(insn->vaddr + insn->len - s->relocs[r].r_offset);
		struct vo_ref ref = vo_ref_of(side, &s->relocs[r], bias);

		if (operand && ref.code)
			mark_label(side, fde, ref.place);
		if (operand && insn->rip_relative)
			rc = add_base(side, s->data, insn, &s->relocs[r]);
	}
	return rc;
}

int vo_scan(struct vo *vo)
{
	struct vo_side *side = &vo->old;
	int rc = 0;

	for (uint32_t i = 1; i < side->obj->nr_sections; i++) {
		const struct mp_relobj_section *s = &side->obj->sections[i];
		uint64_t size = mp_relobj_is_code(s) ? s->header.sh_size : 0;
		struct mp_insn insn;

		for (uint64_t off = 0; !rc && off < size; off += insn.len) {
			if (mp_insn_decode(s->data + off, size - off, off, &insn))
				return vo_refuse(vo, side, i, off, "is no instruction");
			rc = scan_insn(side, i, &insn);
		}
	}
	if (side->nr_bases)
		qsort(side->bases, side->nr_bases, sizeof(*side->bases), compare_places);
	return rc;
}
