// SPDX-License-Identifier: Apache-2.0
/*
 * test_path_evidence - counts of a real program's edges from paths, and paths that do not fit
 * the program.
 */
#include "libprof/infer/path_evidence.h"

#include "libprof/infer/counts.h"
#include "libprof/base/varint.h"
#include "tests/unit/program.h"

static struct mp_path_evidence evidence;

static void setup(void)
{
	program_build("-w -O2 -fPIE -pie", "tests/data/switches.c");
}

static void teardown(void)
{
	mp_path_evidence_fini(&evidence);
	program_free();
}

/* Makes the key of these addresses. */
static struct mp_path_count path_of(const uint64_t *vaddrs, uint32_t nr, uint64_t count,
				    struct mp_varint_writer *w)
{
	*w = (struct mp_varint_writer){0};
	mp_varint_put(w, vaddrs[0]);
	for (uint32_t i = 1; i < nr; i++)
		mp_varint_put_signed(w, (int64_t)(vaddrs[i] - vaddrs[i - 1]));
	return (struct mp_path_count){w->bytes, (uint32_t)w->size, count};
}

static void build(const uint64_t *vaddrs, uint32_t nr, uint64_t count)
{
	struct mp_varint_writer w;
	struct mp_path_count path = path_of(vaddrs, nr, count, &w);

	mp_path_evidence_fini(&evidence);
	ck_assert_int_eq(mp_path_evidence_build(cfg, &path, 1, &evidence, NULL), 0);
	free(w.bytes);
}

/* Like build(), for a reported path whose last @complete steps are complete. */
static void build_reported(const uint64_t *vaddrs, uint32_t nr, uint64_t count, uint32_t complete)
{
	struct mp_varint_writer w;
	struct mp_path_count path = path_of(vaddrs, nr, count, &w);

	mp_varint_put_signed(&w, -(int64_t)vaddrs[nr - 1]);
	mp_varint_put(&w, complete);
	path.key = w.bytes;
	path.key_size = (uint32_t)w.size;
	mp_path_evidence_fini(&evidence);
	ck_assert_int_eq(mp_path_evidence_build(cfg, &path, 1, &evidence, NULL), 0);
	free(w.bytes);
}

static uint64_t sum_of(const uint64_t *v, uint32_t nr)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < nr; i++)
		sum += v[i];
	return sum;
}

/* A walk of at most @max blocks from @block. Return: number of blocks; @edges has one less. */
static uint32_t walk(uint32_t block, uint32_t max, uint64_t *vaddrs, uint32_t *edges)
{
	uint32_t nr = 0;

	vaddrs[nr++] = cfg->blocks[block].vaddr;
	while (nr < max && cfg->blocks[block].nr_edges) {
		uint32_t e = cfg->blocks[block].first_edge + nr % cfg->blocks[block].nr_edges;

		edges[nr - 1] = e;
		block = cfg->edges[e].to;
		vaddrs[nr++] = cfg->blocks[block].vaddr;
	}
	return nr;
}

FIXTURE(setup, teardown);

TEST(evidence_counts_each_edge_of_a_path)
{
	uint32_t nr_walks = 0;

	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		uint64_t vaddrs[10];
		uint32_t edges[10], nr = walk(b, 10, vaddrs, edges);

		build(vaddrs, nr, 3);
		ck_assert_uint_eq(evidence.nr_paths, 3);
		ck_assert_uint_eq(evidence.nr_strange, 0);
		ck_assert_uint_eq(evidence.nr_steps, 3 * (nr - 1));
		ck_assert_uint_eq(sum_of(evidence.edge, cfg->nr_edges), 3 * (nr - 1));
		ck_assert_uint_eq(sum_of(evidence.outside, cfg->nr_blocks), 0);
		for (uint32_t i = 0; i + 1 < nr; i++) {
			/* Or another edge between the same blocks. */
			const struct mp_edge *edge = &cfg->edges[edges[i]];
			uint32_t e = cfg->blocks[edge->from].first_edge;

			while (cfg->edges[e].to != edge->to)
				e++;
			ck_assert_uint_ge(evidence.edge[e], 3);
		}
		nr_walks += nr == 10;
	}
	ck_assert_uint_gt(nr_walks, 10);
}

TEST(evidence_knows_where_control_came_in)
{
	uint32_t block = cfg->funcs[cfg->nr_funcs / 2].first_block;
	uint64_t vaddrs[] = {0, cfg->blocks[block].vaddr};

	build(vaddrs, 2, 7);
	ck_assert_uint_eq(evidence.outside[block], 7);
	ck_assert_uint_eq(evidence.nr_steps, 7);
	ck_assert_uint_eq(evidence.nr_strange, 0);
	vaddrs[1]++;
	build(vaddrs, 2, 7);
	ck_assert_uint_eq(evidence.nr_steps, 0);
	ck_assert_uint_eq(evidence.nr_strange, 7);
}

/* Numbered blocks are smaller: they end after calls, and before the branch of a back edge. */
TEST(evidence_takes_finer_blocks_for_the_one_they_lie_in)
{
	uint32_t nr = 0;

	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		const struct mp_block *block = &cfg->blocks[b];
		uint64_t vaddrs[] = {block->vaddr, block->vaddr + 1, 0};

		if (block->size < 2 || !block->nr_edges)
			continue;
		vaddrs[2] = cfg->blocks[cfg->edges[block->first_edge].to].vaddr;
		build(vaddrs, 3, 1);
		ck_assert_uint_eq(evidence.nr_strange, 0);
		ck_assert_uint_eq(evidence.nr_steps, 1);
		ck_assert_uint_eq(evidence.edge[block->first_edge], 1);
		nr++;
	}
	ck_assert_uint_gt(nr, 20);
}

TEST(evidence_of_another_program_is_counted_as_such)
{
	uint64_t vaddrs[11];
	uint32_t edges[10], block = 0, nr;

	while ((nr = walk(block, 10, vaddrs + 1, edges)) < 10)
		block++;
	/* First a step without an edge, then along edges. */
	vaddrs[0] = vaddrs[10] + 1;
	build(vaddrs, 11, 2);
	ck_assert_uint_eq(evidence.nr_steps, 2 * 9);
	ck_assert_uint_eq(evidence.nr_strange, 2);
	/* First along edges, then a step without one. */
	vaddrs[10] = vaddrs[9] + (1 << 30);
	build(vaddrs + 1, 10, 2);
	ck_assert_uint_eq(evidence.nr_steps, 0);
	ck_assert_uint_eq(evidence.nr_strange, 2);
	ck_assert_int_eq(
		mp_path_evidence_build(cfg, &(struct mp_path_count){(const uint8_t *)"\x80", 1, 4},
				       1, &evidence, NULL),
		0);
	ck_assert_uint_eq(evidence.nr_strange, 4);
}

/* Only the complete steps of a reported path count, and the execution of its last block. */
TEST(evidence_takes_the_complete_steps_of_a_reported_path)
{
	uint32_t nr_walks = 0;

	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		uint64_t vaddrs[10];
		uint32_t edges[10], nr = walk(b, 10, vaddrs, edges);

		build(vaddrs, nr, 5);
		ck_assert_uint_eq(sum_of(evidence.reported, cfg->nr_blocks), 0);
		for (uint32_t complete = 0; complete < nr; complete++) {
			build_reported(vaddrs, nr, 5, complete);
			ck_assert_uint_eq(evidence.nr_steps, 5 * complete);
			ck_assert_uint_eq(evidence.nr_strange, 0);
			ck_assert_uint_eq(sum_of(evidence.reported, cfg->nr_blocks), 5);
			ck_assert_uint_eq(
				evidence.reported[mp_cfg_block_starting(cfg, vaddrs[nr - 1])], 5);
		}
		nr_walks += nr == 10;
	}
	ck_assert_uint_gt(nr_walks, 10);
}

/* Reports from two places in one block say the same. */
TEST(evidence_counts_a_reported_block_once)
{
	struct mp_path_count paths[3];
	struct mp_varint_writer w[3];
	uint32_t block = 0;

	while (cfg->blocks[block].size < 3)
		block++;
	for (uint32_t i = 0; i < 3; i++) {
		/* Its last, first and middle address. */
		uint64_t vaddr = cfg->blocks[block].vaddr + (i + 2) % 3;

		w[i] = (struct mp_varint_writer){0};
		mp_varint_put(&w[i], vaddr);
		mp_varint_put_signed(&w[i], -(int64_t)vaddr);
		mp_varint_put(&w[i], 0);
		paths[i] = (struct mp_path_count){w[i].bytes, (uint32_t)w[i].size, 10 + i};
	}
	ck_assert_int_eq(mp_path_evidence_build(cfg, paths, 3, &evidence, NULL), 0);
	ck_assert_uint_eq(evidence.reported[block], 11);
	for (uint32_t i = 0; i < 3; i++)
		free(w[i].bytes);
}

/* Counts of a module by samples, and by paths where there are some. */
TEST(counts_follow_paths_where_there_are_some)
{
	uint64_t *samples = calloc(cfg->nr_blocks, sizeof(*samples));
	struct mp_profile profile = {.block_samples = samples, .nr_blocks = cfg->nr_blocks};
	struct mp_counts_options options = {.estimator = MP_ESTIMATE_PATHS, .layout_prior = true};
	struct mp_counts without, with;
	struct mp_counts_stats stats;
	uint32_t merge = MP_NONE, first = MP_NONE, second = MP_NONE;

	/* Find a block with two predecessors. */
	for (uint32_t e = 0; e < cfg->nr_edges && second == MP_NONE; e++) {
		merge = cfg->edges[e].to;
		if (mp_block_enters(&cfg->blocks[merge]))
			continue;
		for (uint32_t i = 0; i < cfg->nr_edges; i++)
			if (i != e && cfg->edges[i].to == merge &&
			    cfg->edges[i].from != cfg->edges[e].from) {
				first = e;
				second = i;
			}
	}
	ck_assert_uint_ne(second, MP_NONE);
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		samples[b] = 100ull * cfg->blocks[b].nr_insns;
		profile.nr_samples += samples[b];
	}
	ck_assert_int_eq(mp_path_evidence_build(cfg, NULL, 0, &evidence, NULL), 0);
	ck_assert_int_eq(mp_counts_build(cfg, &profile, &options, &without, NULL, NULL), 0);
	options.paths = &evidence;
	ck_assert_int_eq(mp_counts_build(cfg, &profile, &options, &with, &stats, NULL), 0);
	ck_assert_uint_eq(stats.nr_by_paths, 0);
	ck_assert_mem_eq(with.edge, without.edge, cfg->nr_edges * sizeof(double));
	mp_counts_fini(&with);
	for (int turn = 0; turn < 2; turn++) {
		evidence.edge[first] = turn ? 9000 : 1000;
		evidence.edge[second] = turn ? 1000 : 9000;
		ck_assert_int_eq(mp_counts_build(cfg, &profile, &options, &with, &stats, NULL), 0);
		ck_assert_uint_eq(stats.nr_by_paths, 1);
		ck_assert_double_eq_tol(with.edge[first] / (with.edge[first] + with.edge[second]),
					turn ? 0.9 : 0.1, 0.01);
		for (uint32_t e = 0; e < cfg->nr_edges; e++)
			if (cfg->blocks[cfg->edges[e].to].func != cfg->blocks[merge].func)
				ck_assert(with.edge[e] == without.edge[e]);
		mp_counts_fini(&with);
	}
	options.estimator = MP_ESTIMATE_POISSON;
	ck_assert_int_eq(mp_counts_build(cfg, &profile, &options, &with, &stats, NULL), 0);
	ck_assert_uint_eq(stats.nr_by_paths, 0);
	ck_assert_mem_eq(with.edge, without.edge, cfg->nr_edges * sizeof(double));
	mp_counts_fini(&with);
	mp_counts_fini(&without);
	free(samples);
}

/*
 * A function without samples gets its counts from paths, in proportion to functions that have
 * both.
 */
TEST(counts_of_paths_alone_are_in_proportion)
{
	uint64_t *samples = calloc(cfg->nr_blocks, sizeof(*samples));
	struct mp_profile profile = {.block_samples = samples, .nr_blocks = cfg->nr_blocks};
	struct mp_counts_options options = {.estimator = MP_ESTIMATE_PATHS, .paths = &evidence};
	uint32_t first = MP_NONE, second = MP_NONE, merge = MP_NONE, func;
	struct mp_counts_stats stats;
	struct mp_counts counts;
	double seen = 0, counted = 0;

	for (uint32_t e = 0; e < cfg->nr_edges && second == MP_NONE; e++) {
		merge = cfg->edges[e].to;
		if (mp_block_enters(&cfg->blocks[merge]))
			continue;
		for (uint32_t i = e + 1; i < cfg->nr_edges; i++)
			if (cfg->edges[i].to == merge && cfg->edges[i].from != cfg->edges[e].from) {
				first = e;
				second = i;
			}
	}
	ck_assert_uint_ne(second, MP_NONE);
	func = cfg->blocks[merge].func;
	for (uint32_t b = 0; b < cfg->nr_blocks; b++) {
		if (cfg->blocks[b].func == func)
			continue;
		samples[b] = 100ull * cfg->blocks[b].nr_insns;
		profile.nr_samples += samples[b];
	}
	ck_assert_int_eq(mp_path_evidence_build(cfg, NULL, 0, &evidence, NULL), 0);
	evidence.edge[first] = 9000;
	evidence.edge[second] = 1000;
	evidence.nr_steps = 10000;
	/* Without such a function it has no counts. */
	ck_assert_int_eq(mp_counts_build(cfg, &profile, &options, &counts, &stats, NULL), 0);
	ck_assert(counts.block[merge] == 0 && counts.samples[merge] == 0);
	mp_counts_fini(&counts);
	for (uint32_t e = 0; e < cfg->nr_edges; e++)
		if (cfg->blocks[cfg->edges[e].to].func != func)
			evidence.nr_steps += evidence.edge[e] = 50;
	ck_assert_int_eq(mp_counts_build(cfg, &profile, &options, &counts, &stats, NULL), 0);
	for (uint32_t e = 0; e < cfg->nr_edges; e++)
		if (cfg->blocks[cfg->edges[e].to].func != func && counts.edge[e] > 0) {
			seen += 50;
			counted += counts.edge[e];
		}
	ck_assert_double_eq_tol(counts.edge[first] / (counts.edge[first] + counts.edge[second]),
				0.9, 0.02);
	ck_assert_double_eq_tol(counts.block[merge] / (10000 * counted / seen), 1, 0.2);
	ck_assert_uint_eq(counts.samples[merge], 10000);
	mp_counts_fini(&counts);
	free(samples);
}
