// SPDX-License-Identifier: Apache-2.0
/*
 * verify_pointers - a function's address is one value: wherever it stood, the copy's address
 * stands now, or it stands there still everywhere.
 *
 * Words of data, their relocations, and operands are noted as they are met: those that changed by
 * diff and pieces, those that did not by scan and by the check of words. At the end no function
 * may have been noted both ways.
 */
#include <string.h>

#include "editor/verify_priv.h"

/* Only a function's start has an address that programs keep. */
static const struct mp_map_piece *function_copy(const struct vf *vf, uint64_t old)
{
	const struct vf_fde *fde = vf_is_text(vf, old) ? vf_eh_find(&vf->old_eh, old) : NULL;

	return fde && fde->start == old ? vf_piece_from(vf, old) : NULL;
}

bool vf_note_pointer(struct vf *vf, uint64_t old, uint64_t now)
{
	const struct mp_map_piece *copy = function_copy(vf, old);

	if (now == old) {
		if (copy)
			vf_bits_set(&vf->pointer_kept, old);
		return true;
	}
	if (!copy || copy->new_vaddr != now)
		return false;
	vf_bits_set(&vf->pointer_moved, old);
	vf->report->nr_pointers++;
	return true;
}

static bool is_absolute(const struct mp_reloc *rel)
{
	return rel->type == R_X86_64_32 || rel->type == R_X86_64_32S;
}

bool vf_note_field(struct vf *vf, uint64_t at, const uint8_t *now)
{
	uint32_t n, value;
	const struct mp_reloc *rel = mp_elf_relocs_in(vf->o, at, at + 1, &n);

	if (!n || !is_absolute(rel))
		return false;
	memcpy(&value, now, 4);
	return vf_note_pointer(vf, rel->sym_value + (uint64_t)rel->addend, value);
}

/* An instruction of the old text that names @to, as it stands in the output. One that a patch
 * overwrote, or that changed, says nothing here. */
void vf_note_operand(struct vf *vf, uint64_t insn, uint8_t len, uint64_t to)
{
	const uint8_t *a = mp_elf_bytes(vf->o, insn, len), *b = mp_elf_bytes(vf->n, insn, len);

	if (a && b && !memcmp(a, b, len))
		vf_note_pointer(vf, to, to);
}

/* What names a function's address and was not met elsewhere: it has not changed. */
static void note_fixed(struct vf *vf)
{
	const struct mp_elf *o = vf->o;

	vf_note_pointer(vf, o->ehdr.e_entry, o->ehdr.e_entry);
	for (uint32_t i = 0; i < o->nr_symbols; i++) {
		const struct mp_symbol *sym = &o->symbols[i];

		if (sym->dynamic && sym->shndx != SHN_UNDEF)
			vf_note_pointer(vf, sym->vaddr, sym->vaddr);
	}
	for (uint32_t i = 0; i < o->nr_relocs; i++) {
		const struct mp_reloc *rel = &o->relocs[i];
		uint64_t to = rel->sym_value + (uint64_t)rel->addend;
		const uint8_t *a, *b;

		/* Data of 4 bytes, and movabs; operands and words of 8 bytes are noted elsewhere. */
		if (!(is_absolute(rel) && !vf_is_text(vf, rel->vaddr)) &&
		    !(rel->type == R_X86_64_64 && vf_is_text(vf, rel->vaddr)))
			continue;
		a = mp_elf_bytes(o, rel->vaddr, 4);
		b = mp_elf_bytes(vf->n, rel->vaddr, 4);
		if (a && b && !memcmp(a, b, 4))
			vf_note_pointer(vf, to, to);
	}
}

int vf_check_pointers(struct vf *vf)
{
	uint64_t both;

	if (!vf->report->nr_pointers)
		return 0;
	note_fixed(vf);
	both = vf_bits_next(&vf->pointer_moved, vf->text_start, vf->text_end);
	for (; both < vf->text_end;
	     both = vf_bits_next(&vf->pointer_moved, both + 1, vf->text_end))
		if (vf_bits_get(&vf->pointer_kept, both))
			return vf_refuse(vf, both, "a function with two addresses");
	return 0;
}
