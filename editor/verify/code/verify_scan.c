// SPDX-License-Identifier: Apache-2.0
/*
 * verify_scan - reads the whole old text once: starts of instructions, possible targets of
 * control, and which operands name which data. verify calls it before all checks of code.
 *
 * Bounds come from FDEs, symbols and sections; each range is decoded linearly. Any evidence
 * makes an address a possible target: branches, operands, relocations, symbols, landing pads,
 * words of data.
 */
#include <errno.h>
#include <string.h>

#include "editor/verify/base/verify_bits.h"
#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_decode.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/code/verify_gap.h"
#include "editor/verify/code/verify_label.h"
#include "editor/verify/code/verify_note.h"
#include "editor/verify/code/verify_probe.h"
#include "editor/verify/code/verify_scan.h"
#include "editor/verify/code/verify_switch.h"
#include "editor/verify/known/verify_enclosing.h"
#include "editor/verify/known/verify_place.h"
#include "editor/verify/known/verify_ranges.h"
#include "editor/verify/known/verify_read.h"
#include "editor/verify/known/verify_return_words.h"
#include "editor/verify/known/verify_returns.h"
#include "editor/verify/read/verify_eh.h"
#include "editor/verify/read/verify_lsda.h"
#include "editor/verify/read/verify_parallel.h"
#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* Limit on a table's size. */
#define VF_TABLE_MAX (1U << 20)

static void mark_target(struct vf *vf, uint64_t vaddr)
{
	if (vf_is_text(vf, vaddr))
		vf_bits_share(&vf->old.target, vaddr);
}

/* Mark a target that certain code, or a symbol, leads to: it is code. */
static void mark_led(struct vf *vf, uint64_t vaddr)
{
	mark_target(vf, vaddr);
	if (vf_is_text(vf, vaddr))
		vf_bits_share(&vf->old.sure_target, vaddr);
}

static void mark_chance(struct vf *vf, uint64_t vaddr)
{
	if (vf_is_text(vf, vaddr))
		vf_bits_share(&vf->old.maybe_address, vaddr);
}

/* What operands name. */
struct found {
	struct vf_refs refs, names;
};

static int add_ref(struct vf_refs *refs, uint64_t to, uint64_t insn)
{
	return mp_push(refs->list, refs->nr, refs->cap, (struct vf_ref){to, insn});
}

/* An operand of the instruction at @insn names @to, which goes to @refs if it may be a table. Not @sure: it is a number that may be an
 * address. */
static int note_operand(struct vf *vf, struct found *found, struct vf_fde *fde, uint64_t insn,
			uint8_t len, uint64_t to, bool sure)
{
	if (fde &&
	    (vf_is_text(vf, to) || to - vf->old.got.start < vf->old.got.end - vf->old.got.start) &&
	    add_ref(&found->names, to, insn))
		return -ENOMEM;
	if (vf_is_text(vf, to)) {
		vf_note_operand(vf, insn, len, to);
		vf_bits_share(!sure ? &vf->old.maybe_address
			      : fde ? &vf->old.target
				    : &vf->old.maybe_target,
			      to);
		vf_bits_share(&vf->old.text_ref, to);
		/* It may be the base of a sum, such as that of the GOT's address in code for any distance. */
		if (fde && to == fde->start)
			vf_bits_share(&vf->marks->pointer_kept, to);
		if (fde && to > fde->start && to - fde->start < fde->size)
			fde->flags |= VF_FDE_SELF_REF;
	}
	if (to < vf->old.image_start || to >= vf->old.image_end)
		return 0;
	vf_bits_share(&vf->old.data_ref, to);
	if (!vf_bits_get(&vf->old.label_word, to) && !vf_bits_get(&vf->old.label_word, to + 8) &&
	    !vf_may_be_switch(vf, to))
		return 0;
	return add_ref(&found->refs, to, insn);
}

/* The linker's relocations tell which numbers are addresses; without them every number may be. */
static bool is_address(const struct vf *vf, uint64_t field)
{
	uint32_t n;

	if (!vf->o->relinkable)
		return true;
	mp_elf_relocs_in(vf->o, field, field + 1, &n);
	return n > 0;
}

static bool in_image(const struct vf *vf, int64_t value)
{
	return (uint64_t)value >= vf->old.image_start && (uint64_t)value < vf->old.image_end;
}

static int note_operands(struct vf *vf, struct found *found, struct vf_fde *fde, uint64_t at,
			 const struct vf_insn *insn)
{
	bool fixed = vf->o->ehdr.e_type == ET_EXEC;
	int ret = 0;

	vf_note_ends(vf, at, insn);
	if (insn->disp_off)
		ret = note_operand(vf, found, fde, at, insn->len, insn->target, true);
	if (!ret && fixed && insn->abs_off && in_image(vf, insn->abs) &&
	    is_address(vf, at + insn->abs_off))
		ret = note_operand(vf, found, fde, at, insn->len, (uint64_t)insn->abs,
				   vf->o->relinkable);
	if (!ret && (fixed ? insn->imm_size >= 4 : insn->imm_size == 8) &&
	    in_image(vf, insn->imm) && is_address(vf, at + insn->imm_off))
		ret = note_operand(vf, found, fde, at, insn->len, (uint64_t)insn->imm,
				   vf->o->relinkable);
	/* Code for any distance adds 8 bytes to the GOT's address. */
	if (!ret && insn->imm_size == 8 && vf->old.got_base &&
	    in_image(vf, (int64_t)(vf->old.got_base + (uint64_t)insn->imm)))
		ret = note_operand(vf, found, fde, at, insn->len,
				   vf->old.got_base + (uint64_t)insn->imm, false);
	return ret;
}

static int note_insn(struct vf *vf, struct found *found, struct vf_fde *fde, uint64_t at,
		     const struct vf_insn *insn)
{
	if (insn->rel_size && fde)
		mark_led(vf, insn->target);
	else if (insn->rel_size && vf_is_text(vf, insn->target))
		vf_bits_share(&vf->old.maybe_target, insn->target);
	if (fde && (insn->kind == VF_IJMP_REG || insn->kind == VF_IJMP_MEM))
		fde->flags |= VF_FDE_IJMP | (insn->kind == VF_IJMP_REG ? VF_FDE_IJMP_REG : 0);
	return note_operands(vf, found, fde, at, insn);
}

/* A symbol of a section that is not loaded has an offset for its value, not an address. */
static bool is_loaded(const struct vf *vf, const struct mp_symbol *sym)
{
	return sym->shndx >= vf->o->nr_sections || (vf->o->sections[sym->shndx].flags & SHF_ALLOC);
}

/* Find the places where a linear decode starts again. */
static int find_anchors(struct vf *vf, struct vf_bits *anchors)
{
	int ret = vf_bits_init(anchors, vf->old.text_start, vf->old.text_end);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < vf->old.eh.nr_fdes; i++) {
		vf_bits_set(anchors, vf->old.eh.fdes[i].start);
		vf_bits_set(anchors, vf->old.eh.fdes[i].start + vf->old.eh.fdes[i].size);
		mark_target(vf, vf->old.eh.fdes[i].start);
	}
	for (uint32_t i = 0; i < vf->o->nr_symbols; i++) {
		const struct mp_symbol *sym = &vf->o->symbols[i];

		if (sym->shndx == SHN_UNDEF || sym->shndx == SHN_ABS || sym->type == STT_TLS ||
		    sym->type == STT_SECTION || sym->type == STT_FILE || !is_loaded(vf, sym))
			continue;
		vf_bits_set(anchors, sym->vaddr);
		if (sym->type == STT_OBJECT)
			mark_target(vf, sym->vaddr);
		else
			mark_led(vf, sym->vaddr);
	}
	return 0;
}

/* Text between two cuts, which one thread decodes: a linear decode starts again at each cut. */
struct part {
	uint64_t start, end;
	struct found found;
};

struct parts {
	struct vf *vf; /* whose bitmaps of targets and operands all threads fill */
	struct part *part;
	uint32_t nr;
	const struct vf_bits *anchors;
};

/* The first FDE that may reach into @part. */
static struct vf_fde *first_fde(const struct vf *vf, const struct part *part)
{
	const struct vf_eh *eh = &vf->old.eh;

	if (part->start <= vf->old.text_start)
		return eh->fdes;
	return eh->fdes + mp_search(i, 0, eh->nr_fdes, eh->fdes[i].start < part->start);
}

/* Decode the bytes of @sec that lie in @part. */
static int scan_section(struct vf *vf, const struct vf_bits *anchors, struct part *part,
			const struct mp_section *sec)
{
	uint64_t end = sec->vaddr + sec->size, stop = end < part->end ? end : part->end;
	uint64_t start = sec->vaddr > part->start ? sec->vaddr : part->start;
	uint64_t at = start, next = at;
	const uint8_t *bytes = start < end ? mp_elf_bytes(vf->o, start, end - start) : NULL;
	struct vf_fde *fde = NULL, *last = vf->old.eh.fdes + vf->old.eh.nr_fdes;
	struct vf_fde *follow = first_fde(vf, part);

	while (at < stop) {
		struct vf_insn insn;
		int ret;

		if (at >= next)
			next = vf_bits_next(anchors, at + 1, end);
		while (follow < last && follow->start + follow->size <= at)
			follow++;
		fde = follow < last && follow->start <= at ? follow : NULL;
		if (!vf_decode(bytes + (at - start), end - at, at, &insn)) {
			if (fde)
				fde->flags |= VF_FDE_BAD;
			at++;
			continue;
		}
		vf_bits_set(&vf->old.grid, at);
		ret = note_insn(vf, &part->found, fde, at, &insn);
		if (ret)
			return ret;
		if (at + insn.len > next && fde)
			fde->flags |= VF_FDE_BAD;
		at = at + insn.len > next ? next : at + insn.len;
	}
	return 0;
}

static int scan_some(const struct vf *vf, void *ctx, uint32_t first, uint32_t end)
{
	struct parts *parts = ctx;
	int ret = 0;

	for (uint32_t i = first; !ret && i < end; i++) {
		struct part *part = &parts->part[i];

		for (uint32_t s = 0; !ret && s < vf->o->nr_sections; s++)
			if (vf_is_text_section(&vf->o->sections[s]))
				ret = scan_section(parts->vf, parts->anchors, part,
						   &vf->o->sections[s]);
		vf_drop_bytes(vf->o, part->start, part->end);
	}
	return ret;
}

/* Join what was found in all parts, in order, in @all. @names: the names, else the references. */
static int join(const struct parts *parts, bool names, struct vf_refs *all)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < parts->nr; i++)
		nr += (names ? &parts->part[i].found.names : &parts->part[i].found.refs)->nr;
	all->list = malloc((nr + 1) * sizeof(*all->list));
	if (!all->list)
		return -ENOMEM;
	all->cap = nr + 1;
	for (uint32_t i = 0; i < parts->nr; i++) {
		const struct vf_refs *more = names ? &parts->part[i].found.names
						   : &parts->part[i].found.refs;

		if (more->nr)
			memcpy(all->list + all->nr, more->list, more->nr * sizeof(*more->list));
		all->nr += more->nr;
	}
	return 0;
}

static int scan_text(struct vf *vf, const struct vf_bits *anchors)
{
	struct parts parts = {.vf = vf, .anchors = anchors};
	int ret = vf_find_cuts(vf);

	if (ret)
		return ret;
	parts.nr = vf->old.nr_cuts + 1;
	parts.part = calloc(parts.nr, sizeof(*parts.part));
	if (!parts.part)
		return -ENOMEM;
	for (uint32_t i = 0; i < parts.nr; i++) {
		parts.part[i].start = i ? vf->old.cuts[i - 1] : vf->old.text_start;
		parts.part[i].end = i < vf->old.nr_cuts ? vf->old.cuts[i] : vf->old.text_end;
	}
	ret = vf_parallel(vf, parts.nr, 1, scan_some, &parts);
	if (!ret)
		ret = join(&parts, false, &vf->old.refs);
	if (!ret)
		ret = join(&parts, true, &vf->old.names);
	for (uint32_t i = 0; i < parts.nr; i++) {
		free(parts.part[i].found.refs.list);
		free(parts.part[i].found.names.list);
	}
	free(parts.part);
	return ret;
}

/* Note the target of a relocated word of data or field in code. */
static void note_reloc(struct vf *vf, const struct mp_reloc *rel)
{
	uint64_t to = rel->sym_value + (uint64_t)rel->addend;
	bool code = vf_is_text(vf, rel->vaddr);
	struct vf_fde *fde;

	switch (rel->type) {
	case R_X86_64_64:
	case R_X86_64_32:
	case R_X86_64_32S:
	case R_X86_64_RELATIVE:
	case R_X86_64_IRELATIVE:
	case R_X86_64_GLOB_DAT:
	case R_X86_64_JUMP_SLOT: break;
	case R_X86_64_PC32:
		/* In code, the scan reads the field. In data this is an entry of a switch
		 * table; its target lies before @to by the distance of the entry from the
		 * table's base. */
		if (!code && to >= vf->old.text_start && to < vf->old.text_end + VF_TABLE_MAX)
			vf_bits_set(&vf->old.label_word, rel->vaddr);
		return;
	default: return;
	}
	mark_target(vf, to);
	if (code)
		return;
	mark_led(vf, to);
	if (to >= vf->old.image_start && to < vf->old.image_end)
		vf_bits_set(&vf->old.word_ref, to);
	if (vf_is_text(vf, to))
		vf_bits_set(&vf->old.label_word, rel->vaddr);
	fde = vf_eh_find(&vf->old.eh, to);
	if (fde && fde->start != to)
		fde->flags |= VF_FDE_WORD;
}

static void note_relocs(struct vf *vf)
{
	for (uint32_t i = 0; i < vf->o->nr_relocs; i++)
		note_reloc(vf, &vf->o->relocs[i]);
	for (uint32_t i = 0; i < vf->o->nr_dyn_relocs; i++)
		note_reloc(vf, &vf->o->dyn_relocs[i]);
}

/*
 * Mark the targets of relative tables. Entries are relative to an address that code names: the
 * nearest one at or below the entry, with only entries between. Without relocations every word
 * from a named address to the next named one counts while it leads to text.
 */
static void scan_relative_tables(struct vf *vf, const struct mp_section *sec)
{
	uint64_t end = sec->vaddr + sec->size;
	uint64_t base = vf_bits_next(&vf->old.data_ref, sec->vaddr, end);

	while (base < end) {
		uint64_t next = vf_bits_next(&vf->old.data_ref, base + 1, end), at;

		for (at = base; at + 4 <= next; at += 4) {
			const uint8_t *p = mp_elf_bytes(vf->o, at, 4);
			int32_t word;

			if (!p || (vf->o->relinkable && !vf_bits_get(&vf->old.label_word, at)))
				break;
			/*
			 * Operands name functions in the same way as tables, but code of functions
			 * is no table.
			 */
			if (!vf->o->relinkable && vf_eh_find(&vf->old.eh, at))
				break;
			memcpy(&word, p, 4);
			if (!vf_is_text(vf, base + (uint64_t)(int64_t)word))
				break;
			/* Without relocations many of these words are no table: they may lead
			 * anywhere, but entries of a table lead to instructions. */
			if (!vf->o->relinkable &&
			    !vf_bits_get(&vf->old.grid, base + (uint64_t)(int64_t)word))
				continue;
			mark_target(vf, base + (uint64_t)(int64_t)word);
			/* A program that reads this word sees the old address. */
			if (!vf->o->relinkable)
				vf_bits_set(&vf->marks->pointer_kept,
					    base + (uint64_t)(int64_t)word);
		}
		base = next;
	}
}

/*
 * Without relocations, a word may hold the distance from itself to a function. A program that adds both sees the old
 * address.
 */
static void scan_own_distances(const struct vf *vf, const struct mp_section *sec)
{
	const uint8_t *p = mp_elf_bytes(vf->o, sec->vaddr, sec->size);

	for (uint64_t k = -sec->vaddr & 3; p && k + 4 <= sec->size; k += 4) {
		const struct vf_fde *fde;
		uint64_t to = sec->vaddr + k;
		int32_t word;

		memcpy(&word, p + k, 4);
		to += (uint64_t)(int64_t)word;
		fde = vf_is_text(vf, to) ? vf_eh_find(&vf->old.eh, to) : NULL;
		if (fde && fde->start == to)
			vf_bits_set(&vf->marks->pointer_kept, to);
	}
}

/* Note words of data that may be addresses, in programs with fixed addresses and no
 * relocations. This is weak evidence, since text looks like addresses, too; it only forbids
 * patches. */
static void scan_words(struct vf *vf, const struct mp_section *sec)
{
	const uint8_t *p = mp_elf_bytes(vf->o, sec->vaddr, sec->size);

	for (uint64_t k = -sec->vaddr & 3; p && k + 4 <= sec->size; k += 4) {
		uint32_t w32;
		uint64_t w64;

		memcpy(&w32, p + k, 4);
		mark_chance(vf, w32);
		if ((sec->vaddr + k) % 8 || k + 8 > sec->size)
			continue;
		memcpy(&w64, p + k, 8);
		mark_chance(vf, w64);
	}
}

static bool words_may_be_addresses(const struct vf *vf)
{
	return vf->o->ehdr.e_type == ET_EXEC && !vf->o->relinkable;
}

/* A jump leads between known instructions: the bytes have a second decoding. Follow it until it
 * meets the first one. Nothing may be changed in such a function. */
static int follow_off_grid(struct vf *vf)
{
	const uint64_t nr_words = vf->old.target.nr / 64 + 1;

	for (uint64_t w = 0; w < nr_words; w++) {
		uint64_t odd = vf->old.target.word[w] & ~vf->old.grid.word[w];

		for (; odd; odd &= odd - 1) {
			uint64_t at = vf->old.target.base + w * 64 + (uint64_t)__builtin_ctzll(odd);
			struct vf_fde *fde = vf_eh_find(&vf->old.eh, at);

			if (!fde)
				continue;
			fde->flags |= VF_FDE_OFF_GRID;
			while (at < fde->start + fde->size && !vf_bits_get(&vf->old.grid, at)) {
				const uint8_t *p = mp_elf_bytes(vf->o, at, 1);
				struct found found = {0};
				struct vf_insn insn;
				int ret;

				if (!p || !vf_decode(p, fde->start + fde->size - at, at, &insn))
					break;
				ret = note_insn(vf, &found, fde, at, &insn);
				for (size_t i = 0; !ret && i < found.refs.nr; i++)
					ret = add_ref(&vf->old.refs, found.refs.list[i].to, at);
				free(found.refs.list);
				free(found.names.list);
				if (ret)
					return ret;
				at += insn.len;
			}
		}
	}
	return 0;
}

static int note_landing_pads(struct vf *vf)
{
	struct vf_lsda lsda = {0};
	int ret = 0;

	for (uint32_t i = 0; i < vf->old.eh.nr_fdes && ret != -ENOMEM; i++) {
		const struct vf_fde *fde = &vf->old.eh.fdes[i];

		if (!fde->lsda)
			continue;
		/* A table of another language may be unreadable: moves of its functions are
		 * refused later. */
		ret = vf_lsda_read(vf->o, fde->lsda, fde->start, &lsda);
		for (uint32_t k = 0; k < lsda.nr; k++)
			if (lsda.site[k].pad)
				mark_target(vf, lsda.site[k].pad);
	}
	vf_lsda_fini(&lsda);
	return ret == -ENOMEM ? ret : 0;
}

static int by_to(const void *a, const void *b)
{
	const struct vf_ref *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->insn < y->insn ? -1 : x->insn > y->insn;
}

static int init_bits(struct vf *vf)
{
	struct vf_bits *const text[] = {&vf->old.grid,
					&vf->old.target,
					&vf->old.sure_target,
					&vf->old.maybe_target,
					&vf->old.maybe_address,
					&vf->old.text_ref,
					&vf->old.cold,
					&vf->old.summed,
					&vf->marks->pointer_kept,
					&vf->marks->pointer_moved},
			      *const image[] = {&vf->old.data_ref, &vf->old.word_ref,
						&vf->old.label_word};
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(text) / sizeof(text[0]); i++)
		ret = vf_bits_init(text[i], vf->old.text_start, vf->old.text_end);
	for (size_t i = 0; !ret && i < sizeof(image) / sizeof(image[0]); i++)
		ret = vf_bits_init(image[i], vf->old.image_start, vf->old.image_end);
	return ret;
}

/* _GLOBAL_OFFSET_TABLE_ has a symbol, or starts one of two sections. */
static void find_got(struct vf *vf)
{
	const struct mp_section *got = mp_elf_section(vf->o, ".got");
	const struct mp_section *plt = mp_elf_section(vf->o, ".got.plt");

	if (got)
		vf->old.got = (struct vf_range){got->vaddr, got->vaddr + got->size};
	vf->old.got_base = plt ? plt->vaddr : vf->old.got.start;
	for (uint32_t i = 0; i < vf->o->nr_symbols; i++)
		if (vf->o->symbols[i].name &&
		    !strcmp(vf->o->symbols[i].name, "_GLOBAL_OFFSET_TABLE_"))
			vf->old.got_base = vf->o->symbols[i].vaddr;
}

static void find_cold(struct vf *vf)
{
	for (uint32_t i = 0; i < vf->o->nr_symbols; i++) {
		const struct mp_symbol *sym = &vf->o->symbols[i];

		if (sym->type == STT_FUNC && sym->name && strstr(sym->name, ".cold"))
			vf_bits_set(&vf->old.cold, sym->vaddr);
	}
}

int vf_scan(struct vf *vf)
{
	struct vf_bits anchors = {0};
	int ret = init_bits(vf);

	if (!ret)
		ret = find_anchors(vf, &anchors);
	if (ret)
		goto out;
	find_got(vf);
	find_cold(vf);
	note_relocs(vf);
	vf_find_ends(vf);
	mark_led(vf, vf->o->ehdr.e_entry);
	vf_mark_probes(vf);
	ret = scan_text(vf, &anchors);
	if (!ret)
		ret = vf_mark_gap_targets(vf);
	if (!ret)
		ret = note_landing_pads(vf);
	for (uint32_t i = 0; !ret && i < vf->o->nr_sections; i++)
		if ((vf->o->sections[i].flags & SHF_ALLOC) &&
		    vf->o->sections[i].type == SHT_PROGBITS)
			scan_relative_tables(vf, &vf->o->sections[i]);
	if (!ret)
		ret = follow_off_grid(vf);
	if (ret)
		goto out;
	for (uint32_t i = 0; !vf->o->relinkable && i < vf->o->nr_sections; i++)
		if (vf_holds_words(vf, &vf->o->sections[i]))
			scan_own_distances(vf, &vf->o->sections[i]);
	for (uint32_t i = 0; words_may_be_addresses(vf) && i < vf->o->nr_sections; i++) {
		if (vf_holds_words(vf, &vf->o->sections[i]))
			scan_words(vf, &vf->o->sections[i]);
	}
	/* Such a number is too weak to make follow_off_grid() follow a second decoding. */
	for (uint64_t w = 0; w < vf->old.target.nr / 64 + 1; w++)
		vf->old.target.word[w] |= vf->old.maybe_address.word[w];
	vf_find_return_words(vf);
	vf_find_known(vf);
	vf_find_asked(vf);
	ret = vf_find_reads(vf);
	if (!ret)
		ret = vf_find_returns(vf);
	if (!ret)
		ret = vf_find_bounds(vf);
	if (!ret)
		ret = vf_find_labels(vf);
	if (vf->old.refs.nr)
		qsort(vf->old.refs.list, vf->old.refs.nr, sizeof(*vf->old.refs.list), by_to);
	if (!ret)
		ret = vf_find_label_uses(vf);
	if (!ret)
		ret = vf_find_places(vf);
	if (!ret)
		ret = vf_check_ranges(vf);
out:
	vf_bits_fini(&anchors);
	return ret;
}
