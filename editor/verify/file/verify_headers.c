// SPDX-License-Identifier: Apache-2.0
/*
 * verify_headers - checks the headers of the output: what the kernel and ld.so will map, and that
 * nothing else in them changed. verify calls it first; later checks rely on the segment found
 * here.
 */
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/file/verify_headers.h"
#include "editor/verify/file/verify_map_note.h"
#include "editor/verify/file/verify_phdr_extend.h"
#include "editor/verify/file/verify_slot.h"
#include "editor/verify/known/verify_live.h"
#include "editor/verify/stubs/verify_calls.h"
#include "editor/verify/stubs/verify_count.h"
#include "editor/verify/stubs/verify_paths.h"

/* A page, or a large one: the least and the largest alignment that the output chooses. */
#define VF_PAGE	      4096u
#define VF_LARGE_PAGE (UINT64_C(2) << 20)
/* Each look at an address may go over all segments. */
#define VF_PHDRS_MAX 256u
/* The hole before the new segment is at most so long, or as long as the file. */
#define VF_HOLE_MAX (UINT64_C(2) << 20)

static int check_ehdr(const struct vf *vf)
{
	Elf64_Ehdr a = vf->o->ehdr, b = vf->n->ehdr;

	a.e_shoff = b.e_shoff;
	a.e_shnum = b.e_shnum;
	a.e_shstrndx = b.e_shstrndx;
	if (vf->stubs.counters) /* vf_read_start() */
		a.e_entry = b.e_entry;
	a.e_phnum = b.e_phnum;
	if (memcmp(&a, &b, sizeof(a)))
		return vf_refuse(vf, 0, "ELF header changed beyond its section table");
	vf_own(vf, 0, sizeof(b), ME_OWNER_EHDR);
	if (vf->n->nr_phdrs != vf->o->nr_phdrs && vf->n->nr_phdrs != vf->o->nr_phdrs + 1)
		return vf_refuse(vf, 0, "number of program headers changed");
	return 0;
}

/* Does a PT_NOTE still cover the build-id note? */
static bool has_build_id_note(const struct mp_elf *elf)
{
	return vf_build_id(elf).start != 0;
}

/*
 * The loader and the kernel align the whole file to the largest alignment of a segment: address bits that are not
 * random then. So it must be the original's largest one, a page, or a large page for code that asks for it.
 */
static bool is_aligned(const struct vf *vf, const Elf64_Phdr *seg)
{
	uint64_t align = VF_PAGE;

	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++)
		if (vf->o->phdrs[i].p_type == PT_LOAD && vf->o->phdrs[i].p_align > align)
			align = vf->o->phdrs[i].p_align;
	if (seg->p_align != align && (seg->p_align != VF_LARGE_PAGE || align > VF_LARGE_PAGE))
		return false;
	return !(seg->p_align & (seg->p_align - 1)) && !(seg->p_vaddr % seg->p_align) &&
	       !(seg->p_offset % seg->p_align);
}

static int check_segment(const struct vf *vf, const Elf64_Phdr *seg)
{
	uint64_t prev = 0, end = 0;

	if (seg->p_flags != (PF_R | PF_X) || seg->p_paddr != seg->p_vaddr)
		return vf_refuse(vf, seg->p_vaddr, "new segment is not R+X");
	if (!is_aligned(vf, seg))
		return vf_refuse(vf, seg->p_vaddr, "new segment is misaligned");
	if (!seg->p_filesz || seg->p_filesz != seg->p_memsz || seg->p_offset > vf->n->size ||
	    seg->p_filesz > vf->n->size - seg->p_offset)
		return vf_refuse(vf, seg->p_vaddr, "new segment's size does not fit the file");
	if (seg->p_vaddr + seg->p_memsz < seg->p_vaddr || seg->p_offset < vf->old.alloc_end)
		return vf_refuse(vf, seg->p_vaddr, "new segment overlaps the original's bytes");
	if (seg->p_offset - vf->old.alloc_end >
	    (vf->old.alloc_end > VF_HOLE_MAX ? vf->old.alloc_end : VF_HOLE_MAX) + seg->p_align)
		return vf_refuse(vf, seg->p_vaddr, "new segment is too far behind the others");
	for (uint32_t i = 0; i < vf->n->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &vf->n->phdrs[i];

		/* PT_LOAD only: the end of PT_TLS occupies no addresses. */
		if (ph != seg && ph->p_type == PT_LOAD && ph->p_vaddr + ph->p_memsz > end)
			end = ph->p_vaddr + ph->p_memsz;
	}
	/*
	 * In its place no bits are left to choose, and program break and mappings stay near. In a process that runs
	 * already, only some other place may be free; counters are right before it there.
	 */
	if (vf->now.live && !vf->stubs.counters
		    ? seg->p_vaddr < end
		    : seg->p_vaddr != ((end + seg->p_align - 1) & ~(seg->p_align - 1)))
		return vf_refuse(vf, seg->p_vaddr, "new segment is not right above all others");
	for (uint32_t i = 0; i < vf->n->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &vf->n->phdrs[i];

		if (ph->p_type != PT_LOAD)
			continue;
		if (ph->p_vaddr < prev)
			return vf_refuse(vf, ph->p_vaddr, "segments are not ascending");
		prev = ph == seg || !vf->stubs.counters ? ph->p_vaddr : ph->p_vaddr + ph->p_memsz;
	}
	return 0;
}

/*
 * Did two neighbouring read-only segments become one? Later headers then moved up by one. All
 * bytes keep their addresses; bytes that were only readable may now be executable.
 */
static bool is_merged(const Elf64_Phdr *m, const Elf64_Phdr *a, const Elf64_Phdr *b)
{
	return a->p_type == PT_LOAD && b->p_type == PT_LOAD && m->p_type == PT_LOAD &&
	       !((a->p_flags | b->p_flags) & PF_W) && m->p_flags == (a->p_flags | b->p_flags) &&
	       a->p_filesz == a->p_memsz && b->p_filesz == b->p_memsz &&
	       m->p_filesz == m->p_memsz && m->p_offset == a->p_offset &&
	       m->p_vaddr == a->p_vaddr && m->p_paddr == a->p_paddr && m->p_align == a->p_align &&
	       a->p_vaddr - a->p_offset == b->p_vaddr - b->p_offset &&
	       b->p_vaddr >= a->p_vaddr + a->p_memsz &&
	       m->p_vaddr + m->p_memsz == b->p_vaddr + b->p_memsz;
}

/*
 * Find the header that the output dropped, so that later ones, to the last PT_LOAD, moved up by
 * one: the second of two merged ones, or a PT_PHDR that may be dropped.
 * Return: VF_NONE: none.
 */
static uint32_t find_dropped_phdr(const struct vf *vf, uint32_t *merged, uint32_t *last)
{
	uint32_t dropped = VF_NONE;

	*merged = VF_NONE;
	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++) {
		if (vf->o->phdrs[i].p_type == PT_PHDR && dropped == VF_NONE &&
		    vf->n->phdrs[i].p_type != PT_PHDR && vf_may_drop_phdr(vf, &vf->o->phdrs[i]))
			dropped = i;
		if (vf->o->phdrs[i].p_type != PT_LOAD)
			continue;
		*last = i;
		if (dropped == VF_NONE && i + 1 < vf->o->nr_phdrs &&
		    memcmp(&vf->o->phdrs[i], &vf->n->phdrs[i], sizeof(Elf64_Phdr)) &&
		    is_merged(&vf->n->phdrs[i], &vf->o->phdrs[i], &vf->o->phdrs[i + 1])) {
			*merged = i;
			dropped = i + 1;
		}
	}
	return dropped;
}

/* The original's header that became the output's header @i. NULL: the last PT_LOAD's slot,
 * which is free if header @dropped was dropped. */
static const Elf64_Phdr *original_phdr_of(const struct vf *vf, uint32_t i, uint32_t dropped,
					  uint32_t last)
{
	if (dropped == VF_NONE || dropped > last || i < dropped || i > last)
		return &vf->o->phdrs[i];
	return i < last ? &vf->o->phdrs[i + 1] : NULL;
}

static int check_phdr(struct vf *vf, uint32_t i, const Elf64_Phdr *a)
{
	const Elf64_Phdr *b = &vf->n->phdrs[i];

	if (a && a->p_type == PT_GNU_EH_FRAME && b->p_type == PT_GNU_EH_FRAME &&
	    !vf->now.eh_frame) {
		vf->now.eh_frame = b;
		if (b->p_flags != a->p_flags || b->p_align != a->p_align ||
		    b->p_paddr != b->p_vaddr)
			return vf_refuse(vf, b->p_vaddr,
					 "PT_GNU_EH_FRAME changed beyond its address");
		return 0;
	}
	if (a && vf_is_extended_table(vf, a, b))
		return 0;
	if (a && a->p_type == PT_PHDR && vf->now.has_new_phdr)
		return vf_refuse(vf, a->p_vaddr, "PT_PHDR does not describe the larger table");
	if (a && (!memcmp(a, b, sizeof(*a)) || vf_is_phdr_with_counters(vf, a, b) ||
		  vf_is_moved_phdr(vf, a, b)))
		return 0;
	if (a && vf->now.has_new_phdr)
		return vf_refuse(vf, b->p_vaddr, "program header %u changed", i);
	if (b->p_type != PT_LOAD || vf->now.segment)
		return vf_refuse(vf, b->p_vaddr, "program header %u changed", i);
	if (a && !vf_may_drop_phdr(vf, a))
		return vf_refuse(vf, a->p_vaddr,
				 "program header %u of type %#x may not be replaced", i, a->p_type);
	vf->now.segment = b;
	return 0;
}

/* The output has one header more, behind the last PT_LOAD. Bytes behind the table moved. */
static int check_grown_phdrs(struct vf *vf)
{
	uint32_t slot = 0;
	int ret;

	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++)
		if (vf->o->phdrs[i].p_type == PT_LOAD)
			slot = i + 1;
	ret = vf_find_moved(vf, slot);
	for (uint32_t i = 0; !ret && i < vf->n->nr_phdrs; i++)
		ret = check_phdr(vf, i, i == slot ? NULL : &vf->o->phdrs[i < slot ? i : i - 1]);
	if (!ret && !vf->now.segment)
		ret = vf_refuse(vf, 0, "output has no new segment");
	return ret;
}

static int check_same_phdrs(struct vf *vf)
{
	uint32_t last = 0, merged, dropped = find_dropped_phdr(vf, &merged, &last);

	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++) {
		int ret;

		if (i == merged)
			continue;
		ret = check_phdr(vf, i, original_phdr_of(vf, i, dropped, last));
		if (ret)
			return ret;
	}
	return vf->now.segment ? 0 : vf_refuse(vf, 0, "output has no new segment");
}

static int check_phdrs(struct vf *vf)
{
	const Elf64_Phdr *eh, *seg;
	int ret = vf->n->nr_phdrs > vf->o->nr_phdrs ? check_grown_phdrs(vf) : check_same_phdrs(vf);

	if (ret)
		return ret;
	if (has_build_id_note(vf->o) && !has_build_id_note(vf->n))
		return vf_refuse(vf, 0, "no PT_NOTE leads to the build-id any more");
	eh = vf->now.eh_frame;
	seg = vf->now.segment;
	if (eh && (eh->p_vaddr < seg->p_vaddr || eh->p_vaddr - seg->p_vaddr > seg->p_memsz ||
		   eh->p_memsz > seg->p_memsz - (eh->p_vaddr - seg->p_vaddr) ||
		   eh->p_filesz != eh->p_memsz ||
		   eh->p_offset - seg->p_offset != eh->p_vaddr - seg->p_vaddr))
		return vf_refuse(vf, eh->p_vaddr,
				 "PT_GNU_EH_FRAME does not point into the new segment");
	ret = check_segment(vf, seg);
	if (!ret && vf->now.has_new_phdr)
		ret = vf_check_phdr_extend(vf);
	if (!ret)
		vf_own(vf, vf->o->ehdr.e_phoff, vf->n->nr_phdrs * sizeof(Elf64_Phdr),
		       ME_OWNER_PHDRS);
	return ret;
}

/* verify_rest checks all section headers. Here is what other checks rely on. */
static int find_text(struct vf *vf)
{
	const struct mp_section *text = mp_elf_section(vf->n, ".morph.text");

	if (!text || text->type != SHT_PROGBITS || text->flags != (SHF_ALLOC | SHF_EXECINSTR) ||
	    text->vaddr != vf->now.segment->p_vaddr || text->size > vf->now.segment->p_memsz ||
	    !mp_elf_bytes(vf->n, text->vaddr, text->size))
		return vf_refuse(vf, vf->now.segment->p_vaddr,
				 "no section .morph.text in the segment");
	vf->now.text = text;
	return 0;
}

/* The unwinder of a static program does not ask libc, where it can be led to the rows of copies. */
static int check_live(const struct vf *vf)
{
	bool dynamic = vf_is_library(vf->o);

	for (uint32_t i = 0; i < vf->o->nr_phdrs; i++)
		dynamic |= vf->o->phdrs[i].p_type == PT_INTERP;
	if (vf->now.live && (!dynamic || !vf->now.eh_frame))
		return vf_refuse(vf, 0, "for a running process, but the program is static");
	return 0;
}

int vf_read_headers(struct vf *vf)
{
	int ret;

	vf_find_live(vf);
	vf_find_counters(vf);
	vf_find_paths(vf);
	if (!vf->stubs.path_section)
		vf_find_calls(vf);
	if (vf->o->nr_phdrs > VF_PHDRS_MAX)
		return vf_refuse(vf, 0, "the original has %u program headers", vf->o->nr_phdrs);
	if (vf->stubs.path_section && vf->stubs.audit_section)
		return vf_refuse(vf, 0, "the output is of two kinds");
	ret = check_ehdr(vf);
	if (!ret && vf->n->size < vf->old.alloc_end)
		ret = vf_refuse(vf, 0, "output is shorter than the original's contents");
	if (!ret)
		ret = check_phdrs(vf);
	if (!ret)
		ret = check_live(vf);
	if (!ret)
		ret = find_text(vf);
	if (!ret && vf->o->id.build_id_len && vf->o->id.build_id_len == vf->n->id.build_id_len &&
	    !memcmp(vf->o->id.build_id, vf->n->id.build_id, vf->o->id.build_id_len))
		ret = vf_refuse(vf, vf->now.segment->p_vaddr,
				"the output has the original's build-id");
	if (!ret && !mp_id_equal(&vf->map->original, &vf->o->id))
		ret = vf_refuse(vf, 0, "the map was made for another original");
	return ret;
}
