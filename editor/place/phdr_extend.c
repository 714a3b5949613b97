// SPDX-License-Identifier: Apache-2.0
/*
 * phdr_extend - decides whether the bytes behind the program header table can move, so that the
 * table grows by one entry. emit moves them. segment calls this when no header can be spared.
 */
#include "editor/place/phdr_extend.h"

#include <string.h>

/* Limit on the bytes that move: interpreter's name and notes are never longer. */
#define BLOCK_MAX 4096
/* verify accepts only smaller gaps between sections. */
#define ALIGN_MAX 64

bool me_displaced_holds(const struct me_displaced *moved, uint64_t off, uint64_t size)
{
	return size && off >= moved->off && off - moved->off <= moved->size &&
	       size <= moved->size - (off - moved->off);
}

uint64_t me_displaced_vaddr(const struct me_displaced *moved, uint64_t vaddr)
{
	if (vaddr < moved->vaddr || vaddr - moved->vaddr >= moved->size)
		return vaddr;
	return vaddr - moved->vaddr + moved->new_vaddr;
}

bool me_displaced_has(const struct me_displaced *moved, const struct mp_section *section)
{
	return section->flags & SHF_ALLOC && section->size && section->vaddr >= moved->vaddr &&
	       section->vaddr - moved->vaddr < moved->size;
}

void me_displaced_symbols(const struct me_displaced *moved, uint8_t *symtab, size_t size)
{
	for (size_t at = 0; moved->size && at + sizeof(Elf64_Sym) <= size;
	     at += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;

		memcpy(&sym, symtab + at, sizeof(sym));
		if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= SHN_LORESERVE ||
		    ELF64_ST_TYPE(sym.st_info) == STT_TLS)
			continue;
		sym.st_value = me_displaced_vaddr(moved, sym.st_value);
		memcpy(symtab + at, &sym, sizeof(sym));
	}
}

/* The segment that maps the table and the room behind it; NULL: none, or it is writable. */
static const Elf64_Phdr *table_load(const struct mp_elf *elf, uint64_t end)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_LOAD && p->p_offset <= elf->ehdr.e_phoff &&
		    end - p->p_offset <= p->p_filesz)
			return p->p_flags & PF_W ? NULL : p;
	}
	return NULL;
}

static bool overlaps(uint64_t off, uint64_t size, uint64_t start, uint64_t end)
{
	return size && off < end && off + size > start;
}

struct moved_bytes {
	const struct mp_elf *elf;
	const Elf64_Phdr *load;
	uint64_t start, end;  /* bytes up to @end must move */
	uint64_t first, last; /* bytes [first, last) move */
	uint64_t align;
};

/* Add a range to the bytes that move. Return: false: it cannot move. */
static bool include(struct moved_bytes *r, uint64_t off, uint64_t vaddr, uint64_t size,
		    uint64_t align)
{
	if (off < r->start || vaddr - off != r->load->p_vaddr - r->load->p_offset ||
	    align > ALIGN_MAX || (align & (align - 1)))
		return false;
	if (off < r->first)
		r->first = off;
	if (off + size > r->last)
		r->last = off + size;
	if (off + size > r->end)
		r->end = off + size;
	if (align > r->align)
		r->align = align;
	return true;
}

static bool include_phdr(struct moved_bytes *r, const Elf64_Phdr *p)
{
	if (p == r->load || !overlaps(p->p_offset, p->p_filesz, r->start, r->end))
		return true;
	return (p->p_type == PT_INTERP || p->p_type == PT_NOTE || p->p_type == PT_GNU_PROPERTY) &&
	       p->p_filesz == p->p_memsz &&
	       include(r, p->p_offset, p->p_vaddr, p->p_filesz, p->p_align);
}

static bool is_interp(const struct mp_elf *elf, const struct mp_section *s)
{
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		if (p->p_type == PT_INTERP)
			return p->p_offset == s->off && p->p_filesz == s->size &&
			       s->type == SHT_PROGBITS;
	}
	return false;
}

static bool include_section(struct moved_bytes *r, const struct mp_section *s)
{
	if (!(s->flags & SHF_ALLOC) || s->type == SHT_NOBITS ||
	    !overlaps(s->off, s->size, r->start, r->end))
		return true;
	return s->flags == SHF_ALLOC && (s->type == SHT_NOTE || is_interp(r->elf, s)) &&
	       include(r, s->off, s->vaddr, s->size, s->align);
}

static bool include_all(struct moved_bytes *r)
{
	for (uint32_t i = 0; i < r->elf->nr_phdrs; i++)
		if (!include_phdr(r, &r->elf->phdrs[i]))
			return false;
	for (uint32_t i = 1; i < r->elf->nr_sections; i++)
		if (!include_section(r, &r->elf->sections[i]))
			return false;
	return true;
}

/* Other modules would know the address of a dynamic symbol there. */
static bool has_dynamic_symbol(const struct mp_elf *elf, const struct me_displaced *moved)
{
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *s = &elf->symbols[i];

		if (s->dynamic && s->shndx != SHN_UNDEF && s->vaddr >= moved->vaddr &&
		    s->vaddr - moved->vaddr < moved->size)
			return true;
	}
	return false;
}

/*
 * LLVM's writer of profiles looks for notes where the file has them, counted from the ELF header, and not by their
 * addresses: they may not move.
 */
static bool looks_for_notes(const struct mp_elf *elf)
{
	return mp_elf_section(elf, "__llvm_prf_cnts") != NULL;
}

bool me_phdr_extend_find(const struct mp_elf *elf, struct me_displaced *out)
{
	struct moved_bytes r = {.elf = elf, .first = UINT64_MAX, .align = 8};
	uint64_t end;

	*out = (struct me_displaced){0};
	/* verify looks whether anything else names the bytes. */
	if ((elf->ehdr.e_type != ET_DYN && elf->ehdr.e_type != ET_EXEC) ||
	    elf->nr_phdrs + 1 >= PN_XNUM)
		return false;
	r.start = elf->ehdr.e_phoff + elf->nr_phdrs * sizeof(Elf64_Phdr);
	r.end = r.start + sizeof(Elf64_Phdr);
	r.load = table_load(elf, r.end);
	if (!r.load)
		return false;
	do {
		end = r.end;
		if (!include_all(&r))
			return false;
	} while (r.end != end && r.end - r.start <= BLOCK_MAX);
	if (r.end - r.start > BLOCK_MAX || r.end > r.load->p_offset + r.load->p_filesz)
		return false;
	if (r.first == UINT64_MAX) /* nothing lies there at all */
		r.first = r.last = r.end;
	out->off = r.first;
	out->vaddr = r.first - r.load->p_offset + r.load->p_vaddr;
	/* Padding behind it does not move: no section would cover it in the new segment. */
	out->size = r.last - r.first;
	out->align = r.align;
	return !has_dynamic_symbol(elf, out) && !(out->size && looks_for_notes(elf));
}
