// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_fleet - which counts a fleet's server lacks: every count is sent, none is sent twice, and
 * counts of others are never sent.
 */

#include "libprof/store/store_codec.h"
#include "libprof/store/store_drop.h"
#include "tests/unit/fleet_fixture.h"

FIXTURE(setup, teardown);

TEST(fleet_sends_each_count_once)
{
	struct mp_ip_count ip;
	size_t nr;

	add(TODAY, 0x1000, 5);
	ck_assert_uint_eq(send(), 1);
	ck_assert_int_eq(batch.seq, 1);
	ck_assert_int_eq(batch.previous, 0);
	ck_assert_uint_eq(batch.rows[0].total, 5);
	ck_assert_int_eq(batch.rows[0].first_day, TODAY);
	ok(mp_chunk_decode(0, batch.bytes, batch.rows[0].size, &ip, &nr));
	ck_assert_uint_eq(nr, 1);
	ck_assert_uint_eq(ip.vaddr, 0x1000);
	ck_assert_uint_eq(ip.count, 5);
	ck_assert_uint_eq(send(), 0);
	/* A row has all counts of its chunk and day. Other chunks are not sent again. */
	add(TODAY, 0x91000, 1);
	ck_assert_uint_eq(send(), 1);
	add(TODAY, 0x1000, 2);
	ck_assert_uint_eq(send(), 1);
	ck_assert_uint_eq(total(), 7);
	ck_assert_int_eq(batch.seq, 3);
}

TEST(fleet_sends_again_what_may_be_lost)
{
	int64_t first;
	bool is;

	add(TODAY, 0x1000, 5);
	ck_assert_uint_eq(collect(), 1);
	first = batch.token;
	ok(mp_fleet_revert(store, &err));
	ck_assert_uint_eq(collect(), 1);
	ck_assert_uint_eq(total(), 5);
	/* Both attempts may still arrive. One token never stands for two contents. */
	ck_assert_int_ne(batch.token, first);
	ok(mp_fleet_is_pending(store, first, &is, &err));
	ck_assert(is);
	ok(mp_fleet_is_pending(store, batch.token, &is, &err));
	ck_assert(is);
	ok(mp_fleet_confirm(store, batch.token, &err));
	ok(mp_fleet_is_pending(store, first, &is, &err));
	ck_assert(!is);
	ck_assert_uint_eq(send(), 0);
}

TEST(fleet_sparing_batch_waits_for_the_end_of_the_day)
{
	batch.sparing = true;
	batch.today = TODAY;
	add(TODAY, 0x1000, 63);
	ck_assert_uint_eq(send(), 0);
	add(TODAY, 0x1000, 1);
	ck_assert_uint_eq(send(), 1);
	ck_assert_uint_eq(total(), 64);
	add(TODAY, 0x1000, 7 * 64 - 1);
	ck_assert_uint_eq(send(), 0);
	add(TODAY, 0x1000, 1);
	ck_assert_uint_eq(send(), 1);
	add(TODAY, 0x1000, 1);
	ck_assert_uint_eq(send(), 0);
	/* Other days are over. */
	add(TODAY - 1, 0x1000, 3);
	ck_assert_uint_eq(send(), 1);
	ck_assert_uint_eq(total(), 3);
	batch.today++;
	ck_assert_uint_eq(send(), 1);
	ck_assert_uint_eq(total(), 8 * 64 + 1);
	/* The server has days of this module. */
	add(TODAY + 1, 0x1000, 100);
	ck_assert_uint_eq(send(), 0);
	batch.sparing = false;
	ck_assert_uint_eq(send(), 1);
}

TEST(fleet_batch_keeps_its_limit)
{
	size_t nr = 0, nr_batches = 0;

	for (uint64_t i = 0; i < 40; i++)
		add(TODAY, i << 16, i + 1);
	batch.from = 0;
	do {
		ok(mp_fleet_collect(store, &batch, 8, &err));
		if (!batch.token)
			continue;
		ck_assert_uint_le(batch.nr_bytes, 8);
		ok(mp_fleet_confirm(store, batch.token, &err));
		nr += batch.nr_rows;
		nr_batches++;
	} while (!batch.ended);
	ck_assert_uint_eq(nr, 40);
	ck_assert_uint_ge(nr_batches, 10);
	ck_assert_uint_eq(send(), 0);
}

TEST(fleet_sends_nothing_for_folded_days)
{
	for (int day = 0; day < 20; day++) {
		add(TODAY + day, 0x1000, 3);
		ck_assert_uint_eq(send(), 1);
		ck_assert_int_eq(batch.rows[0].first_day, TODAY + day);
		ck_assert_uint_eq(send(), 0);
	}
}

TEST(fleet_replaces_folded_days_that_grow_late)
{
	for (int day = 0; day < 20; day++) {
		add(TODAY + day, 0x1000, 3);
		add(TODAY + day, 0x91000, 1);
		send();
	}
	add(TODAY + 1, 0x1000, 100);
	ck_assert_uint_ge(send(), 1);
	ck_assert_int_eq(batch.rows[0].first_day, TODAY);
	ck_assert_int_ge(batch.rows[0].last_day, TODAY + 11);
	ck_assert_uint_ge(batch.rows[0].total, 3 * 12 + 100);
	ck_assert_uint_eq(send(), 0);
}

TEST(fleet_copy_sends_only_new_counts)
{
	struct mp_fleet_epoch before, after;
	struct mp_edge_count edge = {0x10, 0x20, 9, 4};
	bool has;

	add(TODAY, 0x1000, 5);
	add(TODAY, 0x1001, 1);
	ok(mp_store_add_edges(store, module, TODAY * DAY, &edge, 1, &err));
	ok(mp_fleet_epoch_read(store, there, &has, &before, &err));
	ck_assert(has && !before.is_same_machine);
	ok(mp_fleet_epoch_begin(store, there, true, &err));
	ok(mp_fleet_epoch_read(store, there, &has, &after, &err));
	ck_assert(has && after.is_same_machine);
	ck_assert_mem_ne(before.name, after.name, sizeof(before.name));
	ck_assert_uint_eq(send(), 0);
	add(TODAY, 0x1001, 2);
	edge.count = 1;
	edge.mispredicted = 0;
	ok(mp_store_add_edges(store, module, TODAY * DAY, &edge, 1, &err));
	ck_assert_uint_eq(send(), 2);
	ck_assert_uint_eq(total(), 3);
	/* A copy of the copy; days that are folded in between. */
	ok(mp_fleet_epoch_begin(store, here, true, &err));
	for (int day = 1; day < 20; day++)
		add(TODAY + day, 0x1000, 1);
	ck_assert_uint_ge(collect(), 8);
	ck_assert_uint_eq(total(), 19);
	ok(mp_store_check(store, &err));
}

static uint64_t samples(void)
{
	struct mp_module found;

	ok(mp_store_find_module(store, &id, &found, &err));
	ck_assert_str_eq(found.path, "/bin/x");
	free(found.path);
	return found.nr_samples;
}

TEST(fleet_pull_replaces_the_one_before)
{
	struct mp_fleet_profile nothing = {.id = id};

	add(TODAY, 0x1000, 5);
	pull(100, 10);
	ck_assert_uint_eq(samples(), 115);
	pull(100, 10);
	ck_assert_uint_eq(samples(), 115);
	for (int day = 1; day < 20; day++)
		add(TODAY + day, 0x1000, 1);
	pull(7, 1);
	ck_assert_uint_eq(samples(), 5 + 8 + 19);
	ok(mp_fleet_put_pulled(store, &nothing, DAY, &err));
	ck_assert_uint_eq(samples(), 5 + 19);
	ok(mp_store_check(store, &err));
}

TEST(fleet_never_sends_what_was_pulled)
{
	pull(100, 10);
	ck_assert_uint_eq(send(), 0);
	add(TODAY, 0x1000, 5);
	ck_assert_uint_eq(send(), 1);
	ck_assert_uint_eq(total(), 5);
	pull(50, 20);
	ck_assert_uint_eq(send(), 0);
	ok(mp_fleet_epoch_begin(store, there, true, &err));
	pull(1, 1);
	add(TODAY, 0x1000, 2);
	ck_assert_uint_eq(send(), 1);
	ck_assert_uint_eq(total(), 2);
}

TEST(fleet_forgets_a_dropped_module)
{
	add(TODAY, 0x1000, 5);
	pull(100, 10);
	send();
	ok(mp_store_drop_module(store, module, &err));
	ok(mp_store_check(store, &err));
	ck_assert_uint_eq(send(), 0);
	ok(mp_store_put_module(store, &id, MP_MODULE_FILE, "/bin/x", 1 << 20, DAY, &module, &err));
	add(TODAY, 0x1000, 3);
	ck_assert_uint_eq(send(), 1);
	ck_assert_uint_eq(total(), 3);
}

TEST(fleet_sends_all_to_another_server)
{
	add(TODAY, 0x1000, 5);
	ck_assert_uint_eq(send(), 1);
	ok(mp_fleet_epoch_send_again(store, 0, 0, &err));
	ck_assert_uint_eq(send(), 1);
	ck_assert_int_eq(batch.seq, 1);
	ck_assert_int_eq(batch.previous, 0);
}

TEST(fleet_check_finds_damage)
{
	pull(100, 10);
	ck_assert_int_eq(sqlite3_exec(store->db, "UPDATE fleet_base SET total = total + 1", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
	ck_assert_int_eq(sqlite3_exec(store->db, "UPDATE fleet_base SET data = x'0102'", NULL, NULL,
				      NULL),
			 SQLITE_OK);
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
	add(TODAY, 0x1000, 1);
	ck_assert_int_ne(mp_fleet_collect(store, &batch, 1000, &err), 0);
}
