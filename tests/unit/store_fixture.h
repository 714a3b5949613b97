// SPDX-License-Identifier: Apache-2.0
/*
 * store_fixture - a temporary directory and database for each test of the store, with common
 * helper functions. Included once by each tests/unit/libprof/store/test_store*.c.
 */
#ifndef MORPH_TESTS_STORE_FIXTURE_H
#define MORPH_TESTS_STORE_FIXTURE_H

#include "libprof/store/store_codec.h"
#include "libprof/store/store_private.h"
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#define DAY MP_SECONDS_PER_DAY
#define NOW (20000LL * DAY + 5000)

static char db[300];
static struct mp_store *store; /* closed after the test; or NULL */

static inline void setup(void)
{
	scratch_make();
	snprintf(db, sizeof(db), "%s/morph.db", dir);
	err.msg[0] = '\0';
}

static inline void teardown(void)
{
	mp_store_close(store);
	scratch_remove();
}

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

static inline struct mp_store *open_as(enum mp_store_mode mode)
{
	struct mp_store *opened = NULL;

	ok(mp_store_open(db, mode, &opened, &err));
	return opened;
}

/* For AUTO(close_store). */
static inline void close_store(struct mp_store **opened)
{
	mp_store_close(*opened);
}

static inline struct mp_id id_of(unsigned int n)
{
	struct mp_id id = {.build_id_len = 20, .text_hash = 0x9000000000000000ull + n};

	memset(id.build_id, (int)n, 20);
	return id;
}

static inline int64_t put(struct mp_store *store, unsigned int n, uint64_t text_size)
{
	struct mp_id id = id_of(n);
	int64_t key = 0;
	char path[32];

	snprintf(path, sizeof(path), "/usr/bin/prog%u", n);
	ok(mp_store_put_module(store, &id, MP_MODULE_FILE, path, text_size, NOW, &key, &err));
	return key;
}

static inline struct mp_session start(struct mp_store *store)
{
	struct mp_session session = {.start_s = NOW,
				     .collector = "replay",
				     .why = "asked for",
				     .event = "cpu-clock",
				     .rate_hz = 4000};

	ok(mp_store_start_session(store, &session, &err));
	return session;
}

static inline void add_ledger(struct mp_store *store, int64_t session, uint64_t attributed)
{
	struct mp_ledger delta = {.emitted = attributed, .attributed = attributed};

	ok(mp_store_add_ledger(store, session, NOW, &delta, &err));
}

static inline void expect(struct mp_store *store, int64_t module, int64_t since_s,
			  const struct mp_ip_count *want, size_t nr_want)
{
	struct mp_ip_count *have = NULL;
	size_t nr = 0;

	ok(mp_store_read_ip_counts(store, module, since_s, &have, &nr, &err));
	ck_assert_uint_eq(nr, nr_want);
	for (size_t i = 0; i < nr; i++) {
		ck_assert_uint_eq(have[i].vaddr, want[i].vaddr);
		ck_assert_uint_eq(have[i].count, want[i].count);
	}
	free(have);
}

/* A reproducible pseudo-random number. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline size_t fill(struct mp_ip_count *out, size_t nr, uint64_t base, unsigned int step,
			  uint64_t seed)
{
	for (size_t i = 0; i < nr; i++) {
		base += 1 + next_random(&seed) % step;
		out[i].vaddr = base;
		out[i].count = 1 + next_random(&seed) % 9;
	}
	return nr;
}

/* Makes edges from ascending addresses, one to three targets each, some mispredicted. */
static inline size_t fill_edges(struct mp_edge_count *out, size_t nr, uint64_t base,
				unsigned int step, uint64_t seed)
{
	uint64_t to = 0;

	for (size_t i = 0; i < nr; i++) {
		bool again = i && next_random(&seed) % 3 == 0;

		if (!again)
			base += 1 + next_random(&seed) % step;
		to = again ? to + 1 + next_random(&seed) % 500
			   : base - 200 + next_random(&seed) % 400;
		out[i].from = base;
		out[i].to = to;
		out[i].count = 1 + next_random(&seed) % 9;
		out[i].mispredicted = next_random(&seed) % 4 ? 0
							     : next_random(&seed) % out[i].count;
	}
	return nr;
}

static inline void expect_edges(struct mp_store *store, int64_t module, int64_t since_s,
				const struct mp_edge_count *want, size_t nr_want)
{
	struct mp_edge_count *have = NULL;
	size_t nr = 0;

	ok(mp_store_read_edges(store, module, since_s, &have, &nr, &err));
	ck_assert_uint_eq(nr, nr_want);
	for (size_t i = 0; i < nr; i++) {
		ck_assert_uint_eq(have[i].from, want[i].from);
		ck_assert_uint_eq(have[i].to, want[i].to);
		ck_assert_uint_eq(have[i].count, want[i].count);
		ck_assert_uint_eq(have[i].mispredicted, want[i].mispredicted);
	}
	free(have);
}

static inline uint64_t sum(const struct mp_ip_count *counts, size_t nr)
{
	uint64_t total = 0;

	for (size_t i = 0; i < nr; i++)
		total += counts[i].count;
	return total;
}

static inline void tamper(const char *sql)
{
	sqlite3 *raw;

	ck_assert_int_eq(sqlite3_open(db, &raw), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(raw, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(raw);
}

#endif
