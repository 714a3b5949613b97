// SPDX-License-Identifier: Apache-2.0
/* slots - the new call is one byte longer. */
#include "editor/rewrite/slots.h"

#include "editor/evidence/plt_stub.h"
#include "libprof/base/search.h"

uint32_t me_slots_find(const struct mp_cfg *cfg, const uint8_t *copied, uint64_t *ends)
{
	uint32_t nr = 0;

	for (uint32_t c = 0; c < cfg->nr_calls; c++) {
		const struct mp_call *call = &cfg->calls[c];
		const struct mp_block *block = &cfg->blocks[call->block];
		uint64_t vaddr = mp_call_insn(cfg, call), end = vaddr + ME_PLT_BRANCH_SIZE;

		if (!copied[call->block] || call->tail)
			continue;
		/* A call that does not return runs at most once, so a longer one would not pay. */
		if (block->term == MP_TERM_NORETURN && end == block->vaddr + block->size)
			continue;
		if (me_plt_branch_slot(cfg->elf, vaddr, false))
			ends[nr++] = end;
	}
	return nr;
}

void me_slots_mark(const struct mp_cfg *cfg, const uint64_t *ends, uint32_t nr_ends,
		   struct me_plan *plan)
{
	for (uint32_t i = 0; i < plan->nr_blocks; i++) {
		struct me_plan_block *planned = &plan->blocks[i];
		const struct mp_block *block = &cfg->blocks[planned->block];
		uint64_t end = block->vaddr + block->size;
		uint32_t at;

		if (planned->stub || planned->left_out)
			continue;
		if (block->term == MP_TERM_TAIL) {
			planned->via_slot =
				me_plt_branch_slot(cfg->elf, end - block->term_len, true) != 0;
		} else if (block->term == MP_TERM_FALL) {
			at = mp_search(k, 0, nr_ends, ends[k] < end);
			planned->via_slot = at < nr_ends && ends[at] == end;
		}
	}
}
