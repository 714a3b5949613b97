// SPDX-License-Identifier: Apache-2.0
/*
 * cfg_bare - accepts functions without unwind information that are leaves of assembly.
 *
 * Only a symbol gives the bounds of such a function. It is accepted if its code confirms
 * the symbol: every branch stays inside, it ends in returns, it calls nothing, and it has
 * no other problem. A copy without unwind information is no worse than the original, which
 * has none. All others get MP_PROBLEM_NO_FDE. Called by cfg after the blocks are made.
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

void mp_cfg_judge_bare(struct mp_cfg_build *b)
{
	struct mp_cfg *cfg = b->cfg;

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
