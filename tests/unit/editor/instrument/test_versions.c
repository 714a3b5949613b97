// SPDX-License-Identifier: Apache-2.0
/*
 * test_versions - which functions get two versions, and a plan that holds both. Uses this test
 * program's own code.
 */
#include "tests/unit/suite.h"

#include "editor/evidence/eligible.h"
#include "editor/instrument/versions.h"
#include "editor/layout/plan_all.h"
#include "libprof/elf/elf.h"

struct work {
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct me_plan plan;
	struct me_instrumentation added;
	struct mp_counts counts;
	uint64_t *samples, nr_samples;
	uint8_t *movable, *chosen;
	struct me_versions_report report;
};

static void start(struct work *w)
{
	const struct mp_cfg_options options = {.exits = true};
	struct me_eligible eligible;

	*w = (struct work){0};
	ck_assert_int_eq(mp_elf_open("/proc/self/exe", MP_ELF_ALL, &w->elf, &err), 0);
	ck_assert_int_eq(mp_cfg_build(w->elf, &options, &w->cfg, &err), 0);
	ck_assert_int_eq(me_eligible_functions(w->cfg, 1, &eligible, &err), 0);
	w->movable = calloc(w->cfg->nr_funcs, 1);
	w->chosen = calloc(w->cfg->nr_funcs, 1);
	w->samples = calloc(w->cfg->nr_blocks, sizeof(*w->samples));
	w->counts.block = calloc(w->cfg->nr_blocks, sizeof(*w->counts.block));
	ck_assert(w->movable && w->chosen && w->samples && w->counts.block);
	for (uint32_t f = 0; f < w->cfg->nr_funcs; f++)
		w->movable[f] = eligible.verdict[f] == ME_ELIGIBLE;
	me_eligible_fini(&eligible);
	ck_assert_int_eq(me_plan_all(w->cfg, w->movable, NULL, &w->plan, &err), 0);
}

static int choose(struct work *w, bool all)
{
	const struct me_versions_request request = {
		.samples = w->nr_samples ? w->samples : NULL,
		.nr_samples = w->nr_samples,
		.counts = w->nr_samples ? &w->counts : NULL,
		.all = all,
	};

	return me_versions_choose(w->cfg, w->movable, &w->plan, &request, w->chosen, &w->report,
				  &err);
}

static void done(struct work *w)
{
	me_plan_fini(&w->plan);
	me_instrumentation_fini(&w->added);
	free(w->counts.block);
	free(w->samples);
	free(w->chosen);
	free(w->movable);
	mp_cfg_free(w->cfg);
	mp_elf_close(w->elf);
}

static uint32_t nr_chosen(const struct work *w)
{
	uint32_t nr = 0;

	for (uint32_t f = 0; f < w->cfg->nr_funcs; f++)
		nr += w->chosen[f];
	return nr;
}

/* Each function runs @rounds times for each entry, and has one sample for each of its runs. */
static void profile(struct work *w, double rounds)
{
	for (uint32_t f = 0; f < w->cfg->nr_funcs; f++) {
		const struct mp_func *func = &w->cfg->funcs[f];

		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
			bool entry = w->cfg->blocks[b].flags & MP_BLOCK_ENTRY;

			w->counts.block[b] = entry ? 1 : rounds;
			w->samples[b] = 1 + f % 50;
			w->nr_samples += w->samples[b];
		}
	}
}

TEST(limits_of_number_share_and_cost_hold)
{
	for (int often = 0; often < 2; often++) {
		struct work w;

		start(&w);
		profile(&w, often ? 20 : 20000);
		ck_assert_int_eq(choose(&w, false), 0);
		ck_assert_uint_gt(w.report.nr_funcs, 0);
		ck_assert_uint_eq(w.report.nr_funcs, nr_chosen(&w));
		ck_assert_uint_le(w.report.nr_funcs, ME_VERSIONS_MAX);
		ck_assert(w.report.cost > 0 && w.report.cost <= ME_VERSIONS_COST);
		ck_assert(w.report.decided_cost > 0 &&
			  w.report.decided_cost <= ME_VERSIONS_DECIDED_COST);
		/* The stubs have seven instructions. After the verdict one of them, a jump, is left. */
		ck_assert_double_eq_tol(w.report.decided_cost, w.report.cost / 7, 1e-9);
		ck_assert(w.report.share > 0 && w.report.share <= 1);
		ck_assert(w.report.share + w.report.share_costly <= 1 + 1e-9);
		for (uint32_t i = 0; i < w.report.nr_left_out; i++)
			ck_assert_ptr_nonnull(w.report.left_out[i].why);
		done(&w);
	}
}

TEST(one_that_is_entered_often_does_not_use_up_the_budget)
{
	uint32_t dear = MP_NONE;
	struct work w;

	/* The function with most samples may be audited, if nothing costs anything. */
	start(&w);
	profile(&w, 20000);
	ck_assert_int_eq(choose(&w, false), 0);
	for (uint32_t f = 0; f < w.cfg->nr_funcs && dear == MP_NONE; f++)
		if (w.chosen[f])
			dear = f;
	ck_assert_uint_ne(dear, MP_NONE);
	/* Now its stubs alone would take the whole budget. */
	for (uint32_t b = 0; b < w.cfg->nr_blocks; b++) {
		if (w.cfg->blocks[b].func != dear)
			continue;
		w.samples[b] += 1000;
		w.nr_samples += 1000;
		if (w.cfg->blocks[b].flags & MP_BLOCK_ENTRY)
			w.counts.block[b] = 1e12;
	}
	memset(w.chosen, 0, w.cfg->nr_funcs);
	ck_assert_int_eq(choose(&w, false), 0);
	ck_assert(!w.chosen[dear]);
	ck_assert_uint_gt(w.report.nr_funcs, 1);
	ck_assert_uint_gt(w.report.nr_costly, 0);
	ck_assert_uint_eq(w.report.left_out[0].vaddr, w.cfg->funcs[dear].vaddr);
	ck_assert(w.report.left_out[0].cost > ME_VERSIONS_COST);
	ck_assert(w.report.share_costly > 0);
	done(&w);
}

/* More functions than there are places for have most samples, and run little but their entries. */
TEST(those_that_no_budget_allows_take_no_place)
{
	uint32_t nr_dear = 0;
	struct work w;

	start(&w);
	profile(&w, 20000);
	for (uint32_t f = 0; f < w.cfg->nr_funcs && nr_dear < 2 * ME_VERSIONS_MAX; f++) {
		const struct mp_func *func = &w.cfg->funcs[f];

		if (!w.movable[f] || w.cfg->blocks[func->first_block].nr_insns > 10)
			continue;
		nr_dear++;
		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
			if (w.cfg->blocks[b].flags & MP_BLOCK_ENTRY)
				w.counts.block[b] = 1e12;
			w.samples[b] += 1000;
			w.nr_samples += 1000;
		}
	}
	ck_assert_uint_eq(nr_dear, 2 * ME_VERSIONS_MAX);
	ck_assert_int_eq(choose(&w, false), 0);
	ck_assert_uint_gt(w.report.nr_funcs, ME_VERSIONS_MAX / 2);
	ck_assert(w.report.cost <= ME_VERSIONS_COST);
	done(&w);
}

TEST(an_entry_without_samples_beside_a_hot_loop_is_rare)
{
	double cost[2];

	for (int seen = 0; seen < 2; seen++) {
		struct work w;

		start(&w);
		profile(&w, 25);
		for (uint32_t b = 0; b < w.cfg->nr_blocks; b++) {
			bool entry = w.cfg->blocks[b].flags & MP_BLOCK_ENTRY;

			w.nr_samples -= w.samples[b];
			w.samples[b] = entry ? (seen ? 4000 : 0) : 100000;
			w.nr_samples += w.samples[b];
		}
		ck_assert_int_eq(choose(&w, false), 0);
		cost[seen] = w.report.cost / w.report.nr_funcs;
		done(&w);
	}
	ck_assert(cost[0] < cost[1] / 2);
}

TEST(unproved_functions_are_left_out)
{
	struct me_versions_request request = {.all = true};
	uint16_t *unproved;
	struct work w;

	start(&w);
	ck_assert_int_eq(choose(&w, true), 0);
	unproved = calloc(w.cfg->nr_funcs, sizeof(*unproved));
	ck_assert_ptr_nonnull(unproved);
	for (uint32_t f = 0; f < w.cfg->nr_funcs; f++)
		unproved[f] = w.chosen[f];
	request.unproved = unproved;
	uint8_t *again = calloc(w.cfg->nr_funcs, 1);
	ck_assert_ptr_nonnull(again);
	me_versions_choose(w.cfg, w.movable, &w.plan, &request, again, &w.report, &err);
	for (uint32_t f = 0; f < w.cfg->nr_funcs; f++)
		ck_assert(!again[f] || !w.chosen[f]);
	free(again);
	free(unproved);
	done(&w);
}

/* Which stub precedes block @i of the plan; NULL: none. */
static const struct me_stub *stub_before(const struct work *w, const uint32_t *stub_of, uint32_t i)
{
	const struct me_plan_block *b = &w->plan.blocks[i];

	return i && b[-1].stub && b[-1].block == b->block ? &w->added.stubs[stub_of[i - 1]] : NULL;
}

/* Number of copies of each block in each version. */
static uint32_t *count_copies(const struct work *w)
{
	uint32_t *nr = calloc(w->cfg->nr_blocks, ME_NR_VERSIONS * sizeof(*nr));

	ck_assert_ptr_nonnull(nr);
	for (uint32_t i = 0; i < w->plan.nr_blocks; i++)
		if (!w->plan.blocks[i].stub)
			nr[w->plan.blocks[i].block * ME_NR_VERSIONS + w->plan.blocks[i].version]++;
	return nr;
}

TEST(the_plan_has_each_block_in_all_versions_with_stubs_around_two)
{
	const struct me_loop_points none = {0};
	uint32_t *stub_of, *nr, nr_stubs = 0;
	struct work w;

	start(&w);
	ck_assert_int_eq(choose(&w, true), 0);
	ck_assert_int_eq(me_versions_plan(w.cfg, w.chosen, &none, &w.plan, &w.added, &err), 0);
	ck_assert_uint_eq(w.added.nr_audited, nr_chosen(&w));
	stub_of = calloc(w.plan.nr_blocks, sizeof(*stub_of));
	ck_assert_ptr_nonnull(stub_of);
	for (uint32_t i = 0; i < w.plan.nr_blocks; i++)
		if (w.plan.blocks[i].stub)
			stub_of[i] = nr_stubs++;
	ck_assert_uint_eq(nr_stubs, w.added.nr_stubs);
	for (uint32_t i = 0; i < w.plan.nr_blocks; i++) {
		const struct me_plan_block *b = &w.plan.blocks[i];
		const struct mp_block *block = &w.cfg->blocks[b->block];
		const struct me_stub *stub = b->stub ? NULL : stub_before(&w, stub_of, i);

		ck_assert(b->version == ME_VERSION_NEW || w.chosen[block->func]);
		if (b->stub || !w.chosen[block->func] || !me_versions_is_exit(block))
			continue;
		if (b->version == ME_VERSION_NEW || b->version == ME_VERSION_ORIGINAL) {
			ck_assert(stub && stub->does == ME_STUB_LEAVES);
			ck_assert_uint_eq(b[-1].version, b->version);
		} else {
			ck_assert_ptr_null(stub);
		}
	}
	nr = count_copies(&w);
	for (uint32_t b = 0; b < w.cfg->nr_blocks; b++) {
		bool all = w.chosen[w.cfg->blocks[b].func] && !me_block_stays(&w.cfg->blocks[b]);

		ck_assert_uint_ge(nr[b * ME_NR_VERSIONS + ME_VERSION_NEW], all);
		for (int v = ME_VERSION_NEW + 1; v < ME_NR_VERSIONS; v++)
			ck_assert_uint_eq(nr[b * ME_NR_VERSIONS + v], all);
	}
	free(stub_of);
	free(nr);
	done(&w);
}

/* The blocks of @func in @version, in the plan's order. Return: their number. */
static uint32_t order_of(const struct work *w, uint32_t func, uint8_t version, uint32_t *out)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->plan.nr_blocks; i++) {
		const struct me_plan_block *b = &w->plan.blocks[i];

		if (!b->stub && b->version == version && w->cfg->blocks[b->block].func == func)
			out[nr++] = b->block;
	}
	return nr;
}

TEST(versions_without_stubs_have_the_orders_of_those_with_stubs)
{
	static const uint8_t pairs[][2] = {{ME_VERSION_NEW, ME_VERSION_NEW_UNTIMED},
					   {ME_VERSION_ORIGINAL, ME_VERSION_ORIGINAL_UNTIMED}};
	const struct me_loop_points none = {0};
	uint32_t *a, *b;
	struct work w;

	start(&w);
	ck_assert_int_eq(choose(&w, true), 0);
	ck_assert_int_eq(me_versions_plan(w.cfg, w.chosen, &none, &w.plan, &w.added, &err), 0);
	a = malloc(w.plan.nr_blocks * sizeof(*a));
	b = malloc(w.plan.nr_blocks * sizeof(*b));
	ck_assert(a && b);
	for (uint32_t f = 0; f < w.cfg->nr_funcs; f++)
		for (int i = 0; w.chosen[f] && i < 2; i++) {
			uint32_t nr = order_of(&w, f, pairs[i][0], a);

			ck_assert_uint_eq(order_of(&w, f, pairs[i][1], b), nr);
			ck_assert_mem_eq(a, b, nr * sizeof(*a));
			/* Behind its entry, version A has the original's order. */
			for (uint32_t k = 2; i && k < nr; k++)
				ck_assert_uint_gt(a[k], a[k - 1]);
		}
	free(a);
	free(b);
	done(&w);
}
