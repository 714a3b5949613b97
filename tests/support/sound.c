// SPDX-License-Identifier: Apache-2.0
/* sound - checks invariants of a control flow graph; see sound.h. */
#include "tests/support/sound.h"

#include <stdlib.h>

void sound_cfg(const struct mp_cfg *cfg)
{
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		if (!block->size || block->func >= cfg->nr_funcs ||
		    mp_cfg_block_starting(cfg, block->vaddr) != b ||
		    block->first_edge + block->nr_edges > cfg->nr_edges)
			abort();
		for (uint32_t e = 0; e < block->nr_edges; e++) {
			const struct mp_edge *edge = &cfg->edges[block->first_edge + e];

			if (edge->from != b || edge->to >= cfg->nr_blocks ||
			    cfg->blocks[edge->to].func != block->func)
				abort();
		}
	}
	for (uint32_t t = 0; t < cfg->nr_tables; t++)
		if (cfg->tables[t].func >= cfg->nr_funcs ||
		    cfg->tables[t].first_ref + cfg->tables[t].nr_refs > cfg->nr_table_refs)
			abort();
}
