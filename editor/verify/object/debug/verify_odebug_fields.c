// SPDX-License-Identifier: Apache-2.0
/* verify_odebug_fields - bytes of sections, and what their relocations lead to. */
#include <string.h>

#include "editor/verify/object/debug/verify_odebug_private.h"

bool vo_is_debug(const struct mp_relobj_section *s)
{
	return s->header.sh_type == SHT_PROGBITS && !(s->header.sh_flags & SHF_ALLOC) &&
	       !strncmp(s->name, ".debug_", 7);
}

struct vf_cursor od_cursor_at(const struct od_side *side, uint32_t section, uint64_t off)
{
	const struct mp_relobj_section *s = &side->side->obj->sections[section];

	return vf_cursor_at(s->data, s->header.sh_size, off);
}

uint64_t od_offset(const struct od_side *side, uint32_t section, const uint8_t *p)
{
	return (uint64_t)(p - side->side->obj->sections[section].data);
}

static const Elf64_Rela *reloc(const struct od_side *side, uint32_t section, uint64_t off)
{
	const struct mp_relobj_section *s = &side->side->obj->sections[section];
	uint32_t i = mp_relobj_reloc_at(s, off);

	return i < s->nr_relocs && s->relocs[i].r_offset == off ? &s->relocs[i] : NULL;
}

struct vd_addr od_field(const struct od_side *side, uint32_t section, uint64_t off,
			unsigned int size)
{
	const Elf64_Rela *r = reloc(side, section, off);
	struct vf_cursor c = od_cursor_at(side, section, off);
	const Elf64_Sym *symbol;

	if (!r)
		return (struct vd_addr){0, vf_cursor_fixed(&c, size)};
	symbol = &side->side->obj->symbols[ELF64_R_SYM(r->r_info)];
	return (struct vd_addr){symbol->st_shndx < side->side->obj->nr_sections ? symbol->st_shndx
										: 0,
				symbol->st_value + (uint64_t)r->r_addend};
}
