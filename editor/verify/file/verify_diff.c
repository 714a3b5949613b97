// SPDX-License-Identifier: Apache-2.0
/*
 * verify_diff - checks that every byte that differs from the original belongs to a change that
 * is proved: a patch (a jump written over a copied block's start), a call or jump that leads to
 * a copy, a table entry, the build-id. verify calls it after the pieces are proved.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/code/verify_note.h"
#include "editor/verify/code/verify_padding.h"
#include "editor/verify/code/verify_tables.h"
#include "editor/verify/file/verify_diff.h"
#include "editor/verify/file/verify_map_note.h"
#include "editor/verify/file/verify_phdr_extend.h"
#include "editor/verify/file/verify_symbols.h"
#include "editor/verify/known/verify_answers.h"
#include "editor/verify/known/verify_live.h"
#include "editor/verify/read/verify_parallel.h"
#include "editor/verify/read/verify_piece_index.h"

#define VF_PATCH_LEN 5

/* If a function takes its own addresses and jumps through registers, any of its addresses but
 * the entry may be computed, unless these addresses are labels. */
static bool may_be_computed(const struct vf_fde *fde, uint64_t vaddr)
{
	return (fde->flags & VF_FDE_IJMP_REG) && (fde->flags & VF_FDE_SELF_REF) &&
	       !(fde->flags & VF_FDE_LABELS) && vaddr != fde->start;
}

/* The start of the instruction that holds @vaddr, as the linear decode of its function saw it. */
static uint64_t insn_start(const struct vf *vf, uint64_t vaddr)
{
	for (uint64_t at = vaddr; at > vaddr - 15; at--)
		if (vf_bits_get(&vf->old.grid, at))
			return at;
	return 0;
}

/* The original has a jump of the same form there: only its target changed. */
static bool was_jump(const struct vf *vf, uint64_t at)
{
	const uint8_t *a = mp_elf_bytes(vf->o, at, VF_PATCH_LEN);

	return a && *a == 0xe9 && vf_bits_get(&vf->old.grid, at);
}

/* Is @p the end of a function, and its beginning, or what follows the first instruction? */
static bool is_nearly_whole(const struct vf *vf, const struct vf_fde *fde,
			    const struct mp_map_piece *p)
{
	return p->old_vaddr + p->old_size == fde->start + fde->size &&
	       (p->old_vaddr == fde->start ||
		p->old_vaddr == vf_bits_next(&vf->old.grid, fde->start + 1, p->old_vaddr + 1));
}

/* @at: address of the jump in @p's original. */
static int check_patch(const struct vf *vf, const struct mp_map_piece *p, uint64_t at,
		       uint64_t *next)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);
	uint64_t end = at + VF_PATCH_LEN;

	if (!fde || (fde->flags & (VF_FDE_BAD | VF_FDE_OFF_GRID)))
		return vf_refuse(vf, at, "a patch in a function that is not understood");
	if (end > p->old_vaddr + p->old_size &&
	    (!is_nearly_whole(vf, fde, p) || !vf_patch_may_reach(vf, fde, at, end)))
		return vf_refuse(vf, at, "a patch reaches beyond its block");
	if (vf->old.eh.cies[fde->cie].signal)
		return vf_refuse(vf, at, "a patch in a signal frame");
	if (may_be_computed(fde, p->old_vaddr))
		return vf_refuse(vf, at, "a patch in a function that may compute jump targets");
	if (!was_jump(vf, at) && vf_bits_next(&vf->old.target, at + 1, end) < end)
		return vf_refuse(vf, vf_bits_next(&vf->old.target, at + 1, end),
				 "a possible target inside the patch at %#llx",
				 (unsigned long long)at);
	if (vf->now.live && vf_returns_into(vf, fde, at, end))
		return vf_refuse(vf, at, "a thread may return into the middle of a patch");
	if (vf->now.live && vf_is_entry(vf, at) && !was_jump(vf, at))
		return vf_refuse(vf, at, "a patch over the first instruction of a function");
	vf->result->report.nr_patches++;
	*next = end;
	return 0;
}

static bool starts_with_endbr64(const struct vf *vf, uint64_t vaddr)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *p = mp_elf_bytes(vf->o, vaddr, sizeof(endbr64));

	return p && !memcmp(p, endbr64, sizeof(endbr64));
}

static bool is_patch(const struct vf *vf, const struct mp_map_piece *p, uint64_t at)
{
	const uint8_t *b = mp_elf_bytes(vf->n, at, VF_PATCH_LEN);
	int32_t disp;

	if (!b || b[0] != 0xe9)
		return false;
	memcpy(&disp, b + 1, 4);
	return vf_is_copy(vf, p->old_vaddr, at + VF_PATCH_LEN + (uint64_t)(int64_t)disp);
}

/* Does the field at @off of the instruction at @at hold a function's address, or its copy's
 * now? */
static bool is_pointer(const struct vf *vf, uint64_t vaddr, uint64_t at, const struct vf_insn *insn,
		       uint8_t off, uint64_t *next)
{
	const uint8_t *b = mp_elf_bytes(vf->n, at, insn->len);
	int32_t disp;

	if (!off || vaddr < at + off || vaddr >= at + off + 4 || off + 4 > insn->len || !b)
		return false;
	*next = at + off + 4;
	if (off != insn->disp_off)
		return vf_note_field(vf, at + off, b + off);
	memcpy(&disp, b + off, 4);
	return insn->lea &&
	       vf_note_pointer(vf, insn->target, at + insn->len + (uint64_t)(int64_t)disp);
}

static int check_retargeted(const struct vf *vf, uint64_t vaddr, uint64_t *next)
{
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, vaddr);
	uint64_t at = insn_start(vf, vaddr), now;
	const uint8_t *a, *b;
	struct vf_insn insn;
	int32_t disp;

	if (!fde || !at || at < fde->start || (fde->flags & (VF_FDE_BAD | VF_FDE_OFF_GRID)))
		return vf_refuse(vf, vaddr, "code changed that is not understood");
	a = mp_elf_bytes(vf->o, at, 1);
	b = mp_elf_bytes(vf->n, at, 1);
	if (!a || !b || !vf_decode(a, fde->start + fde->size - at, at, &insn))
		return vf_refuse(vf, vaddr, "code changed that is not understood");
	if (is_pointer(vf, vaddr, at, &insn, insn.disp_off, next) ||
	    is_pointer(vf, vaddr, at, &insn, insn.abs_off, next) ||
	    is_pointer(vf, vaddr, at, &insn, insn.imm_size >= 4 ? insn.imm_off : 0, next))
		return 0;
	if (vaddr >= at + insn.len || insn.rel_size != 4 || insn.kind == VF_ODD ||
	    memcmp(a, b, insn.rel_off))
		return vf_refuse(vf, vaddr, "code changed that is no call, jump or patch");
	memcpy(&disp, b + insn.rel_off, 4);
	now = at + insn.len + (uint64_t)(int64_t)disp;
	if (!vf_is_copy(vf, insn.target, now))
		return vf_refuse(vf, at, "leads to %#llx, which is no copy of %#llx",
				 (unsigned long long)now, (unsigned long long)insn.target);
	vf->result->report.nr_retargeted++;
	*next = at + insn.len;
	return 0;
}

/* Is this a field in code with an address inside .eh_frame: the start-up file's label? */
static bool is_eh_ref(const struct vf *vf, const struct mp_reloc *rel)
{
	return rel->sym_value + (uint64_t)rel->addend - vf->old.eh.vaddr < vf->old.eh.size &&
	       (rel->type == R_X86_64_32 || rel->type == R_X86_64_32S) &&
	       vf_is_text(vf, rel->vaddr);
}

/* Does an entry of the new .eh_frame start at @now? */
static bool is_eh_entry(const struct vf *vf, uint64_t now)
{
	uint64_t at = vf->now.eh.vaddr;

	while (at < now) {
		const uint8_t *b = mp_elf_bytes(vf->n, at, 4);
		uint32_t length;

		if (!b)
			return false;
		memcpy(&length, b, sizeof(length));
		at += 4 + (uint64_t)length;
	}
	return at == now;
}

/*
 * Does the program's unwinder see from @now on what it saw from @label on? Linkers put files before
 * the label; the unwinder sees none of their entries. The unwinder sees all entries of copies.
 */
static bool is_eh_label(const struct vf *vf, uint64_t label, uint64_t now)
{
	for (uint32_t i = 0; i < vf->now.eh.nr_fdes; i++) {
		const struct vf_fde *fde = &vf->now.eh.fdes[i];
		const struct vf_fde *old = fde->start < vf->now.eh.new_start
						   ? vf_eh_find(&vf->old.eh, fde->start)
						   : NULL;

		if ((fde->vaddr >= now) != (!old || old->vaddr >= label))
			return false;
	}
	return is_eh_entry(vf, now);
}

/* A static program registers its .eh_frame with the unwinder: it must register the new one. */
static int check_eh_ref(const struct vf *vf, uint64_t field, uint64_t label, uint64_t *next)
{
	const uint8_t *b = mp_elf_bytes(vf->n, field, 4);
	uint32_t now = 0;

	if (b)
		memcpy(&now, b, 4);
	if (!is_eh_label(vf, label, now))
		return vf_refuse(vf, field,
				 "the program registers %#x instead of the new .eh_frame", now);
	vf->result->nr_eh_refs++;
	*next = field + 4;
	return 0;
}

/* The start-up file registers and deregisters one label; nothing else may refer to the section. */
int vf_check_eh_refs(const struct vf *vf)
{
	uint64_t label = 0;
	uint32_t nr = 0;

	if (vf->now.eh_frame)
		return 0;
	if (!vf->o->relinkable)
		nr = vf->now.eh_fields[0] ? 2 : 0;
	for (uint32_t i = 0; i < vf->o->nr_relocs; i++) {
		const struct mp_reloc *rel = &vf->o->relocs[i];
		uint64_t to = rel->sym_value + (uint64_t)rel->addend;

		/* Skip other targets, and relocations of .eh_frame itself. */
		if (to - vf->old.eh.vaddr >= vf->old.eh.size ||
		    rel->vaddr - vf->old.eh.vaddr < vf->old.eh.size)
			continue;
		if (!is_eh_ref(vf, rel) || (nr && to != label))
			return vf_refuse(vf, rel->vaddr, "an unexpected reference to .eh_frame");
		label = to;
		nr++;
	}
	if (!nr || nr != vf->result->nr_eh_refs)
		return vf_refuse(vf, vf->old.eh.vaddr,
				 "%u of %u references to .eh_frame lead to the new one",
				 (unsigned int)vf->result->nr_eh_refs, nr);
	return 0;
}

static int check_code(const struct vf *vf, uint64_t vaddr, uint64_t *next)
{
	const struct mp_map_piece *p = vf_piece_holding(vf, vaddr);
	const struct vf_fde *fde = vf_eh_find(&vf->old.eh, vaddr);

	if (vf_is_question(vf, vaddr, next))
		return 0;
	/* A program that writes code there may also read the old bytes. */
	if (!mp_elf_is_readonly(vf->o, vaddr))
		return vf_refuse(vf, vaddr, "code in writable memory changed");
	if (fde && fde->flags & VF_FDE_READ)
		return vf_refuse(vf, vaddr, "code changed that the program may read");
	if (p) {
		uint64_t at = p->old_vaddr + (starts_with_endbr64(vf, p->old_vaddr) ? 4 : 0);

		if (vaddr >= at && vaddr < at + VF_PATCH_LEN && is_patch(vf, p, at))
			return check_patch(vf, p, at, next);
	}
	/* A difference may begin at any byte of the field. */
	for (int i = 0; i < 2; i++)
		if (vf->now.eh_fields[i] && vaddr - vf->now.eh_fields[i] < 4)
			return check_eh_ref(vf, vf->now.eh_fields[i], vf->now.eh_label, next);
	if (!vf->now.eh_frame && vaddr >= 3) {
		uint32_t n;
		const struct mp_reloc *rel = mp_elf_relocs_in(vf->o, vaddr - 3, vaddr + 1, &n);

		for (uint32_t i = 0; i < n; i++)
			if (is_eh_ref(vf, &rel[i]))
				return check_eh_ref(vf, rel[i].vaddr,
						    rel[i].sym_value + (uint64_t)rel[i].addend,
						    next);
	}
	return check_retargeted(vf, vaddr, next);
}

/* The loaded section that has the byte at @off of the file. */
static const struct mp_section *section_of(const struct mp_elf *elf, uint64_t off)
{
	uint64_t vaddr;
	const struct mp_section *sec =
		mp_elf_off_to_vaddr(elf, off, &vaddr) ? mp_elf_section_at(elf, vaddr) : NULL;

	return sec && sec->type != SHT_NOBITS && off - sec->off < sec->size ? sec : NULL;
}

/* A dynamic symbol with a new value must name a function whose copy has this address. */
static int check_moved_symbol(const struct vf *vf, uint64_t at, const Elf64_Sym *a,
			      const Elf64_Sym *b)
{
	uint8_t type = ELF64_ST_TYPE(a->st_info);
	const struct mp_section *sec = &vf->n->sections[b->st_shndx];
	uint32_t last;

	if ((type != STT_FUNC && type != STT_NOTYPE) || a->st_shndx == SHN_UNDEF ||
	    !vf_note_symbol(vf, a->st_value, b->st_value))
		return vf_refuse(vf, at,
				 "the new value of a dynamic symbol is no copy of its function");
	/* The size is for debuggers and dladdr(): it may end with any copy of the function. */
	if (sec != vf->now.text || !a->st_size != !b->st_size ||
	    (b->st_size && !vf_is_run(vf, a->st_value, b->st_value, b->st_size, &last)))
		return vf_refuse(vf, at, "a dynamic symbol does not cover copies of its function");
	return 0;
}

/* A dynamic symbol names its section by index: the index must still mean the same section. */
static int check_dynsym(const struct vf *vf, const struct mp_section *sec, uint64_t off,
			uint64_t *next)
{
	uint64_t entry = (off - sec->off) / sizeof(Elf64_Sym) * sizeof(Elf64_Sym);
	const struct mp_section *was, *now;
	Elf64_Sym a, b;

	memcpy(&a, vf->o->data + sec->off + entry, sizeof(a));
	memcpy(&b, vf->n->data + sec->off + entry, sizeof(b));
	if (a.st_name != b.st_name || a.st_info != b.st_info || a.st_other != b.st_other ||
	    a.st_shndx >= vf->o->nr_sections || b.st_shndx >= vf->n->nr_sections)
		return vf_refuse(vf, sec->vaddr + entry, "a dynamic symbol changed");
	*next = sec->off + entry + sizeof(Elf64_Sym);
	if (a.st_value != b.st_value && vf->now.live)
		return vf_refuse(vf, sec->vaddr + entry,
				 "for a running process, but a dynamic symbol moved");
	if (a.st_value != b.st_value)
		return check_moved_symbol(vf, sec->vaddr + entry, &a, &b);
	was = &vf->o->sections[a.st_shndx];
	now = &vf->n->sections[b.st_shndx];
	if (a.st_size != b.st_size || a.st_shndx == SHN_UNDEF || was->vaddr != now->vaddr ||
	    was->size != now->size || was->type != now->type)
		return vf_refuse(vf, sec->vaddr + entry, "a dynamic symbol is in another section");
	return 0;
}

/* The byte at file offset @off differs. *@next: where to go on. */
static int check_byte(const struct vf *vf, uint64_t off, uint64_t *next)
{
	const struct mp_section *sec = section_of(vf->o, off);
	uint64_t vaddr, end;
	int ret;

	if (!sec)
		return vf_refuse(vf, 0, "byte at file offset %#llx changed, outside all sections",
				 (unsigned long long)off);
	vaddr = sec->vaddr + (off - sec->off);
	if (vf->stubs.init_entry && off - vf->stubs.init_entry < sizeof(Elf64_Dyn)) {
		*next = vf->stubs.init_entry + sizeof(Elf64_Dyn);
		return 0;
	}
	if (sec->type == SHT_DYNSYM && sec->entsize == sizeof(Elf64_Sym))
		return check_dynsym(vf, sec, off, next);
	if (vf->now.live && (sec->type == SHT_RELA || sec->flags & SHF_WRITE))
		return vf_refuse(vf, vaddr,
				 "for a running process, but data of the process changed");
	if (sec->type == SHT_RELA && sec->entsize == sizeof(Elf64_Rela)) {
		uint64_t entry = (off - sec->off) / sizeof(Elf64_Rela) * sizeof(Elf64_Rela);

		*next = sec->off + entry + sizeof(Elf64_Rela);
		return vf_check_table_addend(vf, sec->off + entry);
	}
	if (sec->flags & SHF_EXECINSTR)
		ret = check_code(vf, vaddr, &end);
	else
		ret = vf_check_table_word(vf, vaddr, &end);
	if (!ret)
		*next = off + (end - vaddr);
	return ret;
}

/* The first offset in [@off, @end) whose byte differs, or @end. */
static uint64_t next_difference(const struct vf *vf, uint64_t off, uint64_t end)
{
	const uint8_t *a = vf->o->data, *b = vf->n->data;

	while (off < end) {
		uint64_t len = end - off < 256 ? end - off : 256;

		if (!memcmp(a + off, b + off, len)) {
			off += len;
			continue;
		}
		while (len > 8 && !memcmp(a + off, b + off, 8)) {
			off += 8;
			len -= 8;
		}
		while (a[off] == b[off])
			off++;
		return off;
	}
	return end;
}

/* The byte at file offset @off was refused. Return: where to go on: behind its function, or word. */
static uint64_t behind_refused(const struct vf *vf, uint64_t off)
{
	const struct mp_section *sec = section_of(vf->o, off);
	uint64_t vaddr = sec ? sec->vaddr + (off - sec->off) : 0;
	const struct vf_fde *fde = sec ? vf_eh_find(&vf->old.eh, vaddr) : NULL;

	return off + (fde ? fde->start + fde->size - vaddr : 8);
}

/* *@off: where to go on, which may be behind @end. */
static int check_some_bytes(const struct vf *vf, uint64_t *off, uint64_t end)
{
	while (*off < end) {
		uint64_t at = next_difference(vf, *off, end);
		int ret;

		*off = at;
		if (at == end)
			break;
		ret = check_byte(vf, at, off);
		if (ret) {
			ret = vf_go_on(vf, ret);
			*off = behind_refused(vf, at);
		}
		if (ret)
			return ret;
	}
	return 0;
}

/* Bytes that are compared before their pages are given back. */
#define VF_COMPARE_AT_ONCE (1u << 20)

static int check_range(const struct vf *vf, uint64_t off, uint64_t end)
{
	int ret = 0;

	while (!ret && off < end) {
		uint64_t start = off, stop = end;

		if (end - off > VF_COMPARE_AT_ONCE)
			stop = off + VF_COMPARE_AT_ONCE;
		ret = check_some_bytes(vf, &off, stop);
		mp_elf_drop_bytes(vf->o, vf->o->data + start, stop - start);
		mp_elf_drop_bytes(vf->n, vf->n->data + start, stop - start);
	}
	return ret;
}

/* Ranges of the file that are compared in parallel. */
struct ranges {
	struct vf_range *range;
	uint32_t nr;
};

static int check_some(const struct vf *vf, void *ctx, uint32_t first, uint32_t end)
{
	const struct ranges *ranges = ctx;
	int ret = 0;

	for (uint32_t i = first; !ret && i < end; i++)
		ret = check_range(vf, ranges->range[i].start, ranges->range[i].end);
	return ret;
}

/* Add [off, end), split at cuts: no change reaches over a cut. */
static void add_range(const struct vf *vf, struct ranges *ranges, uint64_t off, uint64_t end)
{
	for (uint32_t i = 0; i < vf->old.nr_cuts; i++) {
		uint64_t cut;

		if (!mp_elf_vaddr_to_off(vf->o, vf->old.cuts[i], &cut) || cut <= off || cut >= end)
			continue;
		ranges->range[ranges->nr++] = (struct vf_range){off, cut};
		off = cut;
	}
	ranges->range[ranges->nr++] = (struct vf_range){off, end};
}

int vf_check_diff(const struct vf *vf)
{
	const uint64_t phdrs = vf->o->ehdr.e_phoff;
	const uint64_t phdrs_end = phdrs + (uint64_t)vf->n->nr_phdrs * sizeof(Elf64_Phdr);
	const struct vf_range skip[] = {
		{0, sizeof(Elf64_Ehdr)},
		{phdrs, phdrs_end},
		vf_build_id(vf->o),
		{vf->now.moved.start, vf->now.moved.end}, /* vf_check_phdr_extend() */
	};
	const size_t nr = sizeof(skip) / sizeof(skip[0]);
	/* One range more than skipped ranges, and one more for each cut. */
	struct ranges ranges = {.range = calloc(nr + 1 + vf->old.nr_cuts, sizeof(*ranges.range))};
	uint64_t off = 0;
	int ret;

	if (!ranges.range)
		return -ENOMEM;
	while (off < vf->old.alloc_end) {
		uint64_t stop = vf->old.alloc_end;
		bool inside = false;

		for (size_t i = 0; i < nr; i++) {
			if (off >= skip[i].start && off < skip[i].end) {
				off = skip[i].end;
				inside = true;
			} else if (skip[i].start > off && skip[i].start < stop &&
				   skip[i].start < skip[i].end) {
				stop = skip[i].start;
			}
		}
		if (inside)
			continue;
		if (stop > off)
			add_range(vf, &ranges, off, stop);
		off = stop;
	}
	ret = vf_parallel(vf, ranges.nr, 1, check_some, &ranges);
	if (!ret && !vf_is_moved(vf, skip[2].start, 1))
		vf_own(vf, skip[2].start, skip[2].end - skip[2].start, ME_OWNER_BUILD_ID);
	for (uint32_t i = 0; !ret && i < ranges.nr; i++)
		vf_own(vf, ranges.range[i].start, ranges.range[i].end - ranges.range[i].start,
		       ME_OWNER_OLD);
	free(ranges.range);
	return ret;
}
