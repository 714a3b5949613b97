// SPDX-License-Identifier: Apache-2.0
/*
 * verify_eh - reads CIEs and FDEs as an unwinder finds them: from PT_GNU_EH_FRAME to .eh_frame.
 *
 * Reads original and output with the same code. verify_cfi makes rows of them, verify_unwind
 * compares these.
 */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/read/verify_cfi.h"
#include "editor/verify/read/verify_eh.h"
#include "editor/verify/read/verify_symbol_fdes.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

static int find_cie(const struct vf_eh *eh, uint64_t vaddr)
{
	uint32_t lo = mp_search(i, 0, eh->nr_cies, eh->cies[i].vaddr < vaddr);

	return lo < eh->nr_cies && eh->cies[lo].vaddr == vaddr ? (int)lo : -1;
}

/* The form of all pointers in outputs: these need no relocation. */
#define VF_EH_RELATIVE (DW_EH_PE_pcrel | DW_EH_PE_sdata4)

/*
 * Letters that all unwinders know, each once, in the order in which compilers write them. libgcc looks for the encoding
 * of FDEs (R) in front of S only.
 */
static bool are_known_letters(const char *aug)
{
	const char *left = "PLRS";

	for (aug++; *aug; aug++) {
		left = strchr(left, *aug);
		if (!left)
			return false;
		left++;
	}
	return true;
}

/* Are the pointers of an output's CIE, and of its FDEs, of the form that serves any file? */
static bool are_relative(const struct vf_cie *cie)
{
	return cie->version == 1 && cie->fde_enc == VF_EH_RELATIVE &&
	       (cie->lsda_enc == DW_EH_PE_omit || cie->lsda_enc == VF_EH_RELATIVE) &&
	       (!cie->personality ||
		(cie->personality_enc & (uint8_t)~DW_EH_PE_indirect) == VF_EH_RELATIVE);
}

static bool read_augmentation(struct vf_cursor *c, const char *aug, bool strict, struct vf_cie *cie)
{
	uint64_t len = vf_cursor_uleb(c);
	const uint8_t *end = c->p + len;

	if (c->bad || len > (uint64_t)(c->end - c->p) || !are_known_letters(aug))
		return false;
	cie->has_aug = true;
	for (aug++; *aug; aug++) {
		switch (*aug) {
		case 'L':
			cie->lsda_enc = (uint8_t)vf_cursor_fixed(c, 1);
			cie->has_lsda = cie->lsda_enc != DW_EH_PE_omit;
			c->bad |= strict && !cie->has_lsda;
			break;
		case 'R': cie->fde_enc = (uint8_t)vf_cursor_fixed(c, 1); break;
		case 'P':
			cie->personality_enc = (uint8_t)vf_cursor_fixed(c, 1);
			cie->personality = vf_cursor_encoded(
				c, cie->personality_enc & (uint8_t)~DW_EH_PE_indirect);
			c->bad |= strict && !cie->personality;
			break;
		default: cie->signal = true;
		}
	}
	if (c->bad || c->p > end || (strict && c->p != end))
		return false;
	vf_cursor_skip(c, (uint64_t)(end - c->p));
	return true;
}

static bool read_cie(struct vf_cursor *c, bool strict, struct vf_cie *cie)
{
	uint8_t version = (uint8_t)vf_cursor_fixed(c, 1);
	const char *aug = (const char *)c->p;
	size_t room = (size_t)(c->end - c->p), len = strnlen(aug, room);

	if (c->bad || (version != 1 && version != 3) || len == room)
		return false;
	vf_cursor_skip(c, len + 1);
	cie->version = version;
	cie->code_align = vf_cursor_uleb(c);
	cie->data_align = vf_cursor_sleb(c);
	cie->ra = (uint32_t)(version == 1 ? vf_cursor_fixed(c, 1) : vf_cursor_uleb(c));
	cie->fde_enc = DW_EH_PE_absptr;
	cie->lsda_enc = DW_EH_PE_omit;
	if (*aug == 'z' ? !read_augmentation(c, aug, strict, cie) : *aug != 0)
		return false;
	cie->insns = c->p;
	cie->insns_len = (uint32_t)(c->end - c->p);
	return !c->bad && (!strict || are_relative(cie));
}

static bool read_fde(struct vf_cursor *c, const struct vf_cie *cie, bool strict, struct vf_fde *fde)
{
	fde->start = vf_cursor_encoded(c, cie->fde_enc);
	fde->size = vf_cursor_encoded(c, cie->fde_enc & 0x0f);
	if (cie->has_aug) {
		uint64_t len = vf_cursor_uleb(c);
		const uint8_t *end = c->p + len;

		if (c->bad || len > (uint64_t)(c->end - c->p))
			return false;
		if (cie->has_lsda)
			fde->lsda = vf_cursor_encoded(c, cie->lsda_enc);
		if (c->bad || c->p > end || (strict && c->p != end))
			return false;
		vf_cursor_skip(c, (uint64_t)(end - c->p));
	}
	fde->insns = c->p;
	fde->insns_vaddr = c->vaddr;
	fde->insns_len = (uint32_t)(c->end - c->p);
	return !c->bad && fde->start + fde->size >= fde->start;
}

/* Word 0 of a row: where the code of an FDE starts; word 1: the FDE. */
static uint64_t row(const struct vf_eh *eh, uint32_t i, unsigned int word)
{
	int32_t distance;

	memcpy(&distance, eh->rows + ((size_t)i * 2 + word) * sizeof(distance), sizeof(distance));
	return eh->hdr_vaddr + (uint64_t)(int64_t)distance;
}

/*
 * Keep the rows of an original by which unwinders search. lld's has one for each address, which may lead to the FDE of an
 * empty function in front of another one.
 */
static int find_rows(const struct vf *vf, struct vf_eh *eh, struct vf_cursor *c)
{
	uint64_t count;

	if (eh->count_enc != DW_EH_PE_udata4 ||
	    eh->table_enc != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return 0;
	count = vf_cursor_fixed(c, 4);
	if (c->bad || count > (uint64_t)(c->end - c->p) / 8)
		return 0;
	eh->rows = c->p;
	eh->nr_rows = (uint32_t)count;
	for (uint32_t i = 1; i < eh->nr_rows; i++)
		if (row(eh, i - 1, 0) > row(eh, i, 0))
			return vf_refuse(vf, eh->hdr_vaddr,
					 "the original's search table is not sorted");
	return 0;
}

/*
 * Does the table lead to the FDE? If several rows have the same address, unwinders take the last of them. *@split: it
 * leads to another one for a part of the code.
 */
static bool is_found(const struct vf_eh *eh, const struct vf_fde *fde, bool *split)
{
	uint32_t lo = 0;

	*split = false;
	if (!eh->nr_rows)
		return true;
	lo = mp_search(i, 0, eh->nr_rows, row(eh, i, 0) <= fde->start);
	*split = lo < eh->nr_rows && row(eh, lo, 0) - fde->start < fde->size;
	return lo && row(eh, lo - 1, 1) == fde->vaddr;
}

static int read_entry(const struct vf *vf, struct vf_eh *eh, struct vf_cursor *c, uint64_t at)
{
	uint64_t id_vaddr = c->vaddr;
	uint32_t id = (uint32_t)vf_cursor_fixed(c, 4);
	bool split;
	int cie;

	if (!id) {
		if (mp_grow(eh->cies, eh->max_cies, eh->nr_cies + 1))
			return -ENOMEM;
		eh->cies[eh->nr_cies] = (struct vf_cie){.vaddr = at};
		if (!read_cie(c, eh->strict, &eh->cies[eh->nr_cies]))
			return vf_refuse(vf, at, "CIE not understood");
		eh->nr_cies++;
		return 0;
	}
	cie = find_cie(eh, id_vaddr - id);
	if (cie < 0)
		return vf_refuse(vf, at, "FDE names no CIE");
	if (mp_grow(eh->fdes, eh->max_fdes, eh->nr_fdes + 1))
		return -ENOMEM;
	eh->fdes[eh->nr_fdes] =
		(struct vf_fde){.vaddr = at, .cie = (uint32_t)cie, .nr = eh->nr_fdes};
	if (!read_fde(c, &eh->cies[cie], eh->strict, &eh->fdes[eh->nr_fdes]))
		return vf_refuse(vf, at, "FDE not understood");
	/* The linker leaves FDEs of discarded functions with size or start 0; outputs have none. */
	if (!eh->fdes[eh->nr_fdes].size || !eh->fdes[eh->nr_fdes].start)
		return eh->strict ? vf_refuse(vf, at, "an FDE covers nothing") : 0;
	if (!is_found(eh, &eh->fdes[eh->nr_fdes], &split))
		return vf_refuse(vf, at, "the search table does not lead to this FDE");
	if (split)
		return vf_refuse(vf, at,
				 "a row of the search table begins in the middle of this FDE");
	eh->nr_fdes++;
	return 0;
}

static int read_section(const struct vf *vf, struct vf_eh *eh)
{
	const uint8_t *bytes = mp_elf_bytes(eh->elf, eh->vaddr, eh->size);
	struct vf_cursor all = {
		.p = bytes, .end = bytes + eh->size, .vaddr = eh->vaddr, .terse = eh->strict};

	while (all.end - all.p >= 4) {
		uint64_t at = all.vaddr;
		uint32_t len = (uint32_t)vf_cursor_fixed(&all, 4);
		struct vf_cursor c = all;
		int ret;

		if (!len) {
			if (eh->strict && all.p != all.end)
				return vf_refuse(vf, at, ".eh_frame has data behind its end mark");
			if (eh->strict)
				return 0;
			continue;
		}
		if (len < 4 || !vf_cursor_skip(&all, len))
			return vf_refuse(vf, at, ".eh_frame entry is cut off");
		if (eh->strict && len % 4)
			return vf_refuse(vf, at, ".eh_frame entry has an odd length");
		c.end = all.p;
		ret = read_entry(vf, eh, &c, at);
		if (ret)
			return ret;
	}
	return eh->strict ? vf_refuse(vf, eh->vaddr + eh->size, ".eh_frame lacks its end mark") : 0;
}

static int by_start(const void *a, const void *b)
{
	const struct vf_fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int sort_fdes(const struct vf *vf, struct vf_eh *eh)
{
	uint32_t i;

	for (i = 1; i < eh->nr_fdes && eh->fdes[i - 1].start <= eh->fdes[i].start; i++)
		;
	if (i < eh->nr_fdes)
		qsort(eh->fdes, eh->nr_fdes, sizeof(*eh->fdes), by_start);
	for (i = 1; i < eh->nr_fdes; i++)
		if (eh->fdes[i - 1].start + eh->fdes[i - 1].size > eh->fdes[i].start)
			return vf_refuse(vf, eh->fdes[i].start, "two FDEs overlap");
	return 0;
}

/* Unwinders bisect this table: it must be sorted and complete, and each entry name its own FDE. */
static int check_search_table(const struct vf *vf, struct vf_eh *eh, struct vf_cursor *c)
{
	const struct mp_section *sec = mp_elf_section(eh->elf, ".eh_frame_hdr");
	uint64_t count = vf_cursor_encoded(c, eh->count_enc);

	if (c->bad || eh->count_enc != DW_EH_PE_udata4 ||
	    eh->table_enc != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return vf_refuse(vf, eh->hdr_vaddr, ".eh_frame_hdr has no search table");
	if (count != eh->nr_fdes)
		return vf_refuse(vf, eh->hdr_vaddr, ".eh_frame_hdr lists %llu of %u FDEs",
				 (unsigned long long)count, eh->nr_fdes);
	for (uint32_t i = 0; i < eh->nr_fdes; i++) {
		uint64_t start = eh->hdr_vaddr + (uint64_t)(int64_t)(int32_t)vf_cursor_fixed(c, 4);
		uint64_t fde = eh->hdr_vaddr + (uint64_t)(int64_t)(int32_t)vf_cursor_fixed(c, 4);

		if (c->bad || start != eh->fdes[i].start || fde != eh->fdes[i].vaddr)
			return vf_refuse(vf, eh->fdes[i].start,
					 "entry %u of .eh_frame_hdr does not lead to this FDE", i);
	}
	if (c->p != c->end || !sec || sec->vaddr != eh->hdr_vaddr ||
	    sec->vaddr + sec->size != c->vaddr)
		return vf_refuse(vf, eh->hdr_vaddr,
				 "the search table does not cover exactly the "
				 "section .eh_frame_hdr");
	/* Each entry was read to its end; verify_unwind checks what the FDEs say. */
	vf_own_at(vf, eh->vaddr, eh->size, ME_OWNER_EH_FRAME);
	vf_own_at(vf, eh->hdr_vaddr, sec->size, ME_OWNER_EH_FRAME_HDR);
	return 0;
}

/* Go from the header at @vaddr to the section. @c then stands at the search table's count. */
static int find_by_header(const struct vf *vf, uint64_t vaddr, uint64_t size, struct vf_cursor *c,
			  struct vf_eh *eh)
{
	uint8_t enc;

	c->p = mp_elf_bytes(eh->elf, vaddr, size);
	if (!c->p)
		return vf_refuse(vf, vaddr, ".eh_frame_hdr is not in the file");
	c->end = c->p + size;
	c->vaddr = eh->hdr_vaddr = vaddr;
	if (vf_cursor_fixed(c, 1) != 1)
		return vf_refuse(vf, vaddr, ".eh_frame_hdr of an unknown version");
	enc = (uint8_t)vf_cursor_fixed(c, 1);
	eh->count_enc = (uint8_t)vf_cursor_fixed(c, 1);
	eh->table_enc = (uint8_t)vf_cursor_fixed(c, 1);
	eh->vaddr = vf_cursor_encoded(c, enc);
	if (c->bad || (eh->strict && enc != VF_EH_RELATIVE))
		return vf_refuse(vf, vaddr, ".eh_frame_hdr names no .eh_frame");
	return 0;
}

/* An index for vf_eh_find(), which runs for each piece, patch and changed call. */
static int index_pages(struct vf_eh *eh)
{
	const struct vf_fde *last;
	uint64_t reach;
	uint32_t fde = 0;

	if (!eh->nr_fdes)
		return 0;
	last = &eh->fdes[eh->nr_fdes - 1];
	eh->pages_start = eh->fdes[0].start;
	reach = (last->start + last->size - eh->pages_start) / VF_EH_PAGE + 1;
	if (reach > 16ull * eh->nr_fdes + 64)
		return 0;
	eh->pages = malloc((reach + 1) * sizeof(*eh->pages));
	if (!eh->pages)
		return -ENOMEM;
	eh->nr_pages = (uint32_t)reach;
	for (uint32_t i = 0; i <= eh->nr_pages; i++) {
		uint64_t at = eh->pages_start + (uint64_t)i * VF_EH_PAGE;

		while (fde < eh->nr_fdes && eh->fdes[fde].start + eh->fdes[fde].size <= at)
			fde++;
		eh->pages[i] = fde;
	}
	return 0;
}

int vf_eh_read(const struct vf *vf, const struct mp_elf *elf, bool strict, struct vf_eh *eh)
{
	const struct mp_section *sec = mp_elf_section(elf, ".eh_frame");
	const struct mp_section *hdr = mp_elf_section(elf, ".eh_frame_hdr");
	const Elf64_Phdr *ph = NULL;
	struct vf_cursor c = {0};
	int ret = 0;

	eh->elf = elf;
	eh->strict = strict;
	eh->new_start = strict ? vf->now.text->vaddr : 0;
	for (uint32_t i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_GNU_EH_FRAME)
			ph = &elf->phdrs[i];
	if (ph)
		ret = find_by_header(vf, ph->p_vaddr, ph->p_filesz, &c, eh);
	else if (strict && hdr) /* nothing reads it, but it has these bytes and no others */
		ret = find_by_header(vf, hdr->vaddr, hdr->size, &c, eh);
	else if (sec)
		eh->vaddr = sec->vaddr;
	if (ret)
		return ret;
	if (!sec || sec->vaddr != eh->vaddr || !mp_elf_bytes(elf, sec->vaddr, sec->size))
		return vf_refuse(vf, eh->vaddr, "no section .eh_frame, or another one is in use");
	if (strict && (sec->vaddr < vf->now.segment->p_vaddr))
		return vf_refuse(vf, eh->vaddr, ".eh_frame is not in the new segment");
	eh->size = sec->size;
	if (ph && !strict)
		ret = find_rows(vf, eh, &c);
	if (!ret)
		ret = read_section(vf, eh);
	if (!ret)
		ret = sort_fdes(vf, eh);
	if (!ret && !strict)
		ret = vf_add_symbol_fdes(eh);
	if (!ret && strict)
		ret = check_search_table(vf, eh, &c);
	if (!ret)
		ret = index_pages(eh);
	return ret;
}

uint32_t vf_program_size(const uint8_t *insns, uint32_t len)
{
	struct vf_cursor c = {.p = insns, .end = insns + len};
	uint32_t size = 0;

	while (c.p < c.end) {
		uint8_t op = (uint8_t)vf_cursor_fixed(&c, 1);

		switch (op & 0xc0 ? op & 0xc0 : op) {
		case DW_CFA_nop: continue;
		case DW_CFA_advance_loc:
		case DW_CFA_restore:
		case DW_CFA_remember_state:
		case DW_CFA_restore_state: break;
		case DW_CFA_advance_loc1: vf_cursor_skip(&c, 1); break;
		case DW_CFA_advance_loc2: vf_cursor_skip(&c, 2); break;
		case DW_CFA_advance_loc4: vf_cursor_skip(&c, 4); break;
		case DW_CFA_offset:
		case DW_CFA_restore_extended:
		case DW_CFA_undefined:
		case DW_CFA_same_value:
		case DW_CFA_def_cfa_register:
		case DW_CFA_def_cfa_offset:
		case DW_CFA_def_cfa_offset_sf:
		case DW_CFA_GNU_args_size: vf_cursor_uleb(&c); break;
		case DW_CFA_offset_extended:
		case DW_CFA_offset_extended_sf:
		case DW_CFA_GNU_negative_offset_extended:
		case DW_CFA_val_offset:
		case DW_CFA_val_offset_sf:
		case DW_CFA_register:
		case DW_CFA_def_cfa:
		case DW_CFA_def_cfa_sf:
			vf_cursor_uleb(&c);
			vf_cursor_uleb(&c);
			break;
		case DW_CFA_expression:
		case DW_CFA_val_expression: vf_cursor_uleb(&c); /* fall through */
		case DW_CFA_def_cfa_expression: vf_cursor_skip(&c, vf_cursor_uleb(&c)); break;
		default: return len;
		}
		if (c.bad)
			return len;
		size = (uint32_t)(c.p - insns);
	}
	return size;
}

void vf_eh_fini(struct vf_eh *eh)
{
	free(eh->cies);
	free(eh->fdes);
	free(eh->pages);
	memset(eh, 0, sizeof(*eh));
}

bool vf_holds_words(const struct vf *vf, const struct mp_section *sec)
{
	if (!(sec->flags & SHF_ALLOC) || vf_is_text_section(sec) ||
	    sec->vaddr == vf->old.eh.vaddr || sec->vaddr == vf->old.eh.hdr_vaddr ||
	    !strncmp(sec->name, ".gcc_except_table", 17))
		return false;
	/* Sections that the linker makes have types of their own, and programs may invent some. */
	switch (sec->type) {
	case SHT_NULL:
	case SHT_SYMTAB:
	case SHT_STRTAB:
	case SHT_RELA:
	case SHT_HASH:
	case SHT_DYNAMIC:
	case SHT_NOBITS:
	case SHT_REL:
	case SHT_DYNSYM:
	case SHT_RELR:
	case SHT_GNU_HASH:
	case SHT_GNU_versym:
	case SHT_GNU_verdef:
	case SHT_GNU_verneed: return false;
	default: return true;
	}
}
