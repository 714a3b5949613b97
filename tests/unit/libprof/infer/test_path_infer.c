// SPDX-License-Identifier: Apache-2.0
/*
 * test_path_infer - counts from paths: random functions are simulated block by block, and a
 * timer takes samples and paths. The time of a block is independent of its length. Counts
 * inferred from samples and from paths are compared with the true ones.
 */
#include "libprof/infer/path_infer.h"

#include <math.h>

#include "tests/unit/suite.h"

#define MAX_BLOCKS 256
#define MAX_EDGES  1024
#define MAX_PATH   64

static uint64_t seed;

static double draw(void)
{
	uint64_t x;

	/* splitmix64 */
	seed += 0x9e3779b97f4a7c15;
	x = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)(draw() * n);
}

static double draw_normal(void)
{
	return sqrt(-2 * log(1 - draw())) * cos(2 * M_PI * draw());
}

/* A function, its execution, and what the timer saw. */
struct run {
	struct mp_flow flow;
	struct mp_flow_block blocks[MAX_BLOCKS];
	struct mp_flow_edge edges[MAX_EDGES];
	double take[MAX_EDGES];	 /* probability that its block takes the edge */
	bool starts[MAX_EDGES];	 /* a path starts on it: the back edge of a loop */
	bool calls[MAX_BLOCKS];	 /* a path starts in its middle: after a call */
	double time[MAX_BLOCKS]; /* of one execution */
	uint32_t out[MAX_BLOCKS][2], nr_out[MAX_BLOCKS];
	uint64_t block_runs[MAX_BLOCKS], edge_runs[MAX_EDGES];
	uint64_t edge_seen[MAX_EDGES], outside_seen[MAX_BLOCKS];
	uint64_t nr_samples;
	double block_count[MAX_BLOCKS], edge_count[MAX_EDGES];
};

static void clear(struct run *r)
{
	memset(r, 0, sizeof(*r));
	r->flow = (struct mp_flow){.blocks = r->blocks, .edges = r->edges, .layout_prior = true};
}

static uint32_t add_block(struct run *r)
{
	uint32_t b = r->flow.nr_blocks++;

	ck_assert_uint_lt(b, MAX_BLOCKS);
	r->blocks[b].nr_insns = 1 + below(12);
	r->time[b] = r->blocks[b].nr_insns;
	return b;
}

static uint32_t add_edge(struct run *r, uint32_t from, uint32_t to, double take)
{
	uint32_t e = r->flow.nr_edges++;

	ck_assert_uint_lt(e, MAX_EDGES);
	r->edges[e] = (struct mp_flow_edge){.from = from,
					    .to = to,
					    .group = UINT32_MAX,
					    .taken = to != from + 1,
					    .backward = to <= from};
	r->starts[e] = to <= from;
	r->take[e] = take;
	ck_assert_uint_lt(r->nr_out[from], 2);
	r->out[from][r->nr_out[from]++] = e;
	return e;
}

/* Branches are mostly biased. */
static double draw_bias(void)
{
	double p = pow(draw(), 2.5) * 0.5;

	return below(2) ? p : 1 - p;
}

/* Adds statements after block @at. Return: the block that ends them. */
static uint32_t add_code(struct run *r, uint32_t at, int depth)
{
	uint32_t nr = 1 + below(4);

	for (uint32_t i = 0; i < nr && r->flow.nr_blocks < MAX_BLOCKS - 40; i++) {
		double bias = draw_bias();
		uint32_t head, out, end;

		switch (depth ? below(6) : 0) {
		case 0: /* straight on, perhaps out of the function */
			if (below(3))
				break;
			out = add_block(r);
			end = add_block(r);
			add_edge(r, at, out, 0.05 * bias);
			add_edge(r, at, end, 1 - 0.05 * bias);
			r->blocks[out].exit = true;
			at = end;
			break;
		case 1: /* if */
		case 2:
			out = add_block(r);
			add_edge(r, at, out, bias);
			head = add_code(r, out, depth - 1);
			end = add_block(r);
			add_edge(r, at, end, 1 - bias);
			add_edge(r, head, end, 1);
			at = end;
			break;
		case 3: /* if, else */
		case 4:
			out = add_block(r);
			head = add_code(r, out, depth - 1);
			add_edge(r, at, out, bias);
			out = add_block(r);
			add_edge(r, at, out, 1 - bias);
			out = add_code(r, out, depth - 1);
			end = add_block(r);
			add_edge(r, head, end, 1);
			add_edge(r, out, end, 1);
			at = end;
			break;
		default: /* do, while */
			head = add_block(r);
			add_edge(r, at, head, 1);
			at = add_code(r, head, depth - 1);
			end = add_block(r);
			bias = 0.5 + 0.49 * draw();
			add_edge(r, at, head, bias);
			add_edge(r, at, end, 1 - bias);
			at = end;
			break;
		}
	}
	return at;
}

/* @spread: standard deviation of the logarithm of the time per instruction. */
static void make_function(struct run *r, int depth, double spread)
{
	uint32_t last;

	clear(r);
	add_block(r);
	r->blocks[0].entry = true;
	last = add_code(r, 0, depth);
	r->blocks[last].exit = true;
	for (uint32_t b = 0; b < r->flow.nr_blocks; b++) {
		r->time[b] = r->blocks[b].nr_insns * exp(spread * draw_normal());
		r->calls[b] = !below(6);
	}
}

struct walk {
	uint32_t path[MAX_PATH]; /* edges since the path's start */
	uint32_t nr;
	bool from_outside; /* the path starts at the entry */
};

static void sample(struct run *r, const struct walk *w, uint32_t at, bool behind_call)
{
	r->blocks[at].samples++;
	r->nr_samples++;
	if (behind_call)
		return;
	if (w->from_outside)
		r->outside_seen[0]++;
	for (uint32_t i = 0; i < w->nr; i++)
		r->edge_seen[w->path[i]]++;
}

/* Return: the edge that is taken; UINT32_MAX: out of the function. */
static uint32_t choose(const struct run *r, uint32_t at)
{
	double x = draw();

	for (uint32_t i = 0; i < r->nr_out[at]; i++) {
		x -= r->take[r->out[at][i]];
		if (x < 0)
			return r->out[at][i];
	}
	return UINT32_MAX;
}

/* Calls the function until there are @nr_samples, sampling every @period. */
static void run(struct run *r, uint64_t nr_samples, double period)
{
	double left = period * draw();

	while (r->nr_samples < nr_samples) {
		struct walk w = {.from_outside = true};
		uint32_t at = 0, e;

		do {
			double spent = r->time[at];

			r->block_runs[at]++;
			for (; left < spent; left += period * (0.5 + draw())) {
				/* The call is in the middle of the block and takes no time. */
				sample(r, &w, at, r->calls[at] && left > spent / 2);
			}
			left -= spent;
			if (r->calls[at])
				w = (struct walk){0};
			e = choose(r, at);
			if (e == UINT32_MAX)
				break;
			r->edge_runs[e]++;
			if (r->starts[e])
				w = (struct walk){0};
			if (w.nr < MAX_PATH)
				w.path[w.nr++] = e;
			at = r->edges[e].to;
		} while (true);
	}
}

static void infer(struct run *r, bool by_paths)
{
	int ret = mp_infer_flow(&r->flow, MP_ESTIMATE_POISSON, r->block_count, r->edge_count, &err);

	ck_assert_msg(!ret, "%s", err.msg);
	if (by_paths)
		ret = mp_path_infer_flow(&r->flow, r->edge_seen, r->outside_seen, r->block_count,
					 r->edge_count, &err);
	ck_assert_msg(!ret, "%s", err.msg);
}

static void assert_conserved(const struct run *r)
{
	double in[MAX_BLOCKS] = {0}, out[MAX_BLOCKS] = {0};

	for (uint32_t e = 0; e < r->flow.nr_edges; e++) {
		ck_assert(r->edge_count[e] >= 0);
		in[r->edges[e].to] += r->edge_count[e];
		out[r->edges[e].from] += r->edge_count[e];
	}
	for (uint32_t b = 0; b < r->flow.nr_blocks; b++) {
		double count = r->block_count[b], slack = 1e-6 * count + 1e-9;

		ck_assert(isfinite(count) && count >= 0);
		ck_assert(in[b] <= count + slack && out[b] <= count + slack);
		ck_assert(r->blocks[b].entry || in[b] >= count - slack);
		ck_assert(r->blocks[b].exit || out[b] >= count - slack);
	}
}

/* PEP, section 6.4: share of branch executions whose bias is estimated right. */
static double overlap(const struct run *r)
{
	double right = 0, runs = 0;

	for (uint32_t b = 0; b < r->flow.nr_blocks; b++) {
		uint32_t e = r->out[b][0], other = r->out[b][1];
		uint64_t ran = r->edge_runs[e] + r->edge_runs[other];
		double count = r->edge_count[e] + r->edge_count[other];

		if (r->nr_out[b] < 2)
			continue;
		right += (double)ran -
			 fabs((double)r->edge_runs[e] -
			      (double)ran * (count > 0 ? r->edge_count[e] / count : 0.5));
		runs += (double)ran;
	}
	return runs > 0 ? right / runs : 1;
}

struct accuracy {
	double samples, paths;
};

/* Return: mean over @nr functions of the accuracy by samples alone, and by paths. */
static struct accuracy measure(uint32_t nr, uint64_t nr_samples, double spread)
{
	AUTO_FREE struct run *r = malloc(sizeof(*r));
	struct accuracy sum = {0};

	for (uint32_t i = 0; i < nr; i++) {
		seed = i;
		make_function(r, 3, spread);
		run(r, nr_samples, 200);
		infer(r, false);
		sum.samples += overlap(r) / nr;
		infer(r, true);
		assert_conserved(r);
		sum.paths += overlap(r) / nr;
	}
	return sum;
}

TEST(paths_beat_samples_where_times_differ)
{
	/* Blocks take 5 times (e^1.6) as long as others of their length, or a fifth, and more. */
	struct accuracy few = measure(60, 100, 1.6), some = measure(60, 1000, 1.6),
			many = measure(60, 10000, 1.6);

	ck_assert_msg(few.paths > few.samples + 0.08, "%f %f", few.samples, few.paths);
	ck_assert_msg(some.paths > some.samples + 0.12, "%f %f", some.samples, some.paths);
	ck_assert_msg(many.paths > many.samples + 0.14, "%f %f", many.samples, many.paths);
	/* A larger profile helps paths, but not samples alone. */
	ck_assert_msg(many.paths > 0.95, "%f %f", many.samples, many.paths);
	ck_assert_msg(many.samples < 0.85, "%f %f", many.samples, many.paths);
}

TEST(paths_beat_samples_where_times_are_alike)
{
	struct accuracy few = measure(60, 100, 0), many = measure(60, 10000, 0);

	ck_assert_msg(few.paths > few.samples, "%f %f", few.samples, few.paths);
	ck_assert_msg(many.paths > many.samples + 0.02, "%f %f", many.samples, many.paths);
	ck_assert_msg(many.paths > 0.98, "%f %f", many.samples, many.paths);
}

/* Random edges between @nr blocks, with loops that have several entries. */
static void make_graph(struct run *r, uint32_t nr, bool one_exit)
{
	clear(r);
	for (uint32_t b = 0; b < nr; b++)
		add_block(r);
	r->blocks[0].entry = true;
	r->blocks[nr - 1].exit = true;
	for (uint32_t b = 0; b + 1 < nr; b++) {
		double bias = 0.1 + 0.8 * draw();

		r->blocks[b].exit = !one_exit && !below(6);
		bias *= r->blocks[b].exit ? 0.7 : 1;
		add_edge(r, b, b + 1, bias);
		add_edge(r, b, below(nr), (r->blocks[b].exit ? 0.7 : 1) - bias);
	}
}

/*
 * Propagates flow forward from the entry until none is left. Return: false: a loop runs too
 * long.
 */
static bool flow_exactly(struct run *r, double *count)
{
	double at[MAX_BLOCKS] = {[0] = 1}, next[MAX_BLOCKS], left = 0;

	memset(count, 0, MAX_BLOCKS * sizeof(*count));
	for (int round = 0; round < 10000; round++) {
		memset(next, 0, sizeof(next));
		for (uint32_t b = 0; b < r->flow.nr_blocks; b++)
			count[b] += at[b];
		for (uint32_t e = 0; e < r->flow.nr_edges; e++)
			next[r->edges[e].to] += at[r->edges[e].from] * r->take[e];
		memcpy(at, next, sizeof(at));
	}
	for (uint32_t b = 0; b < r->flow.nr_blocks; b++) {
		r->block_runs[b] = (uint64_t)llround(1e7 * count[b]);
		r->blocks[b].samples = 1e4 * count[b] * (r->blocks[b].nr_insns + 1);
		count[b] *= 1e4;
	}
	for (uint32_t e = 0; e < r->flow.nr_edges; e++) {
		double runs = 1e3 * count[r->edges[e].from] * r->take[e];

		r->edge_runs[e] = r->edge_seen[e] = (uint64_t)llround(runs);
	}
	r->outside_seen[0] = 10000000;
	for (uint32_t b = 0; b < r->flow.nr_blocks; b++)
		left += at[b];
	return left < 1e-9;
}

TEST(paths_that_say_all_give_the_flow_of_any_graph)
{
	AUTO_FREE struct run *r = malloc(sizeof(*r));
	double count[MAX_BLOCKS];
	uint32_t nr_tried = 0;

	for (uint32_t i = 0; i < 200; i++) {
		seed = 1000 + i;
		make_graph(r, 2 + below(40), true);
		if (!flow_exactly(r, count))
			continue;
		nr_tried++;
		/* The times of single blocks must not matter, only their sum. */
		if (i % 2)
			for (uint32_t b = 0; b < r->flow.nr_blocks; b++)
				r->blocks[b].samples *= b % 2 ? 10 : 0.1;
		infer(r, true);
		assert_conserved(r);
		for (uint32_t b = 0; b < r->flow.nr_blocks; b++) {
			double scale = r->block_count[0] / count[0];

			ck_assert_msg(fabs(r->block_count[b] / scale - count[b]) <=
					      1e-3 * count[b] + 1,
				      "graph %u block %u: %f, not %f", i, b,
				      r->block_count[b] / scale, count[b]);
			ck_assert(i % 2 || fabs(scale - 1) < 1e-3);
		}
	}
	ck_assert_uint_gt(nr_tried, 150);
}

TEST(samples_say_by_which_exit_flow_leaves)
{
	AUTO_FREE struct run *r = malloc(sizeof(*r));
	double count[MAX_BLOCKS], off = 0, all = 0;

	for (uint32_t i = 0; i < 200; i++) {
		seed = 2000 + i;
		make_graph(r, 2 + below(40), false);
		if (!flow_exactly(r, count))
			continue;
		infer(r, true);
		assert_conserved(r);
		for (uint32_t b = 0; b < r->flow.nr_blocks; b++) {
			off += fabs(r->block_count[b] - count[b]) / count[0];
			all += count[b] / count[0];
		}
	}
	ck_assert_msg(off < 0.05 * all, "%f of %f", off, all);
}

/*
 * if (a) { call } else { }: no path reaches back over the merge, so about the result of infer
 * remains.
 */
TEST(without_paths_at_a_merge_samples_decide)
{
	AUTO_FREE struct run *r = malloc(sizeof(*r));
	double before;

	clear(r);
	for (int b = 0; b < 6; b++)
		r->blocks[add_block(r)] = (struct mp_flow_block){.samples = 100, .nr_insns = 4};
	r->blocks[0].entry = r->blocks[5].exit = true;
	add_edge(r, 0, 1, 0);
	add_edge(r, 0, 2, 0);
	add_edge(r, 1, 3, 0);
	add_edge(r, 2, 3, 0);
	add_edge(r, 3, 4, 0);
	add_edge(r, 3, 5, 0);
	add_edge(r, 4, 5, 0);
	r->blocks[1].samples = 80;
	r->blocks[2].samples = 20;
	r->blocks[4].samples = 90;
	infer(r, false);
	before = r->edge_count[2] / r->block_count[3];
	r->edge_seen[5] = 900;
	r->edge_seen[6] = 100;
	infer(r, true);
	assert_conserved(r);
	ck_assert(fabs(r->edge_count[2] / r->block_count[3] - before) < 0.1);
	ck_assert(fabs(r->edge_count[6] / r->block_count[5] - 0.1) < 0.02);
}

/*
 * A loop with ten iterations per entry, whose block waits so long that samples suggest a
 * hundred. Reports of the blocks before and in it give the right number.
 */
TEST(reported_paths_tell_how_often_a_loop_runs)
{
	AUTO_FREE struct run *r = malloc(sizeof(*r));

	clear(r);
	for (int b = 0; b < 3; b++)
		r->blocks[add_block(r)] = (struct mp_flow_block){.samples = 40, .nr_insns = 4};
	r->blocks[0].entry = r->blocks[2].exit = true;
	r->blocks[1].samples = 4000;
	add_edge(r, 0, 1, 0);
	add_edge(r, 1, 1, 0);
	add_edge(r, 1, 2, 0);
	infer(r, true);
	ck_assert(r->block_count[1] > 50 * r->block_count[0]);
	r->flow.reported_weight = 5;
	r->blocks[0].reported = 50;
	r->blocks[1].reported = 500;
	infer(r, true);
	assert_conserved(r);
	ck_assert(fabs(r->block_count[1] / r->block_count[0] - 10) < 4);
}

/*
 * By its time a function runs a thousand times; by its reports, 125 times. Both are known only
 * up to a factor.
 */
TEST(what_a_function_tells_is_off_by_a_factor)
{
	AUTO_FREE struct run *r = malloc(sizeof(*r));

	clear(r);
	for (int b = 0; b < 2; b++)
		r->blocks[add_block(r)] =
			(struct mp_flow_block){.samples = 4000, .nr_insns = 4, .reported = 12500};
	r->blocks[0].entry = r->blocks[1].exit = true;
	add_edge(r, 0, 1, 0);
	r->flow.reported_weight = 100;
	infer(r, true);
	assert_conserved(r);
	ck_assert_msg(r->block_count[0] > 150 && r->block_count[0] < 900, "%g", r->block_count[0]);
}

TEST(what_nobody_saw_stays_at_zero)
{
	AUTO_FREE struct run *r = malloc(sizeof(*r));
	uint64_t nr_zero = 0, nr_false = 0;

	for (uint32_t i = 0; i < 50; i++) {
		seed = 3000 + i;
		make_function(r, 3, 1);
		/* One branch in five always goes the same way. */
		for (uint32_t b = 0; b < r->flow.nr_blocks; b++)
			if (r->nr_out[b] == 2 && !r->starts[r->out[b][0]] && !below(5)) {
				uint32_t never = below(2);

				r->take[r->out[b][!never]] += r->take[r->out[b][never]];
				r->take[r->out[b][never]] = 0;
			}
		run(r, 300, 200);
		infer(r, false);
		for (uint32_t b = 0; b < r->flow.nr_blocks; b++)
			nr_zero += r->block_count[b] == 0;
		infer(r, true);
		assert_conserved(r);
		for (uint32_t e = 0; e < r->flow.nr_edges; e++)
			if (r->edge_seen[e])
				ck_assert(r->edge_count[e] > 0);
		for (uint32_t b = 0; b < r->flow.nr_blocks; b++)
			nr_false += r->block_count[b] > 0 && !r->block_runs[b];
	}
	ck_assert_uint_gt(nr_zero, 500);
	ck_assert_msg(nr_false < nr_zero / 10, "%lu of %lu", nr_false, nr_zero);
}

/* for (;;): entered before sampling began, and never left. */
TEST(loops_without_end_have_counts)
{
	AUTO_FREE struct run *r = malloc(sizeof(*r));

	clear(r);
	for (int b = 0; b < 5; b++)
		r->blocks[add_block(r)] = (struct mp_flow_block){.samples = 1000, .nr_insns = 9};
	r->blocks[0].entry = true;
	r->blocks[0].samples = 0;
	add_edge(r, 0, 1, 0);
	add_edge(r, 1, 2, 0);
	add_edge(r, 1, 3, 0);
	add_edge(r, 2, 4, 0);
	add_edge(r, 3, 4, 0);
	add_edge(r, 4, 1, 0);
	r->edge_seen[5] = 500;
	r->edge_seen[3] = 300;
	r->edge_seen[4] = 100;
	infer(r, true);
	for (uint32_t b = 1; b < 5; b++)
		ck_assert_msg(r->block_count[b] > 10 && r->block_count[b] < 1000, "%u: %f", b,
			      r->block_count[b]);
	ck_assert(fabs(r->edge_count[3] / r->block_count[4] - 0.75) < 0.02);
	/* The flow out of 1 equals the flow into it, up to what cannot be known. */
	ck_assert(fabs(r->edge_count[1] + r->edge_count[2] - r->block_count[1]) <
		  0.01 * r->block_count[1]);
}

/*
 * A loop with 10,000 iterations: none of 100 paths shows its entry. The code before and after
 * it, and its time, give the number.
 */
TEST(loops_that_are_seldom_entered_do_not_run_away)
{
	for (int prior = 0; prior < 2; prior++) {
		AUTO_FREE struct run *r = malloc(sizeof(*r));

		clear(r);
		for (int b = 0; b < 3; b++)
			r->blocks[add_block(r)] =
				(struct mp_flow_block){.samples = 2, .nr_insns = 9};
		r->blocks[0].entry = r->blocks[2].exit = true;
		r->blocks[1].samples = prior ? 2000 : 20000;
		add_edge(r, 0, 1, 0);
		add_edge(r, 1, 1, 0);
		add_edge(r, 1, 2, 0);
		r->edge_seen[1] = prior ? 0 : 100;
		r->outside_seen[0] = 1;
		infer(r, true);
		assert_conserved(r);
		ck_assert_msg(r->block_count[1] > 100 && r->block_count[1] < 4000, "%f",
			      r->block_count[1]);
		ck_assert_msg(r->block_count[2] > 0.02 && r->block_count[2] < 2, "%f",
			      r->block_count[2]);
	}
}

TEST(numbers_that_make_no_sense_are_refused)
{
	struct mp_flow_block block = {.samples = 1, .nr_insns = 1, .entry = true, .exit = true};
	struct mp_flow_edge edge = {.from = 0, .to = 0, .group = UINT32_MAX};
	struct mp_flow flow = {.blocks = &block, .nr_blocks = 1, .edges = &edge, .nr_edges = 1};
	uint64_t seen[1] = {0}, outside[1] = {0};
	double count[1] = {1}, runs[1] = {0};

	ck_assert_int_eq(mp_path_infer_flow(&flow, seen, outside, count, runs, NULL), 0);
	count[0] = NAN;
	ck_assert_int_eq(mp_path_infer_flow(&flow, seen, outside, count, runs, NULL), -EINVAL);
	count[0] = 1;
	runs[0] = -1;
	ck_assert_int_eq(mp_path_infer_flow(&flow, seen, outside, count, runs, NULL), -EINVAL);
	runs[0] = 0;
	block.samples = INFINITY;
	ck_assert_int_eq(mp_path_infer_flow(&flow, seen, outside, count, runs, NULL), -EINVAL);
	block.samples = 1;
	edge.to = 1;
	ck_assert_int_eq(mp_path_infer_flow(&flow, seen, outside, count, runs, NULL), -EINVAL);
	flow.nr_blocks = flow.nr_edges = 0;
	ck_assert_int_eq(mp_path_infer_flow(&flow, seen, outside, count, runs, NULL), 0);
}
