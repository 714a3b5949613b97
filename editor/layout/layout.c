// SPDX-License-Identifier: Apache-2.0
/*
 * layout - makes the plan: calls layout_split for zones, layout_proc for the order of functions
 * and layout_block for the order of blocks inside each.
 *
 * Decides nothing about bytes. eligible.c decided which functions may move.
 */
#include "editor/layout/layout.h"

#include <errno.h>
#include <string.h>

#include "editor/evidence/eligible.h"
#include "editor/layout/layout_private.h"
#include "editor/layout/predict.h"
#include "libprof/base/parallel.h"

/* A new order must save at least this share of a function's taken branches. Orders that promise
 * less were worse as often as better; values from 0.05 to 0.2 differ little. */
#define MIN_GAIN 0.2
/* A compiler that had a profile chose an order for other work, too. Its fall-through stays one
 * unless nine in ten executions branch. On python with paths this saves 3 % of the taken branches at
 * other work instead of adding 3 %; at the training work it saves 40 % instead of 51 %. */
#define OLD_WAY_PROFILED 0.8

/* Compilers align functions so at -O2. Other blocks start where the block before them ends, unless
 * a run would lie in more lines than needed (layout_line). */
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

/* Without reordering: every block that may move is hot, whatever the counts say. */
static void zones_original(const struct mp_cfg *cfg, const uint8_t *eligible, uint8_t *zones)
{
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		bool move = block->func != MP_NONE && eligible[block->func] &&
			    !me_block_stays(block);

		zones[b] = move ? ME_ZONE_HOT : ME_STAY;
	}
}

/* True for a conditional branch that falls through more often than it branches. */
static bool falls_rather(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t b)
{
	const struct mp_block *block = &cfg->blocks[b];
	double fall = 0, taken = 0;

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		*(cfg->edges[e].kind == MP_EDGE_FALL ? &fall : &taken) += counts->edge[e];
	if (block->nr_edges == 1) /* the other successor is outside */
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

/* Functions per unit of parallel work. */
#define GRAIN 16

/* Input and output of ordering the blocks of functions. */
struct orderer {
	const struct mp_cfg *cfg;
	const struct mp_counts *counts;
	enum me_order how;
	double old_way;	 /* as of me_blocks_order() */
	uint8_t *zones;	 /* per block */
	uint8_t *keep;	 /* per function: keep the original order */
	uint32_t *order; /* from a function's first block on: its blocks, zone by zone */
	uint32_t *next;	 /* per block: the one behind it in @order */
	uint8_t *copied;
	uint32_t (*nr)[ME_NR_ZONES]; /* per function: blocks of each zone */
	const uint32_t *funcs;	     /* functions with blocks in a zone */
};

static int func_order(const struct orderer *o, uint32_t f)
{
	uint32_t *order = &o->order[o->cfg->funcs[f].first_block];

	for (int zone = 0; zone < ME_NR_ZONES; zone++) {
		int ret = me_blocks_order(o->cfg, o->counts, f, o->zones, zone,
					  zone == ME_ZONE_HOT && !o->keep[f] ? o->how
									     : ME_ORDER_ORIGINAL,
					  o->old_way, order, &o->nr[f][zone]);

		if (ret)
			return ret;
		order += o->nr[f][zone];
	}
	return 0;
}

/*
 * True if the new order of @f saves enough. If the counts promise little, noise decides whether
 * the order is better at all. Such a function keeps its original order, hot and warm together.
 */
static bool func_is_worth(const struct orderer *o, uint32_t f)
{
	const struct mp_func *func = &o->cfg->funcs[f];
	const uint32_t *order = &o->order[func->first_block];
	struct me_branches sum = {0};

	for (int zone = 0; zone < ME_NR_ZONES; zone++) {
		for (uint32_t i = 0; i < o->nr[f][zone]; i++) {
			o->copied[order[i]] = 1;
			o->next[order[i]] = i + 1 < o->nr[f][zone] ? order[i + 1] : MP_NONE;
		}
		order += o->nr[f][zone];
	}
	me_branches_add(o->cfg, o->counts, f, o->next, o->copied, &sum);
	return sum.taken_after <= sum.taken_before * (1 - MIN_GAIN);
}

static int func_place(const struct orderer *o, uint32_t f)
{
	const struct mp_func *func = &o->cfg->funcs[f];
	int ret = func_order(o, f);

	if (ret || o->how == ME_ORDER_ORIGINAL || o->keep[f] || o->counts->exact ||
	    func_is_worth(o, f))
		return ret;
	o->keep[f] = 1;
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		if (o->zones[b] == ME_ZONE_WARM)
			o->zones[b] = ME_ZONE_HOT;
	return func_order(o, f);
}

static int some_place(void *ctx, unsigned int worker, uint32_t first, uint32_t end,
		      struct mp_err *err)
{
	const struct orderer *o = ctx;
	int ret = 0;

	(void)worker;
	(void)err;
	for (uint32_t i = first; i < end && !ret; i++)
		ret = func_place(o, o->funcs[i]);
	return ret;
}

static void plan_add_zone(struct me_plan *plan, const struct orderer *o, bool original, uint32_t f,
			  int zone)
{
	const uint32_t *order = &o->order[o->cfg->funcs[f].first_block];

	for (int before = 0; before < zone; before++)
		order += o->nr[f][before];
	for (uint32_t i = 0; i < o->nr[f][zone]; i++)
		plan_add(plan, o->cfg, o->counts, original, order[i], zone);
}

static bool keeps_order(const struct me_layout_options *options)
{
	return options->block_order == ME_ORDER_ORIGINAL && !options->choose_functions &&
	       options->function_order == MP_ORDER_ORIGINAL;
}

/* Chooses zones, orders functions and their blocks, and adds the blocks to @plan. */
static int plan_fill(struct orderer *o, const uint8_t *eligible, struct me_layout_options *options,
		     uint32_t *funcs, struct me_plan *plan)
{
	bool original = keeps_order(options);
	uint32_t nr_funcs = 0;
	int ret = 0;

	if (original)
		zones_original(o->cfg, eligible, o->zones);
	else
		ret = me_split_zones(o->cfg, o->counts, eligible, options, o->zones, o->keep);
	if (!ret && options->choose_functions)
		options->function_order = me_funcs_choose(o->cfg, o->counts, o->zones);
	if (!ret)
		ret = me_funcs_order(o->cfg, o->counts, o->zones, options->function_order, funcs,
				     &nr_funcs);
	o->funcs = funcs;
	if (!ret)
		ret = mp_parallel_for(
			options->nr_threads,
			&(struct mp_parallel){
				.nr_items = nr_funcs, .grain = GRAIN, .run = some_place, .ctx = o},
			NULL);
	for (uint32_t i = 0; i < nr_funcs && !ret; i++)
		plan_add_zone(plan, o, original, funcs[i], ME_ZONE_HOT);
	/* The order of hot parts does not suit parts without samples: cc1 is 0.6 % faster if these keep theirs. */
	for (uint32_t f = 0; f < o->cfg->nr_funcs && !ret; f++)
		plan_add_zone(plan, o, original, f, ME_ZONE_WARM);
	return ret;
}

int me_layout_build(const struct mp_cfg *cfg, const struct mp_counts *counts,
		    const uint8_t *eligible, struct me_layout_options *options,
		    struct me_plan *plan, struct mp_err *err)
{
	struct orderer o = {.cfg = cfg,
			    .counts = counts,
			    .how = options->block_order,
			    .old_way = !counts->exact && mp_cfg_is_profiled(cfg) ? OLD_WAY_PROFILED
										 : 0};
	size_t nr_blocks = (size_t)cfg->nr_blocks + 1, nr_all = (size_t)cfg->nr_funcs + 1;
	uint32_t *funcs = malloc(nr_all * sizeof(*funcs));
	int ret = -ENOMEM;

	o.zones = malloc(nr_blocks);
	o.keep = calloc(nr_all, 1);
	o.order = malloc(nr_blocks * sizeof(*o.order));
	o.next = malloc(nr_blocks * sizeof(*o.next));
	o.copied = calloc(nr_blocks, 1);
	o.nr = calloc(nr_all, sizeof(*o.nr));
	*plan = (struct me_plan){0};
	plan->blocks = malloc(nr_blocks * sizeof(*plan->blocks));
	if (!o.zones || !o.keep || !o.order || !o.next || !o.copied || !o.nr || !funcs ||
	    !plan->blocks)
		goto out;
	ret = plan_fill(&o, eligible, options, funcs, plan);
	if (options->block_order != ME_ORDER_ORIGINAL && !options->no_tails && !ret)
		ret = me_tails_add(cfg, counts, plan);
	if (options->line_log2 && !ret)
		ret = me_lines_keep(cfg, counts, options->line_log2, plan);
out:
	free(o.zones);
	free(o.keep);
	free(o.order);
	free(o.next);
	free(o.copied);
	free(o.nr);
	free(funcs);
	if (ret) {
		me_plan_fini(plan);
		return mp_err_set(err, -ret, "layout: out of memory");
	}
	return 0;
}
