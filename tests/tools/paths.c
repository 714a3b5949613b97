// SPDX-License-Identifier: Apache-2.0
/*
 * paths NUMBERED ORIGINAL - compares sampled paths with exact counts of complete paths.
 *
 * Without --exact: prints the table of NUMBERED for tests/plugin/paths.c. With --exact:
 * compares what that plugin counted in the original with the paths in --db, for the same work;
 * prints a line of JSON. A path goes from one start to the next one. Its flow is its count
 * times its conditional branches. A hot path has 0.125 % of all flow (Wall; Bond and McKinley,
 * CGO 2005, section 5).
 *
 * Samples end inside paths, so complete paths are estimated backwards. The counts give how
 * often paths end at a block. At each earlier block, the next step back is chosen by the share
 * of samples with this beginning; if they are few, by the counts. With --asked the paths of DB
 * are complete, from a program that reported them (polls). Then estimates are proportional to
 * these reports; where there are none, the counts are used.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/cfg/cfg.h"
#include "libprof/infer/counts.h"
#include "libprof/elf/elf.h"
#include "libprof/insn/insn.h"
#include "libprof/note/path_table.h"
#include "tests/support/stored.h"

#define HOT_SHARE 0.00125
/* Weight of the counts beside the samples of a block, in samples. Tuned with perl. */
#define PRIOR_SAMPLES 20.0
/*
 * Search for paths without samples while the counts give them at least this share of all path
 * ends.
 */
#define LEAST_SHARE 1e-5
#define MAX_LENGTH  256

enum {
	STARTS = 1,
	CALLS = 2,
	ENTERED = 4
};

/* A path that ends after @block, with @number in the register there. */
struct path {
	uint32_t block;
	uint64_t number;
	double exact, estimate; /* executions, each in a unit of its own */
	uint64_t samples;	/* samples at @block with @number */
	uint32_t branches;
};

struct set {
	struct path *v;
	size_t nr, room;
	uint32_t *slots; /* index + 1 */
	size_t nr_slots;
};

static struct {
	struct mp_elf *elf, *numbered;
	struct mp_cfg *cfg;
	struct mp_path_table *table;
	bool *branch;	     /* per block of the table: ends with a conditional branch */
	uint8_t *flags;	     /* per block */
	uint64_t *seen;	     /* per block: samples with a number */
	double *share;	     /* per edge: share of the flow into its target, by the counts */
	double *flow;	     /* per edge */
	double *runs;	     /* per block */
	double *ends;	     /* per block: paths that end there, by the counts */
	uint32_t *out;	     /* edges sorted by their source */
	uint32_t *first_out; /* per block, and one more */
	struct set paths;
} t;

static const char *opt_exact, *opt_db, *opt_files[2];
static bool opt_asked;

/* ---- the table -------------------------------------------------------------- */

static void block_look(uint32_t b)
{
	const struct mp_path_block *block = &t.table->blocks[b];
	const uint8_t *bytes = mp_elf_bytes(t.elf, block->vaddr, block->size);
	struct mp_insn insn = {0};

	for (uint32_t at = 0; bytes && at < block->size; at += insn.len)
		if (mp_insn_decode(bytes + at, block->size - at, block->vaddr + at, &insn))
			return;
	t.branch[b] = bytes && insn.kind == MP_INSN_COND;
	t.flags[b] |= block->starts ? STARTS : 0;
	t.flags[b] |= bytes && (insn.kind == MP_INSN_CALL || insn.kind == MP_INSN_ICALL) ? CALLS
											 : 0;
}

static void table_open(void)
{
	struct mp_err err = {""};
	uint32_t *nr;

	if (mp_elf_open(opt_files[0], MP_ELF_ALL, &t.numbered, &err) ||
	    mp_elf_open(opt_files[1], MP_ELF_ALL, &t.elf, &err) ||
	    mp_path_table_read(t.numbered, &t.table, &err))
		die(opt_files[0], *err.msg ? err.msg : "no path numbers");
	t.branch = zeros(t.table->nr_blocks, sizeof(*t.branch));
	t.flags = zeros(t.table->nr_blocks, sizeof(*t.flags));
	t.out = zeros(t.table->nr_edges, sizeof(*t.out));
	t.first_out = zeros(t.table->nr_blocks + 1, sizeof(*t.first_out));
	nr = zeros(t.table->nr_blocks, sizeof(*nr));
	for (uint32_t b = 0; b < t.table->nr_blocks; b++)
		block_look(b);
	for (uint32_t e = 0; e < t.table->nr_edges; e++) {
		const struct mp_path_edge *edge = &t.table->edges[e];

		if (edge->from == MP_NONE)
			t.flags[edge->to] |= ENTERED;
		else
			t.first_out[edge->from + 1]++;
	}
	for (uint32_t b = 0; b < t.table->nr_blocks; b++)
		t.first_out[b + 1] += t.first_out[b];
	for (uint32_t e = 0; e < t.table->nr_edges; e++) {
		uint32_t from = t.table->edges[e].from;

		if (from != MP_NONE)
			t.out[t.first_out[from] + nr[from]++] = e;
	}
	free(nr);
}

/* Sorted by address, because the plugin searches by address. */
static void table_print(void)
{
	uint32_t *rank = zeros(t.table->nr_blocks, sizeof(*rank));
	uint64_t *entered = zeros(t.table->nr_blocks, sizeof(*entered));

	for (uint32_t e = 0; e < t.table->nr_edges; e++)
		if (t.table->edges[e].from == MP_NONE)
			entered[t.table->edges[e].to] = t.table->edges[e].value;
	for (uint32_t i = 0; i < t.table->nr_blocks; i++) {
		uint32_t b = t.table->by_vaddr[i];
		const struct mp_path_block *block = &t.table->blocks[b];

		rank[b] = i;
		printf("b %" PRIx64 " %" PRIx64 " %u %" PRIu64 "\n", block->vaddr,
		       block->vaddr + block->size, t.flags[b], entered[b]);
	}
	for (uint32_t i = 0; i < t.table->nr_blocks; i++) {
		uint32_t b = t.table->by_vaddr[i];

		for (uint32_t k = t.first_out[b]; k < t.first_out[b + 1]; k++) {
			const struct mp_path_edge *edge = &t.table->edges[t.out[k]];

			printf("e %u %u %d %" PRIu64 "\n", i, rank[edge->to], edge->carries,
			       edge->value);
		}
	}
	free(entered);
	free(rank);
}

/* ---- paths ------------------------------------------------------------------ */

static uint32_t *set_slot(const struct set *set, uint32_t block, uint64_t number)
{
	size_t i = ((number + 1) * 0x9e3779b97f4a7c15 ^ (uint64_t)block * 0xff51afd7ed558ccd) >> 17;

	for (i &= set->nr_slots - 1; set->slots[i]; i = (i + 1) & (set->nr_slots - 1)) {
		const struct path *path = &set->v[set->slots[i] - 1];

		if (path->block == block && path->number == number)
			break;
	}
	return &set->slots[i];
}

/* Finds or adds a path. Invalidates pointers to other paths. */
static struct path *path_get(struct set *set, uint32_t block, uint64_t number)
{
	uint32_t *slot;

	if (2 * (set->nr + 1) > set->nr_slots) {
		set->nr_slots = set->nr_slots ? 2 * set->nr_slots : 1024;
		free(set->slots);
		set->slots = zeros(set->nr_slots, sizeof(*set->slots));
		for (size_t i = 0; i < set->nr; i++)
			*set_slot(set, set->v[i].block, set->v[i].number) = (uint32_t)i + 1;
	}
	slot = set_slot(set, block, number);
	if (!*slot) {
		if (set->nr == set->room) {
			set->room = set->room ? 2 * set->room : 1024;
			set->v = realloc(set->v, set->room * sizeof(*set->v));
			if (!set->v)
				die("memory", strerror(ENOMEM));
		}
		set->v[set->nr++] = (struct path){.block = block, .number = number};
		*slot = (uint32_t)set->nr;
	}
	return &set->v[*slot - 1];
}

static const struct path *path_find(uint32_t block, uint64_t number)
{
	uint32_t slot = t.paths.nr_slots ? *set_slot(&t.paths, block, number) : 0;

	return slot ? &t.paths.v[slot - 1] : NULL;
}

static void exact_read(void)
{
	FILE *in = fopen(opt_exact, "re");
	uint64_t number, count;
	uint32_t rank;

	if (!in)
		die(opt_exact, strerror(errno));
	while (fscanf(in, "%u %" SCNu64 " %" SCNu64, &rank, &number, &count) == 3) {
		if (rank >= t.table->nr_blocks)
			die(opt_exact, "of another table");
		path_get(&t.paths, t.table->by_vaddr[rank], number)->exact += (double)count;
	}
	if (!feof(in))
		die(opt_exact, "cannot be read");
	fclose(in);
}

static uint32_t edge_between(uint32_t from, uint32_t to)
{
	for (uint32_t k = t.first_out[from]; k < t.first_out[from + 1]; k++)
		if (t.table->edges[t.out[k]].to == to)
			return t.out[k];
	return MP_NONE;
}

static uint32_t edge_from_outside(uint32_t to)
{
	for (uint32_t e = 0; e < t.table->nr_edges; e++)
		if (t.table->edges[e].to == to && t.table->edges[e].from == MP_NONE)
			return e;
	return MP_NONE;
}

/* Adds samples with a path: the number at the last block, if the path reaches back to a start. */
static void sample_add(const struct mp_path_count *key)
{
	uint64_t vaddrs[MP_PATH_MAX_BLOCKS], number = 0;
	uint32_t nr = mp_path_key_decode(key->key, key->key_size, vaddrs, NULL);
	uint32_t at = MP_NONE;
	bool whole = false;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t to = vaddrs[i] ? mp_path_table_block_at(t.table, vaddrs[i]) : MP_NONE, e;

		if (vaddrs[i] && (to == MP_NONE || t.table->blocks[to].vaddr != vaddrs[i]))
			return;
		if (to == MP_NONE)
			continue;
		if (t.table->blocks[to].starts) {
			number = 0;
			whole = true;
		} else if (i) {
			e = at == MP_NONE ? edge_from_outside(to) : edge_between(at, to);
			if (e == MP_NONE)
				return;
			whole |= !t.table->edges[e].carries;
			number = t.table->edges[e].value + (t.table->edges[e].carries ? number : 0);
		}
		at = to;
	}
	if (at == MP_NONE || !whole)
		return;
	path_get(&t.paths, at, number)->samples += key->count;
	t.seen[at] += key->count;
}

/* ---- what counts say of the table's edges ----------------------------------- */

static void counts_spread(const struct mp_counts *c)
{
	const struct mp_cfg *cfg = t.cfg;
	double *out;

	t.flow = zeros(t.table->nr_edges, sizeof(*t.flow));
	t.share = zeros(t.table->nr_edges, sizeof(*t.share));
	t.runs = zeros(t.table->nr_blocks, sizeof(*t.runs));
	t.ends = zeros(t.table->nr_blocks, sizeof(*t.ends));
	out = zeros(t.table->nr_blocks, sizeof(*out));
	for (uint32_t b = 0; b < t.table->nr_blocks; b++) {
		uint32_t block = mp_cfg_block_at(cfg, t.table->blocks[b].vaddr);

		t.runs[b] = block == MP_NONE ? 0 : c->block[block];
		t.ends[b] = t.runs[b];
	}
	for (uint32_t e = 0; e < t.table->nr_edges; e++) {
		const struct mp_path_edge *edge = &t.table->edges[e];
		uint64_t vaddr = t.table->blocks[edge->to].vaddr;
		uint32_t to = mp_cfg_block_at(cfg, vaddr), from;

		if (edge->from == MP_NONE || to == MP_NONE)
			continue;
		from = mp_cfg_block_at(cfg, t.table->blocks[edge->from].vaddr);
		if (from == to && cfg->blocks[to].vaddr != vaddr)
			t.flow[e] = c->block[from]; /* one block there is two here */
		for (uint32_t k = cfg->blocks[from].first_edge;
		     from != MP_NONE && cfg->blocks[to].vaddr == vaddr &&
		     k < cfg->blocks[from].first_edge + cfg->blocks[from].nr_edges;
		     k++)
			if (cfg->edges[k].to == to)
				t.flow[e] += c->edge[k];
		out[edge->to] += t.flow[e];
		if (edge->carries)
			t.ends[edge->from] -= t.flow[e];
	}
	for (uint32_t e = 0; e < t.table->nr_edges; e++) {
		const struct mp_path_edge *edge = &t.table->edges[e];

		if (edge->from == MP_NONE)
			t.flow[e] = fmax(0, t.runs[edge->to] - out[edge->to]);
		t.share[e] = t.runs[edge->to] > 0 ? fmin(1, t.flow[e] / t.runs[edge->to]) : 0;
	}
	for (uint32_t b = 0; b < t.table->nr_blocks; b++)
		t.ends[b] = fmax(0, t.ends[b]);
	free(out);
}

static void profile_read(void)
{
	const struct mp_counts_options options = {
		.estimator = MP_ESTIMATE_PATHS, .layout_prior = true, .call_graph = true};
	struct stored stored = stored_read(t.elf, opt_db);
	struct mp_counts counts;
	struct mp_err err = {""};

	if (mp_cfg_build(t.elf, NULL, &t.cfg, &err))
		die(opt_files[1], err.msg);
	counts = stored_counts(t.cfg, &stored, &options);
	t.seen = zeros(t.table->nr_blocks, sizeof(*t.seen));
	for (size_t i = 0; i < stored.nr_paths; i++)
		sample_add(&stored.paths[i]);
	counts_spread(&counts);
	mp_counts_fini(&counts);
	stored_fini(&stored);
}

/* ---- estimates -------------------------------------------------------------- */

/*
 * Return: the last edge to @to with a value up to @number: the edge by which a path with this
 * number came.
 */
static uint32_t edge_by_number(uint32_t to, uint64_t number)
{
	uint32_t low = 0, high = t.table->nr_edges;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct mp_path_edge *edge = &t.table->edges[mid];

		if (edge->to < to || (edge->to == to && edge->value <= number))
			low = mid + 1;
		else
			high = mid;
	}
	return low && t.table->edges[low - 1].to == to ? low - 1 : MP_NONE;
}

/* Return: number of conditional branches on the path that ends after @block with @number. */
static uint32_t path_branches(uint32_t block, uint64_t number)
{
	uint32_t nr = t.branch[block], e, length = 0;

	while (!t.table->blocks[block].starts && length++ < MAX_LENGTH) {
		e = edge_by_number(block, number);
		if (e == MP_NONE || !t.table->edges[e].carries)
			break;
		number -= t.table->edges[e].value;
		block = t.table->edges[e].from;
		nr += t.branch[block];
	}
	return nr;
}

/* Return: share of the flow into @block that has @number. */
static double number_share(uint32_t block, uint64_t number, uint32_t length)
{
	const struct path *path = path_find(block, number);
	double samples = path ? (double)path->samples : 0, share;
	const struct mp_path_edge *edge;
	uint32_t e;

	if (t.table->blocks[block].starts)
		return number ? 0 : 1;
	e = edge_by_number(block, number);
	if (e == MP_NONE || length == MAX_LENGTH)
		return 0;
	edge = &t.table->edges[e];
	share = t.share[e];
	if (edge->carries)
		share *= number_share(edge->from, number - edge->value, length + 1);
	return (samples + PRIOR_SAMPLES * share) / ((double)t.seen[block] + PRIOR_SAMPLES);
}

/* Adds paths without samples that are frequent by the counts, going backwards from their end. */
static void unseen_find(uint32_t end, uint32_t block, uint64_t number, double flow, double least,
			uint32_t length)
{
	if (t.table->blocks[block].starts) {
		path_get(&t.paths, end, number);
		return;
	}
	if (length == MAX_LENGTH)
		return;
	/* Edges are sorted by target. */
	for (uint32_t e = edge_by_number(block, UINT64_MAX);
	     e != MP_NONE && t.table->edges[e].to == block; e = e ? e - 1 : MP_NONE) {
		const struct mp_path_edge *edge = &t.table->edges[e];

		if (flow * t.share[e] < least)
			continue;
		if (edge->carries)
			unseen_find(end, edge->from, number + edge->value, flow * t.share[e], least,
				    length + 1);
		else
			path_get(&t.paths, end, number + edge->value);
	}
}

/* Return: executions by the counts per reported path, over the blocks with reports. */
static double asked_weigh(void)
{
	double told = 0, ran = 0;

	for (uint32_t b = 0; opt_asked && b < t.table->nr_blocks; b++) {
		told += (double)t.seen[b];
		ran += t.seen[b] ? t.runs[b] : 0;
	}
	return told > 0 ? ran / told : 0;
}

static double path_estimate(const struct path *path, double weight)
{
	const double runs = t.runs[path->block];

	/* Some paths continue after the block where they were reported. */
	if (weight > 0 && t.seen[path->block])
		return weight * (double)path->samples *
		       (runs > 0 ? fmin(1, t.ends[path->block] / runs) : 1);
	return t.ends[path->block] * number_share(path->block, path->number, 0);
}

static int by_estimate(const void *a, const void *b)
{
	double x = ((const struct path *)a)->estimate * ((const struct path *)a)->branches;
	double y = ((const struct path *)b)->estimate * ((const struct path *)b)->branches;

	return (x < y) - (x > y);
}

static int by_exact(const void *a, const void *b)
{
	double x = ((const struct path *)a)->exact * ((const struct path *)a)->branches;
	double y = ((const struct path *)b)->exact * ((const struct path *)b)->branches;

	return (x < y) - (x > y);
}

/*
 * Prints how much of the flow on hot paths lies on equally many hottest estimated paths (Wall),
 * and the share of all flow that both have in common (overlap).
 */
static void compare(void)
{
	double all = 0, all_estimated = 0, hot = 0, matched = 0, both = 0, sampled = 0;
	double least = 0, weight = asked_weigh();
	size_t nr_hot = 0;

	for (uint32_t b = 0; b < t.table->nr_blocks; b++)
		least += t.ends[b];
	for (uint32_t b = 0; b < t.table->nr_blocks; b++)
		if (t.ends[b] > LEAST_SHARE * least)
			unseen_find(b, b, 0, t.ends[b], LEAST_SHARE * least, 0);
	for (size_t i = 0; i < t.paths.nr; i++) {
		struct path *path = &t.paths.v[i];

		path->branches = path_branches(path->block, path->number);
		path->estimate = path_estimate(path, weight);
		all += path->exact * path->branches;
		all_estimated += path->estimate * path->branches;
		sampled += (double)path->samples;
	}
	if (!(all > 0) || !(all_estimated > 0))
		die(opt_exact, "no path");
	for (size_t i = 0; i < t.paths.nr; i++) {
		const struct path *path = &t.paths.v[i];

		both += fmin(path->exact / all, path->estimate / all_estimated) * path->branches;
	}
	qsort(t.paths.v, t.paths.nr, sizeof(*t.paths.v), by_exact);
	while (nr_hot < t.paths.nr &&
	       t.paths.v[nr_hot].exact * t.paths.v[nr_hot].branches >= HOT_SHARE * all) {
		hot += t.paths.v[nr_hot].exact * t.paths.v[nr_hot].branches;
		nr_hot++;
	}
	least = nr_hot ? t.paths.v[nr_hot - 1].exact * t.paths.v[nr_hot - 1].branches : 0;
	qsort(t.paths.v, t.paths.nr, sizeof(*t.paths.v), by_estimate);
	for (size_t i = 0; i < nr_hot; i++)
		if (t.paths.v[i].exact * t.paths.v[i].branches >= least)
			matched += t.paths.v[i].exact * t.paths.v[i].branches;
	printf("{\"samples\": %.0f, \"branches\": %.0f, \"paths\": %zu, \"hot\": %zu, "
	       "\"hot_flow\": %.4f, \"wall\": %.4f, \"overlap\": %.4f}\n",
	       sampled, all, t.paths.nr, nr_hot, hot / all, hot > 0 ? fmin(1, matched / hot) : 1,
	       both);
}

/* Without a database: prints a summary of the exact counts. */
static void exact_print(void)
{
	double runs = 0, branches = 0;

	for (size_t i = 0; i < t.paths.nr; i++) {
		const struct path *path = &t.paths.v[i];

		runs += path->exact;
		branches += path->exact * path_branches(path->block, path->number);
	}
	printf("{\"paths\": %zu, \"runs\": %.0f, \"branches\": %.0f}\n", t.paths.nr, runs,
	       branches);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'e': opt_exact = arg; return 0;
	case 'd': opt_db = arg; return 0;
	case 'a': opt_asked = true; return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			argp_usage(state);
		opt_files[state->arg_num] = arg;
		return 0;
	case ARGP_KEY_END:
		if (!opt_files[1] || (opt_db && !opt_exact))
			argp_usage(state);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"exact", 'e', "FILE", 0, "what tests/plugin/paths.c wrote", 0},
		{"db", 'd', "DB", 0, "samples and paths of NUMBERED at the same work", 0},
		{"asked", 'a', NULL, 0, "the paths in DB are whole", 0},
		{0}};
	static const struct argp argp = {
		options,
		parse,
		"NUMBERED ORIGINAL",
		"The table of NUMBERED as the plugin takes it, or how well sampled paths agree.",
		NULL,
		NULL,
		NULL};

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	table_open();
	if (!opt_exact) {
		table_print();
		return 0;
	}
	exact_read();
	if (!opt_db) {
		exact_print();
		return 0;
	}
	profile_read();
	compare();
	return 0;
}
