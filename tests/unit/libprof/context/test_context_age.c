// SPDX-License-Identifier: Apache-2.0
/*
 * test_context_age - which activations that look old are taken as old, and how many entries a node has,
 * for threads of a made-up program whose activations are known.
 */
#include "libprof/context/context_age.h"

#include <math.h>

#include "tests/unit/suite.h"

#define NR_SAMPLES 4000
#define LOOP	   1 /* call in main's loop */
#define OTHER_CALL 2 /* another call in main's loop */
#define WORK	   10
#define REST	   20

static struct mp_context_tree tree;
static struct mp_context_rate *rates;
static struct mp_context_entries *entries;
static uint64_t state;

static double draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(state >> 33) / (double)(1u << 31);
}

static void setup(void)
{
	state = 11;
	rates = NULL;
	entries = NULL;
	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
}

static void teardown(void)
{
	mp_context_tree_fini(&tree);
	free(rates);
	free(entries);
}

static void add(uint64_t call, uint64_t at, bool is_new, uint64_t nr)
{
	const struct mp_context_step steps[] = {
		{{1, call, MP_CONTEXT_CALL}, false},
		{{1, at, MP_CONTEXT_FUNCTION}, is_new},
	};

	ck_assert_int_eq(mp_context_add(&tree, steps, 2, nr, 1000 * nr), 0);
}

static uint32_t node_of(uint64_t call, uint64_t at)
{
	const struct mp_context_key keys[] = {{1, call, MP_CONTEXT_CALL},
					      {1, at, MP_CONTEXT_FUNCTION}};
	uint32_t nr = tree.nr_nodes, node = 0;

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(mp_context_child(&tree, node, &keys[i], &node), 0);
	ck_assert_uint_eq(tree.nr_nodes, nr);
	return node;
}

static void estimate(const struct mp_context_facts *facts)
{
	free(rates);
	free(entries);
	ck_assert_int_eq(mp_context_rates(&tree, facts, &rates), 0);
	ck_assert_int_eq(mp_context_entries(&tree, rates, &entries), 0);
	for (uint32_t i = 1; i < tree.nr_nodes; i++) {
		const struct mp_context_node *n = &tree.nodes[i];

		ck_assert_double_eq(entries[i].least, (double)n->nr_new);
		ck_assert_double_ge(entries[i].estimate, entries[i].least - 1e-9);
		ck_assert_double_ge(entries[i].most, entries[i].estimate - 1e-9);
		ck_assert_double_le(entries[i].most, (double)n->total + 1e-9);
		ck_assert_double_ge(rates[i].ends, rates[i].least - 1e-9);
		ck_assert_double_le(rates[i].ends, rates[i].most + 1e-9);
		ck_assert_double_le(rates[i].most, rates[i].highest + 1e-9);
		ck_assert(rates[i].same >= 0 && rates[i].same <= 1);
	}
}

/*
 * main calls WORK at LOOP, and REST at OTHER_CALL, from a loop. Between two samples, an activation ends with
 * probability @ends. *@true_entries: samples in which WORK's activation was new.
 */
static void run(double ends, double share, uint64_t *true_entries)
{
	bool work = true, was_work, is_new;

	*true_entries = 0;
	for (int i = 0; i < NR_SAMPLES; i++) {
		was_work = work;
		is_new = draw() < ends;
		if (is_new)
			work = draw() < share;
		*true_entries += work && is_new;
		add(work ? LOOP : OTHER_CALL, work ? WORK : REST, work != was_work, 1);
	}
}

/* ---- rates ---- */

FIXTURE(setup, teardown);

TEST(calls_for_each_sample_are_told_from_long_ones)
{
	uint64_t exact;
	uint32_t node;

	run(1, 0.5, &exact);
	estimate(&(struct mp_context_facts){0});
	node = node_of(LOOP, WORK);
	ck_assert_double_gt(rates[node].most, 0.95);
	ck_assert_double_gt(rates[node].ends, 0.5);
	ck_assert_double_le((double)exact, entries[node].most);

	mp_context_tree_clear(&tree);
	run(0.02, 0.5, &exact);
	estimate(&(struct mp_context_facts){0});
	node = node_of(LOOP, WORK);
	ck_assert_double_lt(rates[node].ends, 0.05);
	ck_assert_double_le((double)exact, entries[node].most);
	ck_assert_double_lt(entries[node].most, 0.2 * (double)tree.nodes[node].total);
}

TEST(bounds_hold_for_any_length_and_share)
{
	int held = 0, nr = 0;

	for (double ends = 0.01; ends <= 1; ends *= 1.5) {
		for (double share = 0.1; share < 0.99; share += 0.1) {
			uint64_t exact;
			uint32_t node;

			mp_context_tree_clear(&tree);
			run(ends, share, &exact);
			estimate(&(struct mp_context_facts){0});
			node = node_of(LOOP, WORK);
			held += (double)exact <= entries[node].most && exact >= entries[node].least;
			nr++;
		}
	}
	ck_assert_msg(held * 100 >= nr * 95, "bounds hold in %d of %d programs", held, nr);
}

/* An activation that is always there: nothing shows whether a new one is. */
TEST(without_an_ending_all_or_nothing_may_be_new)
{
	uint32_t node;

	add(LOOP, WORK, false, 1000);
	estimate(&(struct mp_context_facts){0});
	node = node_of(LOOP, WORK);
	ck_assert_double_eq(entries[node].least, 0);
	ck_assert_double_eq(entries[node].estimate, 0);
	ck_assert_double_eq(entries[node].most, 1000);
	/* The outermost function is the thread's own. */
	ck_assert_double_lt(entries[tree.nodes[node].parent].most, 2);
}

static double nr_calls;

static double calls(void *arg, const struct mp_context_key *key)
{
	(void)arg;
	return key->vaddr == LOOP ? nr_calls : 0;
}

/* What samples say fits both: the number of calls decides. */
TEST(known_calls_decide_between_the_bounds)
{
	const struct mp_context_facts facts = {.calls = calls};
	uint32_t node;

	add(LOOP, WORK, false, 980);
	for (int i = 0; i < 10; i++) {
		add(LOOP, WORK, true, 1);
		add(OTHER_CALL, REST, true, 1);
	}
	nr_calls = 1e6;
	estimate(&facts);
	node = node_of(LOOP, WORK);
	ck_assert_double_gt(rates[node].ends, 0.8);
	ck_assert_double_gt(entries[node].estimate, 700);
	nr_calls = 2;
	estimate(&facts);
	ck_assert_double_lt(rates[node].ends, 0.02);
	ck_assert_double_lt(entries[node].estimate, 30);
	/* Of a call whose number is not known, samples alone decide. */
	nr_calls = 0;
	estimate(&facts);
	ck_assert_double_gt(entries[node].estimate, 30);
	ck_assert_double_lt(entries[node].estimate, 700);
}

static uint64_t function(void *arg, const struct mp_context_key *key)
{
	(void)arg;
	return key->vaddr / 100 * 100;
}

/* Two call sites of one function are the same activation; those of two functions are not. */
TEST(siblings_in_one_function_are_one_activation)
{
	const struct mp_context_facts facts = {.function = function};
	const uint64_t sites[] = {110, 120, 210};
	uint32_t nodes[3];

	for (int i = 0; i < 3; i++) {
		const struct mp_context_step steps[] = {
			{{1, LOOP, MP_CONTEXT_CALL}, false},
			{{1, sites[i], MP_CONTEXT_CALL}, i == 1},
			{{1, 300, MP_CONTEXT_FUNCTION}, true},
		};
		const struct mp_context_key key = steps[1].key;

		for (int k = 0; k < 10; k++)
			ck_assert_int_eq(mp_context_add(&tree, steps, 3, 1, 1000), 0);
		ck_assert_int_eq(mp_context_child(&tree, 1, &key, &nodes[i]), 0);
	}
	estimate(&facts);
	ck_assert_double_eq(rates[nodes[0]].same, rates[nodes[1]].same);
	ck_assert_double_eq(rates[nodes[0]].least, 0.5);
	ck_assert_double_eq(rates[nodes[1]].least, 0.5);
	ck_assert_double_eq(rates[nodes[2]].least, 0);
	ck_assert_double_gt(rates[nodes[0]].same, rates[nodes[2]].same);
}

TEST(sums_that_do_not_fit_give_no_nonsense)
{
	add(LOOP, WORK, true, 5);
	add(LOOP, WORK, false, 5);
	/* As a damaged database might have it. */
	tree.nodes[node_of(LOOP, WORK)].nr_new = UINT64_MAX;
	tree.nodes[1].nr_new = 7;
	ck_assert_int_eq(mp_context_rates(&tree, &(struct mp_context_facts){0}, &rates), 0);
	ck_assert_int_eq(mp_context_entries(&tree, rates, &entries), 0);
	for (uint32_t i = 0; i < tree.nr_nodes; i++)
		ck_assert(isfinite(entries[i].most) && rates[i].ends >= 0 && rates[i].ends <= 1);
}
