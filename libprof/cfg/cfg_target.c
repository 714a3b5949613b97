// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_target - collects evidence outside of code that control may arrive at an address:
 * entry points, symbols, relocations, words of data, landing pads, probe notes. It runs
 * before the scan and makes every such address a target. After tables are known, cfg_taken
 * decides which addresses stand somewhere else than in a table. Called by cfg.
 */
#include <errno.h>

#include "libprof/cfg/cfg_private.h"
#include "libprof/cfg/cfg_words.h"

static void strong_target(struct mp_cfg_build *b, uint64_t vaddr)
{
	uint32_t at = mp_space_at(b->index, vaddr);

	if (at != MP_NONE && mp_space_is_text(b->index, at))
		mp_bit_set(b->index->targets, at);
}

static void weak_target(struct mp_cfg_build *b, uint64_t vaddr)
{
	uint32_t at = mp_space_at(b->index, vaddr);

	if (at != MP_NONE && mp_space_is_text(b->index, at))
		mp_bit_set(b->index->weak_targets, at);
}

static void dynamic_section(struct mp_cfg_build *b)
{
	for (uint32_t i = 0; i < b->elf->nr_phdrs; i++) {
		const Elf64_Phdr *ph = &b->elf->phdrs[i];
		const uint8_t *bytes;

		if (ph->p_type != PT_DYNAMIC)
			continue;
		bytes = mp_elf_bytes(b->elf, ph->p_vaddr, ph->p_filesz);
		for (uint64_t off = 0; bytes && off + sizeof(Elf64_Dyn) <= ph->p_filesz;
		     off += sizeof(Elf64_Dyn)) {
			Elf64_Dyn dyn;

			memcpy(&dyn, bytes + off, sizeof(dyn));
			if (dyn.d_tag == DT_NULL)
				break;
			if (dyn.d_tag == DT_INIT || dyn.d_tag == DT_FINI)
				strong_target(b, dyn.d_un.d_ptr);
		}
	}
}

/* A label that lies between two instructions means that the code has a second reading there. */
static void note_label(struct mp_cfg_build *b, uint64_t vaddr)
{
	uint32_t at = mp_space_at(b->index, vaddr);

	weak_target(b, vaddr);
	if (at != MP_NONE && mp_space_is_text(b->index, at))
		mp_bit_set(b->gap_targets, at);
}

static bool is_loaded(const struct mp_elf *elf, const struct mp_symbol *sym)
{
	return sym->shndx >= elf->nr_sections || (elf->sections[sym->shndx].flags & SHF_ALLOC);
}

static void symbols(struct mp_cfg_build *b)
{
	const struct mp_elf *elf = b->elf;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];

		if (sym->shndx == SHN_UNDEF || sym->type == STT_SECTION || sym->type == STT_FILE ||
		    sym->type == STT_TLS || !is_loaded(elf, sym))
			continue;
		if (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC)
			strong_target(b, sym->vaddr);
		else if (sym->shndx != SHN_ABS)
			note_label(b, sym->vaddr);
		if (sym->type == STT_OBJECT) {
			uint32_t at = mp_space_at(b->index, sym->vaddr);

			if (at != MP_NONE && !mp_space_is_text(b->index, at))
				mp_bit_set(b->refs, at);
		}
	}
}

static void word(void *ctx, uint64_t where, uint64_t value, enum mp_word_kind kind)
{
	struct mp_cfg_build *b = ctx;
	uint32_t at = mp_space_at(b->index, value);

	(void)where;
	if (at == MP_NONE)
		return;
	if (!mp_space_is_text(b->index, at)) {
		if (kind == MP_WORD_SURE)
			mp_bit_set(b->refs, at);
		return;
	}
	mp_bit_set(kind == MP_WORD_SURE ? b->index->targets : b->index->weak_targets, at);
	if (kind != MP_WORD_CHANCE)
		mp_bit_set(b->pointed, at);
}

struct pad_ctx {
	struct mp_cfg_build *b;
	uint32_t part;
	int ret;
};

static void pad(void *ctx, uint64_t vaddr)
{
	struct pad_ctx *p = ctx;
	struct mp_cfg_build *b = p->b;
	struct mp_part *part = &b->index->parts[p->part];
	uint32_t at = mp_space_at(b->index, vaddr);

	if (at == MP_NONE || !mp_space_is_text(b->index, at)) {
		p->ret = -EBADMSG;
		return;
	}
	mp_bit_set(b->index->targets, at);
	mp_bit_set(b->pads, at);
	if (at >= part->at && at < part->end)
		return;
	if (mp_cfg_add_far_link(b, p->part, at))
		p->ret = -ENOMEM;
}

static int landing_pads(struct mp_cfg_build *b)
{
	for (uint32_t i = 0; i < b->index->nr_parts; i++) {
		const struct mp_range *range = &b->cfg->ranges[b->index->parts[i].range];
		struct pad_ctx ctx = {.b = b, .part = i};
		const struct mp_fde *fde;
		int ret;

		if (range->fde == MP_NONE)
			continue;
		fde = &b->elf->fdes[range->fde];
		if (!fde->lsda)
			continue;
		ret = mp_lsda_pads(b->index, fde, pad, &ctx);
		if (ctx.ret == -ENOMEM)
			return -ENOMEM;
		if (ret || ctx.ret)
			mp_func_problem(&b->cfg->funcs[range->func], MP_PROBLEM_BAD_LSDA,
					range->start);
	}
	return 0;
}

/*
 * Marks functions with relocations that the linker made obsolete (relaxed code) or that
 * were patched over.
 */
static void compare_relocs(struct mp_cfg_build *b)
{
	const struct mp_elf *elf = b->elf;

	for (uint32_t i = 0; i < elf->nr_relocs; i++) {
		const struct mp_reloc *rel = &elf->relocs[i];
		const uint8_t *bytes;
		uint32_t at, part;
		int32_t value;

		if ((rel->type != R_X86_64_PC32 && rel->type != R_X86_64_PLT32) ||
		    rel->sym_shndx == SHN_UNDEF || rel->sym_shndx >= SHN_LORESERVE || !rel->sym)
			continue;
		at = mp_space_at(b->index, rel->vaddr);
		if (at == MP_NONE || !mp_space_is_text(b->index, at))
			continue;
		part = mp_part_at(b->index, at);
		bytes = mp_space_bytes(b->index, at, 4);
		if (part == MP_NONE || !bytes)
			continue;
		memcpy(&value, bytes, 4);
		if (rel->sym_value + (uint64_t)rel->addend - rel->vaddr != (uint64_t)(int64_t)value)
			b->cfg->funcs[b->index->parts[part].func].flags |= MP_FUNC_RELOCS_DISAGREE;
	}
}

int mp_cfg_find_targets(struct mp_cfg_build *b)
{
	strong_target(b, b->elf->ehdr.e_entry);
	dynamic_section(b);
	symbols(b);
	mp_words_walk(b, word, b);
	mp_cfg_find_probes(b);
	compare_relocs(b);
	return landing_pads(b);
}
