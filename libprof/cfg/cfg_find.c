// SPDX-License-Identifier: Apache-2.0
/* cfg_find - finds the function and the block around an address, and what an instruction is. */
#include <string.h>

#include "libprof/cfg/cfg_private.h"

static const struct mp_part *part_of(const struct mp_cfg_index *index, uint32_t at)
{
	uint32_t part = at == MP_NONE ? MP_NONE : mp_part_at(index, at);

	return part == MP_NONE ? NULL : &index->parts[part];
}

uint32_t mp_cfg_func_at(const struct mp_cfg *cfg, uint64_t vaddr)
{
	const struct mp_cfg_index *index = cfg->private_data;
	const struct mp_part *part = part_of(index, mp_space_at(index, vaddr));

	return part ? part->func : MP_NONE;
}

uint32_t mp_cfg_block_at(const struct mp_cfg *cfg, uint64_t vaddr)
{
	const struct mp_cfg_index *index = cfg->private_data;
	uint32_t at = mp_space_at(index, vaddr), block, last;
	const struct mp_part *part = part_of(index, at);

	if (!part || !part->nr_blocks)
		return MP_NONE;
	block = part->first_block;
	last = block + part->nr_blocks - 1;
	if (cfg->blocks[block].vaddr == vaddr) /* the usual case: targets of calls */
		return block;
	if (at >> MP_BLOCK_HINT_SHIFT > part->at >> MP_BLOCK_HINT_SHIFT) {
		uint32_t hint = index->block_hint[at >> MP_BLOCK_HINT_SHIFT];

		/* In overlapping ranges the hint may be a block of another part. */
		if (hint > block && hint <= last)
			block = hint;
	}
	while (block < last && cfg->blocks[block + 1].vaddr <= vaddr)
		block++;
	return block;
}

bool mp_cfg_is_endbr64(const struct mp_cfg *cfg, uint64_t vaddr)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, vaddr, sizeof(endbr64));

	return bytes && !memcmp(bytes, endbr64, sizeof(endbr64));
}
