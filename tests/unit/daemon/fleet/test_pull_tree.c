// SPDX-License-Identifier: Apache-2.0
/*
 * test_pull_tree - sums of trees and paths over hosts: exact without a cap, off by less than a sample with
 * one, bounded in memory, and no row that is not sound counts.
 */
#include "daemon/fleet/pull/pull_tree.h"

#include "daemon/fleet/pull/pull_sum.h"
#include "libprof/base/varint.h"
#include "libprof/context/context_codec.h"
#include "libprof/store/fleet/fleet_paths.h"
#include "tests/unit/suite.h"

#define PERIOD 250000

static struct md_pull_tree sum;
static uint8_t *bytes;
static size_t size;

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

static void setup(void)
{
	ok(md_pull_tree_init(&sum, MP_FLEET_CONTEXTS, &err));
	bytes = NULL;
}

static void teardown(void)
{
	md_pull_tree_fini(&sum);
	free(bytes);
}

/* Adds @nr samples of a function that is called at @site. */
static void add_path(struct mp_context_tree *tree, uint64_t site, uint64_t nr)
{
	struct mp_context_step steps[] = {{{1, 0x500, MP_CONTEXT_CALL}, false},
					  {{1, site, MP_CONTEXT_CALL}, true},
					  {{2, 0x7000, MP_CONTEXT_FUNCTION}, true}};

	ck_assert_int_eq(mp_context_add(tree, steps, 3, nr, nr * PERIOD), 0);
}

static struct md_pull_row row_of(const struct mp_context_tree *tree, int32_t weight)
{
	free(bytes);
	ck_assert_int_eq(mp_context_encode(tree, &bytes, &size), 0);
	return (struct md_pull_row){.total = (int64_t)tree->nodes[0].total,
				    .last_day = 7,
				    .weight = weight,
				    .data = bytes,
				    .size = size};
}

static struct mp_context_tree small_tree(void)
{
	struct mp_context_tree tree;

	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
	for (uint64_t site = 0; site < 10; site++)
		add_path(&tree, site, 1 + site);
	return tree;
}

FIXTURE(setup, teardown);

TEST(trees_of_hosts_add_up_exactly)
{
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = small_tree();
	struct md_pull_row row = row_of(&tree, MD_PULL_WHOLE);

	for (int host = 0; host < 100; host++)
		ok(md_pull_tree_add(&sum, &row, &err));
	ok(md_pull_tree_finish(&sum, &err));
	ck_assert_uint_eq(sum.nr_bad, 0);
	ck_assert_uint_eq(sum.sum.nodes[0].total, 100 * 55);
	ck_assert_uint_eq(sum.sum.nodes[0].total_ns, UINT64_C(100) * 55 * PERIOD);
	ck_assert_uint_eq(sum.sum.nr_nodes, tree.nr_nodes);
	ck_assert_int_eq(sum.last_day, 7);
	for (uint32_t i = 1; i < sum.sum.nr_nodes; i++)
		ck_assert_uint_eq(sum.sum.nodes[i].self % 100, 0);
	/* The first step was never new, the others always were. */
	ck_assert_uint_eq(sum.sum.nodes[sum.sum.nodes[0].first].nr_new, 0);
}

TEST(sum_with_weights_is_off_by_less_than_a_sample)
{
	struct mp_context_tree tree = small_tree(), other = small_tree();
	struct md_pull_row row = row_of(&tree, 21845); /* a third */

	ok(md_pull_tree_add(&sum, &row, &err));
	add_path(&other, 77, 1);
	row = row_of(&other, MD_PULL_WHOLE / 4);
	ok(md_pull_tree_add(&sum, &row, &err));
	ok(md_pull_tree_finish(&sum, &err));
	ck_assert_uint_eq(sum.nr_bad, 0);
	/* 55 / 3 + 56 / 4 */
	ck_assert_uint_eq(sum.sum.nodes[0].total, 32);
	for (uint32_t i = 1; i < sum.sum.nr_nodes; i++) {
		const struct mp_context_node *n = &sum.sum.nodes[i];
		double exact;

		if (n->kind != MP_CONTEXT_CALL || n->vaddr == 0x500)
			continue;
		exact = n->vaddr == 77 ? 0.25 : (double)(1 + n->vaddr) * (1 / 3. + 1 / 4.);
		ck_assert_double_lt((double)n->total, exact + 1);
		ck_assert_double_gt((double)n->total, exact - 1);
		ck_assert_uint_le(n->nr_new, n->total);
	}
	mp_context_tree_fini(&tree);
	mp_context_tree_fini(&other);
}

TEST(memory_of_the_sum_is_bounded)
{
	uint64_t total = 0;

	/* Each host has sites, and a module, of its own. */
	for (uint64_t host = 0; host < 60; host++) {
		AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
		struct md_pull_row row;

		ck_assert_int_eq(mp_context_tree_init(&tree), 0);
		for (uint64_t i = 0; i < 4000; i++)
			add_path(&tree, host << 32 | i, 1 + i % 3);
		row = row_of(&tree, MD_PULL_WHOLE);
		total += tree.nodes[0].total;
		ok(md_pull_tree_add(&sum, &row, &err));
		ck_assert_uint_lt(sum.sum.nr_nodes, 2 * MD_PULL_NODES_MAX);
	}
	ck_assert_uint_eq(sum.nr_bad, 0);
	ok(md_pull_tree_finish(&sum, &err));
	ck_assert_uint_eq(sum.sum.nodes[0].total, total);
}

/* Adds @row, which may or may not be sound: it counts as a whole or not at all. Return: was it sound? */
static bool try_row(const struct md_pull_row *row)
{
	uint64_t total = sum.sum.nodes[0].total, bad = sum.nr_bad;
	uint32_t nodes = sum.sum.nr_nodes;

	ok(md_pull_tree_add(&sum, row, &err));
	if (sum.nr_bad == bad) {
		ck_assert_uint_eq(sum.sum.nodes[0].total,
				  total + (uint64_t)row->total * (uint32_t)row->weight);
		return true;
	}
	ck_assert_uint_eq(sum.nr_bad, bad + 1);
	ck_assert_uint_eq(sum.sum.nodes[0].total, total);
	ck_assert_uint_eq(sum.sum.nr_nodes, nodes);
	return false;
}

TEST(row_that_is_not_sound_changes_nothing)
{
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = small_tree();
	struct md_pull_row good = row_of(&tree, MD_PULL_WHOLE), row = good;
	size_t nr_bad = 0;

	row.total++;
	ck_assert(!try_row(&row));
	row = good;
	row.chunk = 1;
	ck_assert(!try_row(&row));
	row = good;
	row.weight = MD_PULL_WHOLE + 1;
	ck_assert(!try_row(&row));
	row.weight = 0;
	ck_assert(!try_row(&row));
	row = good;
	row.size = 0;
	ck_assert(!try_row(&row));
	row.size = (64 << 10) + 1;
	ck_assert(!try_row(&row));
	for (size_t i = 0; i < size; i++) {
		row = good;
		row.size = i;
		ck_assert(!try_row(&row));
	}
	/* Any byte becomes any other one. Few of these trees have the same sum. */
	for (size_t i = 0; i < size; i++) {
		for (int x = 1; x < 256; x++) {
			bytes[i] ^= (uint8_t)x;
			nr_bad += !try_row(&good);
			bytes[i] ^= (uint8_t)x;
		}
	}
	ck_assert_uint_gt(nr_bad, size * 255 / 2);
	ck_assert(try_row(&good));
	ok(md_pull_tree_finish(&sum, &err));
}

TEST(impossible_counts_change_nothing)
{
	struct mp_context_tree tree = small_tree();
	struct md_pull_row row;
	uint32_t call = tree.nodes[0].first;

	tree.nodes[tree.nodes[tree.nodes[call].first].first].self = UINT64_C(1) << 41;
	ck_assert_int_eq(mp_context_settle(&tree), 0);
	row = row_of(&tree, 1);
	ck_assert(!try_row(&row));
	mp_context_tree_fini(&tree);
	tree = small_tree();
	call = tree.nodes[0].first;
	tree.nodes[tree.nodes[tree.nodes[call].first].first].self_ns = INT64_MAX / 2;
	ck_assert_int_eq(mp_context_settle(&tree), 0);
	row = row_of(&tree, 1);
	ck_assert(!try_row(&row));
	mp_context_tree_fini(&tree);
}

/* ---- paths ---------------------------------------------------------------------------------- */

static struct md_pull_result paths;

static size_t path_row(uint64_t first, uint64_t last, uint64_t count, uint8_t *out)
{
	struct mp_varint_writer w = {0}, row = {0};
	struct mp_path_count path;
	size_t n;

	mp_varint_put(&w, first);
	mp_varint_put_signed(&w, (int64_t)(last - first));
	path = (struct mp_path_count){w.bytes, (uint32_t)w.size, count};
	ck_assert_int_eq(mp_fleet_path_chunk(&path), (int64_t)(last >> 16));
	mp_fleet_paths_encode(&path, 1, &row);
	n = row.size;
	memcpy(out, row.bytes, n);
	free(row.bytes);
	free(w.bytes);
	return n;
}

TEST(paths_of_hosts_add_up)
{
	struct md_pull_sum *p;
	uint8_t data[64];
	struct md_pull_row row = {.chunk = 4, .last_day = 9, .weight = MD_PULL_WHOLE, .data = data};

	ok(md_pull_sum_new(MP_FLEET_PATHS, NULL, false, &p, &err));
	row.size = path_row(0x30010, 0x40020, 5, data);
	row.total = 5;
	for (int host = 0; host < 10; host++)
		ok(md_pull_sum_add(p, &row, &err));
	row.weight = MD_PULL_WHOLE / 2;
	ok(md_pull_sum_add(p, &row, &err));
	row.weight = MD_PULL_WHOLE;
	row.total = 6;
	ok(md_pull_sum_add(p, &row, &err));
	for (size_t i = 1; i < row.size; i++) {
		struct md_pull_row cut = row;

		cut.total = 5;
		cut.size = i;
		ok(md_pull_sum_add(p, &cut, &err));
	}
	row.chunk = 5;
	row.total = 5;
	ok(md_pull_sum_add(p, &row, &err)); /* a path of another chunk */
	row.size = path_row(0x30010, 0x50020, 7, data);
	row.total = 7;
	ok(md_pull_sum_add(p, &row, &err));
	row.chunk = 4;
	ck_assert_int_lt(md_pull_sum_add(p, &row, &err), 0);
	ok(md_pull_sum_finish(p, &paths, &err));
	ck_assert_uint_eq(paths.nr, 2);
	ck_assert_uint_eq(paths.paths[0].count, 53);
	ck_assert_uint_eq(paths.paths[1].count, 7);
	ck_assert_uint_eq(paths.total, 60);
	ck_assert_int_eq(paths.last_day, 9);
	ck_assert_uint_eq(paths.nr_rows - paths.nr_bad, 12);
	free(paths.paths);
	md_pull_sum_free(p);
}
