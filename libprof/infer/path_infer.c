// SPDX-License-Identifier: Apache-2.0
/*
 * path_infer - computes counts from a Markov chain that walks backward.
 * The chain starts at the function's exits and goes from each block to a predecessor, until
 * it leaves by the entry: its visits are the blocks' counts. Its shares come from the
 * paths, with infer's counts as a weak prior; its starts are unknown. Shares and starts are
 * adjusted to the greatest likelihood of paths and samples together, where the time per
 * instruction of a block is uncertain. A merge with many paths keeps their shares; without
 * paths, the samples decide. Called by counts.
 */
#include "libprof/infer/path_infer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/infer/chain.h"
#include "libprof/infer/flow_check.h"

/* Weight of infer's prior at a merge, in paths: one path that was seen weighs as much as the prior
 * (test_path_infer: without_paths_at_a_merge_samples_decide). */
#define PRIOR_PATHS 1.0
/*
 * Shape of the distribution of a block's time per instruction; its variance is the
 * reciprocal. From 1 to 30, gzip, sort, perl and sqlite are equally accurate. Synthetic
 * functions with widely varying times need a small one.
 */
#define TIME_SHAPE 2.0
/*
 * The same for the reports of a whole polled function. Chosen on gzip, sort, bash, perl,
 * libsqlite3 and python: 2 to 5 give similar results.
 */
#define REPORTED_SHAPE 4.0
/*
 * An exit without evidence starts with START_SAMPLES of a sample. At the end it keeps at
 * least LEAST_SAMPLES, or becomes 0.
 */
#define START_SAMPLES 0.01
#define LEAST_SAMPLES 0.5
/* Rounds end when no start changes by more than this share. */
#define CLOSE_ENOUGH 1e-3
#define NR_ROUNDS    60
/* Paths for an entry into a loop that no path enters. */
#define UNSEEN_PATHS 1e-3
/* Share of a block's visits that come from outside, in a loop without any entry. */
#define LEAK 1e-6
/* A share changes by at most this factor in one round, up or down. */
#define LEAP	   4.0
#define FIRST_PACE 0.5
/* Limit of elimination steps: about a second. Real functions need a few thousand. */
#define MAX_STEPS (1ull << 29)

#define NONE	UINT32_MAX
#define HERE	(UINT32_MAX - 1)
#define REACHED 0x80

struct inference {
	const struct mp_flow *flow;
	const uint64_t *edge_seen, *outside_seen;
	const double *block_before, *edge_before;
	double *prior;	  /* per edge: infer's count, plus ways out of blocks that infer missed */
	double *paths;	  /* per edge: paths over it, plus the prior */
	double *paths_in; /* per block: the same, from outside */
	double *share;	  /* per edge: share of its target's visits */
	double *leave;	  /* per block: share of its visits that come from outside */
	double *sum;	  /* per block */
	double *start;	  /* per block: how often flow leaves there */
	double *visits;	  /* per block */
	double *earned, *cost;
	double *all_paths;	/* per block */
	double *pace, *pace_in; /* per edge, per block */
	uint32_t *way;		/* per block: the edge towards known flow; HERE, NONE */
	uint8_t *may_start;	/* per block */
	uint8_t *was_seen;	/* per block: flow was seen to leave there */
	struct mp_chain_step *steps;
};

static double block_cost(const struct mp_flow_block *block)
{
	return mp_flow_block_time(block) + block->more_insns + 1;
}

/* Expected reports per visit of @b; 0 without reports, since such a block may report nothing. */
static double reported_cost(const struct mp_flow *flow, uint32_t b)
{
	return flow->blocks[b].reported > 0 ? flow->reported_weight : 0;
}

static int inference_init(struct inference *in)
{
	size_t nr_blocks = (size_t)in->flow->nr_blocks + 1;
	size_t nr_edges = (size_t)in->flow->nr_edges + 1;

	in->prior = calloc(nr_edges, sizeof(*in->prior));
	in->paths = calloc(nr_edges, sizeof(*in->paths));
	in->paths_in = calloc(nr_blocks, sizeof(*in->paths_in));
	in->share = calloc(nr_edges, sizeof(*in->share));
	in->way = calloc(nr_blocks, sizeof(*in->way));
	in->leave = calloc(nr_blocks, sizeof(*in->leave));
	in->sum = calloc(nr_blocks, sizeof(*in->sum));
	in->start = calloc(nr_blocks, sizeof(*in->start));
	in->visits = calloc(nr_blocks, sizeof(*in->visits));
	in->earned = calloc(nr_blocks, sizeof(*in->earned));
	in->cost = calloc(nr_blocks, sizeof(*in->cost));
	in->all_paths = calloc(nr_blocks, sizeof(*in->all_paths));
	in->pace = calloc(nr_edges, sizeof(*in->pace));
	in->pace_in = calloc(nr_blocks, sizeof(*in->pace_in));
	in->may_start = calloc(nr_blocks, sizeof(*in->may_start));
	in->was_seen = calloc(nr_blocks, sizeof(*in->was_seen));
	in->steps = calloc(nr_edges, sizeof(*in->steps));
	return in->prior && in->all_paths && in->pace && in->pace_in && in->paths && in->paths_in &&
			       in->way && in->share && in->leave && in->sum && in->start &&
			       in->visits && in->earned && in->cost && in->may_start &&
			       in->was_seen && in->steps
		       ? 0
		       : -ENOMEM;
}

static void inference_fini(struct inference *in)
{
	free(in->prior);
	free(in->way);
	free(in->paths);
	free(in->paths_in);
	free(in->share);
	free(in->leave);
	free(in->sum);
	free(in->start);
	free(in->visits);
	free(in->earned);
	free(in->cost);
	free(in->all_paths);
	free(in->pace);
	free(in->pace_in);
	free(in->may_start);
	free(in->was_seen);
	free(in->steps);
}

/* ---- the shares of the ways into each block --------------------------------------------------- */

/* Finds the blocks at which flow may leave: exits, and blocks that cannot reach any exit. */
static void exits_find(struct inference *in)
{
	const struct mp_flow *flow = in->flow;
	bool more = true;

	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		in->may_start[b] = flow->blocks[b].exit;
	/* Edges are ordered by blocks: going backward, one round covers most of a function. */
	while (more) {
		more = false;
		for (uint32_t e = flow->nr_edges; e--;) {
			uint32_t from = flow->edges[e].from;

			if (!in->may_start[from] && in->may_start[flow->edges[e].to]) {
				in->may_start[from] = 2;
				more = true;
			}
		}
	}
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		in->may_start[b] = in->may_start[b] < 2;
}

/*
 * Spreads backward from blocks that have a way: over edges with flow or paths (@known), or
 * over all edges.
 */
static void ways_spread(struct inference *in, bool known)
{
	const struct mp_flow *flow = in->flow;
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t e = flow->nr_edges; e--;) {
			uint32_t from = flow->edges[e].from;

			if (in->way[from] != NONE || in->way[flow->edges[e].to] == NONE ||
			    (known && !(in->edge_before[e] > 0) && !in->edge_seen[e]))
				continue;
			in->way[from] = known ? HERE : e;
			more = true;
		}
	}
}

/*
 * Infer may find it likelier that a block with few samples never ran, or that its flow goes
 * round for ever. But the block ran, and control left it. Add the flow that its samples
 * stand for, from there to a block from which flow is known to reach an exit.
 */
static void prior_fill(struct inference *in)
{
	const struct mp_flow *flow = in->flow;
	double *seen = in->sum; /* not used yet */

	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		seen[b] = (double)in->outside_seen[b];
		in->way[b] = in->may_start[b] ? HERE : NONE;
	}
	ways_spread(in, true);
	ways_spread(in, false);
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		in->prior[e] = in->edge_before[e];
		seen[flow->edges[e].to] += (double)in->edge_seen[e];
	}
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		const struct mp_flow_block *block = &flow->blocks[b];
		double runs = fmax(block->samples, LEAST_SAMPLES) / block_cost(block);
		uint32_t at = b;

		if (!(seen[b] + block->samples > 0))
			continue;
		for (; in->way[at] < flow->nr_edges; at = flow->edges[in->way[at]].to)
			in->prior[in->way[at]] += runs;
		in->was_seen[at] |= in->may_start[at] && (at != b || !(in->block_before[b] > 0));
	}
}

/* Infer's flow from outside into each block: the rest of its count. */
static void prior_outside(struct inference *in)
{
	const struct mp_flow *flow = in->flow;

	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		in->sum[b] = 0;
		in->leave[b] = in->block_before[b];
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		in->leave[flow->edges[e].to] -= in->edge_before[e];
		in->sum[flow->edges[e].to] += in->prior[e];
	}
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		/* A rounding error is no entry. */
		if (!flow->blocks[b].entry || in->leave[b] < 1e-9 * in->block_before[b])
			in->leave[b] = 0;
		in->sum[b] += in->leave[b];
	}
}

static void paths_fill(struct inference *in)
{
	const struct mp_flow *flow = in->flow;
	double *prior = in->earned; /* not used yet */

	prior_fill(in);
	prior_outside(in);
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		prior[b] = in->sum[b] > 0 ? PRIOR_PATHS / in->sum[b] : 0;
		in->paths_in[b] = (double)in->outside_seen[b] + prior[b] * in->leave[b];
		in->sum[b] = in->paths_in[b];
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		uint32_t to = flow->edges[e].to;

		in->paths[e] = (double)in->edge_seen[e] + prior[to] * in->prior[e];
		in->sum[to] += in->paths[e];
	}
	/* Without any knowledge all ways are equal. */
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		if (!(in->sum[b] > 0) && flow->blocks[b].entry)
			in->paths_in[b] = PRIOR_PATHS;
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (!(in->sum[flow->edges[e].to] > 0))
			in->paths[e] = PRIOR_PATHS;
}

/*
 * A loop may have no entry among the paths and in infer's counts, but it is entered. Open
 * an entry into each block that the outside does not reach. Samples decide how much comes
 * in there.
 */
static void loops_open(struct inference *in)
{
	const struct mp_flow *flow = in->flow;
	uint8_t *reached = in->may_start; /* uses the high bit */
	bool more = true, opened = true;

	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		reached[b] |= in->paths_in[b] > 0 ? REACHED : 0;
	while (opened) {
		while (more) {
			more = false;
			for (uint32_t e = 0; e < flow->nr_edges; e++) {
				uint32_t from = flow->edges[e].from, to = flow->edges[e].to;

				if (!(reached[from] & REACHED) || reached[to] & REACHED ||
				    !(in->paths[e] > 0))
					continue;
				reached[to] |= REACHED;
				more = true;
			}
		}
		opened = false;
		for (uint32_t b = 0; b < flow->nr_blocks; b++)
			if (!(reached[b] & REACHED) && flow->blocks[b].entry) {
				in->paths_in[b] = UNSEEN_PATHS;
				reached[b] |= REACHED;
				opened = more = true;
			}
		for (uint32_t e = 0; e < flow->nr_edges; e++) {
			uint32_t from = flow->edges[e].from, to = flow->edges[e].to;

			if (!(reached[from] & REACHED) || reached[to] & REACHED)
				continue;
			in->paths[e] = UNSEEN_PATHS;
			opened = more = true;
		}
	}
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		reached[b] &= ~REACHED;
}

/* Scales the shares of all ways into a block to the sum 1. */
static void shares_scale(struct inference *in)
{
	const struct mp_flow *flow = in->flow;

	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		in->sum[b] = in->leave[b];
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		in->sum[flow->edges[e].to] += in->share[e];
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		in->leave[b] = in->sum[b] > 0 ? in->leave[b] / in->sum[b] : 1;
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (in->share[e] > 0)
			in->share[e] /= in->sum[flow->edges[e].to];
}

static void shares_fill(struct inference *in)
{
	const struct mp_flow *flow = in->flow;

	paths_fill(in);
	loops_open(in);
	memcpy(in->share, in->paths, flow->nr_edges * sizeof(*in->share));
	memcpy(in->leave, in->paths_in, flow->nr_blocks * sizeof(*in->leave));
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		in->pace[e] = FIRST_PACE;
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		in->pace_in[b] = FIRST_PACE;
	shares_scale(in);
}

static int chain_build(struct inference *in, struct mp_chain **out, struct mp_err *err)
{
	const struct mp_flow *flow = in->flow;
	uint32_t nr = 0;
	int ret;

	mp_chain_free(*out);
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (in->share[e] > 0)
			in->steps[nr++] = (struct mp_chain_step){flow->edges[e].to,
								 flow->edges[e].from, in->share[e]};
	ret = mp_chain_new(flow->nr_blocks, in->steps, nr, in->leave, MAX_STEPS, out, err);
	if (ret != -EDOM)
		return ret;
	/* No way at all leads into some loop: part of the code is unknown. */
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		in->leave[b] = LEAK + in->leave[b] * (1 - LEAK);
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		in->share[e] *= 1 - LEAK;
	for (uint32_t i = 0; i < nr; i++)
		in->steps[i].share *= 1 - LEAK;
	return mp_chain_new(flow->nr_blocks, in->steps, nr, in->leave, MAX_STEPS, out, err);
}

/*
 * ---- starts of the chain
 * ----------------------------------------------------------------------
 */

static void starts_fill(struct inference *in)
{
	const struct mp_flow *flow = in->flow;

	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		in->start[b] = in->block_before[b];
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		in->start[flow->edges[e].from] -= in->edge_before[e];
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		double least = START_SAMPLES / block_cost(&flow->blocks[b]);

		if (!in->may_start[b]) {
			in->start[b] = 0;
			continue;
		}
		in->was_seen[b] |= in->start[b] > least;
		in->start[b] = fmax(in->start[b], least);
	}
}

/*
 * Scales the starts until all visits together explain the number of samples. Done before
 * the rounds, to begin near the truth. Done again afterwards: samples slip from one block
 * to the next, and the likelihood, which looks at each block alone, underestimates small
 * blocks. Reports of a polled program do not depend on time, but a fast loop has too few,
 * since polling goes by time. That is a factor of uncertainty, too.
 */
static void starts_scale(struct inference *in, const struct mp_chain *chain)
{
	const struct mp_flow *flow = in->flow;
	double have = 0, want = 0, have_reported = 0, reported = 0, sum = 0, weight = 0;

	mp_chain_visits(chain, in->start, in->visits);
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		have += in->visits[b] * block_cost(&flow->blocks[b]);
		want += flow->blocks[b].samples;
		have_reported += in->visits[b] * reported_cost(flow, b);
		reported += flow->blocks[b].reported;
	}
	if (have > 0 && want > 0) {
		sum += TIME_SHAPE * log(want / have);
		weight += TIME_SHAPE;
	}
	if (have_reported > 0) {
		double trust = REPORTED_SHAPE * reported / (REPORTED_SHAPE + reported);

		sum += trust * log(reported / have_reported);
		weight += trust;
	}
	for (uint32_t b = 0; b < flow->nr_blocks && weight > 0; b++)
		in->start[b] *= exp(sum / weight);
}

/*
 * One round: each start is multiplied by the ratio of the samples on its ways to the
 * samples that it explains (Richardson 1972, Lucy 1974). A block weighs less the more its
 * time may be wrong, since that variance grows with the square of the expected samples.
 * Return: the largest relative change of a start.
 */
static double starts_improve(struct inference *in, const struct mp_chain *chain)
{
	const struct mp_flow *flow = in->flow;
	double change = 0;

	mp_chain_visits(chain, in->start, in->visits);
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		double cost = block_cost(&flow->blocks[b]), samples = flow->blocks[b].samples;
		double weight = TIME_SHAPE / (TIME_SHAPE + cost * in->visits[b]);

		samples = weight * samples + flow->blocks[b].reported;
		in->earned[b] = in->visits[b] > 0 ? samples / in->visits[b] : 0;
		in->cost[b] = weight * cost + reported_cost(flow, b);
	}
	mp_chain_worth(chain, in->earned, in->earned);
	mp_chain_worth(chain, in->cost, in->cost);
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		double before = in->start[b], cost = block_cost(&flow->blocks[b]);

		if (!(before > 0))
			continue;
		in->start[b] *= in->earned[b] / in->cost[b];
		/* A start that explains no sample may go on shrinking. */
		if (in->start[b] * cost > START_SAMPLES || before * cost > START_SAMPLES)
			change = fmax(change, fabs(in->start[b] / before - 1));
	}
	return change;
}

/*
 * Factor for a share: at first half of the way to @ratio, on a logarithmic scale. The
 * target depends on all other shares, so after an overshoot the steps become smaller.
 * @pace: last speed; its sign is the direction.
 */
static double pace_set(double ratio, double *pace)
{
	double way = log(fmin(fmax(ratio, 1 / LEAP), LEAP)), speed = fabs(*pace);

	speed = *pace * way < 0 ? speed / 2 : fmin(speed * 1.2, FIRST_PACE);
	*pace = copysign(speed, way);
	return exp(way * speed);
}

/*
 * The same for shares, after starts. At the greatest likelihood each share equals its part
 * of all paths to the block, corrected by the preference of the samples. Samples change
 * nothing at a merge with many paths. But only they can tell whether a loop without a seen
 * entry is entered once in a thousand times or in a million.
 * Return: as starts_improve().
 */
static double shares_improve(struct inference *in)
{
	const struct mp_flow *flow = in->flow;
	double *mean = in->sum, change = 0;

	/* Average surplus of a visit's worth over its cost, among the predecessors. */
	memset(mean, 0, flow->nr_blocks * sizeof(*mean));
	memcpy(in->all_paths, in->paths_in, flow->nr_blocks * sizeof(*mean));
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		uint32_t from = flow->edges[e].from, to = flow->edges[e].to;

		mean[to] += in->share[e] * (in->earned[from] - in->cost[from]);
		in->all_paths[to] += in->paths[e];
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		uint32_t from = flow->edges[e].from, to = flow->edges[e].to;
		double worth = in->earned[from] - in->cost[from] - mean[to], ratio;

		if (!(in->share[e] > 0) || in->share[e] >= 1)
			continue;
		ratio = pace_set((in->paths[e] / in->share[e] + in->visits[to] * worth) /
					 in->all_paths[to],
				 &in->pace[e]);
		if (in->visits[to] * block_cost(&flow->blocks[to]) > START_SAMPLES)
			change = fmax(change, fabs(ratio - 1));
		in->share[e] *= ratio;
	}
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		if (in->leave[b] > 0 && in->leave[b] < 1)
			in->leave[b] *= pace_set(
				(in->paths_in[b] / in->leave[b] - in->visits[b] * mean[b]) /
					in->all_paths[b],
				&in->pace_in[b]);
	shares_scale(in);
	return change;
}

/* An exit without evidence that explains nearly no sample is no exit. */
static void starts_prune(struct inference *in)
{
	const struct mp_flow *flow = in->flow;
	bool any = false;

	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		any |= in->was_seen[b] ||
		       in->start[b] * block_cost(&flow->blocks[b]) >= LEAST_SAMPLES;
	for (uint32_t b = 0; b < flow->nr_blocks && any; b++)
		if (!in->was_seen[b] && in->start[b] * block_cost(&flow->blocks[b]) < LEAST_SAMPLES)
			in->start[b] = 0;
}

int mp_path_infer_flow(const struct mp_flow *flow, const uint64_t *edge_seen,
		       const uint64_t *outside_seen, double *block_count, double *edge_count,
		       struct mp_err *err)
{
	struct inference in = {.flow = flow,
			       .edge_seen = edge_seen,
			       .outside_seen = outside_seen,
			       .block_before = block_count,
			       .edge_before = edge_count};
	struct mp_chain *chain = NULL;
	int ret = mp_path_flow_check(flow, block_count, edge_count, err);

	if (ret)
		return ret;
	if (inference_init(&in)) {
		ret = mp_err_set(err, ENOMEM, "out of memory");
		goto out;
	}
	exits_find(&in);
	shares_fill(&in);
	ret = chain_build(&in, &chain, err);
	if (ret) {
		if (ret == -E2BIG)
			ret = MP_INFER_GAVE_UP;
		goto out;
	}
	starts_fill(&in);
	starts_scale(&in, chain);
	for (unsigned int i = 0; i < NR_ROUNDS && !ret; i++) {
		double change = starts_improve(&in, chain);

		change = fmax(change, shares_improve(&in));
		ret = chain_build(&in, &chain, err);
		if (change < CLOSE_ENOUGH)
			break;
	}
	if (ret)
		goto out;
	starts_scale(&in, chain);
	starts_prune(&in);
	mp_chain_visits(chain, in.start, in.visits);
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		block_count[b] = in.visits[b];
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		edge_count[e] = in.share[e] * in.visits[flow->edges[e].to];
out:
	mp_chain_free(chain);
	inference_fini(&in);
	return ret;
}
