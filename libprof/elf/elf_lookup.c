// SPDX-License-Identifier: Apache-2.0
/* elf_lookup - finds sections, bytes and relocations by name or address. Called very often. */
#include <string.h>

#include "libprof/base/search.h"
#include "libprof/elf/elf_private.h"

const struct mp_section *mp_elf_section(const struct mp_elf *elf, const char *name)
{
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		if (elf->sections[i].type != SHT_NULL && !strcmp(elf->sections[i].name, name))
			return &elf->sections[i];
	}
	return NULL;
}

const struct mp_section *mp_elf_section_at(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_elf_private *priv = elf->private_data;
	uint32_t lo = mp_search(i, 0, priv->nr_alloc_sections,
				elf->sections[priv->alloc_sections[i]].vaddr <= vaddr);

	if (lo) {
		const struct mp_section *sec = &elf->sections[priv->alloc_sections[lo - 1]];

		if (vaddr - sec->vaddr < sec->size)
			return sec;
	}
	return NULL;
}

static const Elf64_Phdr *other_load_at(const struct mp_elf_private *priv, uint64_t vaddr)
{
	for (uint32_t i = 0; i < priv->nr_loads; i++)
		if (vaddr - priv->loads[i].p_vaddr < priv->loads[i].p_memsz)
			return &priv->loads[i];
	return NULL;
}

static inline const Elf64_Phdr *load_at(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_elf_private *priv = elf->private_data;
	const Elf64_Phdr *load;

	if (!priv->nr_loads)
		return NULL;
	load = &priv->loads[priv->main_load];
	if (vaddr - load->p_vaddr < load->p_memsz)
		return load;
	return other_load_at(priv, vaddr);
}

const uint8_t *mp_elf_bytes(const struct mp_elf *elf, uint64_t vaddr, size_t len)
{
	const Elf64_Phdr *load = load_at(elf, vaddr);
	uint64_t into;

	if (!load || !elf->data)
		return NULL;
	into = vaddr - load->p_vaddr;
	if (into > load->p_filesz || len > load->p_filesz - into)
		return NULL;
	return elf->data + load->p_offset + into;
}

bool mp_elf_is_code(const struct mp_elf *elf, uint64_t vaddr)
{
	const Elf64_Phdr *load = load_at(elf, vaddr);

	return load && (load->p_flags & PF_X);
}

bool mp_elf_is_readonly(const struct mp_elf *elf, uint64_t vaddr)
{
	const Elf64_Phdr *load = load_at(elf, vaddr);

	if (!load)
		return false;
	if (!(load->p_flags & PF_W))
		return true;
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type == PT_GNU_RELRO && vaddr >= phdr->p_vaddr &&
		    vaddr - phdr->p_vaddr < phdr->p_memsz)
			return true;
	}
	return false;
}

bool mp_elf_off_to_vaddr(const struct mp_elf *elf, uint64_t off, uint64_t *vaddr)
{
	const struct mp_elf_private *priv = elf->private_data;

	for (uint32_t i = 0; i < priv->nr_loads; i++) {
		const Elf64_Phdr *load = &priv->loads[i];

		if (off >= load->p_offset && off - load->p_offset < load->p_filesz) {
			*vaddr = load->p_vaddr + (off - load->p_offset);
			return true;
		}
	}
	return false;
}

bool mp_elf_vaddr_to_off(const struct mp_elf *elf, uint64_t vaddr, uint64_t *off)
{
	const Elf64_Phdr *load = load_at(elf, vaddr);

	if (!load || vaddr - load->p_vaddr >= load->p_filesz)
		return false;
	*off = load->p_offset + (vaddr - load->p_vaddr);
	return true;
}

/* Index of the first relocation at or behind @vaddr; @nr if there is none. */
static uint32_t first_reloc_at(const struct mp_reloc *relocs, uint32_t nr, uint64_t vaddr)
{
	return mp_search(i, 0, nr, relocs[i].vaddr < vaddr);
}

const struct mp_reloc *mp_elf_relocs_in(const struct mp_elf *elf, uint64_t start, uint64_t end,
					uint32_t *n)
{
	uint32_t first = first_reloc_at(elf->relocs, elf->nr_relocs, start);

	*n = end > start ? first_reloc_at(elf->relocs, elf->nr_relocs, end) - first : 0;
	return elf->relocs ? elf->relocs + first : NULL;
}

const struct mp_reloc *mp_elf_dyn_relocs_in(const struct mp_elf *elf, uint64_t start, uint64_t end,
					    uint32_t *n)
{
	uint32_t first = first_reloc_at(elf->dyn_relocs, elf->nr_dyn_relocs, start);

	*n = end > start ? first_reloc_at(elf->dyn_relocs, elf->nr_dyn_relocs, end) - first : 0;
	return elf->dyn_relocs ? elf->dyn_relocs + first : NULL;
}

uint64_t mp_elf_text_size(const struct mp_elf *elf)
{
	const struct mp_elf_private *priv = elf->private_data;
	uint64_t size = 0;

	for (uint32_t i = 0; i < priv->nr_loads; i++) {
		if (priv->loads[i].p_flags & PF_X)
			size += priv->loads[i].p_filesz;
	}
	return size;
}

static const struct mp_reloc *reloc_at(const struct mp_reloc *relocs, uint32_t nr, uint64_t vaddr)
{
	uint32_t i = first_reloc_at(relocs, nr, vaddr);

	return i < nr && relocs[i].vaddr == vaddr ? &relocs[i] : NULL;
}

const struct mp_reloc *mp_elf_reloc_at(const struct mp_elf *elf, uint64_t vaddr)
{
	return reloc_at(elf->relocs, elf->nr_relocs, vaddr);
}

const struct mp_reloc *mp_elf_dyn_reloc_at(const struct mp_elf *elf, uint64_t vaddr)
{
	return reloc_at(elf->dyn_relocs, elf->nr_dyn_relocs, vaddr);
}
