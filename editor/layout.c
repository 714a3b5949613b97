// SPDX-License-Identifier: Apache-2.0
/*
 * layout - the plan: zones (layout_split), order of functions (layout_proc), order of blocks
 * inside each (layout_block), put together.
 *
 * Decides nothing about bytes; whether a function may move at all, eligible.c decided before.
 */
#include "editor/layout.h"

#include <errno.h>
#include <string.h>

#include "editor/layout_private.h"
#include "editor/predict.h"

/* A new order must promise this much of a function's taken branches. What promises less turned out
 * worse as often as better; 0.05 to 0.2 make little difference. */
#define MIN_GAIN 0.2

/* As compilers align functions at -O2. Everything else starts where the one before it ends, unless a
 * run would lie in more lines than it needs (layout_line). */
#define ENTRY_ALIGN_LOG2 4

static const char *const names[ME_NR_ORDERS] = {
	[ME_ORDER_ORIGINAL] = "original",
	[ME_ORDER_PH] = "ph",
	[ME_ORDER_EXTTSP] = "exttsp",
};

const char *me_order_name(enum me_order order)
{
	return (unsigned int)order < ME_NR_ORDERS ? names[order] : NULL;
}

int me_order_parse(const char *name, enum me_order *out)
{
	for (uint32_t i = 0; i < ME_NR_ORDERS; i++)
		if (!strcmp(name, names[i])) {
			*out = (enum me_order)i;
			return 0;
		}
	return -EINVAL;
}

/* Hot copies without reordering: everything that may move does, counts are not looked at. */
static void zones_original(const struct mp_cfg *cfg, const uint8_t *eligible, uint8_t *zones)
{
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		bool move = block->func != MP_NONE && eligible[block->func] &&
			    !(block->flags & MP_BLOCK_STAYS);

		zones[b] = move ? ME_ZONE_HOT : ME_STAY;
	}
}

/* Of a conditional branch: does it rather not branch? */
static bool falls_rather(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];
	double fall = 0, taken = 0;

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		*(cfg->edges[e].kind == MP_EDGE_FALL ? &fall : &taken) += counts->edge[e];
	if (block->nr_edges == 1) /* the other way leaves the function */
		*(fall > 0 ? &taken : &fall) = counts->block[b] - fall - taken;
	return block->term == MP_TERM_COND && fall > taken;
}

static void plan_add(struct me_plan *plan, const struct mp_cfg *cfg, const struct mp_counts *counts,
		     bool original, uint32_t block, enum me_zone zone)
{
	struct me_plan_block *out = &plan->blocks[plan->nr_blocks++];

	*out = (struct me_plan_block){.block = block, .zone = zone};
	if (original)
		out->why = ME_WHY_ORIGINAL;
	else
		out->why = counts->block[block] > 0 || counts->samples[block] ? ME_WHY_FLOW
									      : ME_WHY_UNSAMPLED;
	out->favour_fall = falls_rather(cfg, counts, block);
	if (cfg->blocks[block].flags & MP_BLOCK_ENTRY)
		out->align_log2 = ENTRY_ALIGN_LOG2;
}

/*
 * Is the new order of @f worth it? Where the counts themselves promise little, noise decides
 * whether it is better at all, and the original order is kept, hot and warm in one.
 */
static int func_weigh(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t f,
		      enum me_order how, uint32_t *order, uint32_t *next, uint8_t *copied,
		      uint8_t *zones, uint8_t *keep)
{
	const struct mp_func *func = &cfg->funcs[f];
	struct me_branches sum = {0};

	if (keep[f] || counts->exact)
		return 0;
	for (int zone = 0; zone < ME_NR_ZONES; zone++) {
		uint32_t nr;
		int ret = me_blocks_order(cfg, counts, f, zones, zone,
					  zone == ME_ZONE_HOT ? how : ME_ORDER_ORIGINAL, order,
					  &nr);

		if (ret)
			return ret;
		for (uint32_t i = 0; i < nr; i++) {
			copied[order[i]] = 1;
			next[order[i]] = i + 1 < nr ? order[i + 1] : MP_NONE;
		}
	}
	me_branches_add(cfg, counts, f, next, copied, &sum);
	if (sum.taken_after <= sum.taken_before * (1 - MIN_GAIN))
		return 0;
	keep[f] = 1;
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		if (zones[b] == ME_ZONE_WARM)
			zones[b] = ME_ZONE_HOT;
	return 0;
}

static int funcs_weigh(const struct mp_cfg *cfg, const struct mp_counts *counts,
		       const uint32_t *funcs, uint32_t nr_funcs, enum me_order how, uint32_t *order,
		       uint8_t *zones, uint8_t *keep)
{
	uint32_t *next = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*next));
	uint8_t *copied = calloc((size_t)cfg->nr_blocks + 1, 1);
	int ret = next && copied ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nr_funcs && !ret; i++)
		ret = func_weigh(cfg, counts, funcs[i], how, order, next, copied, zones, keep);
	free(next);
	free(copied);
	return ret;
}

int me_layout_build(const struct mp_cfg *cfg, const struct mp_counts *counts,
		    const uint8_t *eligible, const struct me_layout_options *options,
		    struct me_plan *plan, struct mp_err *err)
{
	bool original = options->block_order == ME_ORDER_ORIGINAL &&
			options->function_order == MP_ORDER_ORIGINAL;
	bool reorder = options->block_order != ME_ORDER_ORIGINAL;
	uint8_t *zones = malloc((size_t)cfg->nr_blocks + 1);
	uint8_t *keep = calloc((size_t)cfg->nr_funcs + 1, 1);
	uint32_t *funcs = malloc(((size_t)cfg->nr_funcs + 1) * sizeof(*funcs));
	uint32_t *blocks = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*blocks));
	uint32_t nr_funcs = 0;
	int ret = -ENOMEM;

	*plan = (struct me_plan){0};
	plan->blocks = malloc(((size_t)cfg->nr_blocks + 1) * sizeof(*plan->blocks));
	if (!zones || !keep || !funcs || !blocks || !plan->blocks)
		goto out;
	ret = 0;
	if (original)
		zones_original(cfg, eligible, zones);
	else
		ret = me_split_zones(cfg, counts, eligible, options, zones, keep);
	if (ret)
		goto out;
	ret = me_funcs_order(cfg, counts, zones, options->function_order, funcs, &nr_funcs);
	if (reorder && !ret)
		ret = funcs_weigh(cfg, counts, funcs, nr_funcs, options->block_order, blocks, zones,
				  keep);
	for (int zone = 0; zone < ME_NR_ZONES && !ret; zone++) {
		for (uint32_t i = 0; i < nr_funcs && !ret; i++) {
			uint32_t nr = 0;

			ret = me_blocks_order(cfg, counts, funcs[i], zones, zone,
					      zone == ME_ZONE_HOT && !keep[funcs[i]]
						      ? options->block_order
						      : ME_ORDER_ORIGINAL,
					      blocks, &nr);
			for (uint32_t k = 0; k < nr && !ret; k++)
				plan_add(plan, cfg, counts, original, blocks[k], zone);
		}
	}
	if (reorder && !options->no_tails && !ret)
		ret = me_tails_add(cfg, counts, plan);
	if (options->line_log2 && !ret)
		me_lines_keep(cfg, counts, options->line_log2, plan);
out:
	free(zones);
	free(keep);
	free(funcs);
	free(blocks);
	if (ret) {
		me_plan_fini(plan);
		return mp_err_set(err, -ret, "layout: out of memory");
	}
	return 0;
}
