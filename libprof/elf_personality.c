// SPDX-License-Identifier: Apache-2.0
/*
 * elf_personality - the names of the personality routines that FDEs lead to.
 *
 * Only a routine whose name is known has a known reading of the LSDA. A CIE names it directly
 * (its address, or its PLT entry's) or by a pointer that the loader may fill in.
 */
#include <string.h>

#include "libprof/elf.h"
#include "libprof/elf_internal.h"

static const char *dynamic_symbol_name(const struct mp_elf *elf, uint32_t index)
{
	for (uint32_t i = elf->nr_symbols; i-- > 0 && elf->symbols[i].dynamic;) {
		if (elf->symbols[i].index == index)
			return elf->symbols[i].name;
	}
	return NULL;
}

/* An undefined function of .dynsym with a value: its PLT entry stands for it. */
static const char *function_name(const struct mp_elf *elf, uint64_t vaddr)
{
	for (uint32_t i = 0; vaddr && i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (sym->vaddr == vaddr && sym->type == STT_FUNC && *sym->name)
			return sym->name;
	}
	return NULL;
}

static const char *pointed_name(const struct mp_elf *elf, uint64_t slot)
{
	const struct mp_reloc *reloc = mp_elf_dyn_reloc_at(elf, slot);
	const uint8_t *bytes;
	uint64_t vaddr;

	if (reloc && reloc->type == R_X86_64_RELATIVE)
		return function_name(elf, (uint64_t)reloc->addend);
	if (reloc && reloc->sym && !reloc->addend &&
	    (reloc->type == R_X86_64_64 || reloc->type == R_X86_64_GLOB_DAT))
		return dynamic_symbol_name(elf, reloc->sym);
	bytes = reloc ? NULL : mp_elf_bytes(elf, slot, sizeof(vaddr));
	if (!bytes)
		return NULL;
	memcpy(&vaddr, bytes, sizeof(vaddr));
	return function_name(elf, vaddr);
}

void mp_elf_name_personalities(struct mp_elf *elf)
{
	const struct mp_fde *last = NULL;

	for (uint32_t i = 0; i < elf->nr_fdes; i++) {
		struct mp_fde *fde = &elf->fdes[i];

		if (!fde->personality)
			continue;
		/* A file has one or two: those of neighbours are nearly always the same. */
		if (last && last->personality == fde->personality &&
		    last->personality_indirect == fde->personality_indirect)
			fde->personality_name = last->personality_name;
		else if (fde->personality_indirect)
			fde->personality_name = pointed_name(elf, fde->personality);
		else
			fde->personality_name = function_name(elf, fde->personality);
		last = fde;
	}
}
