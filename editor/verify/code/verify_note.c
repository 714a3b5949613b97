// SPDX-License-Identifier: Apache-2.0
/*
 * verify_note - notes at which address a place names a function: at its old one, or at its copy's. verify_pointers
 * compares all notes in the end.
 */
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/code/verify_label.h"
#include "editor/verify/code/verify_note.h"
#include "editor/verify/read/verify_piece_index.h"
#include "editor/verify/stubs/verify_versions.h"

/* Programs keep addresses of functions' starts, and of labels that are values. Return: its
 * copy. */
static const struct mp_map_piece *copy_of(const struct vf *vf, uint64_t old, bool *label)
{
	const struct vf_fde *fde = vf_is_text(vf, old) ? vf_eh_find(&vf->old.eh, old) : NULL;

	*label = fde && fde->start != old;
	return fde && (!*label || vf_label_may_move(vf, old)) ? vf_piece_from(vf, old) : NULL;
}

/* Compilers align functions so; more is chance, unless the section is aligned to more. */
#define VF_USUAL_ALIGN 16u

/* Programs keep tags in low bits; C++ marks pointers to virtual member functions by the lowest
 * bit. */
static bool as_aligned(const struct vf *vf, uint64_t old, uint64_t now)
{
	const struct mp_section *sec = mp_elf_section_at(vf->o, old);
	uint64_t align = old & -old,
		 most = sec && sec->align > VF_USUAL_ALIGN ? sec->align : VF_USUAL_ALIGN;

	return now % (align > most ? most : align) == 0;
}

/* More bytes between two functions are not read. */
#define VF_BETWEEN_MAX 4096u

/*
 * Between the function before @start and @start: is there anything but padding, and code that ends in a direct jump, as
 * the start-up files' does? A caller may read what stands before the address that it has: type hashes, or tables.
 */
static bool has_data_before(const struct vf *vf, uint64_t start)
{
	const struct mp_section *sec = mp_elf_section_at(vf->o, start);
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, start);
	uint64_t at = sec ? sec->vaddr : start;
	bool data = false;
	const uint8_t *b;

	while (fde && fde > vf->old.eh.fdes && (--fde)->flags & VF_FDE_SYMBOL_ONLY)
		;
	if (fde && fde->start < start && !(fde->flags & VF_FDE_SYMBOL_ONLY) &&
	    fde->start + fde->size > at)
		at = fde->start + fde->size;
	if (start - at > VF_BETWEEN_MAX)
		return true;
	b = mp_elf_bytes(vf->o, at, start - at);
	while (b && at < start) {
		struct vf_insn insn;

		if (!*b || *b == 0xcc || !vf_decode(b, start - at, at, &insn)) {
			data |= *b && *b != 0xcc;
			insn.len = 1;
		} else if (insn.kind == VF_JMP && vf_is_text(vf, insn.target)) {
			data = false;
		} else {
			data |= !insn.nop;
		}
		at += insn.len;
		b += insn.len;
	}
	return data;
}

/* Is @now the address of the copy, or of a stub before it, the same one in all places? */
static bool is_address_now(const struct vf *vf, const struct mp_map_piece *copy, uint64_t old,
			   uint64_t now)
{
	uint64_t *seen, was = 0;

	if (!vf_has_stubs(vf) && !vf_bits_get(&vf->index.cloned, old))
		return copy->new_vaddr == now;
	if (!vf_is_copy(vf, copy->old_vaddr, now))
		return false;
	/* The first thread sets the address; others may compare at the same time. */
	seen = &vf->marks->pointer_now[copy - vf->map->pieces];
	return __atomic_compare_exchange_n(seen, &was, now, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED) ||
	       was == now;
}

/* @function: the address may be a function's, if it is another one now. */
static bool note(const struct vf *vf, uint64_t old, uint64_t now, bool function)
{
	bool label;
	const struct mp_map_piece *copy = copy_of(vf, old, &label);

	if (now == old) {
		if (copy)
			vf_bits_share(&vf->marks->pointer_kept, old);
		return true;
	}
	/*
	 * Answers are about addresses of functions, so that a label keeps its own. A function with several copies
	 * keeps its old address, but for one whose versions a stub enters; for a label one copy is chosen.
	 */
	if (!copy || (label && vf->now.answers) || (!label && !function) ||
	    (!label && vf_bits_get(&vf->index.cloned, old) && !vf_enters_versions(vf, now)) ||
	    !is_address_now(vf, copy, old, now) ||
	    (!label && (!as_aligned(vf, old, now) || has_data_before(vf, old))))
		return false;
	vf_bits_share(&vf->marks->pointer_moved, old);
	vf->result->report.nr_pointers++;
	return true;
}

/*
 * Without relocations, an offset in data may lead to the function, from whatever place. A process that runs already
 * holds old addresses.
 */
bool vf_note_pointer(const struct vf *vf, uint64_t old, uint64_t now)
{
	return (now == old || !vf->now.live) && note(vf, old, now, vf->o->relinkable);
}

/* Where the loader moves the file, it would have to move a word with the function's address, too. */
bool vf_note_symbol(const struct vf *vf, uint64_t old, uint64_t now)
{
	return note(vf, old, now, vf->o->relinkable || vf->o->ehdr.e_type == ET_DYN);
}

bool vf_is_absolute(const struct mp_reloc *rel)
{
	return rel->type == R_X86_64_32 || rel->type == R_X86_64_32S;
}

bool vf_note_field(const struct vf *vf, uint64_t at, const uint8_t *now)
{
	uint32_t n, value;
	const struct mp_reloc *rel = mp_elf_relocs_in(vf->o, at, at + 1, &n);

	if (!n || !vf_is_absolute(rel))
		return false;
	memcpy(&value, now, 4);
	return vf_note_pointer(vf, rel->sym_value + (uint64_t)rel->addend, value);
}

/* Note that an instruction of the old text names @to. If it changed, or a patch overwrote it,
 * another check notes it. */
void vf_note_operand(const struct vf *vf, uint64_t insn, uint8_t len, uint64_t to)
{
	const uint8_t *a = mp_elf_bytes(vf->o, insn, len), *b = mp_elf_bytes(vf->n, insn, len);

	if (a && b && !memcmp(a, b, len))
		vf_note_pointer(vf, to, to);
}
