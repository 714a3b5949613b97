// SPDX-License-Identifier: Apache-2.0
/*
 * counts - infers the counts of a module, one function at a time.
 * It decides where flow enters and leaves a function; infer does the rest. Called by
 * morph-optimize before layout, and by morph-stats to show and export counts.
 */
#include "libprof/infer/counts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/infer/branch_hint.h"
#include "libprof/infer/counts_calls.h"
#include "libprof/infer/counts_exact.h"
#include "libprof/infer/counts_private.h"
#include "libprof/infer/insn_latency.h"
#include "libprof/base/parallel.h"
#include "libprof/infer/path_infer.h"
#include "libprof/infer/flow_connect.h"
#include "libprof/infer/foreseen.h"

/* Price of entering at a landing pad, which runs only when an exception is thrown: more than any
 * hint or layout prior. */
#define PAD_ENTRY_COST 64.0

bool mp_block_leaves(const struct mp_cfg *cfg, const struct mp_block *block)
{
	switch (block->term) {
	case MP_TERM_FALL:
	case MP_TERM_JUMP: return block->nr_edges == 0;
	case MP_TERM_COND: return block->nr_edges < 2; /* the other way leads to another function */
	case MP_TERM_TABLE:
		return block->nr_edges == 0 || block->table == MP_NONE ||
		       !cfg->tables[block->table].exact;
	default: return true;
	}
}

/* Weight of a branch hint: instructions per unit of the logarithm of its odds. The odds themselves
 * are fitted (scripts/bench/fit-hints); scripts/bench/accuracy judges by other files. */
#define HINT_WEIGHT 5.0
/*
 * Leaving a loop is no free choice: each run leaves it once, and samples tell the number of
 * turns. Such hints weigh less.
 */
#define HINT_WEIGHT_LOOP 1.0

/* Arrays for one function at a time: they grow to the largest function and are reused. */
struct scratch {
	struct mp_flow_block *blocks;
	struct mp_flow_edge *edges;
	double *runs; /* per block: a number for mp_flow_connect() and mp_counts_agree() */
	struct mp_func_shape scene;
	uint32_t max_blocks, max_edges;
	struct mp_counts_stats stats;
};

/* The evidence beside the samples, and the result. */
struct inference {
	const struct mp_cfg *cfg;
	const struct mp_profile *profile;
	const struct mp_counts_options *options;
	struct mp_calls_evidence more;
	double transfer_weight, reported_weight; /* as in struct mp_flow */
	bool again; /* out->block holds the result of the round before */
	bool profiled, unsampled, hinted, exact;
	const struct mp_path_evidence *paths; /* NULL: no paths, or they are not used */
	/* per block, visits by paths: set only while functions without samples are inferred */
	uint64_t *visits;
	/*
	 * Per block, computed from its instructions before the first round: its time as
	 * sampling sees it, and the hint that its branch is taken, in instructions.
	 */
	float *wait, *hint;
	struct mp_counts *out;
	struct scratch scratch[MP_PARALLEL_MAX]; /* one for each worker */
};

static int scratch_grow(struct scratch *s, uint32_t nr_blocks, uint32_t nr_edges)
{
	if (nr_blocks > s->max_blocks) {
		if (mp_resize(s->blocks, nr_blocks) || mp_resize(s->runs, nr_blocks) ||
		    mp_resize(s->scene.nr_in, nr_blocks + 1) ||
		    mp_resize(s->scene.depth, nr_blocks + 1))
			return -ENOMEM;
		s->max_blocks = nr_blocks;
	}
	if (nr_edges > s->max_edges) {
		if (mp_resize(s->edges, nr_edges))
			return -ENOMEM;
		s->max_edges = nr_edges;
	}
	return 0;
}

static void inference_fini(struct inference *in)
{
	for (unsigned int i = 0; i < MP_PARALLEL_MAX; i++) {
		free(in->scratch[i].blocks);
		free(in->scratch[i].edges);
		free(in->scratch[i].runs);
		free(in->scratch[i].scene.nr_in);
		free(in->scratch[i].scene.depth);
	}
	free(in->wait);
	free(in->hint);
	mp_calls_evidence_fini(&in->more);
}

/*
 * Sum of the waits between the instructions of @block; the first one waits for the branch
 * before it.
 */
static float block_wait(const struct mp_cfg *cfg, const struct mp_block *block)
{
	const uint8_t *bytes = cfg->elf ? mp_elf_bytes(cfg->elf, block->vaddr, block->size) : NULL;
	double sum = mp_latency_cost(MP_LATENCY_BRANCH);
	struct mp_insn insn;

	for (uint32_t at = 0; at < block->size; at += insn.len) {
		if (!bytes ||
		    mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
			return (float)block->nr_insns;
		if (at + insn.len < block->size)
			sum += mp_latency_cost(mp_insn_latency(bytes + at, &insn));
	}
	return (float)sum;
}

/* Cost of going against the hint, in instructions; above 0: the branch is probably taken. */
static double hint_weighed(struct mp_branch_evidence looks)
{
	bool leaves = looks.seen >> MP_EVIDENCE_LEAVES & 1,
	     fall = looks.seen >> MP_EVIDENCE_FALL_LEAVES & 1;

	return mp_branch_hint(looks) * (leaves != fall ? HINT_WEIGHT_LOOP : HINT_WEIGHT);
}

static void func_read(const struct inference *in, const struct mp_func *func,
		      struct mp_func_shape *scene)
{
	mp_func_shape_fill(in->cfg, func, scene);
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &in->cfg->blocks[b];

		in->wait[b] = block_wait(in->cfg, block);
		if (in->hinted && block->term == MP_TERM_COND && block->nr_edges == 2)
			in->hint[b] =
				(float)hint_weighed(mp_branch_evidence_find(in->cfg, scene, b));
	}
}

static void edge_fill(const struct inference *in, const struct mp_func *func, uint32_t e,
		      struct mp_flow_edge *out)
{
	const struct mp_edge *edge = &in->cfg->edges[e];
	const struct mp_block *from = &in->cfg->blocks[edge->from];
	const struct mp_block *to = &in->cfg->blocks[edge->to];
	const uint8_t *unknown = in->profile->block_unknown;
	bool known = in->transfer_weight > 0 &&
		     !(unknown && (unknown[edge->from] || unknown[edge->to]));
	double hint = edge->kind == MP_EDGE_TAKEN ? -in->hint[edge->from] : in->hint[edge->from];

	*out = (struct mp_flow_edge){
		.from = edge->from - func->first_block,
		.to = edge->to - func->first_block,
		/* With observed transfers the target of each jump is known; no group is needed. */
		.group = edge->kind == MP_EDGE_TABLE && !known ? (uint32_t)from->table : UINT32_MAX,
		/*
		 * The place of a table's target is no evidence: every jump through a table
		 * is a taken one.
		 */
		.taken = edge->kind == MP_EDGE_TAKEN || edge->kind == MP_EDGE_JUMP,
		.backward = to->vaddr <= from->vaddr,
		.against = known ? 0 : fmax(0, hint),
		.counted = known && edge->kind != MP_EDGE_FALL,
		.transfers = known ? (double)in->profile->edge_transfers[e] : 0,
	};
	if (in->profile->edge_foreseen && !known && !in->exact)
		mp_foreseen_fill(in->cfg, in->profile, e,
				 in->again ? in->out->block[edge->from] : 0, out);
}

static void block_fill(const struct inference *in, uint32_t b, struct mp_flow_block *out)
{
	const struct mp_block *block = &in->cfg->blocks[b];
	const struct mp_profile *profile = in->profile;
	bool pad = (block->flags & MP_BLOCK_LANDING_PAD) && !(block->flags & MP_BLOCK_ENTRY);

	*out = (struct mp_flow_block){
		.samples = in->visits ? (double)(in->visits[b] * block->nr_insns)
				      : (double)profile->block_samples[b],
		.nr_insns = block->nr_insns,
		.wait = in->wait[b],
		.entry = mp_block_enters(block),
		.exit = mp_block_leaves(in->cfg, block),
		.entry_cost = pad ? PAD_ENTRY_COST : 0,
		.unknown = profile->block_unknown && profile->block_unknown[b],
		.before = in->again ? in->out->block[b] : 0,
	};
	if (in->more.samples) {
		out->samples += in->more.samples[b];
		out->more_insns = in->more.insns[b];
	}
	if (in->reported_weight > 0)
		out->reported = (double)in->paths->reported[b];
	if (in->transfer_weight > 0) {
		out->samples += (double)profile->block_leavings[b];
		out->more_insns += in->transfer_weight * profile->block_leavers[b];
	}
}

/*
 * @block, @edge: first block and edge of the function, which infer has filled. Return: 0,
 * or an error of mp_path_infer_flow().
 */
static int func_follow_paths(const struct inference *in, const struct mp_flow *flow, uint32_t block,
			     uint32_t edge, struct scratch *scratch, struct mp_err *err)
{
	const uint64_t *edges = in->paths->edge + edge, *outside = in->paths->outside + block;
	bool any = false;
	int ret;

	for (uint32_t e = 0; e < flow->nr_edges && !any; e++)
		any = edges[e] > 0;
	for (uint32_t b = 0; b < flow->nr_blocks && !any; b++)
		any = outside[b] > 0;
	if (!any)
		return 0;
	ret = mp_path_infer_flow(flow, edges, outside, in->out->block + block, in->out->edge + edge,
				 err);
	scratch->stats.nr_by_paths += ret == 0;
	return ret < 0 ? ret : 0;
}

/*
 * Blocks without samples that lie on the only ways to sampled ones count as seen. @block,
 * @edge: result of the round before.
 */
static int ways_add(const struct mp_flow *flow, const double *block, const double *edge,
		    struct scratch *scratch)
{
	if (mp_flow_connect(flow, block, edge, scratch->runs))
		return -ENOMEM;
	for (uint32_t b = 0; b < flow->nr_blocks; b++) {
		/* A block without information expects no samples. */
		if (!(scratch->runs[b] > 0) || scratch->blocks[b].unknown)
			continue;
		scratch->blocks[b].samples +=
			scratch->runs[b] * (mp_flow_block_time(&scratch->blocks[b]) + 1);
		scratch->blocks[b].before = scratch->runs[b];
	}
	return 0;
}

static int func_infer(const struct inference *in, uint32_t f, struct scratch *scratch,
		      struct mp_err *err)
{
	const struct mp_func *func = &in->cfg->funcs[f];
	const struct mp_block *first = &in->cfg->blocks[func->first_block];
	const struct mp_block *last = first + func->nr_blocks - 1;
	uint32_t first_edge = first->first_edge;
	struct mp_flow flow = {
		.nr_blocks = func->nr_blocks,
		.nr_edges = last->first_edge + last->nr_edges - first_edge,
		.layout_prior = in->options->layout_prior,
		.profiled = in->profiled,
		.hinted = in->hinted,
		.exact = in->exact,
		.unsampled = in->unsampled,
		.transfer_weight = in->transfer_weight,
		.reported_weight = in->reported_weight,
	};
	int ret;

	if (scratch_grow(scratch, flow.nr_blocks, flow.nr_edges))
		return mp_err_set(err, ENOMEM, "out of memory");
	if (!in->wait[func->first_block])
		func_read(in, func, &scratch->scene);
	flow.blocks = scratch->blocks;
	flow.edges = scratch->edges;
	for (uint32_t i = 0; i < flow.nr_blocks; i++)
		block_fill(in, func->first_block + i, &scratch->blocks[i]);
	for (uint32_t i = 0; i < flow.nr_edges; i++)
		edge_fill(in, func, first_edge + i, &scratch->edges[i]);
	if (in->again && ways_add(&flow, in->out->block + func->first_block,
				  in->out->edge + first_edge, scratch))
		return mp_err_set(err, ENOMEM, "out of memory");
	ret = mp_infer_flow(&flow, in->options->estimator, in->out->block + func->first_block,
			    in->out->edge + first_edge, err);
	if (ret || !in->paths)
		return ret;
	return func_follow_paths(in, &flow, func->first_block, first_edge, scratch, err);
}

static bool func_has_evidence(const struct mp_func *func, const uint64_t *samples)
{
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		if (samples[b])
			return true;
	return false;
}

static int some_infer(void *ctx, unsigned int worker, uint32_t first, uint32_t end,
		      struct mp_err *err)
{
	struct inference *in = ctx;
	struct scratch *scratch = &in->scratch[worker];

	for (uint32_t f = first; f < end; f++) {
		const struct mp_func *func = &in->cfg->funcs[f];
		int ret;

		if (!func_has_evidence(func, in->out->samples))
			continue;
		ret = func_infer(in, f, scratch, err);
		if (ret < 0)
			return ret;
		scratch->stats.nr_funcs++;
		scratch->stats.nr_gave_up += ret == MP_INFER_GAVE_UP;
		if (func->nr_blocks > scratch->stats.largest)
			scratch->stats.largest = func->nr_blocks;
	}
	return 0;
}

/* Functions per work item: most functions of a large program have no samples. */
#define GRAIN 32

static int funcs_infer(struct inference *in, struct mp_counts_stats *sum, struct mp_err *err)
{
	const struct mp_parallel work = {
		.nr_items = in->cfg->nr_funcs, .grain = GRAIN, .run = some_infer, .ctx = in};
	int ret;

	for (unsigned int i = 0; i < MP_PARALLEL_MAX; i++)
		in->scratch[i].stats = (struct mp_counts_stats){0};
	ret = mp_parallel_for(in->options->nr_threads, &work, err);
	*sum = (struct mp_counts_stats){0};
	for (unsigned int i = 0; i < MP_PARALLEL_MAX; i++) {
		const struct mp_counts_stats *stats = &in->scratch[i].stats;

		sum->nr_funcs += stats->nr_funcs;
		sum->nr_gave_up += stats->nr_gave_up;
		sum->nr_by_paths += stats->nr_by_paths;
		if (stats->largest > sum->largest)
			sum->largest = stats->largest;
	}
	return ret;
}

/* ---- functions that only paths tell of ---------------------------------------------------- */

/* Executions per path, in units of the counts from samples. */
static double paths_weigh(const struct inference *in)
{
	double seen = 0, counted = 0;

	for (uint32_t e = 0; e < in->cfg->nr_edges; e++) {
		if (!in->paths->edge[e] || in->out->edge[e] <= 0)
			continue;
		seen += (double)in->paths->edge[e];
		counted += in->out->edge[e];
	}
	return seen > 0 ? counted / seen : 0;
}

/* Scales the function's counts: in total, its blocks run as often as paths visit them. */
static void func_scale(const struct inference *in, const struct mp_func *func, double weight)
{
	struct mp_counts *out = in->out;
	double visits = 0, counted = 0;

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		visits += (double)in->visits[b];
		counted += in->visits[b] ? out->block[b] : 0;
	}
	weight *= counted > 0 ? visits / counted : 0;
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &in->cfg->blocks[b];

		out->block[b] *= weight;
		out->samples[b] = in->visits[b];
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			out->edge[e] *= weight;
	}
}

/*
 * A polled program reports paths also in functions without samples. The blocks of such a
 * function run as often as paths visit them, at the ratio of executions to paths of all
 * other functions.
 */
static int polled_infer(struct inference *in, struct mp_counts_stats *sum, struct mp_err *err)
{
	const double weight = paths_weigh(in);
	int ret = 0;

	in->visits = weight > 0 ? mp_counts_visits_new(in->cfg, in->paths) : NULL;
	if (!in->visits)
		return weight > 0 ? mp_err_set(err, ENOMEM, "out of memory") : 0;
	free(in->more.samples);
	in->more.samples = NULL;
	for (uint32_t f = 0; f < in->cfg->nr_funcs && ret >= 0; f++) {
		const struct mp_func *func = &in->cfg->funcs[f];

		if (func_has_evidence(func, in->out->samples) ||
		    !func_has_evidence(func, in->visits))
			continue;
		ret = func_infer(in, f, &in->scratch[0], err);
		if (ret >= 0)
			func_scale(in, func, weight);
		sum->nr_funcs++;
		sum->nr_gave_up += ret == MP_INFER_GAVE_UP;
		sum->nr_by_paths += ret == 0;
	}
	free(in->visits);
	in->visits = NULL;
	return ret < 0 ? ret : 0;
}

/*
 * Nothing needs inference if all transfers were counted, too. But some runs may have been
 * counted without transfers. If a function's blocks and edges disagree, only its blocks are
 * trusted.
 */
static int exact_infer(struct inference *in, struct mp_counts_stats *sum, struct mp_err *err)
{
	int ret = 0;

	mp_counts_take_exact(in->cfg, in->profile, in->out);
	for (uint32_t f = 0; f < in->cfg->nr_funcs && ret >= 0; f++) {
		const struct mp_func *func = &in->cfg->funcs[f];

		if (!func_has_evidence(func, in->out->samples))
			continue;
		if (scratch_grow(&in->scratch[0], func->nr_blocks, 0))
			return mp_err_set(err, ENOMEM, "out of memory");
		if (mp_counts_agree(in->cfg, func, in->out, in->scratch[0].runs))
			continue;
		ret = func_infer(in, f, &in->scratch[0], err);
		sum->nr_funcs++;
		sum->nr_gave_up += ret == MP_INFER_GAVE_UP;
	}
	return ret < 0 ? ret : 0;
}

static int followed_copy(const struct mp_cfg *cfg, const struct mp_path_evidence *paths,
			 struct mp_counts *out)
{
	if (!paths->nr_steps)
		return 0;
	out->paths_over_edge = calloc((size_t)cfg->nr_edges + 1, sizeof(*out->paths_over_edge));
	if (!out->paths_over_edge)
		return -ENOMEM;
	memcpy(out->paths_over_edge, paths->edge, cfg->nr_edges * sizeof(*out->paths_over_edge));
	return 0;
}

static int arrays_alloc(struct inference *in)
{
	size_t nr_blocks = (size_t)in->cfg->nr_blocks + 1, nr_edges = (size_t)in->cfg->nr_edges + 1;
	struct mp_counts *out = in->out;

	out->block = calloc(nr_blocks, sizeof(*out->block));
	out->edge = calloc(nr_edges, sizeof(*out->edge));
	out->samples = calloc(nr_blocks, sizeof(*out->samples));
	in->wait = calloc(nr_blocks, sizeof(*in->wait));
	in->hint = calloc(nr_blocks, sizeof(*in->hint));
	return out->block && out->edge && out->samples && in->wait && in->hint ? 0 : -ENOMEM;
}

/*
 * Infers from samples and transfers. Two rounds with the call graph: it relates counts, and
 * the first round finds these. Two rounds with transfers: the first finds the weight of a
 * transfer relative to a sample, and transfers replace the call graph. One round if there
 * are only transfers, or exact counts.
 */
static int rounds_infer(struct inference *in, struct mp_counts_stats *sum, struct mp_err *err)
{
	bool transfers = in->profile->nr_transfers;
	bool again = transfers ? !in->unsampled : in->options->call_graph && !in->exact;
	int ret;

	if (again && !transfers && mp_calls_begin(in->cfg, in->profile, in->out, &in->more))
		return mp_err_set(err, ENOMEM, "out of memory");
	ret = funcs_infer(in, sum, err);
	if (ret || !again)
		return ret;
	if (transfers)
		in->transfer_weight = mp_counts_transfer_weight(in->cfg, in->profile, in->out);
	else if (mp_calls_weigh(in->cfg, in->out, &in->more))
		return mp_err_set(err, ENOMEM, "out of memory");
	if (in->paths)
		in->reported_weight = mp_counts_reported_weight(in->cfg, in->paths, in->out);
	in->again = !transfers;
	ret = funcs_infer(in, sum, err);
	in->again = false;
	return ret;
}

static int inference_run(struct inference *in, struct mp_counts_stats *sum, struct mp_err *err)
{
	const struct mp_profile *profile = in->profile;
	int ret;

	mp_counts_fill_witnesses(in->cfg, profile, in->out->samples);
	in->out->exact = in->out->complete = profile->exact;
	/* If the compiler had a profile, its order is better evidence than hints. */
	in->hinted = in->options->layout_prior && !in->profiled;
	in->exact = profile->exact && profile->nr_samples;
	if (in->exact && profile->nr_transfers)
		return exact_infer(in, sum, err);
	in->unsampled = !profile->nr_samples && profile->nr_transfers;
	in->transfer_weight = in->unsampled;
	if (in->options->estimator == MP_ESTIMATE_PATHS && !profile->nr_transfers)
		in->paths = in->options->paths;
	if (in->paths && followed_copy(in->cfg, in->paths, in->out))
		return mp_err_set(err, ENOMEM, "out of memory");
	ret = rounds_infer(in, sum, err);
	return !ret && in->paths ? polled_infer(in, sum, err) : ret;
}

int mp_counts_build(const struct mp_cfg *cfg, const struct mp_profile *profile,
		    const struct mp_counts_options *options, struct mp_counts *out,
		    struct mp_counts_stats *stats, struct mp_err *err)
{
	static const struct mp_counts_options defaults = {
		.estimator = MP_ESTIMATE_POISSON, .layout_prior = true, .call_graph = true};
	struct mp_counts_stats sum = {0};
	struct inference in = {.cfg = cfg,
			       .profile = profile,
			       .options = options ? options : &defaults,
			       .out = out,
			       .profiled = mp_cfg_is_profiled(cfg)};
	int ret;

	*out = (struct mp_counts){0};
	if (profile->nr_blocks != cfg->nr_blocks)
		return mp_err_set(err, EINVAL, "profile of %u blocks for a program of %u",
				  profile->nr_blocks, cfg->nr_blocks);
	ret = arrays_alloc(&in) ? mp_err_set(err, ENOMEM, "out of memory")
				: inference_run(&in, &sum, err);
	inference_fini(&in);
	if (ret < 0) {
		mp_counts_fini(out);
		return ret;
	}
	out->unsampled = in.unsampled;
	out->transfer_weight = in.transfer_weight;
	if (stats)
		*stats = sum;
	return 0;
}

void mp_counts_fini(struct mp_counts *counts)
{
	free(counts->block);
	free(counts->edge);
	free(counts->samples);
	free(counts->paths_over_edge);
	*counts = (struct mp_counts){0};
}
