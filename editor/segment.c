// SPDX-License-Identifier: Apache-2.0
/*
 * segment - chooses place and program header of the new segment. Called by emit before anything
 * is placed.
 */
#include "editor/segment.h"

#include <errno.h>

static uint64_t round_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

/*
 * A PT_NOTE that PT_GNU_PROPERTY covers as well: kernel and ld.so read the properties through the
 * latter. It never holds the build-id, which only a PT_NOTE leads to.
 */
static bool note_is_spare(const struct mp_elf *elf, uint32_t index)
{
	const Elf64_Phdr *note = &elf->phdrs[index];

	if (note->p_type != PT_NOTE)
		return false;
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_GNU_PROPERTY && p->p_offset == note->p_offset &&
		    p->p_filesz == note->p_filesz)
			return true;
	}
	return false;
}

int me_segment_choose(const struct mp_elf *elf, struct me_segment *out, struct mp_err *err)
{
	uint32_t last_load = 0, slot = UINT32_MAX, eh_frame = UINT32_MAX;
	uint64_t vaddr_end = 0, off_end = 0, align = 0x1000;

	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_GNU_EH_FRAME)
			eh_frame = i;
		if (p->p_type != PT_LOAD)
			continue;
		last_load = i;
		if (p->p_vaddr + p->p_memsz > vaddr_end)
			vaddr_end = p->p_vaddr + p->p_memsz;
		if (p->p_offset + p->p_filesz > off_end)
			off_end = p->p_offset + p->p_filesz;
		if (p->p_align > align)
			align = p->p_align;
	}
	for (uint32_t i = last_load + 1; i < elf->nr_phdrs && slot == UINT32_MAX; i++) {
		if (note_is_spare(elf, i))
			slot = i;
	}
	if (slot == UINT32_MAX)
		return mp_err_set(err, EPERM, "no program header can be spared for a new segment");
	if (eh_frame == UINT32_MAX)
		return mp_err_set(err, EPERM, "has no PT_GNU_EH_FRAME");
	if (align & (align - 1))
		return mp_err_set(err, EPERM, "segment alignment is no power of two");
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];

		if (s->flags & SHF_ALLOC && s->type != SHT_NOBITS && s->off + s->size > off_end)
			return mp_err_set(err, EPERM, "section %s lies outside every segment", s->name);
	}
	*out = (struct me_segment){
		.slot = slot,
		.eh_frame_slot = eh_frame,
		.price = ".note.gnu.property, still found through PT_GNU_PROPERTY",
		.vaddr = round_up(vaddr_end, align),
		.off = round_up(off_end, align),
		.align = align,
		.old_end = off_end,
	};
	return 0;
}
