// SPDX-License-Identifier: Apache-2.0
/*
 * elf_personality - finds the names of the personality routines that FDEs use.
 * The LSDA can only be read if the routine's name is known. A CIE names the routine
 * directly (by its address or its PLT entry's) or by a pointer that the loader may fill in.
 * In a file without symbols the routine's code may identify it. Called by elf.
 */
#include <string.h>

#include "libprof/elf/elf_private.h"

/* An undefined function of .dynsym with a value stands for its PLT entry. */
static const char *function_name(const struct mp_elf *elf, uint64_t vaddr)
{
	for (uint32_t i = 0; vaddr && i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (sym->vaddr == vaddr && sym->type == STT_FUNC && *sym->name)
			return sym->name;
	}
	return NULL;
}

static bool has_function_symbols(const struct mp_elf *elf)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++)
		if (!elf->symbols[i].dynamic && elf->symbols[i].type == STT_FUNC)
			return true;
	return false;
}

/* Name of the routine of @fde at @vaddr. */
static const char *routine_name(const struct mp_elf *elf, const struct mp_fde *fde, uint64_t vaddr)
{
	const char *name = function_name(elf, vaddr);

	if (name || !vaddr || has_function_symbols(elf))
		return name;
	return mp_elf_personality_by_code(elf, fde, vaddr);
}

/* Name of the routine whose address is stored at fde->personality. */
static const char *pointed_name(const struct mp_elf *elf, const struct mp_fde *fde)
{
	uint64_t slot = fde->personality, vaddr;
	const struct mp_reloc *reloc = mp_elf_dyn_reloc_at(elf, slot);
	const uint8_t *bytes;

	if (reloc && reloc->type == R_X86_64_RELATIVE)
		return routine_name(elf, fde, (uint64_t)reloc->addend);
	if (reloc && reloc->sym && !reloc->addend &&
	    (reloc->type == R_X86_64_64 || reloc->type == R_X86_64_GLOB_DAT))
		return mp_elf_dynamic_name(elf, reloc->sym);
	bytes = reloc ? NULL : mp_elf_bytes(elf, slot, sizeof(vaddr));
	if (!bytes)
		return NULL;
	memcpy(&vaddr, bytes, sizeof(vaddr));
	return routine_name(elf, fde, vaddr);
}

/* A file has one or two routines, and consecutive FDEs nearly always use the same. */
#define MAX_KNOWN 4

static const struct mp_fde *same_routine(const struct mp_fde *const *known, uint32_t nr,
					 const struct mp_fde *fde)
{
	for (uint32_t i = 0; i < nr; i++)
		if (known[i]->personality == fde->personality &&
		    known[i]->personality_indirect == fde->personality_indirect)
			return known[i];
	return NULL;
}

void mp_elf_name_personalities(struct mp_elf *elf)
{
	const struct mp_fde *known[MAX_KNOWN];
	uint32_t nr_known = 0;

	for (uint32_t i = 0; i < elf->nr_fdes; i++) {
		struct mp_fde *fde = &elf->fdes[i];
		const struct mp_fde *same;

		if (!fde->personality)
			continue;
		same = same_routine(known, nr_known < MAX_KNOWN ? nr_known : MAX_KNOWN, fde);
		if (same) {
			fde->personality_name = same->personality_name;
			continue;
		}
		fde->personality_name = fde->personality_indirect
						? pointed_name(elf, fde)
						: routine_name(elf, fde, fde->personality);
		known[nr_known++ % MAX_KNOWN] = fde;
	}
}
