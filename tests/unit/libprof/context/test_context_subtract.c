// SPDX-License-Identifier: Apache-2.0
/*
 * test_context_subtract - a tree that was added to others and folded with them can be taken out again: the
 * number of samples that is left is exact, and without folding all of the rest is.
 */
#include "libprof/context/context_tree.h"

#include "libprof/context/context_codec.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define PERIOD 1000

static void add_random(struct mp_context_tree *tree, int nr)
{
	while (nr--) {
		struct mp_context_step steps[6];
		size_t depth = 1 + random_below(6);
		uint64_t count = 1 + random_below(4);

		for (size_t i = 0; i < depth; i++)
			steps[i] = (struct mp_context_step){
				{1 + random_below(2), 0x1000 + random_below(4) * 8,
				 i + 1 < depth ? MP_CONTEXT_CALL : MP_CONTEXT_FUNCTION},
				random_below(2)};
		ck_assert_int_eq(mp_context_add(tree, steps, depth, count, count * PERIOD), 0);
	}
}

static struct mp_context_tree copy(const struct mp_context_tree *tree)
{
	struct mp_context_tree out;

	ck_assert_int_eq(mp_context_tree_init(&out), 0);
	ck_assert_int_eq(mp_context_add_tree(&out, 0, tree, NULL, NULL), 0);
	return out;
}

static bool is_same(const struct mp_context_tree *a, const struct mp_context_tree *b)
{
	AUTO_FREE uint32_t *at = calloc(a->nr_nodes, sizeof(*at));
	bool same = a->nr_nodes == b->nr_nodes;

	for (uint32_t i = 1; i < a->nr_nodes && same; i++) {
		struct mp_context_key key = mp_context_key_of(a, i);
		const struct mp_context_node *x = &a->nodes[i], *y;

		at[i] = mp_context_find(b, at[x->parent], &key);
		y = &b->nodes[at[i]];
		same = at[i] && x->self == y->self && x->total == y->total &&
		       x->self_ns == y->self_ns && x->nr_new == y->nr_new;
	}
	return same;
}

/* What is left can be written and read. */
static void check_codec(const struct mp_context_tree *tree)
{
	AUTO(mp_context_tree_fini) struct mp_context_tree read = {0};
	AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	ck_assert_int_eq(mp_context_encode(tree, &bytes, &size), 0);
	ck_assert_int_eq(mp_context_decode(bytes, size, &read, NULL), 0);
	ck_assert_uint_eq(read.nodes[0].total, tree->nodes[0].total);
}

TEST(subtract_gives_the_rest_of_a_sum)
{
	for (seed = 1; seed < 200; seed += 3) {
		struct mp_context_tree what, rest, sum;
		uint64_t round = seed;

		ck_assert_int_eq(mp_context_tree_init(&what), 0);
		ck_assert_int_eq(mp_context_tree_init(&rest), 0);
		add_random(&what, 1 + (int)random_below(60));
		add_random(&rest, (int)random_below(60));
		sum = copy(&what);
		ck_assert_int_eq(mp_context_add_tree(&sum, 0, &rest, NULL, NULL), 0);
		ck_assert_int_eq(mp_context_subtract(&sum, &what), 0);
		ck_assert(is_same(&rest, &sum) && is_same(&sum, &rest));
		check_codec(&sum);
		mp_context_tree_fini(&what);
		mp_context_tree_fini(&rest);
		mp_context_tree_fini(&sum);
		seed = round;
	}
}

TEST(subtract_finds_samples_that_were_folded)
{
	for (seed = 1; seed < 2000; seed += 3) {
		struct mp_context_tree parts[5], sum;
		uint64_t round = seed, left = 0, time_ns = 0;

		for (int i = 0; i < 5; i++) {
			ck_assert_int_eq(mp_context_tree_init(&parts[i]), 0);
			add_random(&parts[i], 1 + (int)random_below(40));
		}
		/* Fold after each addition, and once the second part alone. */
		ck_assert_int_eq(mp_context_fold(&parts[1], 2 + (uint32_t)random_below(10)), 0);
		sum = copy(&parts[0]);
		for (int i = 1; i < 5; i++) {
			ck_assert_int_eq(mp_context_add_tree(&sum, 0, &parts[i], NULL, NULL), 0);
			ck_assert_int_eq(mp_context_fold(&sum, 2 + (uint32_t)random_below(60)), 0);
		}
		for (int i = 0; i < 3; i++)
			ck_assert_int_eq(mp_context_subtract(&sum, &parts[i]), 0);
		for (int i = 3; i < 5; i++) {
			left += parts[i].nodes[0].total;
			time_ns += parts[i].nodes[0].total_ns;
		}
		ck_assert_uint_eq(sum.nodes[0].total, left);
		ck_assert_uint_eq(sum.nodes[0].total_ns, time_ns);
		check_codec(&sum);
		for (int i = 3; i < 5; i++)
			ck_assert_int_eq(mp_context_subtract(&sum, &parts[i]), 0);
		ck_assert_uint_eq(sum.nodes[0].total, 0);
		ck_assert_uint_eq(sum.nr_nodes, 1);
		for (int i = 0; i < 5; i++)
			mp_context_tree_fini(&parts[i]);
		mp_context_tree_fini(&sum);
		seed = round;
	}
}

TEST(subtract_refuses_what_is_not_there)
{
	struct mp_context_tree a, b;

	seed = 7;
	ck_assert_int_eq(mp_context_tree_init(&a), 0);
	ck_assert_int_eq(mp_context_tree_init(&b), 0);
	add_random(&a, 20);
	b = (mp_context_tree_fini(&b), copy(&a));
	add_random(&b, 1);
	ck_assert_int_eq(mp_context_subtract(&a, &b), -EINVAL);
	mp_context_tree_fini(&a);
	mp_context_tree_fini(&b);
}
