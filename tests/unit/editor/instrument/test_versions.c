// SPDX-License-Identifier: Apache-2.0
/*
 * test_versions - which functions get two versions, and a plan that holds both. Uses this test
 * program's own code.
 */
#include "tests/unit/suite.h"

#include <stdlib.h>

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
	struct mp_err err = {""};

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
	struct mp_err err;

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

START_TEST(limits_of_number_share_and_cost_hold)
{
	for (int often = 0; often < 2; often++) {
		struct work w;

		start(&w);
		profile(&w, often ? 20 : 20000);
		ck_assert_int_eq(choose(&w, false), 0);
		ck_assert_uint_gt(w.report.nr_funcs, 0);
		ck_assert_uint_eq(w.report.nr_funcs, nr_chosen(&w));
		ck_assert_uint_le(w.report.nr_funcs, ME_VERSIONS_MAX);
		ck_assert(w.report.cost <= ME_VERSIONS_COST);
		ck_assert(w.report.share > 0 && w.report.share <= 1);
		for (uint32_t i = 0; i < w.report.nr_left_out; i++)
			ck_assert_ptr_nonnull(w.report.left_out[i].why);
		done(&w);
	}
}
END_TEST

START_TEST(one_that_is_entered_often_does_not_use_up_the_budget)
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
	done(&w);
}
END_TEST

START_TEST(unproved_functions_are_left_out)
{
	struct me_versions_request request = {.all = true};
	uint16_t *unproved;
	struct mp_err err;
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
END_TEST

/* Which stub precedes block @i of the plan; NULL: none. */
static const struct me_stub *stub_before(const struct work *w, const uint32_t *stub_of, uint32_t i)
{
	const struct me_plan_block *b = &w->plan.blocks[i];

	return i && b[-1].stub && b[-1].block == b->block ? &w->added.stubs[stub_of[i - 1]] : NULL;
}

START_TEST(the_plan_has_each_block_in_both_versions_with_the_same_stubs)
{
	const struct me_loop_points none = {0};
	uint32_t *stub_of, *nr[2], nr_stubs = 0, last = MP_NONE;
	struct mp_err err;
	struct work w;

	start(&w);
	ck_assert_int_eq(choose(&w, true), 0);
	ck_assert_int_eq(me_versions_plan(w.cfg, w.chosen, &none, &w.plan, &w.added, &err), 0);
	ck_assert_uint_eq(w.added.nr_audited, nr_chosen(&w));
	stub_of = calloc(w.plan.nr_blocks, sizeof(*stub_of));
	nr[0] = calloc(w.cfg->nr_blocks, sizeof(**nr));
	nr[1] = calloc(w.cfg->nr_blocks, sizeof(**nr));
	ck_assert(stub_of && nr[0] && nr[1]);
	for (uint32_t i = 0; i < w.plan.nr_blocks; i++)
		if (w.plan.blocks[i].stub)
			stub_of[i] = nr_stubs++;
	ck_assert_uint_eq(nr_stubs, w.added.nr_stubs);
	for (uint32_t i = 0; i < w.plan.nr_blocks; i++) {
		const struct me_plan_block *b = &w.plan.blocks[i];
		const struct mp_block *block = &w.cfg->blocks[b->block];
		const struct me_stub *stub = b->stub ? NULL : stub_before(&w, stub_of, i);

		ck_assert(!b->original || w.chosen[block->func]);
		if (b->stub)
			continue;
		nr[b->original][b->block]++;
		if (!w.chosen[block->func])
			continue;
		if (me_versions_is_exit(block)) {
			ck_assert(stub && stub->does == ME_STUB_LEAVES);
			ck_assert_uint_eq(b[-1].original, b->original);
		}
		/* Behind its entry, version A has the original's order. */
		if (b->original && !(block->flags & MP_BLOCK_ENTRY) && last != MP_NONE &&
		    w.cfg->blocks[last].func == block->func &&
		    !(w.cfg->blocks[last].flags & MP_BLOCK_ENTRY))
			ck_assert_uint_gt(b->block, last);
		last = b->original ? b->block : MP_NONE;
	}
	for (uint32_t b = 0; b < w.cfg->nr_blocks; b++) {
		bool twice = w.chosen[w.cfg->blocks[b].func] && !me_block_stays(&w.cfg->blocks[b]);

		ck_assert_uint_eq(nr[1][b], twice);
		ck_assert_uint_ge(nr[0][b], twice);
	}
	free(stub_of);
	free(nr[0]);
	free(nr[1]);
	done(&w);
}
END_TEST

static Suite *versions_suite(void)
{
	Suite *suite = suite_create("versions");
	TCase *tc = tcase_create("versions");

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, limits_of_number_share_and_cost_hold);
	tcase_add_test(tc, one_that_is_entered_often_does_not_use_up_the_budget);
	tcase_add_test(tc, unproved_functions_are_left_out);
	tcase_add_test(tc, the_plan_has_each_block_in_both_versions_with_the_same_stubs);
	suite_add_tcase(suite, tc);
	return suite;
}

MORPH_SUITE_MAIN(versions_suite)
