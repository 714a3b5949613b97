// SPDX-License-Identifier: Apache-2.0
/*
 * dynsym - sets the values of moved functions, and the section indexes of all symbols.
 * pointer decides which functions.
 */
#include "editor/emit/dynsym.h"

#include <string.h>

/* Size of the run of adjacent copies of one function that begins with the copy of @block. */
static uint64_t run_size(const struct mp_cfg *cfg, const struct me_placement *placement,
			 uint32_t block)
{
	uint32_t first = placement->target_from_outside[block], i = first;
	const struct me_copy *copies = placement->copies;

	while (i + 1 < placement->nr_copies && i + 1 != placement->first_warm &&
	       cfg->blocks[copies[i + 1].block].func == cfg->blocks[block].func)
		i++;
	return copies[i].new_vaddr + copies[i].new_size - copies[first].new_vaddr;
}

static bool move_symbol(const struct mp_cfg *cfg, const struct me_placement *placement,
			const struct me_redirects *redirects, uint16_t text, Elf64_Sym *sym)
{
	uint32_t block;

	if (!me_redirects_function(redirects, cfg, sym->st_value))
		return false;
	block = mp_cfg_block_starting(cfg, sym->st_value);
	if (block == MP_NONE || placement->target_from_outside[block] == MP_NONE)
		return false;
	sym->st_value = placement->copies[placement->target_from_outside[block]].new_vaddr;
	if (sym->st_size)
		sym->st_size = run_size(cfg, placement, block);
	sym->st_shndx = text;
	return true;
}

uint32_t me_dynsym_write(const struct mp_cfg *cfg, const struct me_placement *placement,
			 const struct me_redirects *redirects, const struct me_sections *sections,
			 uint8_t *image, uint64_t image_size)
{
	const struct mp_elf *elf = cfg->elf;
	uint32_t nr_moved = 0;

	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];

		if (s->type != SHT_DYNSYM || s->off + s->size > image_size)
			continue;
		for (uint64_t o = 0; o + sizeof(Elf64_Sym) <= s->size; o += sizeof(Elf64_Sym)) {
			Elf64_Sym sym;

			memcpy(&sym, image + s->off + o, sizeof(sym));
			if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= elf->nr_sections)
				continue;
			if (move_symbol(cfg, placement, redirects,
					sections->first_new + ME_SECTION_TEXT, &sym))
				nr_moved++;
			else
				sym.st_shndx = sections->index[sym.st_shndx];
			memcpy(image + s->off + o, &sym, sizeof(sym));
		}
	}
	return nr_moved;
}
