// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_contexts - trees of calling contexts by program and day: added up, folded with age and
 * size, merged, dropped with their program, equal to the ledger after SIGKILL; damage is found.
 */
#include "libprof/store/contexts/store_contexts.h"

#include <signal.h>
#include <sys/wait.h>
#include <xxhash.h>

#include "libprof/context/context_codec.h"
#include "libprof/store/contexts/contexts_rows.h"
#include "libprof/store/store_drop.h"
#include "libprof/store/whole/store_merge.h"
#include "tests/unit/store_fixture.h"

#define PERIOD 250000

/* A tree with @nr samples of main's call at 0x1000 + @site, and a sample of a truncated stack. */
static struct mp_context_tree small_tree(uint64_t site, uint64_t nr)
{
	struct mp_context_step steps[] = {{{1, 0x500, MP_CONTEXT_CALL}, false},
					  {{1, 0x1000 + site, MP_CONTEXT_CALL}, true},
					  {{2, 0x7000, MP_CONTEXT_FUNCTION}, false}};
	struct mp_context_tree tree;

	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
	ck_assert_int_eq(mp_context_add(&tree, steps, 3, nr, nr * PERIOD), 0);
	steps[0].key = (struct mp_context_key){0, MP_WALK_COPY, MP_CONTEXT_TRUNCATED};
	ck_assert_int_eq(mp_context_add(&tree, steps, 3, 1, PERIOD), 0);
	return tree;
}

/* The table that a test works on: each test runs for both. */
static enum mp_context_table table;
static const char *const names[] = {[MP_CONTEXTS] = "context", [MP_CALLS] = "call"};
static const char *const lines[] = {[MP_CONTEXTS] = "contexts", [MP_CALLS] = "calls"};

static struct mp_ledger ledger_of(uint64_t nr)
{
	return (struct mp_ledger){.contexts = table == MP_CONTEXTS ? nr : 0,
				  .calls = table == MP_CALLS ? nr : 0};
}

/* Adds a tree and its line in the ledger. */
static void add(struct mp_store *store, int64_t session, int64_t module, int64_t when_s,
		uint64_t site, uint64_t nr)
{
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = small_tree(site, nr);
	struct mp_ledger delta = ledger_of(nr + 1);

	ok(mp_store_begin(store, &err));
	ok(mp_store_add_contexts(store, table, module, when_s, &tree, &err));
	ok(mp_store_add_ledger(store, session, when_s, &delta, &err));
	ok(mp_store_commit(store, &err));
}

static uint64_t total_of(struct mp_store *store, int64_t module, int64_t since_s)
{
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};
	uint64_t total;

	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
	ok(mp_store_read_contexts(store, table, module, since_s, &tree, &err));
	total = tree.nodes[0].total;
	ck_assert_uint_eq(tree.nodes[0].total_ns, total * PERIOD);
	return total;
}

static int number(struct mp_store *store, const char *what)
{
	sqlite3_stmt *stmt;
	char sql[64];
	int nr;

	snprintf(sql, sizeof(sql), "SELECT %s FROM %s", what, names[table]);
	ck_assert_int_eq(sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	nr = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return nr;
}

static int count_rows(struct mp_store *store)
{
	return number(store, "count(*)");
}

FIXTURE(setup, teardown);

TEST_RANGE(trees_of_a_day_add_up_and_days_are_apart, MP_CONTEXTS, MP_CALLS + 1)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 4096), other = put(store, 2, 4096);
	struct mp_session session = start(store);
	struct mp_context_program *programs;
	struct mp_context_tree tree;
	size_t nr;

	table = (enum mp_context_table)_i;
	add(store, session.key, module, NOW, 0, 4);
	add(store, session.key, module, NOW + 60, 8, 3);
	add(store, session.key, module, NOW + DAY, 0, 10);
	add(store, session.key, other, NOW, 0, 2);
	ck_assert_int_eq(count_rows(store), 3);
	ck_assert_uint_eq(total_of(store, module, 0), 20);
	ck_assert_uint_eq(total_of(store, module, NOW + DAY), 11);
	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
	ok(mp_store_read_contexts(store, table, module, 0, &tree, &err));
	/* Children by their totals: the stack that is complete, then the truncated one. */
	ck_assert_uint_eq(tree.nodes[tree.nodes[0].first].total, 17);
	ck_assert_uint_eq(tree.nodes[tree.nodes[0].last].vaddr, MP_WALK_COPY);
	ck_assert_uint_eq(tree.nodes[tree.nodes[tree.nodes[0].first].first].nr_new, 2);
	mp_context_tree_fini(&tree);
	ok(mp_store_list_contexts(store, table, 0, &programs, &nr, &err));
	ck_assert_uint_eq(nr, 2);
	ck_assert_int_eq(programs[0].module, module);
	ck_assert_uint_eq(programs[0].nr_samples, 20);
	ck_assert_uint_eq(programs[1].nr_samples, 3);
	free(programs);
	ok(mp_store_check(store, &err));
}

TEST_RANGE(old_days_become_one_tree, MP_CONTEXTS, MP_CALLS + 1)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 4096);
	struct mp_session session = start(store);

	table = (enum mp_context_table)_i;
	for (int i = 0; i < 20; i++)
		add(store, session.key, module, NOW + i * DAY, 8, 1);
	/* The last seven days, and one for the others. */
	ck_assert_int_eq(count_rows(store), 8);
	ck_assert_uint_eq(total_of(store, module, 0), 40);
	ck_assert_uint_eq(total_of(store, module, NOW + 13 * DAY), 14);
	/* Days that come late, old and new. */
	add(store, session.key, module, NOW + 2 * DAY, 0, 4);
	add(store, session.key, module, NOW - 9 * DAY, 0, 4);
	add(store, session.key, module, NOW + 18 * DAY, 0, 4);
	ck_assert_int_eq(count_rows(store), 8);
	ck_assert_uint_eq(total_of(store, module, 0), 55);
	ok(mp_store_check(store, &err));
}

/* Adds 20,000 stacks of @nr_keys addresses. */
static void add_random(struct mp_store *store, int64_t module, uint64_t *seed, uint64_t nr_keys)
{
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = {0};

	ck_assert_int_eq(mp_context_tree_init(&tree), 0);
	for (int k = 0; k < 20000; k++) {
		struct mp_context_step steps[6] = {0};

		for (int s = 0; s < 6; s++)
			steps[s].key = (struct mp_context_key){1, next_random(seed) % nr_keys * 64,
							       s == 5 ? MP_CONTEXT_FUNCTION
								      : MP_CONTEXT_CALL};
		ck_assert_int_eq(mp_context_add(&tree, steps, 6, 1, PERIOD), 0);
	}
	ok(mp_store_add_contexts(store, table, module, NOW, &tree, &err));
}

/* Trees of few addresses reach the limit of nodes, others that of bytes. */
TEST_RANGE(a_tree_stays_below_its_limits_with_exact_sums, MP_CONTEXTS, MP_CALLS + 1)
{
	static const uint64_t nr_keys[] = {40, 60000};

	table = (enum mp_context_table)_i;
	for (size_t i = 0; i < 2; i++) {
		struct mp_store *store = open_as(MP_STORE_WRITE);
		int64_t module = put(store, 1, 4096);
		struct mp_session session = start(store);
		uint64_t bytes_max = mp_contexts_bytes_max(table), seed = 5;
		uint32_t nodes_max = mp_contexts_nodes_max(table);
		struct mp_ledger delta = ledger_of(100000);
		struct mp_context_tree tree;
		int size;

		for (int k = 0; k < 5; k++)
			add_random(store, module, &seed, nr_keys[i]);
		ok(mp_store_add_ledger(store, session.key, NOW, &delta, &err));
		ck_assert_uint_eq(total_of(store, module, 0), 100000);
		size = number(store, "length(data)");
		ck_assert_uint_le((uint64_t)size, bytes_max);
		ck_assert_int_eq(mp_context_tree_init(&tree), 0);
		ok(mp_store_read_contexts(store, table, module, 0, &tree, &err));
		ck_assert_uint_le(tree.nr_nodes, nodes_max);
		ck_assert((uint64_t)size > bytes_max / 2 || tree.nr_nodes > nodes_max / 2);
		mp_context_tree_fini(&tree);
		ok(mp_store_check(store, &err));
		mp_store_close(store);
		unlink(db);
	}
}

/* A tree in the plain form, as a fleet sends it, is read, too. */
TEST_RANGE(trees_in_the_plain_form_are_read_and_added_to, MP_CONTEXTS, MP_CALLS + 1)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 4096);
	struct mp_session session = start(store);
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = small_tree(8, 16);
	char sql[96];
	sqlite3_stmt *stmt;
	AUTO_FREE uint8_t *plain = NULL;
	size_t size;

	table = (enum mp_context_table)_i;
	add(store, session.key, module, NOW, 8, 16);
	ck_assert_int_eq(mp_context_encode(&tree, &plain, &size), 0);
	ck_assert_int_eq(plain[0], 1);
	snprintf(sql, sizeof(sql), "UPDATE %s SET data = ?1, checksum = ?2", names[table]);
	ck_assert_int_eq(sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL), SQLITE_OK);
	sqlite3_bind_blob(stmt, 1, plain, (int)size, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, (int64_t)(uint32_t)XXH3_64bits(plain, size));
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_DONE);
	sqlite3_finalize(stmt);
	ok(mp_store_check(store, &err));
	ck_assert_uint_eq(total_of(store, module, 0), 17);
	add(store, session.key, module, NOW, 8, 3);
	ok(mp_store_check(store, &err));
	ck_assert_uint_eq(total_of(store, module, 0), 21);
	ck_assert_int_eq(count_rows(store), 1);
}

TEST_RANGE(a_tree_without_its_program_is_refused, MP_CONTEXTS, MP_CALLS + 1)
{
	AUTO(mp_context_tree_fini) struct mp_context_tree tree = small_tree(0, 1);

	store = open_as(MP_STORE_WRITE);
	table = (enum mp_context_table)_i;
	ck_assert_int_eq(mp_store_add_contexts(store, table, 77, NOW, &tree, &err), -ENOENT);
	ck_assert_int_eq(mp_store_add_contexts(store, table, 77, -1, &tree, &err), -EINVAL);
	ck_assert_int_eq(count_rows(store), 0);
}

TEST_RANGE(merge_adds_trees_by_day, MP_CONTEXTS, MP_CALLS + 1)
{
	char path[256];
	struct mp_store *in = open_as(MP_STORE_WRITE), *out;
	int64_t module = put(in, 1, 4096), to;
	struct mp_session session = start(in), other;
	struct mp_merge_stats stats;

	table = (enum mp_context_table)_i;
	for (int i = 0; i < 10; i++)
		add(in, session.key, module, NOW + i * DAY, 8, 1);
	snprintf(path, sizeof(path), "%s/other.db", dir);
	ok(mp_store_open(path, MP_STORE_WRITE, &out, &err));
	put(out, 9, 4096); /* keys differ */
	to = put(out, 1, 4096);
	other = start(out);
	add(out, other.key, to, NOW + 9 * DAY, 0, 5);
	ok(mp_store_begin(out, &err));
	ok(mp_store_begin(in, &err));
	ok(mp_store_merge(out, in, true, &stats, &err));
	ok(mp_store_commit(out, &err));
	mp_store_rollback(in);
	ck_assert_uint_eq(stats.nr_contexts, table == MP_CONTEXTS ? 20 : 0);
	ck_assert_uint_eq(stats.nr_calls, table == MP_CALLS ? 20 : 0);
	ck_assert_uint_eq(total_of(out, to, 0), 26);
	ck_assert_uint_eq(total_of(out, to, NOW + 9 * DAY), 8);
	ck_assert_int_eq(count_rows(out), 8);
	ok(mp_store_check(out, &err));
	mp_store_close(out);
	mp_store_close(in);
}

TEST_RANGE(a_dropped_program_takes_its_trees_along, MP_CONTEXTS, MP_CALLS + 1)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 4096), other = put(store, 2, 4096);
	struct mp_session session = start(store), second;

	table = (enum mp_context_table)_i;
	add(store, session.key, module, NOW, 0, 4);
	second = start(store);
	add(store, second.key, module, NOW, 0, 4);
	add(store, second.key, other, NOW, 0, 6);
	ok(mp_store_drop_module(store, module, &err));
	ck_assert_uint_eq(total_of(store, other, 0), 7);
	ck_assert_uint_eq(total_of(store, module, 0), 0);
	ok(mp_store_check(store, &err));
}

static void expect_damage(struct mp_store *store, const char *sql)
{
	AUTO(close_store) struct mp_store *again = NULL;

	ok(mp_store_begin(store, &err));
	ck_assert_int_eq(sqlite3_exec(store->db, sql, NULL, NULL, NULL), SQLITE_OK);
	ok(mp_store_commit(store, &err));
	again = open_as(MP_STORE_WRITE);
	ck_assert_msg(mp_store_check(again, &err) == -EBADMSG, "%s: not found", sql);
}

TEST_RANGE(check_finds_damaged_trees, MP_CONTEXTS, MP_CALLS + 1)
{
	static const char *const damage[] = {
		"UPDATE %s SET nr_samples = nr_samples + 1",
		"UPDATE %s SET checksum = checksum + 1",
		"UPDATE %s SET data = x'00'",
		"UPDATE %s SET module = 99",
		"DELETE FROM %s",
	};
	int64_t module;
	struct mp_session session;
	char sql[96];

	table = (enum mp_context_table)_i;
	for (size_t i = 0; i <= sizeof(damage) / sizeof(damage[0]); i++) {
		struct mp_store *store = open_as(MP_STORE_WRITE);

		module = put(store, 1, 4096);
		session = start(store);
		add(store, session.key, module, NOW, 0, 4);
		ok(mp_store_check(store, &err));
		snprintf(sql, sizeof(sql), "UPDATE ledger SET nr = nr + 1 WHERE what = '%s'",
			 lines[table]);
		if (i < sizeof(damage) / sizeof(damage[0]))
			snprintf(sql, sizeof(sql), damage[i], names[table]);
		expect_damage(store, sql);
		mp_store_close(store);
		unlink(db);
	}
}

TEST_RANGE(trees_equal_the_ledger_after_sigkill, MP_CONTEXTS, MP_CALLS + 1)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 4096);
	struct mp_session session = start(store);
	uint64_t before = 0, now;
	int status;

	table = (enum mp_context_table)_i;
	mp_store_close(store);
	for (int i = 0; i < 5; i++) {
		int written[2];
		pid_t child;
		char byte;

		ck_assert_int_eq(pipe(written), 0);
		child = fork();
		ck_assert_int_ge(child, 0);
		if (!child) {
			store = open_as(MP_STORE_WRITE);
			for (int k = 0;; k++) {
				add(store, session.key, module, NOW + k % 9 * DAY, (uint64_t)k * 8,
				    1);
				if (!k && write(written[1], "", 1) != 1)
					_exit(1);
			}
		}
		/* On a busy machine the first transaction may take longer than the pause below. */
		ck_assert_int_eq(read(written[0], &byte, 1), 1);
		close(written[0]);
		close(written[1]);
		usleep(100000 + 17000 * (useconds_t)i);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		ck_assert(WIFSIGNALED(status));
		store = open_as(MP_STORE_WRITE);
		ok(mp_store_check(store, &err));
		now = total_of(store, module, 0);
		ck_assert_uint_gt(now, before);
		before = now;
		mp_store_close(store);
	}
}
