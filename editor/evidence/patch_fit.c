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

bool me_patch_leads_table(const struct mp_cfg *cfg, const struct mp_table *table)
{
	return table->private_refs && (cfg->elf->relinkable || me_table_form_is_plain(cfg, table));
}
