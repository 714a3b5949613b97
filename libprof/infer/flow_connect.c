// SPDX-License-Identifier: Apache-2.0
/*
 * flow_connect - finds blocks without samples that must have run, since flow passed them on its way
 * to samples.
 * The cheapest flow for samples in a loop may go round in it for ever, as if short blocks
 * before and behind the loop never ran. Decides which of these ran, and how often. Called
 * by counts between its two rounds, as evidence for the second.
 */
#include "libprof/infer/flow_connect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NONE UINT32_MAX

/*
 * Assumed turns of a loop without other evidence. From 3 to 30 the result is the same: only
 * the existence of a way matters.
 */
#define TURNS 8.0
/* Limits for hostile code: sweeps over all edges, and ways. Real functions need a few. */
#define MAX_SWEEPS 64
#define MAX_WAYS   256

struct search {
	const struct mp_flow *flow;
	const double *block_count, *edge_count;
	double *runs;
	bool out;	  /* searches for ways out, from their ends */
	uint8_t *reached; /* per block: it has a way */
	double *far;  /* per block: time of the blocks without flow from here to flow with a way */
	uint32_t *by; /* per block: the edge to the next block on that way, or NONE */
};

/* The end of @e on the side of flow with a way, and the other end. */
static uint32_t near_end(const struct search *s, uint32_t e)
{
	return s->out ? s->flow->edges[e].to : s->flow->edges[e].from;
}

static uint32_t far_end(const struct search *s, uint32_t e)
{
	return s->out ? s->flow->edges[e].from : s->flow->edges[e].to;
}

/*
 * Edges are ordered by blocks: with alternating directions, most functions need two or
 * three sweeps.
 */
static uint32_t swept(const struct search *s, int sweep, uint32_t i)
{
	return (sweep & 1) != s->out ? s->flow->nr_edges - 1 - i : i;
}

/* Blocks that flow reaches from a block with a way have a way, too. */
static void spread(struct search *s)
{
	bool more = true;

	for (int sweep = 0; more && sweep < MAX_SWEEPS; sweep++) {
		more = false;
		for (uint32_t i = 0; i < s->flow->nr_edges; i++) {
			uint32_t e = swept(s, sweep, i), b = far_end(s, e);

			if (!(s->edge_count[e] > 0) || !s->reached[near_end(s, e)] || s->reached[b])
				continue;
			s->reached[b] = true;
			more = true;
		}
	}
}

static void measure(struct search *s)
{
	const struct mp_flow *flow = s->flow;
	bool more = true;

	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		s->far[b] = s->reached[b] ? 0 : INFINITY;
		s->by[b] = NONE;
	}
	for (int sweep = 0; more && sweep < MAX_SWEEPS; sweep++) {
		more = false;
		for (uint32_t i = 0; i < flow->nr_edges; i++) {
			uint32_t e = swept(s, sweep, i), b = far_end(s, e);
			double far = s->far[near_end(s, e)];

			if (!(s->block_count[b] > 0))
				far += mp_flow_block_time(&flow->blocks[b]) + 1;
			if (far < s->far[b]) {
				s->far[b] = far;
				s->by[b] = e;
				more = true;
			}
		}
	}
}

/* The nearest block with flow and without a way, or NONE. */
static uint32_t next_block(const struct search *s)
{
	uint32_t found = NONE;

	for (uint32_t b = 0; b < s->flow->nr_blocks; b++)
		if (s->block_count[b] > 0 && !s->reached[b] && s->by[b] != NONE &&
		    (found == NONE || s->far[b] < s->far[found]))
			found = b;
	return found;
}

static void give_way(struct search *s, uint32_t b)
{
	double runs = s->block_count[b] / TURNS;

	for (; !s->reached[b]; b = near_end(s, s->by[b])) {
		if (!(s->block_count[b] > 0))
			s->runs[b] = fmax(s->runs[b], runs);
		s->reached[b] = true;
	}
	spread(s);
}

static bool lacks_ways(const struct search *s)
{
	for (uint32_t b = 0; b < s->flow->nr_blocks; b++)
		if (s->block_count[b] > 0 && !s->reached[b])
			return true;
	return false;
}

static void search(struct search *s)
{
	for (uint32_t b = 0; b < s->flow->nr_blocks; b++)
		s->reached[b] = s->out ? s->flow->blocks[b].exit
				       : s->flow->blocks[b].entry &&
						 !(s->flow->blocks[b].entry_cost > 0);
	spread(s);
	if (!lacks_ways(s))
		return;
	measure(s);
	for (int i = 0; i < MAX_WAYS; i++) {
		uint32_t b = next_block(s);

		if (b == NONE)
			return;
		give_way(s, b);
	}
}

int mp_flow_connect(const struct mp_flow *flow, const double *block_count, const double *edge_count,
		    double *runs)
{
	size_t nr = (size_t)flow->nr_blocks + 1;
	struct search s = {.flow = flow,
			   .block_count = block_count,
			   .edge_count = edge_count,
			   .runs = runs,
			   .reached = malloc(nr),
			   .far = malloc(nr * sizeof(*s.far)),
			   .by = malloc(nr * sizeof(*s.by))};
	int ret = s.reached && s.far && s.by ? 0 : -ENOMEM;

	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		runs[b] = 0;
	if (!ret) {
		search(&s);
		s.out = true;
		search(&s);
	}
	free(s.reached);
	free(s.far);
	free(s.by);
	return ret;
}
