// SPDX-License-Identifier: Apache-2.0
/*
 * patch_fit - reads the old bytes and the evidence of arrivals only, so it may be asked before there
 * is a plan.
 */
#include "editor/evidence/patch_fit.h"

#include "editor/evidence/eligible.h"
#include "editor/evidence/table_form.h"

#define ENDBR64_SIZE 4u

uint64_t me_patch_start(const struct mp_cfg *cfg, const struct mp_block *block)
{
	if (block->size >= ENDBR64_SIZE && mp_cfg_is_endbr64(cfg, block->vaddr))
		return block->vaddr + ENDBR64_SIZE;
	return block->vaddr;
}

bool me_patch_fits(const struct mp_cfg *cfg, uint32_t index)
{
	const struct mp_block *block = &cfg->blocks[index];
	uint64_t start = me_patch_start(cfg, block), end = block->vaddr + block->size;

	if (end - start < ME_PATCH_SIZE)
		return false;
	for (uint64_t v = start == block->vaddr ? start + 1 : start; v < start + ME_PATCH_SIZE; v++)
		if (mp_cfg_may_be_target(cfg, v))
			return false;
	return true;
}

bool me_patch_fits_behind(const struct mp_cfg *cfg, uint32_t index)
{
	return mp_cfg_is_first_insn(cfg, index) && !me_block_stays(&cfg->blocks[index + 1]) &&
	       (me_patch_fits(cfg, index + 1) || me_patch_fits_padding(cfg, index + 1));
}

/* Compilers align functions to lines of 64 bytes at most. */
#define PADDING_MAX 63u
#define ALIGNMENT   16u

/*
 * Is @block its whole function, apart from a first instruction that is a block of its own, and does control
 * leave it by its last instruction only?
 */
static bool is_whole(const struct mp_cfg *cfg, const struct mp_block *block)
{
	const bool behind = block->flags & MP_BLOCK_BEHIND_ENTRY;
	const uint64_t start = behind ? block[-1].vaddr : block->vaddr;
	const uint32_t size = (uint32_t)(block->vaddr + block->size - start);
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, start, size);
	uint32_t at = 0, last = size - block->term_len;
	struct mp_insn insn;

	if (!bytes || !(behind || block->flags & MP_BLOCK_ENTRY) ||
	    cfg->funcs[block->func].nr_blocks != (behind ? 2 : 1) ||
	    (block->term != MP_TERM_RET && block->term != MP_TERM_TAIL &&
	     block->term != MP_TERM_INDIRECT_TAIL))
		return false;
	for (; at < last; at += insn.len)
		if (mp_insn_decode(bytes + at, last - at, start + at, &insn) ||
		    insn.kind != MP_INSN_OTHER)
			return false;
	return at == last;
}

/* Return: where the function behind the padding from @from on begins; 0: that is no padding. */
static uint64_t padding_end(const struct mp_cfg *cfg, uint64_t from)
{
	const struct mp_section *sec = mp_elf_section_at(cfg->elf, from - 1);
	struct mp_insn insn;
	uint64_t at = from;

	for (; mp_cfg_func_at(cfg, at) == MP_NONE; at += insn.len) {
		const uint8_t *bytes;

		if (!sec || at - sec->vaddr >= sec->size || at - from >= PADDING_MAX)
			return 0;
		bytes = mp_elf_bytes(cfg->elf, at, sec->vaddr + sec->size - at);
		if (!bytes || mp_insn_decode(bytes, sec->vaddr + sec->size - at, at, &insn) ||
		    !(insn.nop || *bytes == 0xcc))
			return 0;
		/* The padding ends with an instruction. */
		for (uint64_t in = at + 1; in < at + insn.len; in++)
			if (mp_cfg_func_at(cfg, in) != MP_NONE)
				return 0;
	}
	return at - from <= PADDING_MAX && at % ALIGNMENT == 0 ? at : 0;
}

bool me_patch_fits_padding(const struct mp_cfg *cfg, uint32_t index)
{
	const struct mp_block *block = &cfg->blocks[index];
	uint64_t start = me_patch_start(cfg, block), from = block->vaddr + block->size, end;
	uint32_t nr_relocs;

	if (from >= start + ME_PATCH_SIZE || !is_whole(cfg, block))
		return false;
	end = padding_end(cfg, from);
	if (end < start + ME_PATCH_SIZE)
		return false;
	mp_elf_relocs_in(cfg->elf, from, end, &nr_relocs);
	if (nr_relocs)
		return false;
	for (uint64_t v = start == block->vaddr ? start + 1 : start; v < end; v++)
		if (mp_cfg_may_be_target(cfg, v))
			return false;
	return true;
}

bool me_patch_leads_table(const struct mp_cfg *cfg, const struct mp_table *table)
{
	/* An entry across the border of two pages would change in two steps in a running process. */
	return table->private_refs && !(table->vaddr % 4) &&
	       (cfg->elf->relinkable || me_table_form_is_plain(cfg, table));
}

/* A patch begins at most so far behind its block's start: behind endbr64. */
#define PATCH_AT_MAX ENDBR64_SIZE

#define JUMP_REL32 0xe9

static void keep_entry(struct mp_cfg *cfg, uint64_t vaddr)
{
	const uint8_t *first = mp_elf_bytes(cfg->elf, vaddr, 1);

	/*
	 * A jump is never written over endbr64, and over another jump only its distance changes. Elsewhere, a
	 * target in the middle keeps jumps away.
	 */
	if (!first || (*first != JUMP_REL32 && !mp_cfg_is_endbr64(cfg, vaddr)))
		mp_cfg_note_target(cfg, vaddr + 1);
}

void me_patch_keep_entries(struct mp_cfg *cfg)
{
	const struct mp_elf *elf = cfg->elf;

	for (uint32_t r = 0; r < cfg->nr_ranges; r++)
		keep_entry(cfg, cfg->ranges[r].start);
	for (uint32_t i = 0; i < elf->nr_fdes; i++)
		keep_entry(cfg, elf->fdes[i].start);
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *s = &elf->symbols[i];

		if (s->shndx != SHN_UNDEF && s->shndx != SHN_ABS &&
		    (s->type == STT_FUNC || s->type == STT_GNU_IFUNC || s->type == STT_NOTYPE) &&
		    mp_elf_is_code(elf, s->vaddr))
			keep_entry(cfg, s->vaddr);
	}
}

/*
 * A thread may be in a call, on any stack, when the patch is written, and then returns into its middle. Calls are
 * five bytes long or shorter, so only calls through registers and memory are concerned.
 */
void me_patch_keep_returns(struct mp_cfg *cfg)
{
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
		struct mp_insn insn;

		for (uint32_t at = 0;
		     bytes && at < block->size && at < PATCH_AT_MAX + ME_PATCH_SIZE;
		     at += insn.len) {
			if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
				break;
			if (insn.kind == MP_INSN_CALL || insn.kind == MP_INSN_ICALL)
				mp_cfg_note_target(cfg, block->vaddr + at + insn.len);
		}
	}
}
