// SPDX-License-Identifier: Apache-2.0
/* test_order - orders of functions: what every algorithm must do, and the purpose of each. */
#include <math.h>

#include "libprof/order/order.h"
#include "libprof/order/order_pairs.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define MAX 200

static struct mp_order_func funcs[MAX];
static struct mp_order_arc arcs[4 * MAX];
static uint32_t out[MAX], place[MAX];

static void run(enum mp_order algorithm, uint32_t nr_funcs, uint32_t nr_arcs)
{
	bool seen[MAX] = {false};

	ck_assert_int_eq(mp_order_funcs(algorithm, funcs, nr_funcs, arcs, nr_arcs, out), 0);
	for (uint32_t i = 0; i < nr_funcs; i++) {
		ck_assert_uint_lt(out[i], nr_funcs);
		ck_assert(!seen[out[i]]);
		seen[out[i]] = true;
		place[out[i]] = i;
	}
}

static void random_graph(uint32_t nr_funcs, uint32_t nr_arcs)
{
	for (uint32_t f = 0; f < nr_funcs; f++)
		funcs[f] = (struct mp_order_func){random_below(2000),
						  random_below(3) * random_below(1000)};
	for (uint32_t i = 0; i < nr_arcs; i++)
		arcs[i] = (struct mp_order_arc){random_below(nr_funcs), random_below(nr_funcs),
						random_below(3000), random_below(100) - 5.0};
}

/*
 * Return: mean distance in bytes between call and callee, weighted by count, in the order of
 * out[].
 */
static double call_distance(uint32_t nr_funcs, uint32_t nr_arcs)
{
	double at[MAX], end = 0, sum = 0, calls = 0;

	for (uint32_t i = 0; i < nr_funcs; i++) {
		at[out[i]] = end;
		end += (double)funcs[out[i]].size;
	}
	for (uint32_t i = 0; i < nr_arcs; i++) {
		if (!(arcs[i].weight > 0))
			continue;
		sum += arcs[i].weight * fabs(at[arcs[i].caller] - at[arcs[i].callee]);
		calls += arcs[i].weight;
	}
	return calls > 0 ? sum / calls : 0;
}

TEST(order_is_a_permutation_and_always_the_same)
{
	seed = 3;
	for (int round = 0; round < 400; round++) {
		uint32_t nr = 1 + random_below(MAX - 1), nr_arcs = random_below(3 * nr), first[MAX];

		random_graph(nr, nr_arcs);
		for (int a = 0; a < MP_NR_ORDERS; a++) {
			run(a, nr, nr_arcs);
			memcpy(first, out, sizeof(first));
			run(a, nr, nr_arcs);
			ck_assert_mem_eq(first, out, nr * sizeof(*out));
		}
	}
	for (int a = 0; a < MP_NR_ORDERS; a++)
		run(a, 0, 0);
}

TEST(order_original_changes_nothing)
{
	seed = 4;
	random_graph(50, 100);
	run(MP_ORDER_ORIGINAL, 50, 100);
	for (uint32_t i = 0; i < 50; i++)
		ck_assert_uint_eq(out[i], i);
}

TEST(order_refuses_what_means_nothing)
{
	funcs[0] = funcs[1] = (struct mp_order_func){10, 10};
	for (int a = 0; a < MP_NR_ORDERS; a++) {
		arcs[0] = (struct mp_order_arc){0, 2, 0, 1};
		ck_assert_int_eq(mp_order_funcs(a, funcs, 2, arcs, 1, out), -EINVAL);
		arcs[0] = (struct mp_order_arc){2, 0, 0, 1};
		ck_assert_int_eq(mp_order_funcs(a, funcs, 2, arcs, 1, out), -EINVAL);
		arcs[0] = (struct mp_order_arc){1, 0, 0, (double)NAN};
		ck_assert_int_eq(mp_order_funcs(a, funcs, 2, arcs, 1, out), -EINVAL);
		arcs[0].weight = 1;
		ck_assert_int_eq(mp_order_funcs(a, funcs, 2, arcs, 1, out), 0);
		funcs[1].weight = (double)INFINITY;
		ck_assert_int_eq(mp_order_funcs(a, funcs, 2, arcs, 1, out), -EINVAL);
		funcs[1].weight = 10;
	}
	ck_assert_int_eq(mp_order_funcs(MP_NR_ORDERS, funcs, 2, arcs, 0, out), -EINVAL);
}

TEST(order_names_are_parsed)
{
	enum mp_order order;

	for (int a = 0; a < MP_NR_ORDERS; a++) {
		ck_assert_int_eq(mp_order_parse(mp_order_name(a), &order), 0);
		ck_assert_int_eq(order, a);
	}
	ck_assert_int_eq(mp_order_parse("best", &order), -EINVAL);
	ck_assert_ptr_null(mp_order_name(MP_NR_ORDERS));
}

TEST(order_puts_caller_beside_callee)
{
	for (int a = MP_ORDER_PH; a < MP_NR_ORDERS; a++) {
		for (uint32_t f = 0; f < 20; f++)
			funcs[f] = (struct mp_order_func){100, 1000};
		arcs[0] = (struct mp_order_arc){17, 3, 50, 500};
		arcs[1] = (struct mp_order_arc){3, 9, 50, 400};
		run(a, 20, 2);
		ck_assert_uint_eq(abs((int)place[17] - (int)place[3]), 1);
		ck_assert_uint_eq(abs((int)place[9] - (int)place[3]), 1);
	}
}

TEST(order_puts_the_densest_first)
{
	for (int a = MP_ORDER_PH; a < MP_NR_ORDERS; a++) {
		for (uint32_t f = 0; f < 20; f++)
			funcs[f] = (struct mp_order_func){100, f};
		funcs[19].size = 10000;
		run(a, 20, 0);
		for (uint32_t f = 0; f < 19; f++)
			ck_assert_uint_eq(place[f], f ? 18 - f : 19);
		ck_assert_uint_eq(place[19], 18);
	}
}

TEST(order_shortens_calls)
{
	/* Communities of functions, in shuffled order. */
	seed = 7;
	for (int round = 0; round < 100; round++) {
		uint32_t nr = 60, nr_arcs = 240;
		double before;

		for (uint32_t f = 0; f < nr; f++)
			funcs[f] = (struct mp_order_func){50 + random_below(200), 1000};
		for (uint32_t i = 0; i < nr_arcs; i++) {
			uint32_t x = random_below(nr), y = random_below(nr);
			bool near = x % 10 == y % 10;

			arcs[i] = (struct mp_order_arc){x, y, 10, near ? 5000 : 10};
		}
		run(MP_ORDER_ORIGINAL, nr, nr_arcs);
		before = call_distance(nr, nr_arcs);
		for (int a = MP_ORDER_PH; a < MP_NR_ORDERS; a++) {
			run(a, nr, nr_arcs);
			ck_assert_msg(call_distance(nr, nr_arcs) < 0.7 * before, "%s: %g of %g",
				      mp_order_name(a), call_distance(nr, nr_arcs), before);
		}
	}
}

TEST(order_cds_does_not_thin_out_what_is_hot)
{
	/*
	 * 1 calls 0 all the time. 2, cold and long, rarely calls 0, so it must not lie between
	 * them.
	 */
	funcs[0] = (struct mp_order_func){200, 1e6};
	funcs[1] = (struct mp_order_func){200, 1e6};
	funcs[2] = (struct mp_order_func){100000, 10};
	funcs[3] = (struct mp_order_func){200, 9e5};
	arcs[0] = (struct mp_order_arc){1, 0, 100, 1e5};
	arcs[1] = (struct mp_order_arc){2, 0, 50000, 1};
	run(MP_ORDER_CDS, 4, 2);
	ck_assert_uint_eq(place[2], 3);
	ck_assert_uint_eq(abs((int)place[0] - (int)place[1]), 1);
}

TEST(order_cds_minds_where_the_call_is)
{
	/* The call site is at the caller's end, or at its start: the callee goes to that side. */
	funcs[0] = (struct mp_order_func){3000, 100};
	funcs[1] = (struct mp_order_func){40, 100};
	arcs[0] = (struct mp_order_arc){0, 1, 2990, 100};
	run(MP_ORDER_CDS, 2, 1);
	ck_assert_uint_lt(place[0], place[1]);
	arcs[0].offset = 10;
	run(MP_ORDER_CDS, 2, 1);
	ck_assert_uint_gt(place[0], place[1]);
}

TEST(pairs_fold_like_a_matrix)
{
	seed = 9;
	for (int round = 0; round < 300; round++) {
		uint32_t nr = 2 + random_below(19), nr_links = random_below(60), group[20], id;
		struct mp_pairs_link links[60];
		struct mp_pairs pairs;

		for (uint32_t g = 0; g < nr; g++)
			group[g] = g;
		for (uint32_t i = 0; i < nr_links; i++)
			links[i] = (struct mp_pairs_link){random_below(nr), random_below(nr)};
		ck_assert_int_eq(mp_pairs_init(&pairs, nr, links, nr_links), 0);
		for (uint32_t i = 0; i < pairs.nr_pairs; i++)
			ck_assert_int_eq(mp_pairs_rate(&pairs, i, 1 + random_below(10)), 0);
		while ((id = mp_pairs_best(&pairs)) != MP_PAIRS_NONE) {
			uint32_t a = pairs.pairs[id].a, b = pairs.pairs[id].b, nr_ids;
			const uint32_t *ids;

			for (uint32_t i = 0; i < pairs.nr_pairs; i++)
				ck_assert(pairs.pairs[i].gone ||
					  pairs.pairs[i].gain <= pairs.pairs[id].gain);
			ck_assert_int_eq(mp_pairs_fold(&pairs, a, b), 0);
			for (uint32_t g = 0; g < nr; g++)
				group[g] = group[g] == b ? a : group[g];
			nr_ids = mp_pairs_of(&pairs, a, &ids);
			for (uint32_t i = 0; i < nr_ids; i++)
				if (!pairs.pairs[ids[i]].gone)
					ck_assert_int_eq(mp_pairs_rate(&pairs, ids[i],
								       1 + random_below(10)),
							 0);
			/*
			 * Each link between different groups is part of exactly the pair of
			 * these groups.
			 */
			for (uint32_t i = 0; i < nr_links; i++) {
				uint32_t found = 0;

				for (uint32_t k = 0; k < pairs.nr_pairs; k++) {
					const struct mp_pair *p = &pairs.pairs[k];
					uint32_t x = group[links[i].a], y = group[links[i].b];

					if (p->gone)
						continue;
					for (uint32_t l = p->first_link; l != MP_PAIRS_NONE;
					     l = pairs.next_link[l]) {
						if (l != i)
							continue;
						ck_assert((p->a == x && p->b == y) ||
							  (p->a == y && p->b == x));
						found++;
					}
				}
				ck_assert_uint_eq(found, group[links[i].a] != group[links[i].b]);
			}
		}
		mp_pairs_fini(&pairs);
	}
}
