// SPDX-License-Identifier: Apache-2.0
/* print_cfg - the blocks and edges of a function as text. Called by print.c. */
#include <inttypes.h>

#include "editor/print/print_private.h"

void me_print_cfg(FILE *out, const struct me_print *data, uint32_t func)
{
	const struct mp_cfg *cfg = data->cfg;
	const struct mp_func *f = &cfg->funcs[func];
	const char *why = data->eligible ? data->eligible->detail[func] : NULL;

	me_print_head(out, data, func);
	if (why)
		fprintf(out, "; stays: %s", why);
	fputc('\n', out);
	for (uint32_t b = f->first_block; b < f->first_block + f->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];

		fprintf(out, "  0x%" PRIx64 "  %4" PRIu32 " bytes %3" PRIu32 " instructions, %s",
			block->vaddr, block->size, block->nr_insns, me_print_term(block));
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			fprintf(out, "%s %s 0x%" PRIx64, e == block->first_edge ? " ->" : ",",
				me_print_kind(&cfg->edges[e]), cfg->blocks[cfg->edges[e].to].vaddr);
		if (!block->nr_edges && mp_block_target(block))
			fprintf(out, " -> outside 0x%" PRIx64, mp_block_target(block));
		if (block->flags & ~MP_BLOCK_SURE) {
			fputs("  (", out);
			me_print_flags(out, block);
			fputc(')', out);
		}
		fputc('\n', out);
	}
}
