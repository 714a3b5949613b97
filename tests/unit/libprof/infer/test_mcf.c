// SPDX-License-Identifier: Apache-2.0
/*
 * test_mcf - minimum-cost circulations, compared with a slow solver that cancels negative
 * cycles one by one.
 */

#include "libprof/infer/mcf.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define MAX_NODES 12
#define MAX_ARCS  64
/* stands for "infinite" in the slow solver: larger than all finite capacities together */
#define BIG 1000

static int64_t total_cost(const struct mp_mcf_arc *arcs, uint32_t nr)
{
	int64_t sum = 0;

	for (uint32_t a = 0; a < nr; a++)
		sum += arcs[a].cost * arcs[a].flow;
	return sum;
}

static void check_circulation(uint32_t nr_nodes, const struct mp_mcf_arc *arcs, uint32_t nr)
{
	AUTO_FREE int64_t *excess = calloc(nr_nodes, sizeof(*excess));

	for (uint32_t a = 0; a < nr; a++) {
		ck_assert_int_ge(arcs[a].flow, 0);
		ck_assert_int_le(arcs[a].flow, arcs[a].capacity);
		excess[arcs[a].from] -= arcs[a].flow;
		excess[arcs[a].to] += arcs[a].flow;
	}
	for (uint32_t v = 0; v < nr_nodes; v++)
		ck_assert_int_eq(excess[v], 0);
}

/*
 * Bellman-Ford in the residual graph: pushes one unit around each negative cycle. Return: false
 * if there is a negative cycle of arcs without capacity limit.
 */
static bool cancel_cycles(uint32_t nr_nodes, struct mp_mcf_arc *arcs, uint32_t nr)
{
	for (uint32_t a = 0; a < nr; a++)
		arcs[a].flow = 0;
	for (;;) {
		int64_t dist[MAX_NODES] = {0};
		int via[MAX_NODES];
		uint32_t v = UINT32_MAX, start;

		memset(via, 0, sizeof(via));
		for (uint32_t round = 0; round <= nr_nodes; round++) {
			v = UINT32_MAX;
			for (uint32_t a = 0; a < nr; a++) {
				const struct mp_mcf_arc *arc = &arcs[a];

				if (arc->flow < arc->capacity &&
				    dist[arc->from] + arc->cost < dist[arc->to]) {
					dist[arc->to] = dist[arc->from] + arc->cost;
					via[arc->to] = (int)a + 1;
					v = arc->to;
				}
				if (arc->flow > 0 && dist[arc->to] - arc->cost < dist[arc->from]) {
					dist[arc->from] = dist[arc->to] - arc->cost;
					via[arc->from] = -(int)a - 1;
					v = arc->from;
				}
			}
			if (v == UINT32_MAX)
				return true;
		}
		for (uint32_t i = 0; i < nr_nodes; i++)
			v = via[v] > 0 ? arcs[via[v] - 1].from : arcs[-via[v] - 1].to;
		start = v;
		do {
			if (via[v] > 0) {
				struct mp_mcf_arc *arc = &arcs[via[v] - 1];

				if (++arc->flow > BIG)
					return false;
				v = arc->from;
			} else {
				struct mp_mcf_arc *arc = &arcs[-via[v] - 1];

				arc->flow--;
				v = arc->to;
			}
		} while (v != start);
	}
}

static void random_graph(uint32_t nr_nodes, struct mp_mcf_arc *arcs, uint32_t nr, bool infinite)
{
	for (uint32_t a = 0; a < nr; a++) {
		bool endless = infinite && random_below(4) == 0;

		arcs[a] = (struct mp_mcf_arc){
			.from = random_below(nr_nodes),
			.to = random_below(nr_nodes),
			.capacity = endless ? MP_MCF_INFINITE : random_below(6),
			.cost = (int64_t)random_below(21) - (endless ? 2 : 12),
		};
	}
}

TEST(mcf_is_as_cheap_as_cycle_cancelling)
{
	struct mp_mcf_arc arcs[MAX_ARCS], slow[MAX_ARCS];
	uint32_t nr_unbounded = 0, nr_moved = 0;

	seed = 1;
	for (int round = 0; round < 4000; round++) {
		uint32_t nr_nodes = 1 + random_below(MAX_NODES);
		uint32_t nr = random_below(MAX_ARCS);
		int ret;

		random_graph(nr_nodes, arcs, nr, round & 1);
		memcpy(slow, arcs, sizeof(arcs));
		ret = mp_mcf_solve(nr_nodes, arcs, nr, UINT64_MAX, NULL);
		if (!cancel_cycles(nr_nodes, slow, nr)) {
			ck_assert_int_eq(ret, -ERANGE);
			nr_unbounded++;
			continue;
		}
		ck_assert_int_eq(ret, MP_MCF_OPTIMAL);
		check_circulation(nr_nodes, arcs, nr);
		ck_assert_int_eq(total_cost(arcs, nr), total_cost(slow, nr));
		nr_moved += total_cost(arcs, nr) < 0;
	}
	/* The graphs are not trivial: most have a gain, some have no bound. */
	ck_assert_uint_gt(nr_moved, 1000);
	ck_assert_uint_gt(nr_unbounded, 20);
}

TEST(mcf_saturates_a_paying_loop_of_one_node)
{
	struct mp_mcf_arc arcs[] = {{0, 0, 5, -3, 0}, {0, 0, 7, 2, 0}};

	ck_assert_int_eq(mp_mcf_solve(1, arcs, 2, 10, NULL), MP_MCF_OPTIMAL);
	ck_assert_int_eq(arcs[0].flow, 5);
	ck_assert_int_eq(arcs[1].flow, 0);
}

TEST(mcf_refuses_bad_arcs)
{
	struct mp_mcf_arc outside = {0, 2, 1, 0, 0}, negative = {0, 1, -1, 0, 0};
	struct mp_mcf_arc endless = {0, 0, MP_MCF_INFINITE, -1, 0};

	ck_assert_int_eq(mp_mcf_solve(2, &outside, 1, 10, NULL), -EINVAL);
	ck_assert_int_eq(mp_mcf_solve(2, &negative, 1, 10, NULL), -EINVAL);
	ck_assert_int_eq(mp_mcf_solve(2, &endless, 1, 10, NULL), -ERANGE);
	ck_assert_int_eq(mp_mcf_solve(0, NULL, 0, 10, NULL), MP_MCF_OPTIMAL);
}

/* A chain of blocks needs many pivots. Stopped at any point, the flow must be conserved. */
TEST(mcf_conserves_when_stopped)
{
	enum {
		NR = 40
	};
	struct mp_mcf_arc arcs[2 * NR];
	uint64_t needed;

	for (uint32_t v = 0; v < NR; v++) {
		arcs[2 * v] = (struct mp_mcf_arc){v, (v + 1) % NR, 10 + v, -(int64_t)v, 0};
		arcs[2 * v + 1] = (struct mp_mcf_arc){v, (v + 1) % NR, 100, 3, 0};
	}
	ck_assert_int_eq(mp_mcf_solve(NR, arcs, 2 * NR, UINT64_MAX, &needed), MP_MCF_OPTIMAL);
	ck_assert_uint_gt(needed, 10);
	for (uint64_t limit = 0; limit < needed; limit++) {
		ck_assert_int_eq(mp_mcf_solve(NR, arcs, 2 * NR, limit, NULL), MP_MCF_STOPPED);
		check_circulation(NR, arcs, 2 * NR);
	}
}
