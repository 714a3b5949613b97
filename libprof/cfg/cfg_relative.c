// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_relative - finds words of data that may be entries of an unrecognised relative table.
 * Relocations tell where such entries are, but not to which table they belong. In a file without
 * relocations, any address that an operand names may start a table, and its entries go on as long
 * as each leads to code. Most finds are chance, so they become weak evidence only. Called by cfg
 * after all instructions are known.
 */
#include <string.h>

#include "libprof/cfg/cfg_private.h"

static void follow(struct mp_cfg_build *b, const struct mp_span *span, uint32_t base, uint32_t end)
{
	uint64_t base_vaddr = mp_space_vaddr(b->index, base);

	for (uint32_t at = base; at + 4 <= end; at += 4) {
		uint32_t target;
		int32_t word;

		memcpy(&word, span->bytes + (at - span->at), sizeof(word));
		target = mp_space_at(b->index, base_vaddr + (uint64_t)(int64_t)word);
		if (target == MP_NONE || !mp_space_is_text(b->index, target) ||
		    mp_part_at(b->index, at) != MP_NONE)
			return;
		if (mp_bit(b->starts, target))
			mp_bit_set(b->index->weak_targets, target);
		/* Code that reads the entry has the function's address. */
		if (mp_bit(b->entries, target))
			mp_bit_set(b->named, target);
	}
}

/*
 * The entries from @base on, each with a relocation. An operand may name the middle of a table, as
 * an address beside another object: which base holds is unknown then. Where one of them leads
 * between instructions, verify does not understand the function, so nothing may be changed there.
 */
static void follow_relocated(struct mp_cfg_build *b, const struct mp_span *span, uint32_t base,
			     uint32_t end)
{
	uint64_t base_vaddr = mp_space_vaddr(b->index, base);

	(void)span;
	if (mp_space_is_text(b->index, base))
		return;
	for (uint32_t at = base; at + 4 <= end; at += 4) {
		uint64_t vaddr = mp_space_vaddr(b->index, at);
		const uint8_t *bytes = mp_elf_bytes(b->elf, vaddr, 4);
		const struct mp_reloc *rel;
		uint32_t nr, target, part;
		int32_t word;

		rel = mp_elf_relocs_in(b->elf, vaddr, vaddr + 4, &nr);
		if (!bytes || !nr || rel->vaddr != vaddr || rel->type != R_X86_64_PC32)
			return;
		memcpy(&word, bytes, sizeof(word));
		target = mp_space_at(b->index, base_vaddr + (uint64_t)(int64_t)word);
		if (target == MP_NONE || !mp_space_is_text(b->index, target))
			return;
		mp_bit_set(b->index->weak_targets, target);
		part = mp_part_at(b->index, target);
		if (part != MP_NONE && !mp_bit(b->starts, target))
			mp_func_problem(&b->cfg->funcs[b->index->parts[part].func],
					MP_PROBLEM_OFF_GRID, vaddr);
	}
}

typedef void follow_fn(struct mp_cfg_build *b, const struct mp_span *span, uint32_t base,
		       uint32_t end);

/* A table may begin at each of @refs, and ends before the next one. */
static void follow_each(struct mp_cfg_build *b, const mp_bits refs, follow_fn *follow_one)
{
	for (uint32_t i = 0; i < b->index->nr_spans; i++) {
		const struct mp_span *span = &b->index->spans[i];
		uint32_t end = span->at + (uint32_t)span->size, base, next;

		for (base = mp_bits_next(refs, span->at, end); base < end; base = next) {
			next = mp_bits_next(refs, base + 1, end);
			follow_one(b, span, base, next);
		}
	}
}

void mp_cfg_find_relocated(struct mp_cfg_build *b, const mp_bits refs)
{
	if (b->elf->relinkable)
		follow_each(b, refs, follow_relocated);
}

void mp_cfg_find_relative(struct mp_cfg_build *b, const mp_bits refs)
{
	if (!b->elf->relinkable)
		follow_each(b, refs, follow);
}
