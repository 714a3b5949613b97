// SPDX-License-Identifier: Apache-2.0
/* object_debug_relocs - fields of sections with their relocations, and where these lead in the output. */
#include <errno.h>
#include <string.h>

#include "editor/object/debug/object_debug_private.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

bool me_object_is_debug(const struct mp_relobj_section *s)
{
	return !(s->header.sh_flags & SHF_ALLOC) && s->header.sh_type == SHT_PROGBITS &&
	       !strncmp(s->name, ".debug_", 7);
}

const Elf64_Rela *me_odebug_reloc_at(const struct me_odebug *d, uint32_t section, uint64_t off)
{
	const struct mp_relobj_section *s = me_odebug_section(d, section);
	uint32_t r = mp_relobj_reloc_at(s, off);

	return r < s->nr_relocs && s->relocs[r].r_offset == off ? &s->relocs[r] : NULL;
}

uint32_t me_odebug_nr_relocs(const struct me_odebug *d, uint32_t section, uint64_t from,
			     uint64_t to)
{
	const struct mp_relobj_section *s = me_odebug_section(d, section);

	return mp_relobj_reloc_at(s, to) - mp_relobj_reloc_at(s, from);
}

struct me_addr me_odebug_field(const struct me_odebug *d, uint32_t section, uint64_t off,
			       unsigned int size)
{
	const struct mp_relobj_section *s = me_odebug_section(d, section);
	const Elf64_Rela *r = me_odebug_reloc_at(d, section, off);
	struct me_addr addr = {0, 0};

	if (r) {
		const Elf64_Sym *symbol = &d->o->in->symbols[ELF64_R_SYM(r->r_info)];

		addr.off = symbol->st_value + (uint64_t)r->r_addend;
		if (symbol->st_shndx < d->o->in->nr_sections)
			addr.section = symbol->st_shndx;
	} else if (off + size <= s->header.sh_size) {
		memcpy(&addr.off, s->data + off, size);
	}
	return addr;
}

bool me_odebug_moves(const struct me_odebug *d, struct me_addr addr)
{
	uint32_t code = addr.section ? d->o->code_of[addr.section] : ME_NONE;

	return code != ME_NONE && !d->o->codes[code].closed;
}

void me_odebug_put_reloc(struct me_bytes *relocs, uint64_t off, uint32_t symbol, uint32_t type,
			 uint64_t addend)
{
	const Elf64_Rela r = {off, ELF64_R_INFO((uint64_t)symbol, type), (int64_t)addend};

	me_bytes_put(relocs, &r, sizeof(r));
}

/* An address in an expression: of a function, or of a place in one. */
static int translate_code(struct me_odebug *d, Elf64_Rela *r)
{
	uint32_t index = ELF64_R_SYM(r->r_info), out, off;
	const Elf64_Sym *symbol = &d->o->in->symbols[index];
	struct me_addr addr = {symbol->st_shndx, symbol->st_value + (uint64_t)r->r_addend};

	if (ELF64_ST_TYPE(symbol->st_info) != STT_SECTION && !r->r_addend) {
		r->r_info = ELF64_R_INFO((uint64_t)me_object_symbol(d->o, index),
					 ELF64_R_TYPE(r->r_info));
		return 0;
	}
	if (ELF64_R_TYPE(r->r_info) != R_X86_64_64 ||
	    !me_odebug_place(d, addr, ME_OUSE_START, &out, &off))
		return me_odebug_refuse(d, "names code that is not there");
	r->r_info = ELF64_R_INFO((uint64_t)d->o->outs[out].symbol, R_X86_64_64);
	r->r_addend = off;
	return 0;
}

/* Return: false: nothing began at @old. */
static bool shifted(const struct me_oshifts *shifts, uint64_t old, uint64_t *new)
{
	uint32_t low = mp_search(i, 0, shifts->nr, shifts->list[i].old < old);

	if (low == shifts->nr || shifts->list[low].old != old)
		return false;
	*new = shifts->list[low].new;
	return true;
}

/* An offset in another section of debug information. */
static int translate_offset(struct me_odebug *d, const struct me_oshifts *shifts, Elf64_Rela *r)
{
	uint32_t index = ELF64_R_SYM(r->r_info);
	uint64_t value = d->o->in->symbols[index].st_value, new;

	if (ELF64_R_TYPE(r->r_info) != R_X86_64_32 ||
	    !shifted(shifts, value + (uint64_t)r->r_addend, &new))
		return me_odebug_refuse(d, "refers to a table that is not there");
	r->r_info = ELF64_R_INFO((uint64_t)me_object_symbol(d->o, index), ELF64_R_TYPE(r->r_info));
	r->r_addend = (int64_t)(new - value);
	return 0;
}

static int translate(struct me_odebug *d, Elf64_Rela *r, bool in_expr)
{
	uint32_t index = ELF64_R_SYM(r->r_info), type = ELF64_R_TYPE(r->r_info);
	uint32_t section = d->o->in->symbols[index].st_shndx;
	struct me_addr addr = {section < d->o->in->nr_sections ? section : 0, 0};

	if (me_odebug_moves(d, addr))
		return in_expr ? translate_code(d, r)
			       : me_odebug_refuse(d, "refers to code in an unknown way");
	if (addr.section && addr.section == d->line)
		return translate_offset(d, &d->lines, r);
	if (addr.section && addr.section == d->abbrev)
		return translate_offset(d, &d->tables, r);
	for (int i = 0; addr.section && i < ME_OLISTS_NR; i++)
		if (addr.section == d->lists[i].section)
			return me_odebug_refuse(d, "refers to a list in an unknown way");
	if (addr.section && addr.section == d->aranges)
		return me_odebug_refuse(d, "refers to .debug_aranges");
	r->r_info = ELF64_R_INFO((uint64_t)me_object_symbol(d->o, index), type);
	return 0;
}

int me_odebug_put_relocs(struct me_odebug *d, uint32_t section, uint64_t from, uint64_t to,
			 int64_t by, bool in_expr, struct me_bytes *relocs)
{
	const struct mp_relobj_section *s = me_odebug_section(d, section);
	int rc = 0;

	for (uint32_t i = mp_relobj_reloc_at(s, from);
	     !rc && i < s->nr_relocs && s->relocs[i].r_offset < to; i++) {
		Elf64_Rela r = s->relocs[i];

		rc = translate(d, &r, in_expr);
		r.r_offset += (uint64_t)by;
		me_bytes_put(relocs, &r, sizeof(r));
	}
	return rc;
}

/* ---- what moved in a section ----------------------------------------------------------------- */

bool me_odebug_add_shift(struct me_oshifts *shifts, uint64_t old, uint64_t new)
{
	if (mp_grow(shifts->list, shifts->cap, (uint64_t)shifts->nr + 1))
		return false;
	shifts->list[shifts->nr++] = (struct me_oshift){old, new};
	return true;
}
