// SPDX-License-Identifier: Apache-2.0
/*
 * fleet_fixture - a temporary database with a module, a session and an epoch, and functions that add,
 * collect, send and pull counts. Included once by each tests/unit/libprof/store/fleet/test_*.c.
 */
#ifndef MORPH_TESTS_FLEET_FIXTURE_H
#define MORPH_TESTS_FLEET_FIXTURE_H

#include "libprof/store/fleet/fleet_base.h"
#include "libprof/store/store_private.h"
#include "tests/unit/scratch.h"

#define DAY   MP_SECONDS_PER_DAY
#define TODAY 20000

static char db[256];
static struct mp_store *store;
static struct mp_fleet_batch batch;
static int64_t module, session;
static const struct mp_id id = {.build_id_len = 20, .build_id = {1}, .text_hash = 7};
static const uint8_t here[MP_FLEET_MACHINE_BYTES] = {1}, there[MP_FLEET_MACHINE_BYTES] = {2};

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

static inline void setup(void)
{
	struct mp_session s = {.collector = "perf"};

	scratch_make();
	snprintf(db, sizeof(db), "%s/morph.db", dir);
	ok(mp_store_open(db, MP_STORE_WRITE, &store, &err));
	ok(mp_store_put_module(store, &id, MP_MODULE_FILE, "/bin/x", 1 << 20, DAY, &module, &err));
	ok(mp_store_start_session(store, &s, &err));
	session = s.key;
	ok(mp_fleet_epoch_begin(store, here, false, &err));
}

static inline void teardown(void)
{
	mp_fleet_batch_fini(&batch);
	mp_store_close(store);
	scratch_remove();
}

static inline void add(int64_t day, uint64_t vaddr, uint64_t count)
{
	struct mp_ip_count counts = {vaddr, count};
	struct mp_ledger ledger = {.emitted = count, .attributed = count};

	ok(mp_store_add_ip_counts(store, module, day * DAY, &counts, 1, &err));
	ok(mp_store_add_ledger(store, session, DAY, &ledger, &err));
}

/* Collects one batch with all that lacks. Return: its rows. */
static inline size_t collect(void)
{
	batch.from = 0;
	ok(mp_fleet_collect(store, &batch, MP_FLEET_BATCH_BYTES_MAX, &err));
	ck_assert(batch.ended);
	ck_assert_int_eq(batch.token != 0, batch.nr_rows != 0);
	return batch.nr_rows;
}

static inline size_t send(void)
{
	size_t nr = collect();

	if (nr)
		ok(mp_fleet_confirm(store, batch.token, &err));
	return nr;
}

static inline uint64_t total(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < batch.nr_rows; i++)
		sum += batch.rows[i].total;
	return sum;
}

static inline void pull(uint64_t first, uint64_t second)
{
	struct mp_ip_count counts[] = {{0x1000, first}, {0x91000, second}};
	struct mp_edge_count edges[] = {{0x1000, 0x2000, first, 0}};
	struct mp_fleet_profile profile = {.id = id,
					   .path = "/bin/y",
					   .day = TODAY,
					   .counts = counts,
					   .edges = edges,
					   .nr_counts = 2,
					   .nr_edges = 1,
					   .why = "test"};

	ok(mp_fleet_put_pulled(store, &profile, DAY, &err));
	ok(mp_store_check(store, &err));
}

#endif
