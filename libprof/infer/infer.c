// SPDX-License-Identifier: Apache-2.0
/*
 * infer - computes block and edge counts that obey flow conservation, from noisy samples.
 * The likeliest counts under a Poisson law are a minimum-cost flow once the likelihood is
 * cut into linear pieces; mcf finds it. Called by counts.c, function by function.
 */
#include "libprof/infer/infer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/infer/flow_check.h"
#include "libprof/infer/infer_scaled.h"
#include "libprof/infer/mcf.h"

/*
 * Costs are in units of 2^-30 instructions: the slopes below are irrational, and for
 * long-running blocks only a small part of them counts.
 */
#define COST_ONE 1073741824.0

/*
 * The unit of flow is 2^-20 samples per instruction. It is coarser only if the samples are
 * too many for 62 bits. It is always a power of two, so that the division on the way back
 * is exact.
 */
#define FLOW_MAX_SHIFT 20
#define FLOW_BITS      58

/* Pivots per arc after which the search stops. Real functions need 0.2 to 2. */
#define PIVOTS_PER_ARC 100

/*
 * A block of cost c with s samples costs c f - s ln f at flow f (the negative logarithm of
 * the likelihood). The minimum is at w = s / c. The curve is cut at these multiples of w.
 * Between a w and b w the slope is c (1 - ln(b / a) / (b - a)), for any s. The slopes
 * before the first cut and after the last were chosen by scripts/bench/accuracy.
 */
static const double cuts[] = {0.125, 0.25, 0.5, 0.75, 1, 4.0 / 3, 2, 4, 8};
#define NR_CUTS	    (sizeof(cuts) / sizeof(cuts[0]))
#define SLOPE_FIRST -11.0
#define SLOPE_LAST  0.9

/*
 * The layout prior, in instructions: the cost of a taken branch; a fall-through costs
 * nothing. Tuned by scripts/bench/bench-accuracy on programs that are not the test programs.
 */
#define PRIOR_TAKEN_FORWARD  3.0
#define PRIOR_TAKEN_BACKWARD 1.0
/*
 * Factor of the prior if the compiler had a profile. Taken branches of python, on other
 * work and on the training: without the factor, +16 % and -30 %; with 3, +8 %; with 10,
 * +1 % and -29 %; with 30, -1 % and -11 %.
 */
#define PRIOR_PROFILED 10.0

/*
 * Cost of a deviation from an exact count, in instructions: more than any hint, layout
 * prior or entry cost of one edge. Leaving a block in its middle makes its count too low;
 * hardly anything makes it too high.
 */
#define EXACT_COST_MORE 1024.0
#define EXACT_COST_LESS 2048.0

/* Chosen on cc1, perl and liblzma; from 10 to 100 most files give similar results. */
#define TIME_SHAPE 30.0
/* Smallest trust, reached at two billion samples or counts: below it, costs would round to 0. */
#define LEAST_TRUST (1.0 / 67108864)

/*
 * The network of a function with blocks 0 and 1:
 *     outside -> in(0) => out(0) -> in(1) => out(1) -> outside
 *                           \---> table ---^
 * `=>` is a bundle of parallel arcs with rising costs. All jumps through one table pass
 * through one node: samples cannot tell which jump went to which target, and an interpreter
 * with 83 jumps would need 83 x 83 arcs.
 *
 * An edge that is the only way into a block, or the only way out, carries the same flow as
 * the block. It needs no arc, and its two nodes become one. That leaves three nodes of
 * five, and saves a third of the time.
 */
struct network {
	const struct mp_flow *flow;
	double slopes[NR_CUTS]; /* slope of the piece that ends at each cut, for a cost of 1 */
	struct mp_mcf_arc *arcs;
	uint32_t nr_arcs;
	uint32_t nr_nodes;
	uint32_t *in, *out; /* per block: its nodes */
	double *extra;	    /* per block: cost of the edges that its bundle replaces */
	/* per block: start of its bundle; [nr_blocks]: the end of the last */
	uint32_t *first_arc;
	uint32_t *edge_block; /* per edge: the block whose bundle replaces it, or NONE */
	/* per edge: its first arc; through a table: the arc from the block into the table */
	uint32_t *edge_arc;
	uint32_t *edge_arc_end; /* per edge: the end of its arcs */
	uint32_t *edge_arc_out; /* per edge: the arc from the table to the target, or NONE */
	uint32_t *order;	/* edges with a group, sorted by group, from, to */
	uint32_t nr_order;
	int shift; /* the unit of flow is 2^-shift */
};

#define NONE UINT32_MAX

#define OUTSIDE 0 /* a node */

/*
 * Share of its time that a block without information costs. Flow passes through such a
 * block if it is the way between blocks with samples; of two such ways flow takes the
 * shorter. The share is small, so that it decides only where no samples do (test_infer:
 * infer_goes_through_a_block_of_which_nothing_is_known).
 */
#define UNKNOWN_SHARE 0.02

/*
 * Added to the cost of a block's instructions: without a prior, with the layout prior, with
 * hints. With hints, half and a fifth of the cost were worse at full profiles (tried.md, "Short
 * blocks that the timer misses").
 */
#define COST_MORE	 2.0
#define COST_MORE_LAYOUT 1.0
#define COST_MORE_LOOKS	 0.5

static double block_cost(const struct mp_flow *flow, uint32_t b)
{
	const struct mp_flow_block *block = &flow->blocks[b];

	if (flow->exact)
		return block->nr_insns ? block->nr_insns : 1;
	if (flow->unsampled)
		return block->more_insns;
	if (block->unknown)
		return block->more_insns + UNKNOWN_SHARE * (mp_flow_block_time(block) + 1);
	return mp_flow_block_time(block) + block->more_insns +
	       (!flow->layout_prior ? COST_MORE
		: flow->hinted	    ? COST_MORE_LOOKS
				    : COST_MORE_LAYOUT);
}

/*
 * The share of a block's evidence that counts. Samples measure time, and the time of the
 * block's instructions is known only up to a factor of variance 1 / TIME_SHAPE. Poisson's
 * law alone would overstate how sure the count of a long-running block is. Less trust keeps
 * errors of hot code from being balanced by cold code.
 */
static double block_trust(const struct mp_flow *flow, uint32_t b)
{
	double expected = flow->blocks[b].before * block_cost(flow, b);

	return fmax(LEAST_TRUST, TIME_SHAPE / (TIME_SHAPE + expected));
}

static double edge_prior(const struct mp_flow *flow, const struct mp_flow_edge *edge)
{
	double prior = edge->against;

	if (!flow->layout_prior || mp_flow_edge_is_counted(flow, edge))
		return 0;
	if (!flow->hinted)
		prior = !edge->taken
				? 0
				: (edge->backward ? PRIOR_TAKEN_BACKWARD : PRIOR_TAKEN_FORWARD) *
					  (flow->profiled ? PRIOR_PROFILED : 1);
	return prior * block_trust(flow, edge->from);
}

static uint32_t arc_add(struct network *net, uint32_t from, uint32_t to, int64_t capacity,
			double cost)
{
	net->arcs[net->nr_arcs] = (struct mp_mcf_arc){
		.from = from, .to = to, .capacity = capacity, .cost = llround(cost * COST_ONE)};
	return net->nr_arcs++;
}

/* ---- tables --------------------------------------------------------------------------------- */

static int order_compare(const void *a, const void *b, void *arg)
{
	const struct mp_flow_edge *edges = arg;
	const struct mp_flow_edge *x = &edges[*(const uint32_t *)a];
	const struct mp_flow_edge *y = &edges[*(const uint32_t *)b];

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static uint32_t edge_from(const struct network *net, uint32_t i)
{
	return net->flow->edges[net->order[i]].from;
}

static uint32_t edge_to(const struct network *net, uint32_t i)
{
	return net->flow->edges[net->order[i]].to;
}

/*
 * Tests one group, order[begin .. end). It may pass through one node only if each of its
 * blocks jumps to each of its targets exactly once; otherwise the node would invent edges.
 * Return: the number of targets; 0: it may not.
 */
static uint32_t group_targets(const struct network *net, uint32_t begin, uint32_t end)
{
	uint32_t width = 0;

	while (begin + width < end && edge_from(net, begin + width) == edge_from(net, begin))
		width++;
	if ((end - begin) % width || end - begin == width)
		return 0;
	for (uint32_t i = begin; i < end; i++) {
		uint32_t column = (i - begin) % width;

		if (edge_from(net, i) != edge_from(net, i - column) ||
		    edge_to(net, i) != edge_to(net, begin + column) ||
		    (column && edge_to(net, i) == edge_to(net, i - 1)) ||
		    (i >= begin + width && !column && edge_from(net, i) == edge_from(net, i - 1)))
			return 0;
	}
	return width;
}

static void group_add(struct network *net, uint32_t begin, uint32_t end)
{
	uint32_t width = group_targets(net, begin, end);
	uint32_t node;

	if (!width)
		return;
	node = net->nr_nodes++;
	for (uint32_t i = begin; i < end; i++) {
		uint32_t e = net->order[i], column = (i - begin) % width;

		if (!column)
			arc_add(net, net->out[edge_from(net, i)], node, MP_MCF_INFINITE,
				edge_prior(net->flow, &net->flow->edges[e]));
		net->edge_arc[e] = net->nr_arcs - 1;
		net->edge_arc_end[e] = net->nr_arcs;
	}
	for (uint32_t i = begin; i < begin + width; i++)
		arc_add(net, node, net->in[edge_to(net, i)], MP_MCF_INFINITE, 0);
	for (uint32_t i = begin; i < end; i++)
		net->edge_arc_out[net->order[i]] = net->nr_arcs - width + (i - begin) % width;
}

static void groups_add(struct network *net)
{
	const struct mp_flow *flow = net->flow;

	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (flow->edges[e].group != NONE)
			net->order[net->nr_order++] = e;
	qsort_r(net->order, net->nr_order, sizeof(*net->order), order_compare, (void *)flow->edges);
	for (uint32_t begin = 0, end; begin < net->nr_order; begin = end) {
		uint32_t group = flow->edges[net->order[begin]].group;

		for (end = begin; end < net->nr_order; end++)
			if (flow->edges[net->order[end]].group != group)
				break;
		group_add(net, begin, end);
	}
}

/* ---- the network ---------------------------------------------------------------------------- */

/*
 * Arcs from @from to @to that cost as the evidence says: @samples seen at @cost per unit of
 * flow.
 */
static void bundle_add(struct network *net, uint32_t from, uint32_t to, double samples, double cost,
		       double extra)
{
	double top;
	int64_t done = 0;

	if (samples <= 0) {
		arc_add(net, from, to, MP_MCF_INFINITE, cost + extra);
		return;
	}
	top = ldexp(samples / cost, net->shift);
	for (unsigned i = 0; i < NR_CUTS; i++) {
		int64_t cut = llround(top * cuts[i]);

		if (cut > done)
			arc_add(net, from, to, cut - done, net->slopes[i] * cost + extra);
		done = cut;
	}
	arc_add(net, from, to, MP_MCF_INFINITE, SLOPE_LAST * cost + extra);
}

/*
 * Arcs from @from to @to for a block that was counted @runs times. Any deviation costs more
 * than hints and layout can outweigh. The flow therefore equals the counts if these agree.
 * If they do not (a function was left in its middle), as few as possible change.
 */
static void exact_add(struct network *net, uint32_t from, uint32_t to, double runs, double extra)
{
	int64_t counted = llround(ldexp(runs, net->shift));

	if (counted > 0)
		arc_add(net, from, to, counted, extra - EXACT_COST_LESS);
	arc_add(net, from, to, MP_MCF_INFINITE, extra + EXACT_COST_MORE);
}

static void edge_add(struct network *net, uint32_t e)
{
	const struct mp_flow *flow = net->flow;
	const struct mp_flow_edge *edge = &flow->edges[e];
	uint32_t from = net->out[edge->from], to = net->in[edge->to];

	net->edge_arc[e] = net->nr_arcs;
	if (mp_flow_edge_is_counted(flow, edge))
		bundle_add(net, from, to, edge->transfers, mp_flow_edge_rate(flow, edge), 0);
	else
		arc_add(net, from, to, MP_MCF_INFINITE, edge_prior(flow, edge));
	net->edge_arc_end[e] = net->nr_arcs;
}

static int flow_shift(const struct mp_flow *flow)
{
	double sum = 1;
	int exponent;

	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		if (flow->blocks[b].samples > 0)
			sum += cuts[NR_CUTS - 1] * flow->blocks[b].samples / block_cost(flow, b);
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (mp_flow_edge_is_counted(flow, &flow->edges[e]))
			sum += cuts[NR_CUTS - 1] * flow->edges[e].transfers /
			       mp_flow_edge_rate(flow, &flow->edges[e]);
	frexp(sum, &exponent);
	return exponent + FLOW_MAX_SHIFT > FLOW_BITS ? FLOW_BITS - exponent : FLOW_MAX_SHIFT;
}

/*
 * Assigns nodes to the blocks. No chains of substitutions arise: out(u) replaces in(b) only
 * over the edge u -> b. in(b) replaces out(u) only if that edge is u's only one and not yet
 * used.
 */
static int nodes_assign(struct network *net)
{
	const struct mp_flow *flow = net->flow;
	uint32_t *nr_in = calloc((size_t)flow->nr_blocks + 1, sizeof(*nr_in));
	uint32_t *nr_out = calloc((size_t)flow->nr_blocks + 1, sizeof(*nr_out));

	if (!nr_in || !nr_out) {
		free(nr_in);
		free(nr_out);
		return -ENOMEM;
	}
	net->nr_nodes = 1;
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		nr_in[b] = flow->blocks[b].entry;
		nr_out[b] = flow->blocks[b].exit;
	}
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		nr_in[flow->edges[e].to]++;
		nr_out[flow->edges[e].from]++;
	}
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		bool only_entry = flow->blocks[b].entry && nr_in[b] == 1;

		net->out[b] = flow->blocks[b].exit && nr_out[b] == 1 ? OUTSIDE : NONE;
		net->in[b] = only_entry ? OUTSIDE : NONE;
		net->extra[b] = only_entry ? flow->blocks[b].entry_cost : 0;
	}
	/* A block with one predecessor shares the node of that predecessor's end. */
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		uint32_t from = flow->edges[e].from, to = flow->edges[e].to;

		if (nr_in[to] != 1 || from == to || flow->edges[e].group != NONE ||
		    mp_flow_edge_is_counted(flow, &flow->edges[e]))
			continue;
		if (net->out[from] == NONE)
			net->out[from] = net->nr_nodes++;
		net->in[to] = net->out[from];
		net->extra[to] += edge_prior(flow, &flow->edges[e]);
		net->edge_block[e] = to;
	}
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		if (net->in[b] == NONE)
			net->in[b] = net->nr_nodes++;
	for (uint32_t e = 0; e < flow->nr_edges; e++) {
		uint32_t from = flow->edges[e].from, to = flow->edges[e].to;

		if (nr_out[from] != 1 || from == to || flow->edges[e].group != NONE ||
		    net->edge_block[e] != NONE || mp_flow_edge_is_counted(flow, &flow->edges[e]))
			continue;
		net->out[from] = net->in[to];
		net->extra[from] += edge_prior(flow, &flow->edges[e]);
		net->edge_block[e] = from;
	}
	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		if (net->out[b] == NONE)
			net->out[b] = net->nr_nodes++;
	free(nr_in);
	free(nr_out);
	return 0;
}

static void arcs_add(struct network *net)
{
	const struct mp_flow *flow = net->flow;

	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		net->first_arc[b] = net->nr_arcs;
		double trust = block_trust(flow, b);

		if (flow->exact)
			exact_add(net, net->in[b], net->out[b],
				  flow->blocks[b].samples / block_cost(flow, b), net->extra[b]);
		else
			bundle_add(net, net->in[b], net->out[b], flow->blocks[b].samples * trust,
				   block_cost(flow, b) * trust, net->extra[b]);
	}
	net->first_arc[flow->nr_blocks] = net->nr_arcs;
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		if (flow->blocks[b].entry && net->in[b] != OUTSIDE)
			arc_add(net, OUTSIDE, net->in[b], MP_MCF_INFINITE,
				flow->blocks[b].entry_cost);
		if (flow->blocks[b].exit && net->out[b] != OUTSIDE)
			arc_add(net, net->out[b], OUTSIDE, MP_MCF_INFINITE, 0);
	}
	groups_add(net);
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		if (net->edge_arc[e] == NONE && net->edge_block[e] == NONE)
			edge_add(net, e);
}

static int network_init(struct network *net, const struct mp_flow *flow)
{
	size_t nr_blocks = (size_t)flow->nr_blocks + 1, nr_edges = (size_t)flow->nr_edges + 1;
	size_t max_arcs = 3 * nr_blocks + nr_edges;

	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		max_arcs += flow->blocks[b].samples > 0 ? NR_CUTS : 0;
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		max_arcs += flow->edges[e].transfers > 0 ? NR_CUTS : 0;
	*net = (struct network){.flow = flow, .shift = flow_shift(flow)};
	net->arcs = malloc(max_arcs * sizeof(*net->arcs));
	net->in = malloc(nr_blocks * sizeof(*net->in));
	net->out = malloc(nr_blocks * sizeof(*net->out));
	net->extra = malloc(nr_blocks * sizeof(*net->extra));
	net->first_arc = malloc(nr_blocks * sizeof(*net->first_arc));
	net->edge_block = malloc(nr_edges * sizeof(*net->edge_block));
	net->edge_arc = malloc(nr_edges * sizeof(*net->edge_arc));
	net->edge_arc_end = malloc(nr_edges * sizeof(*net->edge_arc_end));
	net->edge_arc_out = malloc(nr_edges * sizeof(*net->edge_arc_out));
	net->order = malloc(nr_edges * sizeof(*net->order));
	if (!net->arcs || !net->in || !net->out || !net->extra || !net->first_arc ||
	    !net->edge_block || !net->edge_arc || !net->edge_arc_end || !net->edge_arc_out ||
	    !net->order)
		return -ENOMEM;
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		net->edge_block[e] = net->edge_arc[e] = net->edge_arc_out[e] = NONE;
	for (unsigned int i = 0; i < NR_CUTS; i++)
		net->slopes[i] = i ? 1 - log(cuts[i] / cuts[i - 1]) / (cuts[i] - cuts[i - 1])
				   : SLOPE_FIRST;
	if (nodes_assign(net))
		return -ENOMEM;
	arcs_add(net);
	return 0;
}

static void network_fini(struct network *net)
{
	free(net->arcs);
	free(net->in);
	free(net->out);
	free(net->extra);
	free(net->first_arc);
	free(net->edge_block);
	free(net->edge_arc);
	free(net->edge_arc_end);
	free(net->edge_arc_out);
	free(net->order);
}

static double arcs_flow(const struct network *net, uint32_t first, uint32_t end)
{
	int64_t sum = 0;

	for (uint32_t a = first; a < end; a++)
		sum += net->arcs[a].flow;
	return ldexp((double)sum, -net->shift);
}

static void network_read(const struct network *net, double *block_count, double *edge_count)
{
	const struct mp_flow *flow = net->flow;

	for (uint32_t b = 0; b < flow->nr_blocks; b++)
		block_count[b] = arcs_flow(net, net->first_arc[b], net->first_arc[b + 1]);
	for (uint32_t e = 0; e < flow->nr_edges; e++)
		edge_count[e] = net->edge_block[e] != NONE
					? block_count[net->edge_block[e]]
					: arcs_flow(net, net->edge_arc[e], net->edge_arc_end[e]);
	/* Every jump through a table has the same proportions of targets. */
	for (uint32_t i = 0, end; i < net->nr_order; i = end) {
		double sum = 0;

		end = i + 1;
		if (net->edge_arc_out[net->order[i]] == NONE)
			continue;
		while (end < net->nr_order && edge_from(net, end) == edge_from(net, i) &&
		       flow->edges[net->order[end]].group == flow->edges[net->order[i]].group)
			end++;
		for (uint32_t k = i; k < end; k++)
			sum += (double)net->arcs[net->edge_arc_out[net->order[k]]].flow;
		for (uint32_t k = i; k < end && sum > 0; k++) {
			uint32_t e = net->order[k];

			edge_count[e] *= net->arcs[net->edge_arc_out[e]].flow / sum;
		}
	}
}

int mp_infer_flow(const struct mp_flow *flow, enum mp_estimator estimator, double *block_count,
		  double *edge_count, struct mp_err *err)
{
	struct network net = {0};
	int ret = mp_flow_check(flow, err);

	if (ret)
		return ret;
	if (estimator == MP_ESTIMATE_SCALED)
		return mp_infer_scaled(flow, block_count, edge_count);
	ret = network_init(&net, flow);
	if (!ret)
		ret = mp_mcf_solve(net.nr_nodes, net.arcs, net.nr_arcs,
				   (uint64_t)PIVOTS_PER_ARC * net.nr_arcs + 1000, NULL);
	if (!ret) {
		network_read(&net, block_count, edge_count);
	} else if (ret == MP_MCF_STOPPED) {
		ret = mp_infer_scaled(flow, block_count, edge_count);
		if (!ret)
			ret = MP_INFER_GAVE_UP;
	}
	network_fini(&net);
	if (ret == -ENOMEM)
		mp_err_set(err, ENOMEM, "out of memory");
	return ret;
}
