// SPDX-License-Identifier: Apache-2.0
/* print_counts - how often the blocks and edges of a function run, as text. Called by print.c. */
#include <inttypes.h>

#include "editor/print/print_private.h"

void me_print_counts(FILE *out, const struct me_print *data, uint32_t func)
{
	const struct mp_cfg *cfg = data->cfg;
	const struct mp_func *f = &cfg->funcs[func];
	const struct mp_counts *counts = data->counts;

	me_print_head(out, data, func);
	fputs(counts->exact ? ", counted\n" : ", inferred\n", out);
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		fprintf(out, "  0x%" PRIx64 "  %12.1f times, %8" PRIu64 " samples, %s",
			block->vaddr, counts->block[b], counts->samples[b], me_print_term(block));
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			fprintf(out, "%s %s 0x%" PRIx64 " %.1f",
				e == block->first_edge ? " ->" : ",", me_print_kind(&cfg->edges[e]),
				cfg->blocks[cfg->edges[e].to].vaddr, counts->edge[e]);
		fputc('\n', out);
	}
}
