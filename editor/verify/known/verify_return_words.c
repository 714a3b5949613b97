// SPDX-License-Identifier: Apache-2.0
/*
 * verify_return_words - marks functions of which data may hold return addresses.
 *
 * A runtime may find its frames by a table of return addresses (OCaml's does). The copy of a call
 * returns to another address, which the table lacks. A word of data is taken for a return
 * address if it names the place behind a call, and neither word beside it names a place inside a
 * function: so do labels and tables of switches, which are arrays. Called by verify_scan.
 */
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/known/verify_return_words.h"
#include "editor/verify/read/verify_eh.h"

#define INSN_MAX 15

/* The function inside which @vaddr lies, not at its start; else NULL. */
static struct vf_fde *function_around(const struct vf *vf, uint64_t vaddr)
{
	struct vf_fde *fde = vf_is_text(vf, vaddr) ? vf_eh_find(&vf->old.eh, vaddr) : NULL;

	return fde && fde->start != vaddr ? fde : NULL;
}

static bool is_behind_call(const struct vf *vf, const struct vf_fde *fde, uint64_t vaddr)
{
	for (uint64_t at = vaddr; at-- > fde->start && vaddr - at <= INSN_MAX;) {
		const uint8_t *p;
		struct vf_insn insn;

		if (!vf_bits_get(&vf->old.grid, at))
			continue;
		p = mp_elf_bytes(vf->o, at, vaddr - at);
		return p && vf_decode(p, vaddr - at, at, &insn) && at + insn.len == vaddr &&
		       (insn.kind == VF_CALL || insn.kind == VF_ICALL);
	}
	return false;
}

/* Without relocations any number may be an address. */
static bool numbers_are_words(const struct vf *vf)
{
	return vf->o->ehdr.e_type == ET_EXEC && !vf->o->relinkable;
}

/* The address that the 8 bytes at @where hold in the running program; 0: none is known. */
static uint64_t word_at(const struct vf *vf, uint64_t where)
{
	const struct mp_reloc *rel;
	const uint8_t *p;
	uint64_t word;

	if (numbers_are_words(vf)) {
		p = mp_elf_bytes(vf->o, where, sizeof(word));
		if (!p)
			return 0;
		memcpy(&word, p, sizeof(word));
		return word;
	}
	if (vf->o->ehdr.e_type == ET_DYN) {
		rel = mp_elf_dyn_reloc_at(vf->o, where);
		return rel && rel->type == R_X86_64_RELATIVE ? (uint64_t)rel->addend : 0;
	}
	rel = mp_elf_reloc_at(vf->o, where);
	return rel && rel->type == R_X86_64_64 ? rel->sym_value + (uint64_t)rel->addend : 0;
}

static void look_at(const struct vf *vf, uint64_t where, uint64_t word)
{
	struct vf_fde *fde = function_around(vf, word);

	if (fde && vf_bits_get(&vf->old.grid, word) && is_behind_call(vf, fde, word) &&
	    !function_around(vf, word_at(vf, where - 8)) &&
	    !function_around(vf, word_at(vf, where + 8)))
		fde->flags |= VF_FDE_RETURN_WORD;
}

static void look_at_reloc(const struct vf *vf, const struct mp_reloc *rel)
{
	bool names = rel->type == R_X86_64_64 || rel->type == R_X86_64_32 ||
		     rel->type == R_X86_64_32S || rel->type == R_X86_64_RELATIVE;

	if (names && !vf_is_text(vf, rel->vaddr))
		look_at(vf, rel->vaddr, rel->sym_value + (uint64_t)rel->addend);
}

/* Do the 8 bytes at @where end a text, which the 8 bytes before them belong to? */
static bool ends_text(const struct vf *vf, uint64_t where)
{
	const uint8_t *p = mp_elf_bytes(vf->o, where - 8, 16);
	bool text = p;

	for (int i = 0; text && i < 16; i++)
		text = (p[i] >= ' ' && p[i] <= '~') || (i >= 8 && !p[i]);
	return text;
}

static void look_at_numbers(const struct vf *vf, const struct mp_section *sec)
{
	const uint8_t *p = mp_elf_bytes(vf->o, sec->vaddr, sec->size);

	for (uint64_t k = -sec->vaddr & 7; p && k + 8 <= sec->size; k += 8) {
		uint64_t word;

		memcpy(&word, p + k, sizeof(word));
		if (vf_is_text(vf, word) && !ends_text(vf, sec->vaddr + k))
			look_at(vf, sec->vaddr + k, word);
	}
}

void vf_find_return_words(const struct vf *vf)
{
	for (uint32_t i = 0; i < vf->o->nr_relocs; i++)
		look_at_reloc(vf, &vf->o->relocs[i]);
	for (uint32_t i = 0; i < vf->o->nr_dyn_relocs; i++)
		look_at_reloc(vf, &vf->o->dyn_relocs[i]);
	for (uint32_t i = 0; numbers_are_words(vf) && i < vf->o->nr_sections; i++)
		if (vf_holds_words(vf, &vf->o->sections[i]))
			look_at_numbers(vf, &vf->o->sections[i]);
}
