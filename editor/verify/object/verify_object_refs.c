// SPDX-License-Identifier: Apache-2.0
/*
 * verify_object_refs - what relocations mean, and a first look at all code of the original: bases
 * of tables, and functions that may compute addresses in themselves.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/object/verify_object_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

static bool pc_relative(uint32_t type)
{
	return type == R_X86_64_PC32 || type == R_X86_64_PLT32;
}

static bool absolute(uint32_t type)
{
	return type == R_X86_64_64 || type == R_X86_64_32 || type == R_X86_64_32S;
}

uint32_t vo_reloc_size(const Elf64_Rela *reloc)
{
	switch (ELF64_R_TYPE(reloc->r_info)) {
	case R_X86_64_NONE:
	case R_X86_64_TLSDESC_CALL:
	case 250: /* R_X86_64_GNU_VTINHERIT */
	case 251: /* R_X86_64_GNU_VTENTRY */ return 0;
	case R_X86_64_8:
	case R_X86_64_PC8: return 1;
	case R_X86_64_16:
	case R_X86_64_PC16: return 2;
	case R_X86_64_32:
	case R_X86_64_32S:
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
	case R_X86_64_GOT32:
	case R_X86_64_GOTPC32:
	case R_X86_64_GOTPCREL:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX:
	case R_X86_64_GOTPC32_TLSDESC:
	case R_X86_64_GOTTPOFF:
	case R_X86_64_TLSGD:
	case R_X86_64_TLSLD:
	case R_X86_64_TPOFF32:
	case R_X86_64_DTPOFF32:
	case R_X86_64_SIZE32: return 4;
	default: return 8;
	}
}

bool vo_relocated(const struct mp_relobj_section *s, uint64_t from, uint64_t to)
{
	for (uint32_t r = mp_relobj_reloc_at(s, from < 7 ? 0 : from - 7);
	     r < s->nr_relocs && s->relocs[r].r_offset < to; r++)
		if (s->relocs[r].r_offset + vo_reloc_size(&s->relocs[r]) > from)
			return true;
	return false;
}

int vo_relocs_apart(struct vo *vo, const struct vo_side *side)
{
	for (uint32_t i = 1; i < side->obj->nr_sections; i++) {
		const struct mp_relobj_section *s = &side->obj->sections[i];
		uint64_t end = 0;

		for (uint32_t r = 0; r < s->nr_relocs; r++) {
			uint32_t size = vo_reloc_size(&s->relocs[r]);
			uint64_t off = s->relocs[r].r_offset;

			if (size && (off < end || size > s->header.sh_size - off))
				return vo_refuse(vo, side, i, off,
						 "two relocations change the same bytes");
			end = size ? off + size : end;
		}
	}
	return 0;
}

bool vo_fills_field(const struct vo_insn *insn, const Elf64_Rela *reloc, uint64_t off)
{
	uint64_t at = reloc->r_offset - off;
	uint32_t size = vo_reloc_size(reloc);

	if (!size)
		return true;
	if (insn->disp_size && at == insn->disp_off)
		return size == insn->disp_size;
	if (insn->mem_disp_off && at == insn->mem_disp_off)
		return size == 4;
	return insn->imm_size && at == insn->imm_off && size == insn->imm_size;
}

struct vo_ref vo_ref_of(const struct vo_side *side, const Elf64_Rela *reloc, int64_t bias)
{
	uint32_t index = ELF64_R_SYM(reloc->r_info), type = ELF64_R_TYPE(reloc->r_info);
	const Elf64_Sym *symbol = &side->obj->symbols[index];
	struct vo_ref ref = {.reloc = reloc};

	if (!mp_relobj_in_code(side->obj, index) || ELF64_ST_BIND(symbol->st_info) != STB_LOCAL ||
	    !(pc_relative(type) || absolute(type)) ||
	    ELF64_ST_TYPE(symbol->st_info) > STT_SECTION) /* such as that of an indirect function */
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
		return ELF64_ST_TYPE(a->st_info) != STT_SECTION && vo->counterpart[i] == k;
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
	uint32_t low =
		mp_search(i, 0, side->nr_bases, compare_places(&side->bases[i].at, &at) <= 0);
	const struct vo_base *base;

	if (!low || side->bases[low - 1].at.section != section)
		return false;
	base = &side->bases[low - 1];
	*distance = (int64_t)(at.off - base->at.off);
	/* Every word from the base to this one is an entry. */
	return *distance % 4 == 0 && *distance / 4 < base->entries;
}

/* @end: the next base in the same section. */
static uint32_t entries_of(const struct vo_side *side, struct vo_place base, uint64_t end)
{
	const struct mp_relobj_section *s = &side->obj->sections[base.section];
	uint32_t first = mp_relobj_reloc_at(s, base.off), nr = 0;

	while (first + nr < s->nr_relocs && base.off + 4 * (uint64_t)nr < end &&
	       s->relocs[first + nr].r_offset == base.off + 4 * (uint64_t)nr &&
	       ELF64_R_TYPE(s->relocs[first + nr].r_info) == R_X86_64_PC32)
		nr++;
	return nr;
}

static void count_entries(struct vo_side *side)
{
	for (uint32_t i = 0; i < side->nr_bases; i++) {
		const struct vo_place *at = &side->bases[i].at, *next = &side->bases[i + 1].at;
		bool last = i + 1 == side->nr_bases || next->section != at->section;

		side->bases[i].entries = entries_of(side, *at, last ? UINT64_MAX : next->off);
	}
}

/* ---- the first look ------------------------------------------------------------------------- */

static int add_base(struct vo_side *side, const uint8_t *code, const struct vo_insn *insn,
		    const Elf64_Rela *reloc)
{
	const Elf64_Sym *symbol = &side->obj->symbols[ELF64_R_SYM(reloc->r_info)];
	uint64_t off = symbol->st_value + (uint64_t)reloc->r_addend +
		       (insn->at + insn->len - reloc->r_offset);

	if (insn->disp_off < 2 || code[insn->at + insn->disp_off - 2] != 0x8d ||
	    ELF64_R_TYPE(reloc->r_info) != R_X86_64_PC32 || !symbol->st_shndx ||
	    symbol->st_shndx >= side->obj->nr_sections || off > UINT32_MAX)
		return 0;
	if (mp_grow(side->bases, side->cap_bases, side->nr_bases + 1))
		return -ENOMEM;
	side->bases[side->nr_bases++].at = (struct vo_place){symbol->st_shndx, (uint32_t)off};
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

static int scan_insn(struct vo_side *side, uint32_t section, const struct vo_insn *insn)
{
	const struct mp_relobj_section *s = &side->obj->sections[section];
	uint32_t r = mp_relobj_reloc_at(s, insn->at);
	struct vo_fde *fde = vo_frame_at(side, (struct vo_place){section, (uint32_t)insn->at});
	bool operand = insn->kind == VF_OTHER;
	int rc = 0;

	if (fde)
		fde->computes_jump |= insn->kind == VF_IJMP_REG || insn->kind == VF_IJMP_MEM;
	if (operand && insn->rip_relative &&
	    (r >= s->nr_relocs || s->relocs[r].r_offset >= insn->at + insn->len))
		mark_label(side, fde, (struct vo_place){section, (uint32_t)insn->target});
	for (; !rc && r < s->nr_relocs && s->relocs[r].r_offset < insn->at + insn->len; r++) {
		int64_t bias = (int64_t)(insn->at + insn->len - s->relocs[r].r_offset);
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
		struct vo_insn insn;

		for (uint64_t off = 0; !rc && off < size; off += insn.len) {
			if (!vo_decode(s->data + off, size - off, off, &insn))
				return vo_refuse(vo, side, i, off, "is no instruction");
			rc = scan_insn(side, i, &insn);
		}
	}
	if (side->nr_bases)
		qsort(side->bases, side->nr_bases, sizeof(*side->bases), compare_places);
	count_entries(side);
	return rc;
}
