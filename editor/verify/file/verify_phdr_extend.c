// SPDX-License-Identifier: Apache-2.0
/*
 * verify_phdr_extend - checks a program header table with one entry more: were the bytes behind it
 * preserved? Called by verify_headers for the headers, and by verify after the scan for
 * addresses.
 *
 * The table must stay at its place. Program headers alone may lead to the bytes that it now
 * covers: no instruction, relocation or symbol may name them, and no word of data in a program with
 * fixed addresses. These bytes must be in the new segment unchanged.
 */
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/file/verify_map_note.h"
#include "editor/verify/file/verify_phdr_extend.h"
#include "editor/verify/read/verify_eh.h"

/* Bytes [start, end) of the original's file, which must hold nothing that stays there. */
struct span {
	uint64_t start, end;
};

static struct span entry_of(const struct vf *vf)
{
	uint64_t start = vf->o->ehdr.e_phoff + vf->o->nr_phdrs * sizeof(Elf64_Phdr);

	return (struct span){start, start + sizeof(Elf64_Phdr)};
}

static bool meet(struct span s, uint64_t off, uint64_t size)
{
	return size && off < s.end && off + size > s.start;
}

bool vf_is_moved(const struct vf *vf, uint64_t off, uint64_t size)
{
	const struct vf_moved *m = &vf->now.moved;

	return m->end > m->start && off >= m->start && off <= m->end && size <= m->end - off;
}

uint64_t vf_vaddr_now(const struct vf *vf, uint64_t vaddr)
{
	const struct vf_moved *m = &vf->now.moved;

	return m->end > m->start && vaddr >= m->vaddr && vaddr - m->vaddr < m->end - m->start
		       ? vaddr - m->vaddr + m->now
		       : vaddr;
}

uint64_t vf_off_now(const struct vf *vf, uint64_t off)
{
	const struct vf_moved *m = &vf->now.moved;

	return vf_is_moved(vf, off, 1) ? off - m->start + (m->now - vf->now.segment->p_vaddr) +
						 vf->now.segment->p_offset
				       : off;
}

/* Kernel, ld.so and debuggers find these segments by their program headers alone. */
static bool may_move(const Elf64_Phdr *ph)
{
	return ph->p_type == PT_INTERP || ph->p_type == PT_NOTE || ph->p_type == PT_GNU_PROPERTY;
}

bool vf_is_moved_phdr(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b)
{
	Elf64_Phdr was = *b;

	if (!vf->now.has_new_phdr || !may_move(a) || !vf_is_moved(vf, a->p_offset, a->p_filesz) ||
	    a->p_memsz != a->p_filesz || b->p_vaddr != vf_vaddr_now(vf, a->p_vaddr) ||
	    b->p_paddr != b->p_vaddr || (a->p_align > 1 && (b->p_vaddr - a->p_vaddr) % a->p_align))
		return false;
	was.p_offset = a->p_offset;
	was.p_vaddr = a->p_vaddr;
	was.p_paddr = a->p_paddr;
	return !memcmp(&was, a, sizeof(was));
}

bool vf_is_extended_table(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b)
{
	Elf64_Phdr was = *b;

	if (!vf->now.has_new_phdr || a->p_type != PT_PHDR || a->p_offset != vf->o->ehdr.e_phoff ||
	    a->p_filesz != vf->o->nr_phdrs * sizeof(Elf64_Phdr) || a->p_memsz != a->p_filesz)
		return false;
	was.p_filesz -= sizeof(Elf64_Phdr);
	was.p_memsz -= sizeof(Elf64_Phdr);
	return !memcmp(&was, a, sizeof(was));
}

/* The segment that maps the table, including the new entry. */
static const Elf64_Phdr *table_segment(const struct vf *vf)
{
	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &vf->o->phdrs[i];

		if (ph->p_type == PT_LOAD && ph->p_offset <= vf->o->ehdr.e_phoff &&
		    entry_of(vf).end - ph->p_offset <= ph->p_filesz)
			return ph;
	}
	return NULL;
}

int vf_find_moved(struct vf *vf, uint32_t slot)
{
	struct vf_moved *m = &vf->now.moved;
	const Elf64_Phdr *load = table_segment(vf);

	if (!load || load->p_flags & PF_W)
		return vf_refuse(vf, 0, "the table of program headers may not grow here");
	vf->now.has_new_phdr = true;
	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++) {
		const Elf64_Phdr *a = &vf->o->phdrs[i], *b = &vf->n->phdrs[i < slot ? i : i + 1];

		if (!may_move(a) || a->p_vaddr == b->p_vaddr)
			continue;
		if (a->p_vaddr - a->p_offset != load->p_vaddr - load->p_offset ||
		    a->p_offset < entry_of(vf).start ||
		    a->p_offset - load->p_offset > load->p_filesz ||
		    a->p_filesz > load->p_filesz - (a->p_offset - load->p_offset))
			return vf_refuse(vf, a->p_vaddr, "program header %u may not move", i);
		if (m->start == m->end) {
			*m = (struct vf_moved){a->p_offset, a->p_offset + a->p_filesz, a->p_vaddr,
					       b->p_vaddr};
			continue;
		}
		if (a->p_offset < m->start) {
			m->vaddr -= m->start - a->p_offset;
			m->now -= m->start - a->p_offset;
			m->start = a->p_offset;
		}
		if (a->p_offset + a->p_filesz > m->end)
			m->end = a->p_offset + a->p_filesz;
	}
	return 0;
}

/* Each header of bytes that were moved or overwritten must lead to their new place. */
static int check_headers(const struct vf *vf)
{
	const struct span moved = {vf->now.moved.start, vf->now.moved.end}, entry = entry_of(vf);
	const Elf64_Phdr *load = table_segment(vf);

	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &vf->o->phdrs[i];

		if (ph == load || (!meet(entry, ph->p_offset, ph->p_filesz) &&
				   !meet(moved, ph->p_offset, ph->p_filesz)))
			continue;
		if (!may_move(ph) || !vf_is_moved(vf, ph->p_offset, ph->p_filesz))
			return vf_refuse(vf, ph->p_vaddr,
					 "the new program header overwrites bytes of program "
					 "header %u",
					 i);
	}
	return 0;
}

static bool is_interp(const struct vf *vf, const struct mp_section *sec)
{
	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++)
		if (vf->o->phdrs[i].p_type == PT_INTERP)
			return sec->type == SHT_PROGBITS && sec->off == vf->o->phdrs[i].p_offset &&
			       sec->size == vf->o->phdrs[i].p_filesz;
	return false;
}

static int check_old_sections(const struct vf *vf)
{
	const struct span moved = {vf->now.moved.start, vf->now.moved.end}, entry = entry_of(vf);

	for (uint32_t i = 1; i < vf->o->nr_sections; i++) {
		const struct mp_section *sec = &vf->o->sections[i];

		if (!(sec->flags & SHF_ALLOC) || sec->type == SHT_NOBITS ||
		    (!meet(entry, sec->off, sec->size) && !meet(moved, sec->off, sec->size)))
			continue;
		if (sec->flags != SHF_ALLOC || (sec->type != SHT_NOTE && !is_interp(vf, sec)) ||
		    !vf_is_moved(vf, sec->off, sec->size))
			return vf_refuse(vf, sec->vaddr,
					 "the new program header overwrites section %.40s",
					 sec->name);
	}
	return 0;
}

static int check_bytes(const struct vf *vf)
{
	const struct vf_moved *m = &vf->now.moved;
	const struct vf_range id = vf_build_id(vf->o);
	const Elf64_Phdr *seg = vf->now.segment;
	uint64_t size = m->end - m->start, off;

	/* patchelf writes X over the sections that it moves. vf_check_moved() sees that nothing names them. */
	for (uint64_t at = entry_of(vf).start; at < entry_of(vf).end; at++)
		if (!vf_is_moved(vf, at, 1) && vf->o->data[at] && vf->o->data[at] != 'X')
			return vf_refuse(vf, 0,
					 "the new program header overwrites bytes that "
					 "belong to no section");
	if (!size)
		return 0;
	if (m->now < seg->p_vaddr || m->now - seg->p_vaddr > seg->p_filesz ||
	    size > seg->p_filesz - (m->now - seg->p_vaddr))
		return vf_refuse(vf, m->vaddr, "the moved bytes are not in the new segment");
	off = vf_off_now(vf, m->start);
	for (uint64_t i = 0; i < size; i++) {
		uint64_t at = m->start + i;

		if ((at < id.start || at >= id.end) && vf->n->data[off + i] != vf->o->data[at])
			return vf_refuse(vf, m->vaddr + i, "moved bytes have changed");
		if (at >= entry_of(vf).end && vf->n->data[at])
			return vf_refuse(vf, m->vaddr + i,
					 "the old place of moved bytes is not zero");
	}
	for (uint32_t i = 0; i < vf->n->nr_phdrs; i++) {
		const Elf64_Phdr *b = &vf->n->phdrs[i];

		if (may_move(b) && b->p_vaddr >= m->now && b->p_vaddr - m->now < size &&
		    b->p_offset - seg->p_offset != b->p_vaddr - seg->p_vaddr)
			return vf_refuse(vf, b->p_vaddr,
					 "program header %u has a wrong file offset", i);
	}
	return 0;
}

/* All of the moved bytes but the build-id were compared. */
static void own_moved(const struct vf *vf)
{
	const struct vf_range id = vf_build_id(vf->n);
	uint64_t off = vf_off_now(vf, vf->now.moved.start),
		 end = off + vf->now.moved.end - vf->now.moved.start;

	if (id.start < off || id.end > end) {
		vf_own(vf, off, end - off, ME_OWNER_MOVED);
		return;
	}
	vf_own(vf, off, id.start - off, ME_OWNER_MOVED);
	vf_own(vf, id.start, id.end - id.start, ME_OWNER_BUILD_ID);
	vf_own(vf, id.end, end - id.end, ME_OWNER_MOVED);
}

int vf_check_phdr_extend(const struct vf *vf)
{
	const struct vf_moved *m = &vf->now.moved;
	uint64_t behind = m->start > entry_of(vf).end ? m->start : entry_of(vf).end;
	int ret = check_headers(vf);

	if (!ret)
		ret = check_old_sections(vf);
	if (!ret)
		ret = check_bytes(vf);
	if (ret || m->end == m->start)
		return ret;
	/* Its library looks for notes by their place in the file. */
	if (mp_elf_section(vf->o, "__llvm_prf_cnts"))
		return vf_refuse(vf, m->vaddr, "the program writes a profile, and notes moved");
	/* The old place, where it is no part of the table, and the new one */
	if (m->end > behind)
		vf_own(vf, behind, m->end - behind, ME_OWNER_MOVED);
	own_moved(vf);
	return 0;
}

/* No tag that holds an address may lead to bytes that moved. */
static int check_dynamic(const struct vf *vf, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &vf->o->phdrs[i];
		uint64_t nr = ph->p_filesz / sizeof(Elf64_Dyn);

		if (ph->p_type != PT_DYNAMIC || ph->p_offset > vf->o->size ||
		    ph->p_filesz > vf->o->size - ph->p_offset)
			continue;
		for (uint64_t k = 0; k < nr; k++) {
			Elf64_Dyn d;

			memcpy(&d, vf->o->data + ph->p_offset + k * sizeof(d), sizeof(d));
			switch (d.d_tag) {
			case DT_NULL: k = nr; continue;
			case DT_PLTGOT:
			case DT_HASH:
			case DT_GNU_HASH:
			case DT_STRTAB:
			case DT_SYMTAB:
			case DT_RELA:
			case DT_RELR:
			case DT_JMPREL:
			case DT_INIT:
			case DT_FINI:
			case DT_INIT_ARRAY:
			case DT_FINI_ARRAY:
			case DT_PREINIT_ARRAY:
			case DT_VERSYM:
			case DT_VERDEF:
			case DT_VERNEED: break;
			default: continue;
			}
			if (d.d_un.d_ptr >= start && d.d_un.d_ptr < end)
				return vf_refuse(vf, d.d_un.d_ptr,
						 "dynamic tag %#llx leads to moved bytes",
						 (unsigned long long)d.d_tag);
		}
	}
	return 0;
}

/* With fixed addresses any number of the program's data may be one: is none in [start, end)? */
static bool data_names(const struct vf *vf, uint64_t start, uint64_t end)
{
	for (uint32_t s = 1; s < vf->o->nr_sections; s++) {
		const struct mp_section *sec = &vf->o->sections[s];
		const uint8_t *p =
			vf_holds_words(vf, sec) ? mp_elf_bytes(vf->o, sec->vaddr, sec->size) : NULL;

		for (uint64_t k = 0; p && k + 4 <= sec->size; k++) {
			uint64_t w64 = 0;
			uint32_t w32;

			memcpy(&w32, p + k, sizeof(w32));
			if (w32 < (uint32_t)start || w32 >= end)
				continue;
			memcpy(&w64, p + k, k + 8 <= sec->size ? 8 : 4);
			if ((sec->vaddr + k) % 4 == 0 || (w64 >= start && w64 < end))
				return true;
		}
		vf_drop_bytes(vf->o, sec->vaddr, sec->vaddr + sec->size);
	}
	return false;
}

int vf_check_moved(const struct vf *vf)
{
	const Elf64_Phdr *load;
	uint64_t start, end, bias;

	if (!vf->now.has_new_phdr)
		return 0;
	load = table_segment(vf);
	bias = load->p_vaddr - load->p_offset;
	start = entry_of(vf).start + bias;
	end = (vf->now.moved.end > entry_of(vf).end ? vf->now.moved.end : entry_of(vf).end) + bias;
	if (vf_bits_next(&vf->old.data_ref, start, end) < end ||
	    vf_bits_next(&vf->old.word_ref, start, end) < end ||
	    (vf->o->ehdr.e_type == ET_EXEC && (end > UINT32_MAX || data_names(vf, start, end))))
		return vf_refuse(vf, start,
				 "the program uses bytes behind its program headers "
				 "that were moved");
	for (uint32_t i = 0; i < vf->o->nr_symbols; i++) {
		const struct mp_symbol *sym = &vf->o->symbols[i];

		if (sym->dynamic && sym->shndx != SHN_UNDEF && sym->vaddr >= start &&
		    sym->vaddr < end)
			return vf_refuse(vf, sym->vaddr, "dynamic symbol %.48s names moved bytes",
					 sym->name);
	}
	for (uint32_t i = 0; i < vf->o->nr_dyn_relocs; i++)
		if (vf->o->dyn_relocs[i].vaddr + 8 > start && vf->o->dyn_relocs[i].vaddr < end)
			return vf_refuse(vf, vf->o->dyn_relocs[i].vaddr,
					 "a relocation changes moved bytes");
	return check_dynamic(vf, start, end);
}
