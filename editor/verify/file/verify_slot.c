// SPDX-License-Identifier: Apache-2.0
/*
 * verify_slot - decides whether the original may lose a program header, by who reads it:
 * kernel, ld.so, start-up code. verify_headers calls it for the header that became the new
 * segment.
 *
 * place/segment, which chooses that header, has rules of its own for PT_NOTE and PT_PHDR. Verify
 * shares no code with what it judges, so both state the rules; a change of one needs the other.
 */
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/file/verify_slot.h"

static bool covered_by_property(const struct mp_elf *elf, const Elf64_Phdr *note)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &elf->phdrs[i];

		if (ph->p_type == PT_GNU_PROPERTY && ph->p_offset <= note->p_offset &&
		    ph->p_offset + ph->p_filesz >= note->p_offset + note->p_filesz)
			return true;
	}
	return false;
}

struct words {
	const uint8_t *at, *end;
};

static bool take_word(struct words *w, uint32_t *out)
{
	if (w->end - w->at < 4)
		return false;
	memcpy(out, w->at, 4);
	w->at += 4;
	return true;
}

/* Is it one note of properties, on none of which a loader acts? */
static bool asks_for_nothing(const struct mp_elf *elf, const Elf64_Phdr *note)
{
	uint32_t namesz, descsz, type, name, kind, len, value, pad;
	struct words w;

	if (note->p_offset > elf->size || note->p_filesz > elf->size - note->p_offset)
		return false;
	w.at = elf->data + note->p_offset;
	w.end = w.at + note->p_filesz;
	if (!take_word(&w, &namesz) || !take_word(&w, &descsz) || !take_word(&w, &type) ||
	    !take_word(&w, &name) || namesz != 4 || type != NT_GNU_PROPERTY_TYPE_0 ||
	    memcmp(&name, "GNU", 4) || (uint64_t)(w.end - w.at) != descsz)
		return false;
	while (w.at < w.end) {
		uint32_t harmless = 0;

		if (!take_word(&w, &kind) || !take_word(&w, &len) || !take_word(&w, &value) ||
		    len != 4)
			return false;
		if (kind == GNU_PROPERTY_X86_ISA_1_NEEDED)
			harmless = GNU_PROPERTY_X86_ISA_1_BASELINE;
		else if (kind == GNU_PROPERTY_X86_ISA_1_USED)
			harmless = UINT32_MAX;
		else if (kind != GNU_PROPERTY_X86_FEATURE_1_AND)
			return false;
		if (value & ~harmless)
			return false;
		take_word(&w, &pad);
	}
	return true;
}

bool vf_is_library(const struct mp_elf *elf)
{
	const Elf64_Phdr *dyn = NULL;
	uint64_t nr;

	if (elf->ehdr.e_type != ET_DYN)
		return false;
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		if (elf->phdrs[i].p_type == PT_INTERP)
			return false;
		if (elf->phdrs[i].p_type == PT_DYNAMIC)
			dyn = &elf->phdrs[i];
	}
	if (!dyn || dyn->p_offset > elf->size || dyn->p_filesz > elf->size - dyn->p_offset)
		return false;
	nr = dyn->p_filesz / sizeof(Elf64_Dyn);
	for (uint64_t i = 0; i < nr; i++) {
		Elf64_Dyn d;

		memcpy(&d, elf->data + dyn->p_offset + i * sizeof(d), sizeof(d));
		if (d.d_tag == DT_NULL)
			return true;
		if (d.d_tag == DT_FLAGS_1 && (d.d_un.d_val & DF_1_PIE))
			return false;
	}
	return false;
}

/* Does a segment map the table of headers? A library's is found through it. */
static bool table_is_mapped(const struct mp_elf *elf)
{
	uint64_t start = elf->ehdr.e_phoff;

	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &elf->phdrs[i];

		if (ph->p_type == PT_LOAD && start >= ph->p_offset &&
		    start + elf->nr_phdrs * sizeof(*ph) <= ph->p_offset + ph->p_filesz)
			return true;
	}
	return false;
}

bool vf_may_drop_phdr(const struct vf *vf, const Elf64_Phdr *slot)
{
	switch (slot->p_type) {
	case PT_NULL: return true;
	case PT_NOTE: return covered_by_property(vf->o, slot) || asks_for_nothing(vf->o, slot);
	case PT_PHDR:
		return table_is_mapped(vf->o) &&
		       (vf->o->ehdr.e_type == ET_EXEC || vf_is_library(vf->o));
	default: return false;
	}
}
