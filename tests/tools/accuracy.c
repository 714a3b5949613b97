// SPDX-License-Identifier: Apache-2.0
/*
 * accuracy - measures profiles of several kinds and sizes against exact counts.
 * scripts/bench/accuracy runs it.
 *
 * Reads a binary and three databases: samples and exact counts of training work, and exact
 * counts of other work. Draws smaller profiles, lets the editor infer and lay out, and prints
 * how well counts agree and how many branches the layout would take at the other work. Does not
 * run the binary.
 */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/evidence/eligible.h"
#include "editor/layout/entries.h"
#include "editor/instrument/instrument.h"
#include "editor/layout/layout.h"
#include "editor/evidence/redirect.h"
#include "editor/layout/predict.h"
#include "libprof/infer/branch_hint.h"
#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"
#include "libprof/infer/counts_doubt.h"
#include "libprof/elf/elf.h"
#include "libprof/infer/insn_latency.h"
#include "tests/support/agreement.h"
#include "tests/support/draw.h"
#include "tests/support/stored.h"

#define MAX_SIZES 32

struct bench {
	struct mp_elf *elf;
	struct mp_cfg *cfg;
	uint8_t *movable, *counted; /* per function */
	struct stored samples, train, paths;
	struct mp_counts exact, test; /* of training work, of other work */
	double *test_arrivals, *train_arrivals;
	uint8_t *redirected;
	json_t *rows;
};

static const char *opt_samples, *opt_train, *opt_test, *opt_paths, *opt_binary;
static uint64_t opt_sizes[MAX_SIZES], opt_seed = 1;
static unsigned int opt_nr_sizes, opt_draws = 1;
static const char *opt_only;
static bool opt_all_estimators, opt_fit;

/* ---- what is known ---------------------------------------------------------- */

static struct mp_counts exact_read(const struct bench *b, const char *db, struct stored *data)
{
	const struct mp_counts_options options = {0};

	*data = stored_read(b->elf, db);
	if (!data->nr_edges)
		die(db, "no transfers of control: not an exact profile");
	data->exact = true; /* the plugin counted every execution */
	return stored_counts(b->cfg, data, &options);
}

/* Finds what an instrumented version would count, and what of that the training counted. */
static void counted_find(struct bench *b)
{
	const char **detail = zeros(b->cfg->nr_funcs, sizeof(*detail));
	struct me_instrument *instrument;
	struct mp_err err;

	b->counted = zeros(b->cfg->nr_funcs, 1);
	memcpy(b->counted, b->movable, b->cfg->nr_funcs);
	if (me_instrument_new(b->cfg, b->counted, detail, &instrument, &err))
		die("counters", err.msg);
	me_instrument_free(instrument);
	free(detail);
}

static double *arrivals_of(const struct bench *b, const struct mp_counts *counts)
{
	struct me_entries entries;
	struct mp_err err;

	if (me_entries_count(b->cfg, counts, NULL, b->redirected, NULL, &entries, &err))
		die("arrivals", err.msg);
	free(entries.dropped);
	return entries.arrivals;
}

static void bench_open(struct bench *b)
{
	struct me_eligible eligible;
	struct me_redirects redirects;
	struct me_pointers pointers;
	struct stored test;
	struct mp_err err;

	if (mp_elf_open(opt_binary, MP_ELF_ALL, &b->elf, &err) ||
	    mp_cfg_build(b->elf, NULL, &b->cfg, &err) ||
	    me_eligible_functions(b->cfg, 0, &eligible, &err))
		die(opt_binary, err.msg);
	b->movable = zeros(b->cfg->nr_funcs, 1);
	for (uint32_t f = 0; f < b->cfg->nr_funcs; f++)
		b->movable[f] = eligible.verdict[f] == ME_ELIGIBLE;
	me_eligible_fini(&eligible);
	counted_find(b);
	if (me_pointers_find(b->cfg, &pointers, &err) ||
	    me_redirects_choose(b->cfg, &pointers, b->movable, &redirects, &err))
		die("pointers", err.msg);
	b->redirected = zeros(b->cfg->nr_funcs, 1);
	memcpy(b->redirected, redirects.functions, b->cfg->nr_funcs);
	me_redirects_fini(&redirects);
	me_pointers_fini(&pointers);
	b->samples = stored_read(b->elf, opt_samples);
	if (opt_paths)
		b->paths = stored_read(b->elf, opt_paths);
	b->exact = exact_read(b, opt_train, &b->train);
	b->test = exact_read(b, opt_test, &test);
	stored_fini(&test);
	b->test_arrivals = arrivals_of(b, &b->test);
	b->train_arrivals = arrivals_of(b, &b->exact);
	b->rows = json_array();
}

/* ---- smaller profiles ------------------------------------------------------- */

static uint64_t ips_sum(const struct stored *data)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < data->nr_ips; i++)
		sum += data->ips[i].count;
	return sum;
}

static uint64_t edges_sum(const struct stored *data)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < data->nr_edges; i++)
		sum += data->edges[i].count;
	return sum;
}

/* Draws about @nr of the samples in @from, each with the same probability. */
static void ips_draw(struct stored *out, const struct stored *from, double nr, struct draw *d)
{
	double p = nr / (double)ips_sum(from);

	out->ips = zeros(from->nr_ips, sizeof(*out->ips));
	for (size_t i = 0; i < from->nr_ips; i++) {
		uint64_t count = draw_binomial(d, from->ips[i].count, p);

		if (count)
			out->ips[out->nr_ips++] = (struct mp_ip_count){from->ips[i].vaddr, count};
	}
}

static void edges_draw(struct stored *out, const struct stored *from, double nr, struct draw *d)
{
	double p = nr / (double)edges_sum(from);

	out->edges = zeros(from->nr_edges, sizeof(*out->edges));
	for (size_t i = 0; i < from->nr_edges; i++) {
		struct mp_edge_count edge = from->edges[i];

		edge.count = draw_binomial(d, edge.count, p);
		edge.mispredicted = 0;
		if (edge.count)
			out->edges[out->nr_edges++] = edge;
	}
}

/* Draws samples and paths with the same probability, independently. */
static void paths_draw(struct stored *out, const struct stored *from, double nr, struct draw *d)
{
	double p = nr / (double)ips_sum(from);

	ips_draw(out, from, nr, d);
	out->paths = zeros(from->nr_paths, sizeof(*out->paths));
	for (size_t i = 0; i < from->nr_paths; i++) {
		struct mp_path_count path = from->paths[i];

		path.count = draw_binomial(d, path.count, p);
		if (path.count)
			out->paths[out->nr_paths++] = path;
	}
}

/* ---- without a profile ------------------------------------------------------ */

/* Per block: predicted probability that its branch is taken, from the code alone. */
static double *shares_taken(const struct mp_cfg *cfg)
{
	struct mp_func_shape shape = {.nr_in = zeros(cfg->nr_blocks, sizeof(*shape.nr_in)),
				      .depth = zeros(cfg->nr_blocks, sizeof(*shape.depth))};
	double *share = zeros(cfg->nr_blocks, sizeof(*share));

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		uint32_t first = cfg->funcs[f].first_block;

		mp_func_shape_fill(cfg, &cfg->funcs[f], &shape);
		for (uint32_t b = first; b < first + cfg->funcs[f].nr_blocks; b++)
			if (cfg->blocks[b].term == MP_TERM_COND && cfg->blocks[b].nr_edges == 2)
				share[b] = 1 / (1 + exp(-mp_branch_hint(mp_branch_evidence_find(
							    cfg, &shape, b))));
	}
	free(shape.nr_in);
	free(shape.depth);
	return share;
}

static double way_share(const struct mp_cfg *cfg, const double *taken, uint32_t b, uint32_t e)
{
	const struct mp_block *block = &cfg->blocks[b];

	if (block->term != MP_TERM_COND || block->nr_edges != 2)
		return 1.0 / block->nr_edges;
	return cfg->edges[e].kind == MP_EDGE_TAKEN ? taken[b] : 1 - taken[b];
}

static struct mp_counts counts_static(const struct mp_cfg *cfg)
{
	struct mp_counts c = {.block = zeros(cfg->nr_blocks, sizeof(double)),
			      .edge = zeros(cfg->nr_edges, sizeof(double)),
			      .samples = zeros(cfg->nr_blocks, sizeof(uint64_t))};
	double *next = zeros(cfg->nr_blocks, sizeof(*next)), *taken = shares_taken(cfg);

	/*
	 * Forty rounds are enough for nested loops: the remaining error is smaller than that of
	 * the shares.
	 */
	for (int round = 0; round < 40; round++) {
		for (uint32_t b = 0; b < cfg->nr_blocks; b++)
			next[b] = cfg->blocks[b].flags & MP_BLOCK_ENTRY ? 1 : 0;
		for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
			const struct mp_block *block = &cfg->blocks[b];

			for (uint32_t e = block->first_edge;
			     e < block->first_edge + block->nr_edges; e++) {
				c.edge[e] = c.block[b] * way_share(cfg, taken, b, e);
				next[cfg->edges[e].to] += c.edge[e];
			}
		}
		for (uint32_t b = 0; b < cfg->nr_blocks; b++)
			c.block[b] = fmin(next[b], 1e6);
	}
	/* Pretend that the counts are known, to see what a layout by them is worth. */
	for (uint32_t b = 0; b < cfg->nr_blocks; b++)
		c.samples[b] = cfg->blocks[b].func != MP_NONE ? 100 : 0;
	free(next);
	free(taken);
	return c;
}

/* ---- a layout by it --------------------------------------------------------- */

static void plan_make(const struct bench *b, const struct mp_counts *c, struct me_plan *plan,
		      struct me_prediction *predicted)
{
	struct me_layout_options options = {
		.block_order = ME_ORDER_PH, .choose_functions = true, .line_log2 = 6};
	struct me_entries entries;
	struct mp_err err;

	if (me_layout_build(b->cfg, c, b->movable, &options, plan, &err) ||
	    me_entries_count(b->cfg, c, NULL, b->redirected, NULL, &entries, &err) ||
	    me_entries_drop_costly(b->cfg, c, &entries, plan, &err) ||
	    me_layout_predict(b->cfg, c, plan, entries.arrivals, predicted, &err))
		die("layout", err.msg);
	me_entries_fini(&entries);
}

/* Return: ratio of taken branches after and before, at the work whose exact counts are @at. */
static double plan_ratio(const struct bench *b, const struct mp_counts *at, const double *arrivals,
			 const struct me_plan *plan)
{
	struct me_prediction p;
	struct mp_err err;

	if (me_layout_predict(b->cfg, at, plan, arrivals, &p, &err))
		die("prediction", err.msg);
	return p.taken_before > 0 ? p.taken_after / p.taken_before : 1;
}

static void evaluate(struct bench *b, const char *source, double size, unsigned int draw,
		     const struct mp_counts *c)
{
	struct me_prediction predicted;
	struct agreement a;
	struct me_plan plan;
	json_t *row;

	if (opt_only && strcmp(source, "exact") && !strstr(opt_only, source))
		return;
	if (agreement_measure(b->cfg, c, &b->exact, b->counted, &a))
		die("memory", strerror(ENOMEM));
	plan_make(b, c, &plan, &predicted);
	row = json_pack(
		"{s:s, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "source",
		source, "size", size, "draw", (int)draw, "blocks", a.blocks, "inside", a.inside,
		"relative", a.relative, "absolute", a.absolute, "hot", a.hot, "train",
		plan_ratio(b, &b->exact, b->train_arrivals, &plan), "test",
		plan_ratio(b, &b->test, b->test_arrivals, &plan), "predicted", predicted.ratio,
		"least", predicted.least, "most", predicted.most, "promised",
		predicted.taken_before > 0 ? predicted.taken_after / predicted.taken_before : 1.0);
	if (!row || json_array_append_new(b->rows, row))
		die("memory", strerror(ENOMEM));
	me_plan_fini(&plan);
}

/* ---- what constants are fitted to ------------------------------------------- */

/* Prints, for each branch that ran, its features and how often it went each way. */
static void evidence_print(const struct bench *b)
{
	const struct mp_cfg *cfg = b->cfg;
	struct mp_func_shape shape = {.nr_in = zeros(cfg->nr_blocks, sizeof(*shape.nr_in)),
				      .depth = zeros(cfg->nr_blocks, sizeof(*shape.depth))};

	for (uint32_t f = 0; f < cfg->nr_funcs; f++) {
		uint32_t first = cfg->funcs[f].first_block;

		mp_func_shape_fill(cfg, &cfg->funcs[f], &shape);
		for (uint32_t i = first; i < first + cfg->funcs[f].nr_blocks; i++) {
			const struct mp_block *block = &cfg->blocks[i];
			uint32_t e = block->first_edge;
			bool swap = cfg->edges[e].kind != MP_EDGE_FALL;
			struct mp_branch_evidence evidence;

			if (block->term != MP_TERM_COND || block->nr_edges != 2 ||
			    !(b->exact.block[i] > 0))
				continue;
			evidence = mp_branch_evidence_find(cfg, &shape, i);
			printf("look %u %u %u %.0f %.0f\n", evidence.seen, evidence.compared,
			       evidence.cc, b->exact.edge[e + swap], b->exact.edge[e + !swap]);
		}
	}
	free(shape.nr_in);
	free(shape.depth);
}

static uint64_t samples_at(const struct bench *b, uint64_t vaddr)
{
	size_t low = 0, high = b->samples.nr_ips;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (b->samples.ips[mid].vaddr < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < b->samples.nr_ips && b->samples.ips[low].vaddr == vaddr
		       ? b->samples.ips[low].count
		       : 0;
}

/* Prints, for each class of instructions, samples at the next instruction and executions. */
static void waits_print(const struct bench *b)
{
	double samples[MP_NR_LATENCIES] = {0}, runs[MP_NR_LATENCIES] = {0};

	for (uint32_t i = 0; i < b->cfg->nr_blocks; i++) {
		const struct mp_block *block = &b->cfg->blocks[i];
		const uint8_t *bytes = mp_elf_bytes(b->elf, block->vaddr, block->size);
		enum mp_latency before = MP_LATENCY_BRANCH;
		struct mp_insn insn;

		if (!bytes || !(b->exact.block[i] > 0))
			continue;
		for (uint32_t at = 0; at < block->size; at += insn.len) {
			if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
				break;
			samples[before] += (double)samples_at(b, block->vaddr + at);
			runs[before] += b->exact.block[i];
			before = mp_insn_latency(bytes + at, &insn);
		}
	}
	for (int w = 0; w < MP_NR_LATENCIES; w++)
		printf("wait %d %.0f %.0f\n", w, samples[w], runs[w]);
}

/* ---- sources ---------------------------------------------------------------- */

static const struct mp_counts_options ordinary = {
	.estimator = MP_ESTIMATE_POISSON, .layout_prior = true, .call_graph = true};

static const struct mp_counts_options by_paths = {
	.estimator = MP_ESTIMATE_PATHS, .layout_prior = true, .call_graph = true};

static void try_data(struct bench *b, const char *source, double size, unsigned int draw,
		     const struct stored *data, const struct mp_counts_options *options)
{
	struct mp_counts c;

	if (opt_only && strcmp(source, "exact") && !strstr(opt_only, source))
		return;
	c = stored_counts(b->cfg, data, options);
	evaluate(b, source, size, draw, &c);
	mp_counts_fini(&c);
}

static void try_sizes(struct bench *b)
{
	double all = (double)ips_sum(&b->samples);

	for (unsigned int i = 0; i < opt_nr_sizes; i++) {
		double size = (double)opt_sizes[i];

		for (unsigned int k = 0; k < opt_draws; k++) {
			struct stored few = {0}, ideal = {0}, transfers = {0};
			struct draw d;

			draw_init(&d, opt_seed + 1000003 * k + 7919 * i);
			if (size <= all) {
				ips_draw(&few, &b->samples, size, &d);
				try_data(b, "samples", size, k, &few, &ordinary);
			}
			ips_draw(&ideal, &b->train, size, &d);
			try_data(b, "ideal", size, k, &ideal, &ordinary);
			edges_draw(&transfers, &b->train, size, &d);
			try_data(b, "transfers", size, k, &transfers, &ordinary);
			stored_fini(&few);
			stored_fini(&ideal);
			stored_fini(&transfers);
		}
	}
}

/* Evaluates samples of the version that numbers its paths, with and without the paths. */
static void try_paths(struct bench *b)
{
	double all = (double)ips_sum(&b->paths);

	for (unsigned int i = 0; i < opt_nr_sizes; i++)
		for (unsigned int k = 0; k < opt_draws && (double)opt_sizes[i] <= all; k++) {
			struct stored few = {0};
			struct draw d;

			draw_init(&d, opt_seed + 1000003 * k + 7919 * i);
			paths_draw(&few, &b->paths, (double)opt_sizes[i], &d);
			try_data(b, "paths", (double)opt_sizes[i], k, &few, &by_paths);
			stored_fini(&few);
		}
	try_data(b, "paths", all, 0, &b->paths, &by_paths);
	try_data(b, "paths' samples", all, 0, &b->paths, &ordinary);
}

static void try_whole(struct bench *b)
{
	static const struct {
		const char *name;
		struct mp_counts_options options;
	} kinds[] = {
		{"length scaling", {.estimator = MP_ESTIMATE_SCALED}},
		{"flow", {.estimator = MP_ESTIMATE_POISSON}},
		{"flow, prior", {.estimator = MP_ESTIMATE_POISSON, .layout_prior = true}},
		{"flow, calls", {.estimator = MP_ESTIMATE_POISSON, .call_graph = true}},
	};
	double all = (double)ips_sum(&b->samples);
	struct mp_counts c = counts_static(b->cfg);

	evaluate(b, "static", 0, 0, &c);
	mp_counts_fini(&c);
	try_data(b, "samples", all, 0, &b->samples, &ordinary);
	for (size_t i = 0; opt_all_estimators && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		try_data(b, kinds[i].name, all, 0, &b->samples, &kinds[i].options);
	try_data(b, "transfers", (double)edges_sum(&b->train), 0,
		 &(struct stored){.edges = b->train.edges, .nr_edges = b->train.nr_edges},
		 &ordinary);
	evaluate(b, "exact", (double)edges_sum(&b->train), 0, &b->exact);
}

/*
 * Prints, for smaller and complete profiles, the error of predictions with each degree of
 * doubt, at the training work.
 */
static void doubts_try(const struct bench *b, const struct stored *data, double size,
		       const struct mp_counts_options *options, const char *source)
{
	struct mp_counts c = stored_counts(b->cfg, data, options), doubted;
	uint8_t *every = zeros(b->cfg->nr_funcs, 1);
	struct me_branches real, own;
	struct me_prediction unused;
	struct me_plan plan;

	plan_make(b, &c, &plan, &unused);
	memset(every, 1, b->cfg->nr_funcs);
	if (me_branches_count(b->cfg, &b->exact, &plan, every, &real))
		die("prediction", strerror(ENOMEM));
	for (int i = 0; i <= 10; i++) {
		if (mp_counts_add_doubt(b->cfg, &c, i / 2.0, &doubted) ||
		    me_branches_count(b->cfg, &doubted, &plan, every, &own))
			die("prediction", strerror(ENOMEM));
		printf("doubt %.1f %.0f %.5f %s\n", i / 2.0, size,
		       own.taken_after / own.taken_before - real.taken_after / real.taken_before,
		       source);
		free(doubted.edge);
	}
	me_plan_fini(&plan);
	mp_counts_fini(&c);
	free(every);
}

static void doubts_print(const struct bench *b)
{
	static const double sizes[] = {1000, 3000, 10000, 30000, 100000};
	double all = (double)ips_sum(&b->samples), all_paths = (double)ips_sum(&b->paths);
	struct draw d;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct stored few = {0}, paths = {0};

		draw_init(&d, opt_seed + i);
		if (sizes[i] < all) {
			ips_draw(&few, &b->samples, sizes[i], &d);
			doubts_try(b, &few, sizes[i], &ordinary, "samples");
		}
		if (sizes[i] < all_paths) {
			paths_draw(&paths, &b->paths, sizes[i], &d);
			doubts_try(b, &paths, sizes[i], &by_paths, "paths");
		}
		stored_fini(&few);
		stored_fini(&paths);
	}
	doubts_try(b, &b->samples, all, &ordinary, "samples");
	if (all_paths > 0)
		doubts_try(b, &b->paths, all_paths, &by_paths, "paths");
}

/* ---- main ------------------------------------------------------------------- */

/* Return: share of the samples in functions that have exact counts. */
static double samples_counted(const struct bench *b)
{
	double in = 0, all = 0;

	for (size_t i = 0; i < b->samples.nr_ips; i++) {
		uint32_t f = mp_cfg_func_at(b->cfg, b->samples.ips[i].vaddr);

		all += (double)b->samples.ips[i].count;
		in += f != MP_NONE && b->counted[f] ? (double)b->samples.ips[i].count : 0;
	}
	return all > 0 ? in / all : 0;
}

static void sizes_parse(const char *arg)
{
	while (*arg && opt_nr_sizes < MAX_SIZES) {
		char *end;

		opt_sizes[opt_nr_sizes++] = strtoull(arg, &end, 10);
		if (end == arg || !opt_sizes[opt_nr_sizes - 1])
			die(arg, "not a list of sizes");
		arg = *end == ',' ? end + 1 : end;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 's': opt_samples = arg; return 0;
	case 'e': opt_train = arg; return 0;
	case 't': opt_test = arg; return 0;
	case 'p': opt_paths = arg; return 0;
	case 'n': sizes_parse(arg); return 0;
	case 'd': opt_draws = (unsigned int)strtoul(arg, NULL, 10); return 0;
	case 'r': opt_seed = strtoull(arg, NULL, 0); return 0;
	case 'o': opt_only = arg; return 0;
	case 'a': opt_all_estimators = true; return 0;
	case 'l': opt_fit = true; return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_usage(state);
		opt_binary = arg;
		return 0;
	case ARGP_KEY_END:
		if (!opt_binary || !opt_samples || !opt_train || !opt_test)
			argp_usage(state);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"samples", 's', "DB", 0, "samples of the training work", 0},
		{"train", 'e', "DB", 0, "exact counts of the training work", 0},
		{"test", 't', "DB", 0, "exact counts of other work", 0},
		{"paths", 'p', "DB", 0, "samples and paths of the version with path numbers, too",
		 0},
		{"sizes", 'n', "N,N,...", 0, "draw profiles of so many samples or transfers", 0},
		{"draws", 'd', "N", 0, "so many of each size (default 1)", 0},
		{"seed", 'r', "N", 0, "of the draws", 0},
		{"only", 'o', "SOURCES", 0, "nothing but these, and exact counts", 0},
		{"all", 'a', NULL, 0, "the parts of the estimator one by one, too", 0},
		{"fit", 'l', NULL, 0, "instead: what scripts/bench/fit-hints fits constants to", 0},
		{0}};
	static const struct argp argp = {
		options,
		parse,
		"BINARY",
		"What profiles of several kinds and sizes are worth, against exact counts; JSON.",
		NULL,
		NULL,
		NULL};
	struct bench b = {0};
	json_t *out;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	bench_open(&b);
	if (opt_fit) {
		evidence_print(&b);
		waits_print(&b);
		doubts_print(&b);
		return 0;
	}
	try_sizes(&b);
	if (opt_paths)
		try_paths(&b);
	try_whole(&b);
	out = json_pack("{s:f, s:f, s:o}", "samples", (double)ips_sum(&b.samples), "counted",
			samples_counted(&b), "rows", b.rows);
	if (!out || json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)))
		die("output", strerror(errno));
	putchar('\n');
	json_decref(out);
	stored_fini(&b.samples);
	stored_fini(&b.train);
	stored_fini(&b.paths);
	mp_counts_fini(&b.exact);
	mp_counts_fini(&b.test);
	free(b.test_arrivals);
	free(b.train_arrivals);
	free(b.redirected);
	free(b.movable);
	free(b.counted);
	mp_cfg_free(b.cfg);
	mp_elf_close(b.elf);
	return 0;
}
