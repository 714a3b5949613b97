// SPDX-License-Identifier: Apache-2.0
/* control_word - finds the instruction after each fldcw of a block. Called by place. */
#include "editor/evidence/control_word.h"

#include <string.h>

#include "libprof/insn/insn.h"

/* fldcw is d9 /5 with an operand in memory. */
static bool is_fldcw(const uint8_t *bytes, const struct mp_insn *insn)
{
	for (uint8_t i = 0; i + 1 < insn->len && i < 4; i++)
		if (bytes[i] == 0xd9)
			return (bytes[i + 1] >> 3 & 7) == 5 && bytes[i + 1] < 0xc0;
	return false;
}

void me_after_fldcw_find(const struct mp_cfg *cfg, uint32_t block, struct me_after_fldcw *out)
{
	const struct mp_block *b = &cfg->blocks[block];
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, b->vaddr, b->size);
	bool behind = false;
	struct mp_insn insn;

	out->nr = 0;
	/* Most blocks have no such byte. */
	if (!bytes || b->size > UINT16_MAX || !memchr(bytes, 0xd9, b->size))
		return;
	for (uint32_t off = 0; off < b->size && out->nr < ME_AFTER_FLDCW_MAX; off += insn.len) {
		if (mp_insn_decode(bytes + off, b->size - off, b->vaddr + off, &insn))
			return;
		if (behind) {
			out->at[out->nr].first = (uint16_t)off;
			out->at[out->nr++].last = (uint16_t)(off + insn.len - 1);
		}
		behind = is_fldcw(bytes + off, &insn);
	}
}
