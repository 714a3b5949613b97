// SPDX-License-Identifier: Apache-2.0
/*
 * test_fleet_whole - paths and trees of a fleet: every one is sent, none is sent twice, those of others are
 * never sent, and a pull replaces the one before.
 */

#include "libprof/context/context_codec.h"
#include "libprof/store/contexts/store_contexts.h"
#include "libprof/store/store_drop.h"
#include "libprof/store/store_paths.h"
#include "tests/unit/fleet_fixture.h"

/* Adds @nr samples of each: a tree whose site depends on @site, a call, and a path. */
static void add_whole(int64_t day, uint64_t site, uint64_t nr)
{
	struct mp_context_step steps[] = {{{1, 0x500, MP_CONTEXT_CALL}, false},
					  {{1, 0x1000 + site, MP_CONTEXT_CALL}, true},
					  {{2, 0x7000, MP_CONTEXT_FUNCTION}, true}};
	const uint8_t key[] = {(uint8_t)(1 + site), 2};
	struct mp_path_count path = {key, sizeof(key), nr};
	struct mp_ledger ledger = {.contexts = nr, .calls = nr, .paths[MP_PATH_DECODED] = nr};
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};

	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
	ck_assert_int_eq(mp_context_add(&tree, steps, 3, nr, nr * 1000), 0);
	ok(mp_store_add_contexts(store, MP_CONTEXTS, module, day * DAY, &tree, &err));
	ok(mp_store_add_contexts(store, MP_CALLS, module, day * DAY, &tree, &err));
	ok(mp_store_add_paths(store, module, day * DAY, &path, 1, &err));
	ok(mp_store_add_ledger(store, session, DAY, &ledger, &err));
}

static const struct mp_fleet_row *row_of(enum mp_fleet_kind kind)
{
	for (size_t i = 0; i < batch.nr_rows; i++)
		if (batch.rows[i].kind == kind)
			return &batch.rows[i];
	ck_abort_msg("no row of the kind %d", kind);
	return NULL;
}

/* The tree that is sent has @nr samples. */
static void expect_tree(enum mp_fleet_kind kind, uint64_t nr)
{
	const struct mp_fleet_row *row = row_of(kind);
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};

	ck_assert_int_eq(row->chunk, 0);
	ck_assert_uint_eq(row->total, nr);
	ok(mp_context_decode(batch.bytes + row->at, row->size, &tree, &err));
	ck_assert_uint_eq(tree.nodes[0].total, nr);
}

static void expect_all(uint64_t nr)
{
	ck_assert_uint_eq(batch.nr_rows, 3);
	expect_tree(MP_FLEET_CONTEXTS, nr);
	expect_tree(MP_FLEET_CALLS, nr);
	ck_assert_uint_eq(row_of(MP_FLEET_PATHS)->total, nr);
}

FIXTURE(setup, teardown);

TEST(fleet_sends_trees_and_paths_once)
{
	batch.when = MP_FLEET_ALWAYS;
	add_whole(TODAY, 0, 5);
	ck_assert_uint_eq(send(), 3);
	expect_all(5);
	ck_assert_uint_eq(send(), 0);
	add_whole(TODAY, 8, 2);
	ck_assert_uint_eq(collect(), 3);
	expect_all(7);
	ok(mp_fleet_revert(store, &err));
	ck_assert_uint_eq(send(), 3);
	expect_all(7);
	add_whole(TODAY + 1, 0, 1);
	ck_assert_uint_eq(send(), 3);
	expect_all(1);
	batch.when = MP_FLEET_NEVER;
	add_whole(TODAY + 1, 0, 1);
	ck_assert_uint_eq(send(), 0);
}

TEST(fleet_sends_trees_and_paths_of_days_that_are_over)
{
	batch.when = MP_FLEET_DAILY;
	batch.today = TODAY;
	add_whole(TODAY, 0, 5);
	ck_assert_uint_eq(send(), 0);
	/* The clock went back. */
	add_whole(TODAY + 1, 0, 7);
	ck_assert_uint_eq(send(), 3);
	expect_all(7);
	batch.today = TODAY + 1;
	ck_assert_uint_eq(send(), 3);
	expect_all(5);
	ck_assert_uint_eq(send(), 0);
}

TEST(fleet_folds_large_trees_that_are_sent_daily)
{
	struct mp_ledger ledger = {.contexts = 20000};
	struct mp_context_tree tree;

	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
	for (uint64_t site = 0; site < 10000; site++) {
		struct mp_context_step steps[] = {{{1, 0x500 + site * 777, MP_CONTEXT_CALL}, false},
						  {{2, 0x7000, MP_CONTEXT_FUNCTION}, true}};

		ck_assert_int_eq(mp_context_add(&tree, steps, 2, 2, 2000), 0);
	}
	ok(mp_store_add_contexts(store, MP_CONTEXTS, module, TODAY * DAY, &tree, &err));
	ok(mp_store_add_ledger(store, session, DAY, &ledger, &err));
	mp_context_tree_fini(&tree);
	batch.when = MP_FLEET_ALWAYS;
	ck_assert_uint_eq(collect(), 1);
	ck_assert_uint_gt(batch.rows[0].size, MP_FLEET_TREE_BYTES);
	expect_tree(MP_FLEET_CONTEXTS, 20000);
	ok(mp_fleet_revert(store, &err));
	batch.when = MP_FLEET_DAILY;
	ck_assert_uint_eq(send(), 1);
	ck_assert_uint_le(batch.rows[0].size, MP_FLEET_TREE_BYTES);
	expect_tree(MP_FLEET_CONTEXTS, 20000);
	ck_assert_uint_eq(send(), 0);
	/* What a copy leaves out is the whole tree. */
	ok(mp_fleet_epoch_begin(store, there, true, &err));
	ck_assert_uint_eq(send(), 0);
	ok(mp_store_check(store, &err));
}

TEST(fleet_sends_nothing_for_folded_trees_and_paths)
{
	batch.when = MP_FLEET_ALWAYS;
	for (int day = 0; day < 20; day++) {
		add_whole(TODAY + day, (uint64_t)day, 3);
		ck_assert_uint_eq(send(), 3);
		ck_assert_uint_eq(send(), 0);
	}
	add_whole(TODAY + 1, 0, 100);
	ck_assert_uint_eq(send(), 3);
	ck_assert_int_eq(row_of(MP_FLEET_CONTEXTS)->first_day, TODAY);
	ck_assert_int_ge(row_of(MP_FLEET_CONTEXTS)->last_day, TODAY + 11);
	ck_assert_uint_ge(row_of(MP_FLEET_CONTEXTS)->total, 3 * 12 + 100);
	ck_assert_uint_eq(send(), 0);
}

TEST(fleet_copy_sends_only_new_trees_and_paths)
{
	batch.when = MP_FLEET_ALWAYS;
	add_whole(TODAY, 0, 5);
	add_whole(TODAY + 1, 8, 6);
	ok(mp_fleet_epoch_begin(store, there, true, &err));
	ck_assert_uint_eq(send(), 0);
	add_whole(TODAY, 0, 1);
	add_whole(TODAY, 8, 1);
	ck_assert_uint_eq(send(), 3);
	expect_all(2);
	/* A copy of the copy; days that are folded in between. */
	ok(mp_fleet_epoch_begin(store, here, true, &err));
	for (int day = 2; day < 20; day++)
		add_whole(TODAY + day, 0, 1);
	collect();
	ck_assert_uint_eq(total(), 3 * 18);
	ok(mp_store_check(store, &err));
}

static struct mp_context_tree tree_of(uint64_t site, uint64_t nr)
{
	struct mp_context_step steps[] = {{{1, 0x900 + site, MP_CONTEXT_CALL}, false},
					  {{2, 0x7000, MP_CONTEXT_FUNCTION}, true}};
	struct mp_context_tree tree;

	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
	ck_assert_int_eq(mp_context_add(&tree, steps, 2, nr, nr * 1000), 0);
	return tree;
}

/* Return: were the trees added? */
static bool pull_whole(uint64_t nr)
{
	const uint8_t keys[2][2] = {{1, 2}, {1, 4}};
	struct mp_path_count paths[] = {{keys[1], 2, nr}, {keys[0], 2, nr}};
	struct mp_ip_count counts[] = {{0x1000, nr}};
	struct mp_fleet_profile profile = {.id = id,
					   .path = "/bin/y",
					   .day = TODAY,
					   .counts = counts,
					   .nr_counts = 1,
					   .paths = paths,
					   .nr_paths = 2,
					   .contexts = tree_of(0, nr),
					   .calls = tree_of(8, nr),
					   .why = "test"};

	ok(mp_fleet_put_pulled(store, &profile, DAY, &err));
	ok(mp_store_check(store, &err));
	mp_context_tree_fini(&profile.contexts);
	mp_context_tree_fini(&profile.calls);
	ck_assert(profile.left_out_contexts == profile.left_out_calls);
	return !profile.left_out_contexts;
}

static uint64_t sum_of(const char *sql)
{
	sqlite3_stmt *stmt;
	uint64_t sum;

	ck_assert_int_eq(sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	sum = (uint64_t)sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return sum;
}

#define CONTEXTS "SELECT sum(nr_samples) FROM context"
#define CALLS	 "SELECT sum(nr_samples) FROM call"
#define PATHS	 "SELECT sum(nr_samples) FROM path_bucket"

TEST(fleet_pull_replaces_trees_and_paths)
{
	struct mp_fleet_profile nothing = {.id = id};

	batch.when = MP_FLEET_ALWAYS;
	ck_assert(pull_whole(100));
	ck_assert(pull_whole(50));
	ck_assert_uint_eq(sum_of(CONTEXTS), 50);
	ck_assert_uint_eq(sum_of(CALLS), 50);
	ck_assert_uint_eq(sum_of(PATHS), 100);
	/* The machine's own trees and days that are folded, and the fleet's are left out from then on. */
	for (int day = 0; day < 20; day++)
		add_whole(TODAY + day, 0, 1);
	ck_assert_uint_ge(collect(), 3 * 8);
	ck_assert_uint_eq(total(), 3 * 20);
	ok(mp_fleet_revert(store, &err));
	ck_assert(!pull_whole(70));
	ck_assert_uint_eq(sum_of(CONTEXTS), 20);
	ck_assert_uint_eq(sum_of(CALLS), 20);
	ck_assert_uint_eq(sum_of(PATHS), 140 + 20);
	ok(mp_fleet_put_pulled(store, &nothing, DAY, &err));
	ok(mp_store_check(store, &err));
	ck_assert_uint_eq(sum_of(PATHS), 20);
	ck_assert_uint_eq(sum_of("SELECT count(*) FROM session WHERE collector = 'fleet'"), 0);
}

TEST(fleet_never_sends_trees_and_paths_that_were_pulled)
{
	batch.when = MP_FLEET_ALWAYS;
	ck_assert(pull_whole(100));
	ck_assert_uint_eq(send(), 0);
	add_whole(TODAY, 0, 5);
	ck_assert_uint_eq(send(), 3);
	expect_all(5);
	ok(mp_fleet_epoch_begin(store, there, true, &err));
	ck_assert_uint_eq(send(), 0);
	add_whole(TODAY, 0, 2);
	ck_assert_uint_eq(send(), 3);
	expect_all(2);
	ok(mp_store_check(store, &err));
}

TEST(fleet_drops_a_module_with_pulled_trees)
{
	add_whole(TODAY, 0, 5);
	pull_whole(100);
	ok(mp_store_drop_module(store, module, &err));
	ok(mp_store_check(store, &err));
}

TEST(own_counts_are_those_without_pulled_ones)
{
	struct mp_module *modules;
	size_t nr;

	add(TODAY, 0x1000, 5);
	pull(100, 10);
	ok(mp_store_list_modules(store, 0, &modules, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	ck_assert_uint_eq(modules[0].nr_samples, 115);
	ok(mp_fleet_keep_own(store, 0, modules, nr, &err));
	ck_assert_uint_eq(modules[0].nr_samples, 5);
	ck_assert_uint_eq(modules[0].nr_transfers, 0);
	mp_store_free_modules(modules, nr);
	ok(mp_store_list_modules(store, (TODAY + 1) * DAY, &modules, &nr, &err));
	ok(mp_fleet_keep_own(store, (TODAY + 1) * DAY, modules, nr, &err));
	for (size_t i = 0; i < nr; i++)
		ck_assert_uint_eq(modules[i].nr_samples, 0);
	mp_store_free_modules(modules, nr);
}

TEST(a_new_database_has_an_epoch_of_its_own)
{
	uint8_t machine[MP_MACHINE_BYTES];
	struct mp_fleet_epoch first, second;
	struct mp_store *other;
	char name[512];
	bool has;

	(void)mp_machine_id_read(NULL, machine);
	snprintf(name, sizeof(name), "%s-1", db);
	ok(mp_store_open(name, MP_STORE_WRITE, &other, &err));
	ok(mp_fleet_epoch_read(other, machine, &has, &first, &err));
	ck_assert(has && first.is_same_machine && !first.token);
	ok(mp_fleet_epoch_read(other, there, &has, &first, &err));
	ck_assert(has && !first.is_same_machine);
	mp_store_close(other);
	snprintf(name, sizeof(name), "%s-2", db);
	ok(mp_store_open(name, MP_STORE_WRITE, &other, &err));
	ok(mp_fleet_epoch_read(other, machine, &has, &second, &err));
	ck_assert_mem_ne(first.name, second.name, sizeof(first.name));
	mp_store_close(other);
}
