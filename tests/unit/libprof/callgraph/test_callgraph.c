// SPDX-License-Identifier: Apache-2.0
/* test_callgraph - what the solve finds in known graphs, and what holds for any input. */
#include "libprof/callgraph/callgraph.h"

#include <math.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define MAX	64
#define OUTSIDE MP_CALLGRAPH_OUTSIDE

static struct mp_callgraph_edge edges[MAX];
static struct mp_callgraph_sum sites[MAX], functions[MAX];
static struct mp_callgraph graph;

static const struct mp_callgraph_options options = {
	.per_call = 8,
	.most = 30,
	.per_sample = 0.3,
	.per_called = 1,
	.most_samples = 2,
	.factor = 8,
	.nr_rounds = 60,
};

static void setup(void)
{
	memset(edges, 0, sizeof(edges));
	memset(sites, 0, sizeof(sites));
	memset(functions, 0, sizeof(functions));
	graph = (struct mp_callgraph){edges, sites, functions, 0, 0, 0};
}

static uint32_t function(double entries)
{
	functions[graph.nr_functions] =
		(struct mp_callgraph_sum){.count = entries, .known = entries >= 0};
	return graph.nr_functions++;
}

static uint32_t site(uint32_t within, double count)
{
	sites[graph.nr_sites] =
		(struct mp_callgraph_sum){.count = count, .known = count >= 0, .within = within};
	return graph.nr_sites++;
}

static struct mp_callgraph_edge *edge(uint32_t from, uint32_t to, double seen)
{
	edges[graph.nr_edges] =
		(struct mp_callgraph_edge){.site = from, .function = to, .seen = seen};
	return &edges[graph.nr_edges++];
}

static void solve(void)
{
	ck_assert_int_eq(mp_callgraph_solve(&graph, NULL), 0);
	for (uint32_t i = 0; i < graph.nr_edges; i++)
		ck_assert_msg(isfinite(edges[i].weight) && edges[i].weight >= 0, "edge %u: %g", i,
			      edges[i].weight);
}

static void about(double is, double expected)
{
	ck_assert_msg(fabs(is - expected) <= 0.02 * expected, "%g, not %g", is, expected);
}

static struct mp_callgraph_edge *called(uint32_t from, uint32_t to, double seen, double calls)
{
	struct mp_callgraph_edge *e = edge(from, to, seen);

	e->called = calls;
	return e;
}

FIXTURE(setup, NULL);

/* Without any count, the edges share as a clock of calls says, whatever samples of time say. */
TEST(calls_of_a_clock_alone_decide_the_shares)
{
	uint32_t f = function(-1), g = function(-1), h = function(-1);
	const struct mp_callgraph_edge *often = called(site(f, -1), g, 10, 900),
				       *seldom = called(site(f, -1), g, 5000, 90),
				       *other = called(site(f, -1), h, 0, 10);

	solve();
	about(often->weight / seldom->weight, 10);
	about(often->weight / other->weight, 90);
}

/* Counts that contradict many sampled calls give way, and carry on to sites without a clock. */
TEST(calls_of_a_clock_mend_the_counts_of_a_function)
{
	uint32_t outside = function(-1), f = function(50), g = function(100), l = function(-1);
	const struct mp_callgraph_edge *into_f = called(site(outside, -1), f, 0, 10000),
				       *into_g = called(site(outside, -1), g, 0, 10000),
				       *library = edge(site(f, 50), l, 0),
				       *library_too = edge(site(g, 100), l, 0);

	solve();
	about(into_f->weight, into_g->weight);
	/* f ran twice as often as its counts say, relative to g. */
	ck_assert_double_gt(library->weight / library_too->weight, 0.75);
	ck_assert_double_lt(library->weight / library_too->weight, 1.1);
}

/* A function that a clock never saw keeps its inferred number of calls. */
TEST(functions_without_a_clock_keep_their_counts)
{
	uint32_t f = function(100), g = function(100), h = function(50);
	const struct mp_callgraph_edge *clocked = called(site(f, 100), g, 0, 1000),
				       *inferred = edge(site(f, 50), h, 0);

	solve();
	about(clocked->weight / inferred->weight, 2);
}

/* A clocked function without a sampled call ran seldom. A function that surely has no clock may have run often. */
TEST(functions_that_a_clock_might_have_seen_ran_seldom)
{
	uint32_t f = function(100), g = function(1000), seldom = function(10),
		 often = function(1000);
	const struct mp_callgraph_edge *clocked = called(site(f, 1000), g, 0, 1000),
				       *to_seldom = edge(site(f, 10), seldom, 0),
				       *to_often = edge(site(f, 1000), often, 0);

	functions[seldom].in_clocked = functions[often].in_clocked = true;
	solve();
	ck_assert_double_lt(to_seldom->weight, 0.95 * clocked->weight / 100);
	ck_assert_double_gt(to_seldom->weight, 0);
	ck_assert_double_gt(to_often->weight, 0.75 * clocked->weight);
}

/* An indirect site: the first target is the one that was called most, not the one that took most time. */
TEST(an_indirect_site_is_shared_as_a_clock_says)
{
	uint32_t f = function(1000), quick = function(-1), slow = function(-1), s = site(f, 1000);
	const struct mp_callgraph_edge *to_quick = called(s, quick, 10, 800),
				       *to_slow = called(s, slow, 900, 200);

	solve();
	about(to_quick->weight / to_slow->weight, 4);
}

TEST(numbers_of_sampled_calls_are_checked)
{
	uint32_t f = function(1), g = function(1);

	called(site(f, 1), g, 1, -1);
	ck_assert_int_eq(mp_callgraph_solve(&graph, NULL), -EINVAL);
	edges[0].called = NAN;
	ck_assert_int_eq(mp_callgraph_solve(&graph, NULL), -EINVAL);
	edges[0].called = 1e300;
	solve();
}

/* Lee (2015), figure 1: both calls run equally often, but one of them takes ten times as long. */
TEST(calls_of_different_density_become_equal)
{
	uint32_t dense = function(-1), sparse = function(-1), compute = function(200);

	edge(site(dense, 105), compute, 600);
	edge(site(sparse, 95), compute, 6000);
	solve();
	ck_assert_double_lt(edges[1].weight, 1.25 * edges[0].weight);
	ck_assert_double_gt(edges[1].weight, 0.8 * edges[0].weight);
}

/* main calls f 100 times and g 10 times; f calls g 50 times and, indirectly, h and i. */
TEST(consistent_evidence_is_met)
{
	uint32_t main = function(0), f = function(100), g = function(60), h = function(30),
		 i = function(10);
	struct mp_callgraph_edge *to_h, *to_i, *twice;
	uint32_t indirect;

	edge(site(main, 100), f, 40);
	twice = edge(site(main, 10), g, 2);
	edge(site(f, 50), g, 10);
	indirect = site(f, 40);
	to_h = edge(indirect, h, 6);
	to_i = edge(indirect, i, 2);
	solve();
	about(edges[0].weight, 100);
	about(twice->weight, 10);
	about(edges[2].weight, 50);
	about(to_h->weight, 30);
	about(to_i->weight, 10);
}

/* Without entries, samples alone say how an indirect site shares its calls, at first. */
TEST(samples_share_an_indirect_site)
{
	uint32_t f = function(-1), g = function(-1), h = function(-1), s = site(f, 80);
	const struct mp_callgraph_edge *to_g = edge(s, g, 60), *to_h = edge(s, h, 20);

	solve();
	about(to_g->weight + to_h->weight, 80);
	ck_assert_double_gt(to_g->weight, 2.5 * to_h->weight);
	ck_assert_double_lt(to_g->weight, 3.5 * to_h->weight);
}

/* Entries overrule samples: time in h is long, but it was entered seldom. */
TEST(entries_correct_the_shares_of_samples)
{
	uint32_t f = function(-1), g = function(70), h = function(10), s = site(f, 80);
	const struct mp_callgraph_edge *to_g = edge(s, g, 20), *to_h = edge(s, h, 60);

	solve();
	about(to_g->weight, 70);
	about(to_h->weight, 10);
}

/* A site whose count is not known takes what the entries leave. */
TEST(an_unknown_site_takes_what_is_left)
{
	uint32_t f = function(-1), g = function(50);
	const struct mp_callgraph_edge *known = edge(site(f, 30), g, 30),
				       *unknown = edge(site(f, -1), g, 20);

	solve();
	about(known->weight + unknown->weight, 50);
	ck_assert_double_gt(unknown->weight, 10);
	ck_assert_double_lt(unknown->weight, 30);
}

TEST(contradictions_end_in_between)
{
	uint32_t f = function(-1), g = function(100);

	edge(site(f, 10), g, 1);
	solve();
	ck_assert_double_gt(edges[0].weight, 11);
	ck_assert_double_lt(edges[0].weight, 99);
}

TEST(an_exact_count_does_not_give_way)
{
	uint32_t f = function(-1), g = function(100);

	edge(site(f, 10), g, 500);
	sites[0].exact = functions[f].exact = true;
	solve();
	about(edges[0].weight, 10);
}

/* All counts of f are three times too large, as its callers and what it calls show. */
TEST(the_counts_of_a_function_have_a_common_factor)
{
	uint32_t main = function(-1), f = function(300), callee;
	struct mp_callgraph_options without = options;
	double before, with;

	without.factor = 0;
	edge(site(main, 100), f, 10);
	for (int i = 0; i < 4; i++) {
		callee = function(100);
		edge(site(f, 300), callee, 10);
	}
	/* The last function that f calls is known from f alone. */
	functions[callee].known = false;
	solve();
	with = edges[4].weight;
	ck_assert_int_eq(mp_callgraph_solve(&graph, &without), 0);
	before = edges[4].weight;
	about(before, 300);
	ck_assert_double_lt(with, 220);
	ck_assert_double_gt(with, 100);
}

TEST(what_did_not_run_has_no_calls)
{
	uint32_t f = function(0), g = function(0);

	edge(site(f, 0), g, 0);
	edge(OUTSIDE, g, 0);
	solve();
	ck_assert_double_eq(edges[0].weight, 0);
	ck_assert_double_eq(edges[1].weight, 0);
}

/* Counts of 0 in a function that runs many instructions are better evidence than in a thunk. */
TEST(a_function_without_samples_ran_seldom)
{
	uint32_t f = function(-1), longer = function(0), thunk = function(0);

	functions[longer].nr_insns = 8;
	functions[thunk].nr_insns = 1;
	edge(site(f, 1), longer, 0);
	edge(site(f, 1), thunk, 0);
	solve();
	ck_assert_double_lt(edges[0].weight, 0.8);
	ck_assert_double_gt(edges[1].weight, edges[0].weight);
	ck_assert_double_le(edges[1].weight, 1);
}

TEST(samples_outside_of_all_sites_stay_outside)
{
	uint32_t f = function(-1), g = function(40);
	const struct mp_callgraph_edge *handler = edge(OUTSIDE, g, 30),
				       *call = edge(site(f, 10), g, 10);

	solve();
	about(call->weight, 10);
	about(handler->weight, 30);
}

TEST(an_empty_graph_is_solved)
{
	solve();
	function(10);
	solve();
}

TEST(no_number_overflows)
{
	static const double numbers[] = {0, 5e-324, 1e-300, 1, 1e18, 1e300, 1.7e308};
	size_t nr = sizeof(numbers) / sizeof(numbers[0]);

	for (size_t i = 0; i < nr * nr * nr * nr; i++) {
		uint32_t f, g, h, s;

		setup();
		f = function(numbers[i / nr % nr]);
		g = function(numbers[i % nr]);
		h = function(-1);
		s = site(f, numbers[i / nr / nr % nr]);
		edge(s, g, numbers[i / nr / nr / nr]);
		edge(s, h, numbers[i % nr]);
		edge(site(g, -1), h, numbers[i / nr % nr]);
		edge(OUTSIDE, f, numbers[i / nr / nr % nr]);
		solve();
	}
}

TEST(bad_numbers_are_refused)
{
	static const double bad[] = {-1, NAN, INFINITY, -INFINITY};
	uint32_t f, g;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (int k = 0; k < 3; k++) {
			setup();
			f = function(1);
			g = function(1);
			edge(site(f, 1), g, 1);
			*(k == 0   ? &edges[0].seen
			  : k == 1 ? &sites[0].count
				   : &functions[1].count) = bad[i];
			ck_assert_int_eq(mp_callgraph_solve(&graph, NULL), -EINVAL);
		}
	}
	setup();
	f = function(1);
	edge(site(f, 1), f, 1);
	edges[0].site = 1;
	ck_assert_int_eq(mp_callgraph_solve(&graph, NULL), -EINVAL);
	edges[0].site = 0;
	edges[0].function = 1;
	ck_assert_int_eq(mp_callgraph_solve(&graph, NULL), -EINVAL);
	edges[0].function = 0;
	sites[0].within = 1;
	ck_assert_int_eq(mp_callgraph_solve(&graph, NULL), -EINVAL);
}

/* ---- random graphs --------------------------------------------------------------------------- */

static void random_graph(void)
{
	uint32_t nr = 2 + random_below(8), nr_sites = 1 + random_below(16);
	bool is_clocked = random_below(2);

	setup();
	for (uint32_t i = 0; i < nr; i++)
		function(random_below(4) ? (double)random_below(100) : -1);
	for (uint32_t i = 0; i < nr_sites; i++)
		site(random_below(nr), random_below(4) ? (double)random_below(100) : -1);
	for (uint32_t i = 0; i < MAX / 2; i++)
		called(random_below(8) ? random_below(nr_sites) : OUTSIDE, random_below(nr),
		       random_below(3) ? random_below(50) : 0,
		       is_clocked && random_below(4) == 0 ? random_below(200) : 0);
}

static double log_poisson(double rate, double count, double sum)
{
	return rate * (count > 0 ? count * log(sum) : 0) - rate * sum;
}

static double rate_of(const struct mp_callgraph_options *o, const struct mp_callgraph_sum *sum)
{
	return o->per_call * o->most / (o->most + o->per_call * sum->count);
}

/* Adds the calls of a clock: all edges into functions that it saw, in the best unit. */
static double likelihood_of_clock(const struct mp_callgraph_options *o, bool *is_clocked)
{
	double calls = 0, sum = 0, out = 0;

	for (uint32_t i = 0; i < graph.nr_edges; i++)
		is_clocked[edges[i].function] |= edges[i].called > 0;
	for (uint32_t i = 0; i < graph.nr_edges; i++) {
		calls += edges[i].called;
		sum += is_clocked[edges[i].function] ? edges[i].weight : 0;
	}
	for (uint32_t i = 0; i < graph.nr_edges && calls > 0; i++)
		if (is_clocked[edges[i].function])
			out += log_poisson(o->per_called, edges[i].called,
					   edges[i].weight * calls / sum);
	return out;
}

/* The logarithm of the likelihood, for the best factors and samples per call. */
static double likelihood(const struct mp_callgraph_options *o)
{
	bool is_clocked[MAX] = {false};
	double out = likelihood_of_clock(o, is_clocked);

	for (uint32_t f = 0; f < graph.nr_functions; f++) {
		double observed = o->factor, expected = o->factor, factor, seen = 0, sum = 0;
		double of_sites[MAX] = {0};

		for (uint32_t i = 0; i < graph.nr_edges; i++) {
			if (edges[i].site != OUTSIDE)
				of_sites[edges[i].site] += edges[i].weight;
			if (edges[i].function == f) {
				sum += edges[i].weight;
				seen += edges[i].seen;
			}
		}
		if (functions[f].known && sum > 0) {
			observed += rate_of(o, &functions[f]) * functions[f].count;
			expected += rate_of(o, &functions[f]) * sum;
		}
		for (uint32_t i = 0; i < graph.nr_sites; i++) {
			if (sites[i].within == f && sites[i].known && of_sites[i] > 0) {
				observed += rate_of(o, &sites[i]) * sites[i].count;
				expected += rate_of(o, &sites[i]) * of_sites[i];
			}
		}
		factor = observed / expected;
		out += o->factor * (log(factor) - factor);
		if (functions[f].known && sum > 0)
			out += log_poisson(rate_of(o, &functions[f]), functions[f].count,
					   factor * sum);
		for (uint32_t i = 0; i < graph.nr_sites; i++)
			if (sites[i].within == f && sites[i].known && of_sites[i] > 0)
				out += log_poisson(rate_of(o, &sites[i]), sites[i].count,
						   factor * of_sites[i]);
		for (uint32_t i = 0; i < graph.nr_edges; i++)
			if (edges[i].function == f && edges[i].seen > 0 && !is_clocked[f])
				out += o->per_sample * o->most_samples /
				       (o->most_samples + o->per_sample * seen) * edges[i].seen *
				       log(seen * edges[i].weight / sum);
	}
	return out;
}

TEST(no_round_makes_the_fit_worse)
{
	for (seed = 1; seed < 200;) {
		struct mp_callgraph_options o = options;
		uint64_t this_seed = seed;
		double before = -INFINITY, now;

		random_graph();
		for (o.nr_rounds = 1; o.nr_rounds <= 64; o.nr_rounds *= 2) {
			ck_assert_int_eq(mp_callgraph_solve(&graph, &o), 0);
			now = likelihood(&o);
			ck_assert_msg(now >= before - 1e-6 * fabs(before),
				      "seed %u, %u rounds: %.9g after %.9g",
				      (unsigned int)this_seed, o.nr_rounds, now, before);
			before = now;
		}
		seed = this_seed + 1;
	}
}

TEST(the_result_depends_on_the_input_alone)
{
	double first[MAX];

	seed = 7;
	random_graph();
	solve();
	for (uint32_t i = 0; i < graph.nr_edges; i++)
		first[i] = edges[i].weight;
	solve();
	for (uint32_t i = 0; i < graph.nr_edges; i++)
		ck_assert(first[i] == edges[i].weight);
}
