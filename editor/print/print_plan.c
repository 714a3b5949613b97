// SPDX-License-Identifier: Apache-2.0
/* print_plan - which blocks of a function are copied, in their new order, as text. Called by print.c. */
#include <inttypes.h>

#include "editor/print/print_private.h"

static void print_block(FILE *out, const struct me_print *data, uint32_t i)
{
	const struct me_plan_block *planned = &data->plan->blocks[i];
	const struct mp_block *block = &data->cfg->blocks[planned->block];

	fprintf(out, "  %8" PRIu32 "  %-4s  0x%" PRIx64 "  %4" PRIu32 " bytes, %s", i,
		me_print_zone(planned->zone), block->vaddr, block->size, me_print_why(planned));
	if (data->counts)
		fprintf(out, ", %.1f times", data->counts->block[planned->block]);
	if (planned->new_line)
		fputs(", in a new line", out);
	if (planned->align_log2)
		fprintf(out, ", aligned to %u", 1u << planned->align_log2);
	if (planned->align_offset)
		fprintf(out, " plus %u", (unsigned int)planned->align_offset);
	if (planned->run)
		fprintf(out, ", run of %u", (unsigned int)planned->run);
	if (planned->loop)
		fprintf(out, ", loop of %u", (unsigned int)planned->loop);
	fputc('\n', out);
}

void me_print_plan(FILE *out, const struct me_print *data, const struct me_print_index *index,
		   uint32_t func)
{
	const struct me_plan *plan = data->plan;
	uint32_t nr = 0;

	me_print_head(out, data, func);
	fputc('\n', out);
	for (int zone = 0; zone < ME_NR_ZONES; zone++)
		for (uint32_t i = index->first[func][zone];
		     i < plan->nr_blocks && plan->blocks[i].zone == zone &&
		     data->cfg->blocks[plan->blocks[i].block].func == func;
		     i++, nr++)
			print_block(out, data, i);
	if (!nr)
		fputs("  stays where it is\n", out);
}
