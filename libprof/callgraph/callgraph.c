// SPDX-License-Identifier: Apache-2.0
/* callgraph - expectation maximisation over the edges; see callgraph.h. */
#include "libprof/callgraph/callgraph.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Larger numbers, and smaller ones above 0, are taken as these, so that no product overflows. */
#define MOST  1e100
#define LEAST 1e-100

/*
 * Chosen by scripts/bench/contexts graph with programs that are not the test programs. One sample in
 * an instruction is the unit of inferred counts, so an execution of a site is worth as much as if the
 * call were that many instructions long.
 */
static const struct mp_callgraph_options defaults = {
	.per_call = 8,
	.most = 30,
	.per_sample = 0.3,
	.most_samples = 2,
	.per_called = 1,
	.factor = 8,
	.nr_rounds = 60,
};

/* An exact count is worth so much more than all other evidence. */
#define EXACT 1e6

/* A function with a clock that was called as often as so many sampled calls stand for has one of them. */
#define SURELY_SAMPLED 20

struct row {
	double observed;	       /* observations */
	double rate;		       /* of them per execution */
	double sum;		       /* of the edges, now */
	double all_observed, all_rate; /* of a function: with the sites of its edges */
	double factor;		       /* of a function: its counts are so much too large */
};

struct solve {
	struct mp_callgraph *graph;
	const struct mp_callgraph_options *options;
	struct row *sites, *functions;
	double *seen;	  /* by function: samples of the edges into it */
	double *called;	  /* by function: calls of it that a clock sampled */
	bool *is_clocked; /* by function */
	double unit;	  /* executions that such a call stands for */
};

static bool is_number(double x)
{
	return isfinite(x) && x >= 0;
}

static double clamp(double x)
{
	return x > MOST ? MOST : x > 0 && x < LEAST ? LEAST : x;
}

static bool is_valid(const struct mp_callgraph *graph)
{
	for (uint32_t i = 0; i < graph->nr_edges; i++) {
		const struct mp_callgraph_edge *e = &graph->edges[i];

		if ((e->site >= graph->nr_sites && e->site != MP_CALLGRAPH_OUTSIDE) ||
		    e->function >= graph->nr_functions || !is_number(e->seen) ||
		    !is_number(e->called))
			return false;
	}
	for (uint32_t i = 0; i < graph->nr_sites; i++)
		if (graph->sites[i].within >= graph->nr_functions ||
		    (graph->sites[i].known && !is_number(graph->sites[i].count)))
			return false;
	for (uint32_t i = 0; i < graph->nr_functions; i++)
		if (graph->functions[i].known && !is_number(graph->functions[i].count))
			return false;
	return true;
}

static double rate_of(const struct mp_callgraph_sum *sum,
		      const struct mp_callgraph_options *options)
{
	double per_call = options->per_call;

	if (sum->nr_insns && sum->nr_insns < per_call)
		per_call = sum->nr_insns;
	if (sum->exact)
		return per_call * EXACT;
	return per_call * options->most / (options->most + per_call * clamp(sum->count));
}

static void fill_rows(const struct mp_callgraph_sum *sums, uint32_t nr,
		      const struct mp_callgraph_options *options, struct row *rows)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (!sums[i].known)
			continue;
		rows[i].rate = rate_of(&sums[i], options);
		rows[i].observed = rows[i].rate * clamp(sums[i].count);
	}
}

static void sum_up(struct solve *s)
{
	const struct mp_callgraph *graph = s->graph;

	for (uint32_t i = 0; i < graph->nr_sites; i++)
		s->sites[i].sum = 0;
	for (uint32_t i = 0; i < graph->nr_functions; i++)
		s->functions[i].sum = 0;
	for (uint32_t i = 0; i < graph->nr_edges; i++) {
		const struct mp_callgraph_edge *e = &graph->edges[i];

		if (e->site != MP_CALLGRAPH_OUTSIDE)
			s->sites[e->site].sum += e->weight;
		s->functions[e->function].sum += e->weight;
	}
}

/* The executions that a call sampled by a clock stands for, given the weights of the edges. */
static void step_unit(struct solve *s)
{
	const struct mp_callgraph *graph = s->graph;
	double weights = 0, called = 0;

	for (uint32_t i = 0; i < graph->nr_edges; i++) {
		const struct mp_callgraph_edge *e = &graph->edges[i];

		if (s->is_clocked[e->function]) {
			weights += e->weight;
			called += clamp(e->called);
		}
	}
	s->unit = weights > 0 && called > 0 ? clamp(weights / called) : 1;
}

/*
 * An edge that nothing but a clock has seen begins with what its calls stand for. A function of a clocked
 * module without a sampled call has a clock, unless so many calls of it would surely have been sampled.
 */
static void begin_called(struct solve *s)
{
	struct mp_callgraph *graph = s->graph;

	for (uint32_t i = 0; i < graph->nr_functions; i++)
		s->is_clocked[i] = s->called[i] > 0;
	step_unit(s);
	for (uint32_t i = 0; i < graph->nr_edges; i++)
		if (!(graph->edges[i].weight > 0))
			graph->edges[i].weight = clamp(graph->edges[i].called) * s->unit;
	sum_up(s);
	for (uint32_t i = 0; i < graph->nr_functions; i++)
		s->is_clocked[i] |= graph->functions[i].in_clocked &&
				    s->functions[i].sum < SURELY_SAMPLED * s->unit;
}

/* Share of an edge in its site at the beginning. */
static double first_share(const struct mp_callgraph_edge *e)
{
	return (e->called > 0 ? clamp(e->called) : clamp(e->seen)) + 0.5;
}

/* The edges of a site begin with shares by their samples; without a count, with the samples. */
static int begin(struct solve *s)
{
	struct mp_callgraph *graph = s->graph;
	double *total = calloc(graph->nr_sites + 1, sizeof(*total));

	if (!total)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nr_edges; i++) {
		struct mp_callgraph_edge *e = &graph->edges[i];

		s->seen[e->function] += clamp(e->seen);
		s->called[e->function] += clamp(e->called);
		if (e->site != MP_CALLGRAPH_OUTSIDE)
			total[e->site] += first_share(e);
	}
	for (uint32_t i = 0; i < graph->nr_edges; i++) {
		struct mp_callgraph_edge *e = &graph->edges[i];
		const struct mp_callgraph_sum *site =
			e->site != MP_CALLGRAPH_OUTSIDE ? &graph->sites[e->site] : NULL;

		e->weight = clamp(e->seen) / s->options->per_call;
		if (site && site->known && site->count > 0)
			e->weight = clamp(site->count) * first_share(e) / total[e->site];
	}
	free(total);
	begin_called(s);
	return 0;
}

static double limit(double weight)
{
	weight = clamp(weight);
	return weight < LEAST ? LEAST : weight;
}

static void add_row(const struct row *row, double factor, double *observed, double *rate)
{
	if (row->rate > 0 && row->sum > 0) {
		*observed += row->observed / row->sum;
		*rate += row->rate * factor;
	}
}

static void add_site(const struct solve *s, uint32_t site, double *observed, double *rate)
{
	add_row(&s->sites[site], s->functions[s->graph->sites[site].within].factor, observed, rate);
}

/* A sum without edges is no evidence. */
static void add_to_factor(struct row *function, const struct row *row)
{
	if (row->sum > 0) {
		function->all_observed += row->observed;
		function->all_rate += row->rate * row->sum;
	}
}

/* The likeliest factor of each function's counts, given the weights; its prior is a gamma distribution. */
static void step_factors(struct solve *s)
{
	struct mp_callgraph *graph = s->graph;
	double prior = s->options->factor;

	sum_up(s);
	for (uint32_t i = 0; i < graph->nr_functions; i++) {
		s->functions[i].all_observed = s->functions[i].all_rate = prior;
		add_to_factor(&s->functions[i], &s->functions[i]);
	}
	for (uint32_t i = 0; i < graph->nr_sites; i++)
		add_to_factor(&s->functions[graph->sites[i].within], &s->sites[i]);
	for (uint32_t i = 0; i < graph->nr_functions; i++) {
		struct row *f = &s->functions[i];

		f->factor = prior > 0 && !graph->functions[i].exact
				    ? limit(f->all_observed / f->all_rate)
				    : 1;
	}
}

/* Observations that one sample of the edges into @function counts as. */
static double sample_weight(const struct solve *s, uint32_t function)
{
	const struct mp_callgraph_options *o = s->options;

	return o->per_sample * o->most_samples /
	       (o->most_samples + o->per_sample * s->seen[function]);
}

/* Each weight times the ratio of what was observed to what the weights predict. */
static void step_edges(struct solve *s)
{
	struct mp_callgraph *graph = s->graph;

	sum_up(s);
	for (uint32_t i = 0; i < graph->nr_edges; i++) {
		struct mp_callgraph_edge *e = &graph->edges[i];
		const struct row *function = &s->functions[e->function];
		double observed = 0, rate = 0, per_sample = sample_weight(s, e->function);

		if (!(e->weight > 0))
			continue;
		if (e->site != MP_CALLGRAPH_OUTSIDE)
			add_site(s, e->site, &observed, &rate);
		add_row(function, function->factor, &observed, &rate);
		if (s->is_clocked[e->function]) {
			observed += s->options->per_called * clamp(e->called) / e->weight;
			rate += s->options->per_called / s->unit;
		} else if (s->seen[e->function] > 0 && function->sum > 0) {
			observed += per_sample * clamp(e->seen) / e->weight;
			rate += per_sample * s->seen[e->function] / function->sum;
		}
		if (rate > 0)
			e->weight = limit(e->weight * (observed / rate));
	}
}

/*
 * The same for a factor that all edges into a function share. Samples of edges say nothing about the
 * factor, but would make it slow to change in step_edges().
 */
static void step_functions(struct solve *s)
{
	struct mp_callgraph *graph = s->graph;

	sum_up(s);
	for (uint32_t i = 0; i < graph->nr_functions; i++) {
		struct row *f = &s->functions[i];

		f->all_observed = f->observed;
		f->all_rate = f->rate * f->factor * f->sum;
		if (s->is_clocked[i]) {
			f->all_observed += s->options->per_called * s->called[i];
			f->all_rate += s->options->per_called * f->sum / s->unit;
		}
	}
	for (uint32_t i = 0; i < graph->nr_edges; i++) {
		const struct mp_callgraph_edge *e = &graph->edges[i];
		double observed = 0, rate = 0;

		if (e->site == MP_CALLGRAPH_OUTSIDE || !(e->weight > 0))
			continue;
		add_site(s, e->site, &observed, &rate);
		s->functions[e->function].all_observed += observed * e->weight;
		s->functions[e->function].all_rate += rate * e->weight;
	}
	for (uint32_t i = 0; i < graph->nr_edges; i++) {
		struct mp_callgraph_edge *e = &graph->edges[i];
		const struct row *f = &s->functions[e->function];

		if (f->all_rate > 0 && e->weight > 0)
			e->weight = limit(e->weight * (f->all_observed / f->all_rate));
	}
}

int mp_callgraph_solve(struct mp_callgraph *graph, const struct mp_callgraph_options *options)
{
	struct solve s = {.graph = graph, .options = options ? options : &defaults};
	int r = -ENOMEM;

	if (!is_valid(graph))
		return -EINVAL;
	s.sites = calloc(graph->nr_sites + 1, sizeof(*s.sites));
	s.functions = calloc(graph->nr_functions + 1, sizeof(*s.functions));
	s.seen = calloc(graph->nr_functions + 1, sizeof(*s.seen));
	s.called = calloc(graph->nr_functions + 1, sizeof(*s.called));
	s.is_clocked = calloc(graph->nr_functions + 1, sizeof(*s.is_clocked));
	if (s.sites && s.functions && s.seen && s.called && s.is_clocked)
		r = begin(&s);
	if (!r) {
		fill_rows(graph->sites, graph->nr_sites, s.options, s.sites);
		fill_rows(graph->functions, graph->nr_functions, s.options, s.functions);
		for (unsigned int i = 0; i < s.options->nr_rounds; i++) {
			step_unit(&s);
			step_factors(&s);
			step_edges(&s);
			step_functions(&s);
		}
	}
	free(s.is_clocked);
	free(s.called);
	free(s.seen);
	free(s.functions);
	free(s.sites);
	return r;
}
