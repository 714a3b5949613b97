// SPDX-License-Identifier: Apache-2.0
/*
 * layout-eval - measures an estimator and its layout against exact counts.
 *
 * Reads a binary, samples (`ADDRESS COUNT` lines) and exact counts (tests/plugin/branches.c,
 * edges=). Prints a table. For developers; scripts/bench/bench-accuracy runs it.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libprof/infer/counts.h"
#include "editor/layout/layout.h"
#include "editor/layout/predict.h"
#include "libprof/cfg/cfg.h"
#include "libprof/elf/elf.h"
#include "libprof/infer/profile.h"
#include "tests/support/exact_counts.h"
#include "tests/support/stored.h"

static const char *opt_label = "-", *opt_binary, *opt_samples, *opt_edges, *opt_train;
static bool opt_functions, opt_no_exact, opt_parts;
static uint64_t opt_blocks; /* entry of the function whose blocks are printed */

static void *grow(void *v, size_t nr, size_t size)
{
	if (nr & (nr - 1))
		return v;
	v = realloc(v, (nr ? 2 * nr : 1) * size);
	if (!v)
		die("memory", strerror(ENOMEM));
	return v;
}

static int ip_compare(const void *a, const void *b)
{
	const struct mp_ip_count *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static struct mp_counts counts_exact(const struct mp_cfg *cfg, const struct exact_counts *x)
{
	struct mp_counts c = {.block = zeros(cfg->nr_blocks, sizeof(double)),
			      .edge = zeros(cfg->nr_edges, sizeof(double)),
			      .samples = zeros(cfg->nr_blocks, sizeof(uint64_t)),
			      .exact = true};

	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		uint64_t last = block->vaddr + block->size - block->term_len;

		c.block[b] = exact_counts_at(x, block->vaddr);
		for (uint32_t i = 0; i < block->nr_edges; i++) {
			uint32_t e = block->first_edge + i;

			if (cfg->edges[e].kind == MP_EDGE_JUMP || block->term == MP_TERM_FALL)
				c.edge[e] = c.block[b];
			else
				c.edge[e] = exact_counts_edge(x, last,
							      cfg->blocks[cfg->edges[e].to].vaddr);
		}
	}
	return c;
}

static struct mp_ip_count *samples_read(const char *path, size_t *nr)
{
	FILE *in = fopen(path, "r");
	struct mp_ip_count *v = NULL;
	char line[256];

	*nr = 0;
	if (!in)
		die(path, strerror(errno));
	while (fgets(line, sizeof(line), in)) {
		struct mp_ip_count one;

		if (sscanf(line, "%" SCNx64 " %" SCNu64, &one.vaddr, &one.count) != 2)
			continue;
		v = grow(v, *nr, sizeof(*v));
		v[(*nr)++] = one;
	}
	fclose(in);
	qsort(v, *nr, sizeof(*v), ip_compare);
	return v;
}

/* Return: sum over blocks of the smaller of both shares. */
static double overlap(const struct mp_cfg *cfg, const double *a, const double *b, uint32_t first,
		      uint32_t nr)
{
	double sum_a = 0, sum_b = 0, sum = 0;

	(void)cfg;
	for (uint32_t i = first; i < first + nr; i++) {
		sum_a += a[i];
		sum_b += b[i];
	}
	if (sum_a <= 0 || sum_b <= 0)
		return 0;
	for (uint32_t i = first; i < first + nr; i++)
		sum += fmin(a[i] / sum_a, b[i] / sum_b);
	return sum;
}

static double overlap_inside(const struct mp_cfg *cfg, const double *a, const double *exact)
{
	double sum = 0, weight = 0;

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		const struct mp_func *func = &cfg->funcs[f];
		double total = 0, estimated = 0;

		for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
			total += exact[b];
			estimated += a[b];
		}
		if (estimated <= 0)
			continue;
		sum += total * overlap(cfg, a, exact, func->first_block, func->nr_blocks);
		weight += total;
	}
	return weight > 0 ? sum / weight : 0;
}

static double bias(const struct mp_cfg *cfg, const struct mp_counts *c, const struct mp_counts *x)
{
	double sum = 0, weight = 0;

	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		const double *est = &c->edge[block->first_edge],
			     *real = &x->edge[block->first_edge];
		double p = 0.5, q;

		if (block->term != MP_TERM_COND || block->nr_edges != 2 || real[0] + real[1] <= 0)
			continue;
		if (est[0] + est[1] > 0)
			p = est[0] / (est[0] + est[1]);
		q = real[0] / (real[0] + real[1]);
		sum += (real[0] + real[1]) * (1 - fabs(p - q));
		weight += real[0] + real[1];
	}
	return weight > 0 ? sum / weight : 0;
}

static void plan_bytes(const struct mp_cfg *cfg, const struct me_plan *plan, uint64_t bytes[2])
{
	bytes[0] = bytes[1] = 0;
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		bytes[plan->blocks[i].zone] += cfg->blocks[plan->blocks[i].block].size;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void functions_print(const struct mp_cfg *cfg, const struct mp_counts *c,
			    const struct mp_counts *x, const struct me_plan *plan)
{
	uint8_t *one = calloc(cfg->nr_funcs + 1, 1);

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		struct me_branches real, own;

		one[f] = 1;
		me_branches_count(cfg, x, plan, one, &real);
		me_branches_count(cfg, c, plan, one, &own);
		one[f] = 0;
		if (real.taken_before || own.taken_before)
			printf("F %#" PRIx64
			       " %s insns %.0f taken %.0f -> %.0f (%+.0f) est %.1f -> %.1f\n",
			       cfg->funcs[f].vaddr, cfg->funcs[f].name, real.insns_before,
			       real.taken_before, real.taken_after,
			       real.taken_after - real.taken_before, own.taken_before,
			       own.taken_after);
	}
	free(one);
}

/*
 * Prints for each block in the order of the plan: estimated and exact counts, edges, and its
 * successor.
 */
static void blocks_print(const struct mp_cfg *cfg, const struct mp_counts *c,
			 const struct mp_counts *x, const struct me_plan *plan)
{
	uint32_t f = mp_cfg_func_at(cfg, opt_blocks);

	for (uint32_t i = 0; i < plan->nr_blocks && f != MP_NONE; i++) {
		const struct mp_block *block = &cfg->blocks[plan->blocks[i].block];

		if (block->func != f)
			continue;
		printf("B %#" PRIx64 " zone %u insns %u samples %" PRIu64
		       " count %.2f exact %.0f\n",
		       block->vaddr, plan->blocks[i].zone, block->nr_insns,
		       c->samples[plan->blocks[i].block], c->block[plan->blocks[i].block],
		       x->block[plan->blocks[i].block]);
		for (uint32_t e = block->first_edge; e < block->first_edge + block->nr_edges; e++)
			if (cfg->edges[e].kind != MP_EDGE_TABLE)
				printf("    -> %#" PRIx64 " kind %u count %.2f exact %.0f\n",
				       cfg->blocks[cfg->edges[e].to].vaddr, cfg->edges[e].kind,
				       c->edge[e], x->edge[e]);
	}
}

/*
 * Prints how much of the gain comes from order and from clones, by the estimate and by exact
 * counts.
 */
static void parts_print(const struct mp_cfg *cfg, const char *name, const struct mp_counts *c,
			const struct mp_counts *x, const struct me_plan *plan, const uint8_t *all)
{
	struct me_plan bare = {
		.blocks = malloc(((size_t)plan->nr_blocks + 1) * sizeof(*bare.blocks))};
	struct me_branches own, own_bare, real, real_bare;

	if (!bare.blocks)
		die("memory", strerror(ENOMEM));
	for (uint32_t i = 0; i < plan->nr_blocks; i++)
		if (!plan->blocks[i].clone)
			bare.blocks[bare.nr_blocks++] = plan->blocks[i];
	if (me_branches_count(cfg, c, plan, NULL, &own) ||
	    me_branches_count(cfg, c, &bare, NULL, &own_bare) ||
	    me_branches_count(cfg, x, plan, all, &real) ||
	    me_branches_count(cfg, x, &bare, all, &real_bare))
		die("memory", strerror(ENOMEM));
	printf("P %s %s own: order %.3f clones %.3f real: order %.3f clones %.3f (%u clones)\n",
	       opt_label, name, 1 - own_bare.taken_after / own.taken_before,
	       (own_bare.taken_after - own.taken_after) / own.taken_before,
	       1 - real_bare.taken_after / real.taken_before,
	       (real_bare.taken_after - real.taken_after) / real.taken_before,
	       plan->nr_blocks - bare.nr_blocks);
	me_plan_fini(&bare);
}

static void evaluate(const struct mp_cfg *cfg, const char *name, const struct mp_counts *c,
		     const struct mp_counts *x, const uint8_t *eligible, double infer_s)
{
	struct me_layout_options options = {.block_order = ME_ORDER_PH,
					    .function_order = MP_ORDER_PH};
	uint8_t *all = malloc(cfg->nr_funcs + 1);
	struct me_prediction prediction;
	struct me_branches real;
	struct me_plan plan;
	struct mp_err err;
	uint64_t bytes[2];
	double start = now(), layout_s;

	if (!all || me_layout_build(cfg, c, eligible, &options, &plan, &err))
		die("layout", err.msg);
	layout_s = now() - start;
	memset(all, 1, cfg->nr_funcs);
	me_branches_count(cfg, x, &plan, all, &real);
	if (me_layout_predict(cfg, c, &plan, NULL, &prediction, &err))
		die("prediction", err.msg);
	plan_bytes(cfg, &plan, bytes);
	printf("%-10s %-8s %6.1f %6.1f %6.1f %7.3f %7.3f %7.3f %7.4f %6.1f %7" PRIu64 " %7" PRIu64
	       " %5.0f %5.0f\n",
	       opt_label, name, 100 * overlap(cfg, c->block, x->block, 0, cfg->nr_blocks),
	       100 * overlap_inside(cfg, c->block, x->block), 100 * bias(cfg, c, x),
	       real.taken_before ? real.taken_after / real.taken_before : 1,
	       prediction.taken_before ? prediction.taken_after / prediction.taken_before : 1,
	       prediction.ratio, real.insns_after / real.insns_before,
	       100 * real.insns_moved / real.insns_before, bytes[0], bytes[1], infer_s * 1e3,
	       layout_s * 1e3);
	if (opt_parts)
		parts_print(cfg, name, c, x, &plan, all);
	if (opt_functions)
		functions_print(cfg, c, x, &plan);
	if (opt_blocks)
		blocks_print(cfg, c, x, &plan);
	me_plan_fini(&plan);
	free(all);
}

static void estimators_run(const struct mp_cfg *cfg, const struct mp_profile *profile,
			   const struct mp_counts *x, const uint8_t *eligible)
{
	static const struct {
		const char *name;
		struct mp_counts_options options;
	} kinds[] = {
		{"scaled", {.estimator = MP_ESTIMATE_SCALED}},
		{"poisson", {.estimator = MP_ESTIMATE_POISSON}},
		{"prior", {.estimator = MP_ESTIMATE_POISSON, .layout_prior = true}},
		{"poi+cg", {.estimator = MP_ESTIMATE_POISSON, .call_graph = true}},
		{"pri+cg",
		 {.estimator = MP_ESTIMATE_POISSON, .layout_prior = true, .call_graph = true}},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct mp_counts c;
		struct mp_err err;
		double start = now();

		if (mp_counts_build(cfg, profile, &kinds[i].options, &c, NULL, &err))
			die("counts", err.msg);
		evaluate(cfg, kinds[i].name, &c, x, eligible, now() - start);
		mp_counts_fini(&c);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'l': opt_label = arg; return 0;
	case 't': opt_train = arg; return 0;
	case 'n': opt_no_exact = true; return 0;
	case 'p': opt_parts = true; return 0;
	case 'f': opt_functions = true; return 0;
	case 'b': opt_blocks = strtoull(arg, NULL, 0); return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 2)
			argp_usage(state);
		*(state->arg_num == 0	? &opt_binary
		  : state->arg_num == 1 ? &opt_samples
					: &opt_edges) = arg;
		return 0;
	case ARGP_KEY_END:
		if (state->arg_num != 3)
			argp_usage(state);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"label", 'l', "TEXT", 0, "first column of the table", 0},
		{"train", 't', "EDGES", 0, "exact counts of the training run, as one more row", 0},
		{"no-exact", 'n', NULL, 0, "without the row for exact counts", 0},
		{"parts", 'p', NULL, 0, "what order and clones contribute, too", 0},
		{"functions", 'f', NULL, 0, "one line per function too", 0},
		{"blocks", 'b', "ADDRESS", 0, "one line per edge of the function there too", 0},
		{0}};
	static const struct argp argp = {
		options,
		parse,
		"BINARY SAMPLES EDGES",
		"What an estimator and its layout are worth, measured on exact counts.\v"
		"Columns: overlap of block counts in the whole file and inside functions, branch "
		"bias; taken branches after/before on the exact counts, by the estimate, as "
		"predicted; executed instructions after/before; share of them in moved code; bytes "
		"hot and warm; milliseconds for inference and layout.",
		NULL,
		NULL,
		NULL};
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	struct mp_profile *profile;
	struct mp_err err = {""};
	struct exact_counts exact;
	struct mp_counts x;
	struct mp_ip_count *samples;
	uint8_t *eligible;
	size_t nr;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (mp_elf_open(opt_binary, MP_ELF_ALL, &elf, &err) || mp_cfg_build(elf, NULL, &cfg, &err))
		die(opt_binary, err.msg);
	samples = samples_read(opt_samples, &nr);
	if (exact_counts_read(opt_edges, &exact, &err))
		die(opt_edges, err.msg);
	if (mp_profile_build(cfg, samples, nr, &profile, &err))
		die(opt_samples, err.msg);
	x = counts_exact(cfg, &exact);
	eligible = calloc(cfg->nr_funcs + 1, 1);
	for (uint32_t f = 0; eligible && f < cfg->nr_funcs; f++)
		eligible[f] = cfg->funcs[f].problem == MP_PROBLEM_NONE && cfg->funcs[f].nr_blocks;
	printf("# %-8s %-8s %6s %6s %6s %7s %7s %7s %7s %6s %7s %7s %5s %5s   %" PRIu64
	       " samples in blocks\n",
	       "program", "counts", "whole", "inside", "bias", "taken", "own", "pred", "insns",
	       "moved", "hot", "warm", "ms", "ms", profile->nr_samples);
	estimators_run(cfg, profile, &x, eligible);
	if (opt_train) {
		struct exact_counts train;
		struct mp_counts t;

		if (exact_counts_read(opt_train, &train, &err))
			die(opt_train, err.msg);
		t = counts_exact(cfg, &train);
		evaluate(cfg, "trained", &t, &x, eligible, 0);
		mp_counts_fini(&t);
		exact_counts_fini(&train);
	}
	if (!opt_no_exact)
		evaluate(cfg, "exact", &x, &x, eligible, 0);
	mp_counts_fini(&x);
	free(eligible);
	free(samples);
	exact_counts_fini(&exact);
	mp_profile_free(profile);
	mp_cfg_free(cfg);
	mp_elf_close(elf);
	return 0;
}
