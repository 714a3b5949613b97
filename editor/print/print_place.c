// SPDX-License-Identifier: Apache-2.0
/* print_place - where the copies of a function lie and how they end, as text. Called by print.c. */
#include <inttypes.h>

#include "editor/print/print_private.h"

static void print_copy(FILE *out, const struct me_print *data, uint32_t i)
{
	const struct me_placement *p = data->placement;
	const struct me_copy *copy = &p->copies[i];
	const struct mp_cfg *cfg = data->cfg;

	fprintf(out, "  0x%" PRIx64 " -> 0x%" PRIx64 "  %4" PRIu32 " bytes, %s",
		cfg->blocks[copy->block].vaddr, copy->new_vaddr, copy->new_size,
		me_print_zone(i < p->first_warm ? ME_ZONE_HOT : ME_ZONE_WARM));
	if (copy->stub)
		fputs(", stub", out);
	if (copy->apart)
		fputs(", apart", out);
	else if (copy->clone)
		fputs(", clone", out);
	if (copy->inlined)
		fprintf(out, ", %u bytes of a called function", copy->end_size);
	if (copy->branch)
		fprintf(out, ", %s%s branch to 0x%" PRIx64, copy->long_branch ? "long" : "short",
			copy->invert ? " inverted" : "", me_place_branch(cfg, p, copy));
	if (copy->jump)
		fprintf(out, ", %s jump to 0x%" PRIx64, copy->long_jump ? "long" : "short",
			me_place_jump(cfg, p, copy));
	if (copy->falls)
		fputs(", falls", out);
	fputc('\n', out);
}

void me_print_place(FILE *out, const struct me_print *data, const struct me_print_index *index,
		    uint32_t func)
{
	const struct me_placement *p = data->placement;
	uint32_t nr = 0;

	me_print_head(out, data, func);
	fputc('\n', out);
	for (int zone = 0; zone < ME_NR_ZONES; zone++)
		for (uint32_t i = index->first[func][zone];
		     i < p->nr_copies && (i < p->first_warm) == (zone == ME_ZONE_HOT) &&
		     data->cfg->blocks[p->copies[i].block].func == func;
		     i++, nr++)
			print_copy(out, data, i);
	if (!nr)
		fputs("  stays where it is\n", out);
}
