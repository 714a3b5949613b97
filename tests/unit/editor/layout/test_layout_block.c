// SPDX-License-Identifier: Apache-2.0
/*
 * test_layout_block - layout of hand-made graphs: what falls through, what is left behind, and
 * the order.
 */

#include "editor/layout/predict.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"
#include "tests/support/toycfg.h"

static struct toy toy;
static struct me_plan plan;
static bool tails; /* with tail duplication */

static void build(enum me_order blocks, enum mp_order functions)
{
	struct me_layout_options options = {
		.block_order = blocks, .function_order = functions, .no_tails = !tails};

	toy_finish(&toy);
	ck_assert_int_eq(
		me_layout_build(&toy.cfg, &toy.counts, toy.eligible, &options, &plan, &err), 0);
}

static bool leads_to(uint32_t from, uint32_t to)
{
	const struct mp_block *block = &toy.blocks[from];

	for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
		if (toy.cfg.edges[e].to == to)
			return true;
	return false;
}

/* A clone is reached only by falling through from the block before it, and has an original. */
static void check_clone(uint32_t i)
{
	const struct me_plan_block *at = &plan.blocks[i];
	uint16_t flags = toy.blocks[at->block].flags;
	bool has_original = false;

	ck_assert(tails);
	ck_assert_uint_gt(i, 0);
	ck_assert_int_eq(at->zone, ME_ZONE_HOT);
	ck_assert_int_eq(at[-1].zone, ME_ZONE_HOT);
	ck_assert(leads_to(at[-1].block, at->block));
	ck_assert(!(flags & (MP_BLOCK_ENTRY | MP_BLOCK_LANDING_PAD | MP_BLOCK_PADDING)));
	ck_assert_int_eq(at->why, ME_WHY_TAIL);
	for (uint32_t k = 0; k < plan.nr_blocks; k++)
		has_original |= !plan.blocks[k].clone && plan.blocks[k].block == at->block;
	ck_assert(has_original);
}

/* Checks the contract of plan.h for any plan. */
static void check_invariants(void)
{
	uint8_t seen[TOY_MAX] = {0}, done[2][TOY_MAX] = {{0}}, has_entry[TOY_MAX] = {0};
	uint64_t hot = 0, clones = 0;
	int zone = ME_ZONE_HOT;

	for (uint32_t i = 0; i < plan.nr_blocks; i++) {
		const struct me_plan_block *at = &plan.blocks[i];
		uint32_t f = toy.blocks[at->block].func;

		ck_assert_uint_lt(at->block, toy.cfg.nr_blocks);
		if (at->clone) {
			check_clone(i);
			clones += toy.blocks[at->block].size;
		} else {
			ck_assert(!seen[at->block]);
			seen[at->block] = 1;
			hot += at->zone == ME_ZONE_HOT ? toy.blocks[at->block].size : 0;
		}
		ck_assert_int_ge(at->zone, zone);
		zone = at->zone;
		if (!i || at[-1].zone != at->zone || toy.blocks[at[-1].block].func != f) {
			ck_assert_msg(!done[zone][f], "function %u is in pieces", f);
			done[zone][f] = 1;
		} else {
			ck_assert(!(toy.blocks[at->block].flags & MP_BLOCK_ENTRY));
		}
		has_entry[f] |= !!(toy.blocks[at->block].flags & MP_BLOCK_ENTRY);
		ck_assert(toy.eligible[f]);
	}
	for (uint32_t f = 0; f < toy.cfg.nr_funcs; f++)
		ck_assert(has_entry[f] || (!done[0][f] && !done[1][f]));
	ck_assert_uint_le(4 * clones, hot);
}

static void check_order(const uint32_t *blocks, uint32_t nr)
{
	check_invariants();
	ck_assert_uint_eq(plan.nr_blocks, nr);
	for (uint32_t i = 0; i < nr; i++)
		ck_assert_msg(plan.blocks[i].block == blocks[i], "at %u block %u, not %u", i,
			      plan.blocks[i].block, blocks[i]);
}

#define ORDER(...)                                                                                 \
	do {                                                                                       \
		uint32_t order[] = {__VA_ARGS__};                                                  \
		check_order(order, sizeof(order) / sizeof(order[0]));                              \
		me_plan_fini(&plan);                                                               \
	} while (0)

TEST(layout_makes_the_common_way_fall_through)
{
	/* 0: if (rarely) 1; 2. The branch over 1 is the common way. */
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_FALL, 1}, {MP_TERM_RET, 100});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 1}, {0, 2, MP_EDGE_TAKEN, 99},
		  {1, 2, MP_EDGE_FALL, 1});
	build(ME_ORDER_PH, MP_ORDER_PH);
	ORDER(0, 2, 1);
}

TEST(layout_keeps_the_order_where_evidence_is_weak)
{
	for (int way = 0; way < 3; way++) {
		/*
		 * As above, with 2 samples, with many, or with many that predict 3 % fewer
		 * taken branches.
		 */
		double rare = way == 2 ? 49 : 1;

		toy_start(&toy, "f");
		toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_JUMP, rare},
			   {MP_TERM_FALL, 100 - rare}, {MP_TERM_RET, 100});
		toy_edges(&toy, {0, 1, MP_EDGE_FALL, rare}, {0, 2, MP_EDGE_TAKEN, 100 - rare},
			  {1, 3, MP_EDGE_JUMP, rare}, {2, 3, MP_EDGE_FALL, 100 - rare});
		toy.counts.exact = false;
		toy.samples[0] = way ? 400 : 2;
		if (way == 2)
			toy_edge(&toy, 3, 0, MP_EDGE_JUMP, 1000);
		if (way == 2)
			toy.blocks[3].term = MP_TERM_JUMP;
		build(ME_ORDER_PH, MP_ORDER_PH);
		ck_assert_int_eq(plan.blocks[0].zone, way ? ME_ZONE_HOT : ME_ZONE_WARM);
		if (way == 1)
			ORDER(0, 2, 3, 1);
		else
			ORDER(0, 1, 2, 3);
	}
}

/* Adds a function whose cold part returns to it, as only a compiler with a profile makes it. */
static void add_profiled(void)
{
	uint32_t to, first;

	toy_func(&toy, "g");
	to = toy_block(&toy, MP_TERM_COND, 0);
	first = toy_block(&toy, MP_TERM_RET, 0);
	toy_edge(&toy, to, first, MP_EDGE_FALL, 0);
	for (int i = 0; i < 24; i++) {
		uint32_t b = toy_block(&toy, MP_TERM_JUMP, 0);

		toy.blocks[b].flags |= MP_BLOCK_COLD_PART;
		toy_edge(&toy, b, first, MP_EDGE_JUMP, 0);
	}
}

TEST_EACH(layout_believes_the_order_that_a_profile_made, 4)
{
	static const struct {
		bool profiled;
		double rare; /* of 100: count of the way that falls through */
		bool moved;
	} cases[] = {{false, 15, true}, {true, 15, false}, {false, 4, true}, {true, 4, true}};

	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_JUMP, cases[_i].rare},
		   {MP_TERM_FALL, 100 - cases[_i].rare}, {MP_TERM_RET, 100});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, cases[_i].rare},
		  {0, 2, MP_EDGE_TAKEN, 100 - cases[_i].rare}, {1, 3, MP_EDGE_JUMP, cases[_i].rare},
		  {2, 3, MP_EDGE_FALL, 100 - cases[_i].rare});
	toy.counts.exact = false;
	toy.samples[0] = 400;
	if (cases[_i].profiled)
		add_profiled();
	build(ME_ORDER_PH, MP_ORDER_PH);
	ck_assert_int_eq(mp_cfg_is_profiled(&toy.cfg), cases[_i].profiled);
	if (cases[_i].moved)
		ORDER(0, 2, 3, 1);
	else
		ORDER(0, 1, 2, 3);
}

TEST(layout_keeps_a_short_detour_that_runs_often)
{
	/*
	 * 0 -> 1 -> 2 runs 40 times, 0 -> 2 60 times. Moving 1 away costs 40 taken branches to
	 * it and 40 back, and saves 60.
	 */
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_FALL, 40}, {MP_TERM_RET, 100});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 40}, {0, 2, MP_EDGE_TAKEN, 60},
		  {1, 2, MP_EDGE_FALL, 40});
	build(ME_ORDER_PH, MP_ORDER_PH);
	ORDER(0, 1, 2);
}

TEST(layout_changes_nothing_without_evidence)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_JUMP, 50}, {MP_TERM_FALL, 50},
		   {MP_TERM_RET, 100});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 50}, {0, 2, MP_EDGE_TAKEN, 50},
		  {1, 3, MP_EDGE_JUMP, 50}, {2, 3, MP_EDGE_FALL, 50});
	build(ME_ORDER_PH, MP_ORDER_PH);
	ORDER(0, 1, 2, 3);
}

TEST(layout_clones_a_way_out_rather_than_jump_there)
{
	/* 0 -> 1 or 2, both end in 3: block 1 gets a clone of 3. */
	tails = true;
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 100}, {MP_TERM_JUMP, 50}, {MP_TERM_FALL, 50},
		   {MP_TERM_RET, 100});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 50}, {0, 2, MP_EDGE_TAKEN, 50},
		  {1, 3, MP_EDGE_JUMP, 50}, {2, 3, MP_EDGE_FALL, 50});
	build(ME_ORDER_PH, MP_ORDER_PH);
	ck_assert(plan.blocks[2].clone && !plan.blocks[4].clone);
	ORDER(0, 1, 3, 2, 3);

	/* No clone if it is long, does not end the function, or is entered by unwinding. */
	toy.blocks[3].nr_insns = 41;
	build(ME_ORDER_PH, MP_ORDER_PH);
	ORDER(0, 1, 2, 3);
	toy.blocks[3].nr_insns = 4;
	toy.blocks[3].term = MP_TERM_UNRESOLVED;
	build(ME_ORDER_PH, MP_ORDER_PH);
	ORDER(0, 1, 2, 3);
	toy.blocks[3].term = MP_TERM_RET;
	toy.blocks[3].flags |= MP_BLOCK_LANDING_PAD;
	build(ME_ORDER_PH, MP_ORDER_PH);
	ORDER(0, 1, 2, 3);
	tails = false;
}

TEST(layout_breaks_a_loop_at_its_rarest_edge)
{
	/*
	 * A while loop with its test on top: 0 -> 1; 1 -> 2 (body) or 3 (exit); 2 jumps to 1.
	 * With 2 directly before 1, only the last iteration needs a taken branch.
	 */
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_FALL, 1}, {MP_TERM_COND, 1000}, {MP_TERM_JUMP, 999},
		   {MP_TERM_RET, 1});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 1}, {1, 2, MP_EDGE_FALL, 999},
		  {1, 3, MP_EDGE_TAKEN, 1}, {2, 1, MP_EDGE_JUMP, 999});
	build(ME_ORDER_PH, MP_ORDER_PH);
	ck_assert_uint_eq(plan.blocks[0].block, 0);
	{
		struct me_branches sum;

		me_branches_count(&toy.cfg, &toy.counts, &plan, NULL, &sum);
		ck_assert(sum.taken_before == 1000);
		ck_assert(sum.taken_after <= 1000);
		ck_assert(sum.insns_after < sum.insns_before);
	}
	check_invariants();
	me_plan_fini(&plan);
}

TEST(layout_entry_comes_first_though_a_loop_leads_back_to_it)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_FALL, 1000}, {MP_TERM_COND, 1000}, {MP_TERM_RET, 1});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 1000}, {1, 2, MP_EDGE_FALL, 1},
		  {1, 0, MP_EDGE_TAKEN, 999});
	build(ME_ORDER_PH, MP_ORDER_PH);
	ORDER(0, 1, 2);
}

TEST(layout_unsampled_is_warm_and_fluff_stays)
{
	uint32_t pad;

	toy_start(&toy, "f");
	toy_block(&toy, MP_TERM_COND, 100);	/* 0 */
	toy_block(&toy, MP_TERM_FALL, 0);	/* 1: no samples, but may run */
	toy_block(&toy, MP_TERM_COND, 100);	/* 2 */
	toy_block(&toy, MP_TERM_FALL, 0);	/* 3: only leads to abort() */
	toy_block(&toy, MP_TERM_NORETURN, 0);	/* 4 */
	toy_block(&toy, MP_TERM_RET, 100);	/* 5 */
	toy_block(&toy, MP_TERM_RET, 0);	/* 6: cold part */
	pad = toy_block(&toy, MP_TERM_FALL, 0); /* 7: landing pad */
	toy_block(&toy, MP_TERM_RET, 0);	/* 8: only reached from 7 */
	toy_block(&toy, MP_TERM_JUMP, 0);	/* 9: a loop without end may still run */
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 0}, {0, 2, MP_EDGE_TAKEN, 100},
		  {1, 2, MP_EDGE_FALL, 0}, {2, 3, MP_EDGE_FALL, 0}, {2, 5, MP_EDGE_TAKEN, 100},
		  {3, 4, MP_EDGE_FALL, 0}, {7, 8, MP_EDGE_FALL, 0}, {9, 9, MP_EDGE_JUMP, 0});
	toy.blocks[6].flags |= MP_BLOCK_COLD_PART;
	toy.blocks[pad].flags |= MP_BLOCK_LANDING_PAD | MP_BLOCK_ADDRESS_TAKEN;
	toy.blocks[9].flags |= MP_BLOCK_ADDRESS_TAKEN;
	build(ME_ORDER_PH, MP_ORDER_PH);
	for (uint32_t i = 0; i < plan.nr_blocks; i++)
		ck_assert_int_eq(plan.blocks[i].why, plan.blocks[i].zone == ME_ZONE_HOT
							     ? ME_WHY_FLOW
							     : ME_WHY_UNSAMPLED);
	ck_assert_int_eq(plan.blocks[2].zone, ME_ZONE_HOT);
	ck_assert_int_eq(plan.blocks[3].zone, ME_ZONE_WARM);
	ORDER(0, 2, 5, 1, 9);

	/* In a complete count, a block with count 0 did not run. */
	toy.counts.complete = true;
	build(ME_ORDER_PH, MP_ORDER_PH);
	for (uint32_t i = 0; i < plan.nr_blocks; i++)
		ck_assert_int_eq(plan.blocks[i].zone, ME_ZONE_HOT);
	me_plan_fini(&plan);
	toy.counts.complete = false;

	/* A sample overrides every rule. */
	toy.samples[4] = toy.samples[6] = toy.samples[8] = 1;
	build(ME_ORDER_PH, MP_ORDER_PH);
	check_invariants();
	ck_assert_uint_eq(plan.nr_blocks, 8);
	me_plan_fini(&plan);
}

TEST(layout_original_order_moves_everything_eligible)
{
	toy_start(&toy, "f");
	toy_blocks(&toy, {MP_TERM_COND, 0}, {MP_TERM_RET, 0}, {MP_TERM_RET, 0});
	toy_func(&toy, "g");
	toy_block(&toy, MP_TERM_RET, 5);
	toy_func(&toy, "h");
	toy_block(&toy, MP_TERM_RET, 0); /* 4: a cold part at a lower address than its function */
	toy_blocks(&toy, {MP_TERM_COND, 9}, {MP_TERM_RET, 9});
	toy_edges(&toy, {0, 1, MP_EDGE_FALL, 0}, {0, 2, MP_EDGE_TAKEN, 0}, {5, 6, MP_EDGE_FALL, 9},
		  {5, 4, MP_EDGE_TAKEN, 0});
	toy.blocks[4].flags = MP_BLOCK_COLD_PART;
	toy.blocks[5].flags = MP_BLOCK_ENTRY;
	toy.blocks[2].flags = MP_BLOCK_PADDING;
	toy.eligible[1] = 0;
	build(ME_ORDER_ORIGINAL, MP_ORDER_ORIGINAL);
	ck_assert_int_eq(plan.blocks[0].why, ME_WHY_ORIGINAL);
	ORDER(0, 1, 5, 6, 4);
}

/* Functions with branches, jumps, tables and calls, and inconsistent counts. */
static void random_program(void)
{
	uint32_t nr_funcs = 1 + random_below(8);

	toy_init(&toy);
	for (uint32_t f = 0; f < nr_funcs; f++) {
		uint32_t nr = 1 + random_below(30), first = toy.cfg.nr_blocks;

		toy_func(&toy, "r");
		for (uint32_t i = 0; i < nr; i++) {
			static const uint8_t terms[] = {MP_TERM_COND,	 MP_TERM_COND,
							MP_TERM_FALL,	 MP_TERM_JUMP,
							MP_TERM_RET,	 MP_TERM_TABLE,
							MP_TERM_NORETURN};
			enum mp_term term = terms[random_below(sizeof(terms))];
			uint32_t b;

			if (i + 1 == nr && (term == MP_TERM_COND || term == MP_TERM_FALL))
				term = MP_TERM_RET;
			b = toy_block(&toy, term, random_below(3) ? random_below(1000) : 0);
			if (random_below(10) == 0)
				toy.blocks[b].flags |= MP_BLOCK_COLD_PART;
			if (random_below(10) == 0)
				toy.blocks[b].flags |= MP_BLOCK_OTHER_ENTRY;
			toy.samples[b] = random_below(4) ? 0 : random_below(20);
		}
		for (uint32_t b = first; b < first + nr; b++) {
			uint32_t to = first + random_below(nr);

			switch (toy.blocks[b].term) {
			case MP_TERM_COND:
				toy_edge(&toy, b, b + 1, MP_EDGE_FALL, random_below(500));
				toy_edge(&toy, b, to, MP_EDGE_TAKEN, random_below(500));
				break;
			case MP_TERM_FALL:
				toy_edge(&toy, b, b + 1, MP_EDGE_FALL, random_below(500));
				break;
			case MP_TERM_JUMP:
				toy_edge(&toy, b, to, MP_EDGE_JUMP, random_below(500));
				break;
			case MP_TERM_TABLE:
				for (uint32_t i = 0; i < 3; i++)
					toy_edge(&toy, b, first + random_below(nr), MP_EDGE_TABLE,
						 random_below(500));
				break;
			default: break;
			}
		}
		toy.eligible[f] = random_below(5) != 0;
	}
	for (uint32_t b = 0; b < toy.cfg.nr_blocks; b++)
		if (random_below(3) == 0)
			toy_call(&toy, b, random_below(6) ? random_below(nr_funcs) : MP_NONE);
}

TEST(layout_keeps_its_contract_on_random_programs)
{
	uint64_t nr_clones = 0;

	seed = 11;
	for (int round = 0; round < 600; round++) {
		struct me_prediction prediction;

		random_program();
		toy.counts.exact = random_below(2);
		toy.counts.complete = toy.counts.exact && random_below(2);
		for (int kind = 0; kind < 4; kind++) {
			tails = random_below(2);
			build(kind & 1, kind >> 1);
			check_invariants();
			for (uint32_t i = 0; i < plan.nr_blocks; i++)
				nr_clones += plan.blocks[i].clone;
			ck_assert_int_eq(me_layout_predict(&toy.cfg, &toy.counts, &plan, NULL,
							   &prediction, &err),
					 0);
			ck_assert(prediction.taken_after >= 0);
			me_plan_fini(&plan);
		}
	}
	tails = false;
	ck_assert_uint_gt(nr_clones, 100);
}

TEST(layout_of_nothing_is_empty)
{
	toy_init(&toy);
	build(ME_ORDER_PH, MP_ORDER_PH);
	ck_assert_uint_eq(plan.nr_blocks, 0);
	me_plan_fini(&plan);
}
