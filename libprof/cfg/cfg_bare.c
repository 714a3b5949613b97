// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_bare - accepts functions without unwind information that are leaves of assembly.
 *
 * Only a symbol gives the bounds of such a function. It is accepted if its code confirms
 * the symbol: every branch stays inside, it ends in returns, it calls nothing, and it has
 * no other problem. A copy without unwind information is no worse than the original, which
 * has none. All others get MP_PROBLEM_NO_FDE. Called by cfg after the blocks are made.
 *
 * A program may copy a whole area of such code, as V8 does with its built-in functions: jumps to
 * copies of ours would then lead astray. A label without type and size names the area's beginning,
 * so all functions behind such a label stay.
 */
#include "libprof/cfg/cfg_private.h"

static bool stays_inside(const struct mp_cfg_build *b, const struct mp_part *part)
{
	bool returns = false;

	for (uint32_t i = 0; i < part->nr_flows; i++) {
		const struct mp_flow *f = &b->flows[part->first_flow + i];

		switch (f->kind) {
		case MP_INSN_COND:
		case MP_INSN_JUMP:
			if (f->target == MP_NONE || f->target < part->at || f->target >= part->end)
				return false;
			break;
		case MP_INSN_RET: returns = true; break;
		default: return false;
		}
	}
	return returns;
}

/* True if the symbol lies in a section with code; its value is then no mere number. */
static bool has_section(const struct mp_cfg_build *b, const struct mp_func *func)
{
	const struct mp_elf *elf = b->elf;
	uint16_t shndx = func->symbol == MP_NONE ? SHN_ABS : elf->symbols[func->symbol].shndx;
	const struct mp_section *sec = shndx < elf->nr_sections ? &elf->sections[shndx] : NULL;

	return sec && (sec->flags & SHF_ALLOC) && (sec->flags & SHF_EXECINSTR) &&
	       func->vaddr >= sec->vaddr && func->vaddr - sec->vaddr < sec->size &&
	       func->size <= sec->size - (func->vaddr - sec->vaddr);
}

/* Sets the bit of each byte of the text that a label without type and size names. */
static void note_labels(const struct mp_cfg_build *b, mp_bits labels)
{
	const struct mp_elf *elf = b->elf;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *sym = &elf->symbols[i];
		uint32_t at = mp_space_at(b->index, sym->vaddr);

		if (sym->type == STT_NOTYPE && !sym->size && sym->shndx < elf->nr_sections &&
		    elf->sections[sym->shndx].flags & SHF_EXECINSTR && at != MP_NONE)
			mp_bit_set(labels, at);
	}
}

/* Refuses bare functions behind a label, without a function with an FDE between. */
static void refuse_named_code(struct mp_cfg_build *b)
{
	mp_bits labels = b->scratch;
	uint32_t from = 0;
	bool named = false;

	note_labels(b, labels);
	for (uint32_t p = 0; p < b->index->nr_parts; p++) {
		const struct mp_part *part = &b->index->parts[p];

		if (b->cfg->ranges[part->range].fde != MP_NONE) {
			named = false;
			from = part->end;
			continue;
		}
		named |= mp_bits_next(labels, from, part->at + 1) <= part->at;
		from = part->end; /* a label inside a function names no area */
		if (named)
			mp_func_problem(&b->cfg->funcs[part->func], MP_PROBLEM_NO_FDE,
					mp_space_vaddr(b->index, part->at));
	}
	mp_bits_clear_all(labels, b->index->nr_bytes / 64 + 1);
}

void mp_cfg_judge_bare(struct mp_cfg_build *b)
{
	struct mp_cfg *cfg = b->cfg;

	refuse_named_code(b);
	for (uint32_t i = 0; i < cfg->nr_funcs; i++) {
		struct mp_func *func = &cfg->funcs[i];
		const struct mp_part *part;

		if (!(func->flags & MP_FUNC_BARE) || func->problem == MP_PROBLEM_SPECIAL)
			continue;
		part = &b->index->parts[b->part_of_range[func->first_range]];
		if (func->problem == MP_PROBLEM_NONE && func->nr_ranges == 1 &&
		    !(func->flags & (MP_FUNC_IFUNC | MP_FUNC_SYSCALL)) && has_section(b, func) &&
		    stays_inside(b, part))
			continue;
		/* Not understood for some reason, so the symbol itself is in doubt. */
		func->problem = MP_PROBLEM_NO_FDE;
		func->problem_vaddr = func->vaddr;
	}
}
