// SPDX-License-Identifier: Apache-2.0
/*
 * callgraph - weights of the edges (call site -> function) of a program, over all its modules. Called by
 * daemon/calls, which finds sites, functions and edges.
 *
 * Four kinds of evidence say how often an edge was taken, and contradict each other:
 *	a call site's block ran @count times		the edges of the site sum to that
 *	a function was entered @count times		the edges into the function sum to that
 *	@seen samples of the edge			edges into one function share as their samples do
 *	@called of the edge, by a clock of calls	all edges into clocked functions share as these do
 *
 * A function is clocked if a clock sampled a call of it, or seldom called ones of its module: then every call
 * of it had the same chance, whatever time it took. Samples of time say nothing more about edges into it. How many executions a sampled call
 * stands for, in the unit of the counts, is the ratio of all weights to all samples of these edges.
 *
 * Each is taken as a Poisson observation. One execution counts as @per_call observations, and all
 * executions of a site, or entries of a function, as less than @most: what is wrong with a large count is
 * not its number of samples. Inference has no common measure of time for different code. So all counts
 * in a function may be too large by a factor, whose prior is a gamma distribution. Samples of edges count
 * little, since a function takes different times for different callers; how many samples a call draws is
 * unknown, and the same for all callers. The solve maximises the likelihood by expectation maximisation (Shepp and
 * Vardi, Maximum likelihood reconstruction for emission tomography, 1982), whose steps are products, as
 * those of iterative proportional fitting are.
 *
 * What mp_callgraph_solve() guarantees, for any input of finite numbers that are not negative:
 * - All weights are finite and not negative, and depend on the input alone.
 * - No round makes the likelihood smaller, so more rounds never make the fit worse. Evidence that does
 *   not contradict itself is met in the limit; else the result is a compromise.
 * - An edge that starts with weight 0 keeps it: only a site that ran, or a sample, gives an edge weight.
 */
#ifndef MP_CALLGRAPH_H
#define MP_CALLGRAPH_H

#include <stdbool.h>
#include <stdint.h>

/* No call site: the function was called by the kernel, or by code that is not known. */
#define MP_CALLGRAPH_OUTSIDE UINT32_MAX

/* Evidence about the sum of the edges of a site, or of those into a function. */
struct mp_callgraph_sum {
	double count;
	bool known; /* else @count is nothing */
	bool exact; /* counted, not inferred: all other evidence gives way */
	/* Instructions that one execution surely runs beside it; 0: many. */
	uint32_t nr_insns;
	/* A function's only: a clock of calls sampled calls of other functions of its module. */
	bool in_clocked;
	/* A site's only: index of the function around the site. All counts there share one factor. */
	uint32_t within;
};

struct mp_callgraph_edge {
	uint32_t site;	   /* index, or MP_CALLGRAPH_OUTSIDE */
	uint32_t function; /* index */
	double seen;	   /* samples */
	double weight;	   /* the result: executions, in the unit of the counts */
	double called;	   /* calls that a clock of calls sampled */
};

struct mp_callgraph {
	struct mp_callgraph_edge *edges;
	struct mp_callgraph_sum *sites, *functions;
	uint32_t nr_edges, nr_sites, nr_functions;
};

struct mp_callgraph_options {
	double per_call;     /* observations that one execution counts as */
	double most;	     /* observations that one count is worth at most */
	double per_sample;   /* observations that one sample of an edge counts as */
	double most_samples; /* observations that all samples of a function are worth at most */
	double per_called;   /* observations that one call sampled by a clock counts as */
	double factor; /* observations which say that the counts of a function have no common error */
	unsigned int nr_rounds;
};

/* @options: NULL: those that scripts/bench/contexts measured. Return: 0, -ENOMEM, -EINVAL (an index or a number). */
int mp_callgraph_solve(struct mp_callgraph *graph, const struct mp_callgraph_options *options);

#endif
