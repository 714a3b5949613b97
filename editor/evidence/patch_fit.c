// SPDX-License-Identifier: Apache-2.0
/*
 * patch_fit - reads the old bytes and the evidence of arrivals only, so it may be asked before there
 * is a plan.
 */
#include "editor/evidence/patch_fit.h"

#include <string.h>

#include "editor/evidence/table_form.h"

uint64_t me_patch_start(const struct mp_cfg *cfg, const struct mp_block *block)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);

	if (bytes && block->size >= sizeof(endbr64) && !memcmp(bytes, endbr64, sizeof(endbr64)))
		return block->vaddr + sizeof(endbr64);
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

/* Compilers align functions to lines of 64 bytes at most. */
#define PADDING_MAX 63u
#define ALIGNMENT   16u

/* Is @block its whole function, and does control leave it by its last instruction only? */
static bool is_whole(const struct mp_cfg *cfg, const struct mp_block *block)
{
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, block->vaddr, block->size);
	uint32_t at = 0, last = block->size - block->term_len;
	struct mp_insn insn;

	if (!bytes || !(block->flags & MP_BLOCK_ENTRY) || cfg->funcs[block->func].nr_blocks != 1 ||
	    (block->term != MP_TERM_RET && block->term != MP_TERM_TAIL &&
	     block->term != MP_TERM_INDIRECT_TAIL))
		return false;
	for (; at < last; at += insn.len)
		if (mp_insn_decode(bytes + at, last - at, block->vaddr + at, &insn) ||
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
#define PATCH_AT_MAX 4u

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
