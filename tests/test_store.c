// SPDX-License-Identifier: Apache-2.0
/*
 * test_store - the database: what is written is read back, adds up, survives kill, a full disk,
 * read-only media and damage.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/store_codec.h"
#include "libprof/store_internal.h"
#include "tests/suite.h"

#define DAY MP_SECONDS_PER_DAY
#define NOW (20000LL * DAY + 5000)

static char dir[64], db[96];
static struct mp_err err;

static void setup(void)
{
	strcpy(dir, "/tmp/morph-store-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(db, sizeof(db), "%s/morph.db", dir);
	err.msg[0] = '\0';
}

static void teardown(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(cmd), 0);
}

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

static struct mp_store *open_as(enum mp_store_mode mode)
{
	struct mp_store *store = NULL;

	ok(mp_store_open(db, mode, &store, &err));
	return store;
}

static struct mp_id id_of(unsigned int n)
{
	struct mp_id id = {.build_id_len = 20, .text_hash = 0x9000000000000000ull + n};

	memset(id.build_id, (int)n, 20);
	return id;
}

static int64_t put(struct mp_store *store, unsigned int n, uint64_t text_size)
{
	struct mp_id id = id_of(n);
	int64_t key = 0;
	char path[32];

	snprintf(path, sizeof(path), "/usr/bin/prog%u", n);
	ok(mp_store_put_module(store, &id, MP_MODULE_FILE, path, text_size, NOW, &key, &err));
	return key;
}

static struct mp_session start(struct mp_store *store)
{
	struct mp_session session = {.start_s = NOW,
				     .collector = "replay",
				     .why = "asked for",
				     .event = "cpu-clock",
				     .rate_hz = 4000};

	ok(mp_store_start_session(store, &session, &err));
	return session;
}

static void add_ledger(struct mp_store *store, int64_t session, uint64_t attributed)
{
	struct mp_ledger delta = {.emitted = attributed, .attributed = attributed};

	ok(mp_store_add_ledger(store, session, NOW, &delta, &err));
}

static void expect(struct mp_store *store, int64_t module, int64_t since_s,
		   const struct mp_ip_count *want, size_t nr_want)
{
	struct mp_ip_count *have = NULL;
	size_t nr = 0;

	ok(mp_store_read_counts(store, module, since_s, &have, &nr, &err));
	ck_assert_uint_eq(nr, nr_want);
	for (size_t i = 0; i < nr; i++) {
		ck_assert_uint_eq(have[i].vaddr, want[i].vaddr);
		ck_assert_uint_eq(have[i].count, want[i].count);
	}
	free(have);
}

/* A repeatable stream of numbers. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t fill(struct mp_ip_count *out, size_t nr, uint64_t base, unsigned int step,
		   uint64_t seed)
{
	for (size_t i = 0; i < nr; i++) {
		base += 1 + next_random(&seed) % step;
		out[i].vaddr = base;
		out[i].count = 1 + next_random(&seed) % 9;
	}
	return nr;
}

static uint64_t sum(const struct mp_ip_count *counts, size_t nr)
{
	uint64_t total = 0;

	for (size_t i = 0; i < nr; i++)
		total += counts[i].count;
	return total;
}

/* ---- codec --------------------------------------------------------------------------------- */

START_TEST(codec_gives_back_what_it_took)
{
	static struct mp_ip_count in[MP_CHUNK_SIZE], out[MP_CHUNK_SIZE];
	static uint8_t bytes[MP_CHUNK_SIZE * MP_CHUNK_ENTRY_MAX];
	const uint64_t bases[] = {0, 0x400000, 0xffffffff81000000, UINT64_MAX - MP_CHUNK_SIZE + 1};
	uint64_t seed = 42;

	for (int round = 0; round < 400; round++) {
		uint64_t base = bases[round % 4], off = 0;
		size_t nr = 0, nr_out = 0, size;

		while ((off += next_random(&seed) % (1 + (unsigned)round)) < MP_CHUNK_SIZE) {
			uint64_t kind = next_random(&seed) % 6;

			in[nr].vaddr = base + off++;
			in[nr++].count = kind < 4 ? kind + 1 : kind == 4 ? UINT64_MAX : 300;
		}
		size = mp_chunk_encode(base, in, nr, bytes);
		ck_assert_int_eq(mp_chunk_decode(base, bytes, size, out, &nr_out), 0);
		ck_assert_uint_eq(nr_out, nr);
		for (size_t i = 0; i < nr; i++) {
			ck_assert_uint_eq(out[i].vaddr, in[i].vaddr);
			ck_assert_uint_eq(out[i].count, in[i].count);
		}
	}
}
END_TEST

START_TEST(codec_refuses_what_it_never_wrote)
{
	static struct mp_ip_count out[MP_CHUNK_SIZE];
	static const struct {
		uint8_t bytes[12];
		size_t size;
	} bad[] = {
		{{0x83}, 1},		       /* token cut short */
		{{0x03}, 1},		       /* count missing */
		{{0x03, 0x00}, 2},	       /* a count of 0 */
		{{0x80, 0x80, 0x10}, 3},       /* 64 KiB into a chunk of 64 KiB */
		{{0xfc, 0xff, 0x0f, 0x00}, 4}, /* beyond the chunk's last byte */
		{{0x03, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 11},
		{{0x03, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x81, 0x00}, 12},
	};
	size_t nr;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(mp_chunk_decode(0, bad[i].bytes, bad[i].size, out, &nr), -EBADMSG);
}
END_TEST

START_TEST(codec_keeps_a_run_of_equal_counts_in_a_byte_each)
{
	struct mp_ip_count in[100];
	uint8_t bytes[100 * MP_CHUNK_ENTRY_MAX];

	for (int i = 0; i < 100; i++)
		in[i] = (struct mp_ip_count){(uint64_t)i * 4, 123456};
	/* The first says the count, in three bytes. */
	ck_assert_uint_eq(mp_chunk_encode(0, in, 100, bytes), 103);
}
END_TEST

/* ---- modules, counts ----------------------------------------------------------------------- */

START_TEST(store_names_modules_by_id_not_by_path)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_id a = id_of(1), b = id_of(1), none = {.text_hash = 7};
	int64_t key_a, key_b, key_again, key_none;
	struct mp_module module;

	b.text_hash++;
	ok(mp_store_put_module(store, &a, MP_MODULE_FILE, "/bin/x", 100, NOW, &key_a, &err));
	ok(mp_store_put_module(store, &b, MP_MODULE_FILE, "/bin/x", 100, NOW, &key_b, &err));
	ok(mp_store_put_module(store, &none, MP_MODULE_VDSO, "[vdso]", 0, NOW, &key_none, &err));
	ok(mp_store_put_module(store, &a, MP_MODULE_FILE, "/bin/y", 100, NOW + 9, &key_again,
			       &err));
	ck_assert_int_ne(key_a, key_b);
	ck_assert_int_eq(key_a, key_again);
	ok(mp_store_find_module(store, &a, &module, &err));
	ck_assert_str_eq(module.path, "/bin/y");
	ck_assert_int_eq(module.first_s, NOW);
	ck_assert_int_eq(module.last_s, NOW + 9);
	ck_assert_uint_eq(module.id.text_hash, a.text_hash);
	free(module.path);
	ok(mp_store_find_module(store, &none, &module, &err));
	ck_assert_int_eq(module.key, key_none);
	ck_assert_int_eq(module.kind, MP_MODULE_VDSO);
	free(module.path);
	none.text_hash = 8;
	ck_assert_int_eq(mp_store_find_module(store, &none, &module, &err), -ENOENT);
	mp_store_close(store);
}
END_TEST

START_TEST(store_adds_counts_of_one_address)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_ip_count a[] = {{0x401000, 2}, {0x401007, 1}, {0x405000, 9}};
	struct mp_ip_count b[] = {{0x400fff, 1}, {0x401007, 4}, {0xffffffff81000000, 3}};
	struct mp_ip_count both[] = {{0x400fff, 1},
				     {0x401000, 2},
				     {0x401007, 5},
				     {0x405000, 9},
				     {0xffffffff81000000, 3}};
	int64_t module = put(store, 1, 1 << 20), other = put(store, 2, 1 << 20);

	ok(mp_store_begin(store, &err));
	ok(mp_store_add_counts(store, module, NOW, a, 3, &err));
	ok(mp_store_add_counts(store, module, NOW + DAY, b, 3, &err));
	ok(mp_store_add_counts(store, other, NOW, b, 3, &err));
	ok(mp_store_commit(store, &err));
	expect(store, module, 0, both, 5);
	expect(store, module, NOW + DAY, b, 3);
	expect(store, module, NOW + 2 * DAY, NULL, 0);
	expect(store, other, 0, b, 3);
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	expect(store, module, 0, both, 5);
	ck_assert_int_eq(mp_store_read_counts(store, 99, 0, &(struct mp_ip_count *){0},
					      &(size_t){0}, &err),
			 -ENOENT);
	mp_store_close(store);
}
END_TEST

START_TEST(store_refuses_counts_that_do_not_ascend)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_ip_count bad[] = {{2, 1}, {1, 1}}, huge[] = {{1, INT64_MAX}, {2, 1}};
	struct mp_ip_count one = {1, 1};
	int64_t module = put(store, 1, 0);

	ck_assert_int_eq(mp_store_add_counts(store, module, NOW, bad, 2, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_counts(store, module, NOW, huge, 2, &err), -EOVERFLOW);
	ck_assert_int_eq(mp_store_add_counts(store, module, -1, &one, 1, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_counts(store, 77, NOW, &one, 1, &err), -ENOENT);
	expect(store, module, 0, NULL, 0);
	mp_store_close(store);
}
END_TEST

START_TEST(store_lists_modules_by_samples)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_module *modules;
	size_t nr;

	for (unsigned int i = 1; i <= 3; i++) {
		struct mp_ip_count count = {0x1000, i * 10};

		ok(mp_store_add_counts(store, put(store, i, 0), NOW - i * DAY, &count, 1, &err));
	}
	ok(mp_store_list_modules(store, 0, &modules, &nr, &err));
	ck_assert_uint_eq(nr, 3);
	ck_assert_str_eq(modules[0].path, "/usr/bin/prog3");
	ck_assert_uint_eq(modules[0].nr_samples, 30);
	ck_assert_uint_eq(modules[2].nr_samples, 10);
	mp_store_free_modules(modules, nr);
	ok(mp_store_list_modules(store, NOW - 2 * DAY, &modules, &nr, &err));
	ck_assert_uint_eq(modules[0].nr_samples, 20);
	ck_assert_uint_eq(modules[2].nr_samples, 0);
	mp_store_free_modules(modules, nr);
	mp_store_close(store);
}
END_TEST

START_TEST(store_folds_days_beyond_a_week)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20), from_s;
	struct mp_session session = start(store);
	struct mp_ip_count count = {0x1234, 1};

	for (int day = 0; day < 30; day++) {
		count.count = 1;
		ok(mp_store_add_counts(store, module, NOW + day * DAY, &count, 1, &err));
		add_ledger(store, session.key, 1);
	}
	/* Days 23 to 29 are apart, 0 to 22 are one bucket, wanted from any of its days on. */
	count.count = 30;
	expect(store, module, 0, &count, 1);
	expect(store, module, NOW + 22 * DAY, &count, 1);
	count.count = 7;
	expect(store, module, NOW + 23 * DAY, &count, 1);
	count.count = 1;
	expect(store, module, NOW + 29 * DAY, &count, 1);
	ok(mp_store_period_start(store, NOW + 22 * DAY, &from_s, &err));
	ck_assert_int_eq(from_s, NOW / DAY * DAY);
	ok(mp_store_period_start(store, NOW + 25 * DAY, &from_s, &err));
	ck_assert_int_eq(from_s, (NOW / DAY + 25) * DAY);
	ok(mp_store_period_start(store, NOW + 40 * DAY, &from_s, &err));
	ck_assert_int_eq(from_s, 0);
	/* What comes late joins the bucket that holds its day, or the oldest. */
	ok(mp_store_add_counts(store, module, NOW + 5 * DAY, &count, 1, &err));
	ok(mp_store_add_counts(store, module, NOW - 5 * DAY, &count, 1, &err));
	add_ledger(store, session.key, 2);
	count.count = 32;
	expect(store, module, 0, &count, 1);
	expect(store, module, NOW + 22 * DAY, &count, 1);
	ok(mp_store_check(store, &err));
	mp_store_close(store);
}
END_TEST

START_TEST(store_stays_below_its_share_of_the_text)
{
	enum {
		NR_MODULES = 4,
		NR_IPS = 5000,
		TEXT = 1 << 20
	};
	static struct mp_ip_count counts[NR_IPS];
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store);
	struct mp_module *modules;
	size_t nr;

	/* Every day the same code and some other code: 60 days of eight daily buckets would hold
	 * 4 x 8 x 5,000 addresses and more. */
	for (int day = 0; day < 60; day++) {
		ok(mp_store_begin(store, &err));
		for (unsigned int i = 0; i < NR_MODULES; i++) {
			fill(counts, NR_IPS, 0x1000, 100, day % 3 + 1);
			ok(mp_store_add_counts(store, put(store, i, TEXT), NOW + day * DAY, counts,
					       NR_IPS, &err));
			add_ledger(store, session.key, sum(counts, NR_IPS));
		}
		ok(mp_store_commit(store, &err));
	}
	ok(mp_store_check(store, &err));
	ok(mp_store_list_modules(store, 0, &modules, &nr, &err));
	ck_assert_uint_eq(nr, NR_MODULES);
	mp_store_free_modules(modules, nr);
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	ck_assert_uint_le(mp_store_size_bytes(store), NR_MODULES * (65536 + TEXT / 10));
	ok(mp_store_check(store, &err));
	mp_store_close(store);
}
END_TEST

/* ---- ledger, activity ---------------------------------------------------------------------- */

START_TEST(store_keeps_a_ledger_that_balances)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store), *sessions, second;
	struct mp_ledger delta = {.emitted = 100, .attributed = 80};
	size_t nr;

	for (int i = 0; i < MP_NR_UNATTR; i++)
		delta.unattributed[i] = 1;
	for (int i = 0; i < MP_NR_LOST; i++)
		delta.lost[i] = 3;
	ok(mp_store_add_ledger(store, session.key, NOW + 5, &delta, &err));
	ok(mp_store_add_ledger(store, session.key, NOW + 3, &delta, &err));
	delta.emitted--;
	ck_assert_int_eq(mp_store_add_ledger(store, session.key, NOW, &delta, &err), -EINVAL);
	delta.emitted++;
	ck_assert_int_eq(mp_store_add_ledger(store, 99, NOW, &delta, &err), -ENOENT);
	second = (struct mp_session){.start_s = NOW + 100, .collector = "perf"};
	ok(mp_store_start_session(store, &second, &err));
	ok(mp_store_list_sessions(store, &sessions, &nr, &err));
	ck_assert_uint_eq(nr, 2);
	ck_assert_str_eq(sessions[0].collector, "perf");
	ck_assert_str_eq(sessions[1].why, "asked for");
	ck_assert_uint_eq(sessions[1].rate_hz, 4000);
	ck_assert_int_eq(sessions[1].last_s, NOW + 5);
	ck_assert_uint_eq(sessions[1].ledger.emitted, 200);
	ck_assert_uint_eq(sessions[1].ledger.attributed, 160);
	for (int i = 0; i < MP_NR_UNATTR; i++)
		ck_assert_uint_eq(sessions[1].ledger.unattributed[i], 2);
	for (int i = 0; i < MP_NR_LOST; i++)
		ck_assert_uint_eq(sessions[1].ledger.lost[i], 6);
	free(sessions);
	mp_store_close(store);
}
END_TEST

START_TEST(store_check_finds_counts_without_a_ledger)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store);
	struct mp_ip_count count = {0x1000, 5};

	ok(mp_store_check(store, &err));
	ok(mp_store_add_counts(store, put(store, 1, 0), NOW, &count, 1, &err));
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "5 samples are stored, the ledgers say 0"));
	add_ledger(store, session.key, 5);
	ok(mp_store_check(store, &err));
	mp_store_close(store);
}
END_TEST

START_TEST(store_adds_activity_per_program_and_folds_it)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t a = put(store, 1, 0), b = put(store, 2, 0);
	struct mp_activity delta = {.app = 4, .lib = 3, .kernel = 2, .other = 1};
	struct mp_program_activity *programs;
	size_t nr;

	for (int day = 0; day < 20; day++)
		ok(mp_store_add_activity(store, b, NOW + day * DAY, &delta, &err));
	ok(mp_store_add_activity(store, b, NOW - 3 * DAY, &delta, &err));
	ok(mp_store_add_activity(store, b, NOW + 2 * DAY, &delta, &err));
	ok(mp_store_add_activity(store, a, NOW, &delta, &err));
	ok(mp_store_list_activity(store, 0, &programs, &nr, &err));
	ck_assert_uint_eq(nr, 2);
	ck_assert_int_eq(programs[0].module, b);
	ck_assert_uint_eq(programs[0].activity.app, 88);
	ck_assert_uint_eq(programs[0].activity.lib, 66);
	ck_assert_uint_eq(programs[0].activity.kernel, 44);
	ck_assert_uint_eq(programs[0].activity.other, 22);
	free(programs);
	ok(mp_store_list_activity(store, NOW + 18 * DAY, &programs, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	ck_assert_uint_eq(programs[0].activity.app, 8);
	free(programs);
	mp_store_close(store);
}
END_TEST

/* ---- transactions -------------------------------------------------------------------------- */

START_TEST(store_shows_nothing_of_a_rolled_back_transaction)
{
	struct mp_store *store = open_as(MP_STORE_WRITE), *reader;
	int64_t module = put(store, 1, 0);
	struct mp_ip_count count = {0x1000, 5};

	ok(mp_store_begin(store, &err));
	ok(mp_store_add_counts(store, module, NOW, &count, 1, &err));
	reader = open_as(MP_STORE_READ);
	expect(reader, module, 0, NULL, 0);
	mp_store_rollback(store);
	expect(store, module, 0, NULL, 0);
	ok(mp_store_begin(store, &err));
	ok(mp_store_add_counts(store, module, NOW, &count, 1, &err));
	ok(mp_store_commit(store, &err));
	expect(reader, module, 0, &count, 1);
	mp_store_close(reader);
	mp_store_close(store);
}
END_TEST

START_TEST(store_reader_never_writes)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 0);
	struct mp_ip_count count = {0x1000, 5};

	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	ck_assert_int_eq(mp_store_add_counts(store, module, NOW, &count, 1, &err), -EROFS);
	expect(store, module, 0, NULL, 0);
	mp_store_close(store);
}
END_TEST

/* Commits flushes of 1,000 addresses until killed; a pipe says how many were committed. */
static void write_for_ever(int out)
{
	static struct mp_ip_count counts[1000];
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store);
	int64_t module = put(store, 1, 1 << 20);

	for (uint64_t round = 1;; round++) {
		fill(counts, 1000, 0x1000, 60, round);
		for (int i = 0; i < 1000; i++)
			counts[i].count = 1;
		ok(mp_store_begin(store, &err));
		ok(mp_store_add_counts(store, module, NOW + (int64_t)(round / 20) * DAY, counts,
				       1000, &err));
		add_ledger(store, session.key, 1000);
		ok(mp_store_commit(store, &err));
		if (write(out, "x", 1) != 1)
			_exit(1);
	}
}

START_TEST(store_loses_and_doubles_nothing_when_killed)
{
	int pipes[2], status;
	char buf[4096];
	uint64_t committed = 0, stored;
	struct mp_store *store;
	struct mp_session *sessions;
	size_t nr;
	ssize_t n;
	pid_t child;

	ck_assert_int_eq(pipe(pipes), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child)
		write_for_ever(pipes[1]);
	close(pipes[1]);
	/* Where in a flush the signal hits is up to chance: _i varies it. */
	while (committed < (uint64_t)(20 + 17 * _i)) {
		n = read(pipes[0], buf, 7);
		ck_assert_int_gt(n, 0);
		committed += (uint64_t)n;
	}
	usleep(137 * (useconds_t)(_i + 1));
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status));
	while ((n = read(pipes[0], buf, sizeof(buf))) > 0)
		committed += (uint64_t)n;
	close(pipes[0]);

	store = open_as(_i % 2 ? MP_STORE_READ : MP_STORE_WRITE);
	ok(mp_store_check(store, &err));
	ok(mp_store_list_sessions(store, &sessions, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	stored = sessions[0].ledger.attributed;
	free(sessions);
	/* The last flush may have been committed and not yet said so. */
	ck_assert_uint_ge(stored, committed * 1000);
	ck_assert_uint_le(stored, (committed + 1) * 1000);
	mp_store_close(store);
}
END_TEST

START_TEST(store_reads_while_another_writes)
{
	int pipes[2], status;
	struct mp_store *store;
	pid_t child;
	char c;

	ck_assert_int_eq(pipe(pipes), 0);
	child = fork();
	if (!child)
		write_for_ever(pipes[1]);
	close(pipes[1]);
	ck_assert_int_eq(read(pipes[0], &c, 1), 1);
	store = open_as(MP_STORE_READ);
	for (int i = 0; i < 30; i++) {
		/* One snapshot: what is counted is what the ledger says, at any moment. */
		ok(mp_store_check(store, &err));
		ck_assert_int_eq(read(pipes[0], &c, 1), 1);
	}
	mp_store_close(store);
	kill(child, SIGKILL);
	close(pipes[0]);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
}
END_TEST

START_TEST(store_lets_two_processes_create_and_write_it)
{
	pid_t children[2];
	struct mp_store *store;
	struct mp_session *sessions;
	size_t nr;
	int status;

	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		struct mp_session session;
		struct mp_ip_count count = {0x1000, 1};

		store = open_as(MP_STORE_WRITE);
		session = start(store);
		for (int k = 0; k < 50; k++) {
			ok(mp_store_begin(store, &err));
			ok(mp_store_add_counts(store, put(store, 1, 0), NOW, &count, 1, &err));
			add_ledger(store, session.key, 1);
			ok(mp_store_commit(store, &err));
		}
		mp_store_close(store);
		_exit(0);
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
		ck_assert_int_eq(status, 0);
	}
	store = open_as(MP_STORE_READ);
	ok(mp_store_check(store, &err));
	ok(mp_store_list_sessions(store, &sessions, &nr, &err));
	ck_assert_uint_eq(nr, 2);
	ck_assert_uint_eq(sessions[0].ledger.attributed + sessions[1].ledger.attributed, 100);
	free(sessions);
	mp_store_close(store);
}
END_TEST

START_TEST(store_full_disk_rolls_back_and_goes_on)
{
	static struct mp_ip_count counts[20000];
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store);
	struct mp_ip_count one = {0x1000, 1};
	int64_t module = put(store, 1, 16 << 20);
	int r = 0;

	ok(mp_store_add_counts(store, module, NOW, &one, 1, &err));
	add_ledger(store, session.key, 1);
	/* SQLite takes this as "no more than there are". */
	ck_assert_int_eq(sqlite3_exec(store->db, "PRAGMA max_page_count=1", NULL, NULL, NULL), 0);
	fill(counts, 20000, 0x2000, 30, 1);
	ok(mp_store_begin(store, &err));
	r = mp_store_add_counts(store, module, NOW, counts, 20000, &err);
	ck_assert_int_eq(r, -ENOSPC);
	ck_assert_ptr_nonnull(strstr(err.msg, "No space left"));
	mp_store_rollback(store);
	ok(mp_store_check(store, &err));
	expect(store, module, 0, &one, 1);
	/* Room again: the same connection carries on. */
	ck_assert_int_eq(sqlite3_exec(store->db, "PRAGMA max_page_count=100000", NULL, NULL, NULL),
			 0);
	ok(mp_store_begin(store, &err));
	ok(mp_store_add_counts(store, module, NOW, counts, 20000, &err));
	add_ledger(store, session.key, sum(counts, 20000));
	ok(mp_store_commit(store, &err));
	ok(mp_store_check(store, &err));
	mp_store_close(store);
}
END_TEST

START_TEST(store_full_file_system_keeps_what_was_committed)
{
	static struct mp_ip_count counts[2000];
	struct mp_store *store;
	struct mp_session session;
	uint64_t committed = 0;
	char mnt[80];
	int r = 0;

	snprintf(mnt, sizeof(mnt), "%s/mnt", dir);
	ck_assert_int_eq(mkdir(mnt, 0700), 0);
	if (mount("none", mnt, "tmpfs", 0, "size=600k"))
		MORPH_SKIP("cannot mount a tmpfs: %s", strerror(errno));
	snprintf(db, sizeof(db), "%s/morph.db", mnt);
	store = open_as(MP_STORE_WRITE);
	session = start(store);
	for (uint64_t round = 1; !r && round < 1000; round++) {
		struct mp_ledger delta;

		fill(counts, 2000, round << 20, 100, round);
		delta = (struct mp_ledger){.emitted = sum(counts, 2000)};
		delta.attributed = delta.emitted;
		ok(mp_store_begin(store, &err));
		int64_t key;
		struct mp_id id = id_of((unsigned int)round % 200);

		r = mp_store_put_module(store, &id, MP_MODULE_FILE, "/x", 64 << 20, NOW, &key,
					&err);
		if (!r)
			r = mp_store_add_counts(store, key, NOW, counts, 2000, &err);
		if (!r)
			r = mp_store_add_ledger(store, session.key, NOW, &delta, &err);
		if (!r)
			r = mp_store_commit(store, &err);
		if (r)
			mp_store_rollback(store);
		else
			committed += delta.emitted;
	}
	ck_assert_msg(r == -ENOSPC, "%d: %s", r, err.msg);
	ok(mp_store_check(store, &err));
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	ok(mp_store_check(store, &err));
	struct mp_session *sessions;
	size_t nr;

	ok(mp_store_list_sessions(store, &sessions, &nr, &err));
	ck_assert_uint_eq(sessions[0].ledger.attributed, committed);
	free(sessions);
	mp_store_close(store);
	umount(mnt);
}
END_TEST

/* ---- open ---------------------------------------------------------------------------------- */

static void write_file(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(data, 1, size, f), size);
	fclose(f);
}

START_TEST(store_open_refuses_what_is_no_store)
{
	struct mp_store *store;
	sqlite3 *foreign;
	char junk[8192];

	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, db));
	write_file(db, "", 0);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -ENOENT);
	memset(junk, 'j', sizeof(junk));
	write_file(db, junk, sizeof(junk));
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -EBADMSG);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "not a database"));
	ck_assert_int_eq(mp_store_open(dir, MP_STORE_WRITE, &store, &err), -EBADMSG);
	unlink(db);
	ck_assert_int_eq(sqlite3_open(db, &foreign), SQLITE_OK);
	sqlite3_exec(foreign, "CREATE TABLE t(x)", NULL, NULL, NULL);
	sqlite3_close(foreign);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "not one of Morph's"));
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -EBADMSG);
	snprintf(db, sizeof(db), "%s/no/such/dir.db", dir);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -ENOENT);
}
END_TEST

static void tamper(const char *sql)
{
	sqlite3 *raw;

	ck_assert_int_eq(sqlite3_open(db, &raw), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(raw, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(raw);
}

START_TEST(store_open_refuses_a_newer_schema)
{
	struct mp_store *store;

	mp_store_close(open_as(MP_STORE_WRITE));
	tamper("PRAGMA user_version = 77");
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -EPROTO);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EPROTO);
	ck_assert_ptr_nonnull(strstr(err.msg, "schema 77"));
}
END_TEST

START_TEST(store_open_refuses_a_schema_with_more_in_it)
{
	struct mp_store *store;

	mp_store_close(open_as(MP_STORE_WRITE));
	tamper("CREATE TRIGGER t AFTER INSERT ON module BEGIN DELETE FROM module; END");
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &store, &err), -EBADMSG);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_WRITE, &store, &err), -EBADMSG);
	tamper("DROP TRIGGER t");
	mp_store_close(open_as(MP_STORE_WRITE));
}
END_TEST

START_TEST(store_migrates_step_by_step_and_keeps_the_data)
{
	const char *steps[] = {mp_store_steps[0],
			       "ALTER TABLE session ADD COLUMN host TEXT NOT NULL DEFAULT ''",
			       "CREATE TABLE extra(x); INSERT INTO extra VALUES(42)"};
	const char *broken[] = {steps[0], steps[1], steps[2],
				"CREATE TABLE more(x); CREATE TABLE extra(y)"};
	struct mp_store *store = open_as(MP_STORE_WRITE), *old;
	int64_t module = put(store, 1, 0);
	struct mp_ip_count count = {0x1000, 5};

	ok(mp_store_add_counts(store, module, NOW, &count, 1, &err));
	ok(mp_store_migrate(store, steps, 3, &err));
	ok(mp_store_migrate(store, steps, 3, &err));
	expect(store, module, 0, &count, 1);
	/* A step that fails leaves all as it was, also what came before it. */
	ck_assert_int_ne(mp_store_migrate(store, broken, 4, &err), 0);
	ok(mp_store_migrate(store, steps, 3, &err));
	expect(store, module, 0, &count, 1);
	mp_store_close(store);
	ck_assert_int_eq(mp_store_open(db, MP_STORE_READ, &old, &err), -EPROTO);
}
END_TEST

/* As an ordinary user where we are root: permissions do not bind root. Return: exit status. */
static int as_nobody(int (*fn)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(99);
		_exit(fn());
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status), "killed by %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static int read_it(void)
{
	struct mp_store *store;

	if (mp_store_open(db, MP_STORE_READ, &store, &err))
		return 1;
	if (mp_store_check(store, &err))
		return 2;
	mp_store_close(store);
	return 0;
}

static int read_fails(void)
{
	struct mp_store *store;
	int r = mp_store_open(db, MP_STORE_READ, &store, &err);

	return r == -EACCES ? 0 : 1;
}

static int write_fails(void)
{
	struct mp_store *store;
	int r = mp_store_open(db, MP_STORE_WRITE, &store, &err);

	return r == -EACCES ? 0 : 1;
}

START_TEST(store_reads_where_it_cannot_write)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store);
	struct mp_ip_count count = {0x1000, 5};

	ok(mp_store_add_counts(store, put(store, 1, 0), NOW, &count, 1, &err));
	add_ledger(store, session.key, 5);
	ck_assert_int_eq(chmod(dir, 0555), 0);
	ck_assert_int_eq(chmod(db, 0444), 0);
	if (geteuid()) {
		/* The writer still holds -shm open; an owner has no other self to be. */
		mp_store_close(store);
		ck_assert_int_eq(read_it(), 0);
		chmod(dir, 0700);
		return;
	}
	ck_assert_int_eq(as_nobody(read_it), 0); /* beside a writer */
	ck_assert_int_eq(as_nobody(write_fails), 0);
	mp_store_close(store);
	ck_assert_int_eq(as_nobody(read_it), 0); /* nobody there, no -wal */
	ck_assert_int_eq(chmod(db, 0400), 0);
	ck_assert_int_eq(as_nobody(read_fails), 0);
	chmod(dir, 0700);
}
END_TEST

START_TEST(store_reads_on_a_read_only_file_system)
{
	struct mp_store *store;
	struct mp_session session;
	struct mp_ip_count count = {0x1000, 5};
	char mnt[80];

	snprintf(mnt, sizeof(mnt), "%s/mnt", dir);
	ck_assert_int_eq(mkdir(mnt, 0700), 0);
	if (mount("none", mnt, "tmpfs", 0, "size=4m"))
		MORPH_SKIP("cannot mount a tmpfs: %s", strerror(errno));
	snprintf(db, sizeof(db), "%s/morph %%3f?#.db", mnt);
	store = open_as(MP_STORE_WRITE);
	session = start(store);
	ok(mp_store_add_counts(store, put(store, 1, 0), NOW, &count, 1, &err));
	add_ledger(store, session.key, 5);
	mp_store_close(store);
	ck_assert_int_eq(mount("none", mnt, "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_int_ne(mp_store_open(db, MP_STORE_WRITE, &store, &err), 0);
	umount(mnt);
}
END_TEST

START_TEST(store_says_when_a_dead_writers_wal_cannot_be_read)
{
	struct mp_store *store;
	char mnt[80], cmd[400];

	snprintf(mnt, sizeof(mnt), "%s/mnt", dir);
	ck_assert_int_eq(mkdir(mnt, 0700), 0);
	if (mount("none", mnt, "tmpfs", 0, "size=4m"))
		MORPH_SKIP("cannot mount a tmpfs: %s", strerror(errno));
	/* A copy of a live database has its -wal and no -shm. */
	store = open_as(MP_STORE_WRITE);
	put(store, 1, 0);
	snprintf(cmd, sizeof(cmd), "cp %s %s-wal %s", db, db, mnt);
	ck_assert_int_eq(system(cmd), 0);
	mp_store_close(store);
	ck_assert_int_eq(mount("none", mnt, "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
	snprintf(db, sizeof(db), "%s/morph.db", mnt);
	ck_assert_int_ne(mp_store_open(db, MP_STORE_READ, &store, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "a writer was killed"));
	umount(mnt);
}
END_TEST

/* ---- damage -------------------------------------------------------------------------------- */

static void *read_whole(const char *path, size_t *size)
{
	FILE *f = fopen(path, "r");
	char *data;

	ck_assert_ptr_nonnull(f);
	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	data = malloc(*size);
	ck_assert_uint_eq(fread(data, 1, *size, f), *size);
	fclose(f);
	return data;
}

/* Every reader of the store, on whatever the file now is. */
static int use_everything(void)
{
	struct mp_store *store;
	struct mp_module *modules = NULL;
	struct mp_session *sessions = NULL;
	struct mp_program_activity *programs = NULL;
	size_t nr = 0, n;
	int r = mp_store_open(db, MP_STORE_READ, &store, &err), any;

	if (r)
		return r;
	any = mp_store_list_modules(store, 0, &modules, &nr, &err);
	for (size_t i = 0; !any && i < nr; i++) {
		struct mp_ip_count *counts = NULL;

		r = mp_store_read_counts(store, modules[i].key, 0, &counts, &n, &err);
		if (!r)
			free(counts);
		else
			any = r;
	}
	mp_store_free_modules(modules, nr);
	r = mp_store_list_sessions(store, &sessions, &n, &err);
	if (!r)
		free(sessions);
	any = any ? any : r;
	r = mp_store_list_activity(store, 0, &programs, &n, &err);
	if (!r)
		free(programs);
	any = any ? any : r;
	r = mp_store_check(store, &err);
	any = any ? any : r;
	mp_store_close(store);
	return any;
}

static void make_sample_store(void)
{
	static struct mp_ip_count counts[3000];
	struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store);
	struct mp_activity activity = {1, 2, 3, 4};

	for (unsigned int i = 0; i < 5; i++) {
		int64_t module = put(store, i, 1 << 20);

		fill(counts, 3000, 0x1000, 100, i + 1);
		ok(mp_store_add_counts(store, module, NOW + i * DAY, counts, 3000, &err));
		add_ledger(store, session.key, sum(counts, 3000));
		ok(mp_store_add_activity(store, module, NOW, &activity, &err));
	}
	mp_store_close(store);
	ck_assert_int_eq(use_everything(), 0);
}

START_TEST(store_truncated_anywhere_is_an_error)
{
	size_t size;
	char *data;

	make_sample_store();
	data = read_whole(db, &size);
	for (size_t cut = 1; cut < size; cut += cut < 200 ? 13 : 777) {
		write_file(db, data, cut);
		ck_assert_int_ne(use_everything(), 0);
		ck_assert_int_ne(err.msg[0], '\0');
	}
	free(data);
}
END_TEST

START_TEST(store_with_flipped_bits_never_crashes_nor_lies_about_counts)
{
	uint64_t seed = 99;
	size_t size, nr_found = 0;
	uint8_t *data, *copy;

	make_sample_store();
	data = read_whole(db, &size);
	copy = malloc(size);
	for (int round = 0; round < 1500; round++) {
		int nr_flips = 1 + round % 4;

		memcpy(copy, data, size);
		for (int i = 0; i < nr_flips; i++)
			copy[next_random(&seed) % size] ^= 1u << next_random(&seed) % 8;
		write_file(db, copy, size);
		nr_found += use_everything() != 0;
	}
	/* What is left unnoticed hit free space, paths or times; counts have checksums. */
	ck_assert_uint_ge(nr_found, 600);
	free(copy);
	free(data);
}
END_TEST

START_TEST(store_flipped_count_is_found)
{
	struct mp_store *store;
	struct mp_ip_count *counts;
	size_t nr;

	make_sample_store();
	/* The last byte of a chunk's data: a count or a distance, plausible whatever it is. */
	tamper("UPDATE chunk SET data = substr(data, 1, length(data) - 1) ||"
	       " CASE substr(data, -1) WHEN x'04' THEN x'05' ELSE x'04' END WHERE key = 1");
	store = open_as(MP_STORE_READ);
	ck_assert_int_eq(mp_store_read_counts(store, 1, 0, &counts, &nr, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "checksum"));
	mp_store_close(store);
}
END_TEST

/* ---- path ---------------------------------------------------------------------------------- */

START_TEST(store_path_follows_the_documented_order)
{
	char path[256], want[256];

	setenv("MORPH_DB", "/x/y.db", 1);
	ok(mp_store_default_path(path, sizeof(path), false, &err));
	ck_assert_str_eq(path, "/x/y.db");
	unsetenv("MORPH_DB");
	if (geteuid() == 0) {
		ok(mp_store_default_path(path, sizeof(path), false, &err));
		ck_assert_str_eq(path, "/var/lib/morph/morph.db");
		ck_assert_int_eq(chmod(dir, 0777), 0);
		ck_assert_int_eq(seteuid(65534), 0);
	}
	setenv("XDG_STATE_HOME", dir, 1);
	snprintf(want, sizeof(want), "%s/morph/morph.db", dir);
	ok(mp_store_default_path(path, sizeof(path), true, &err));
	ck_assert_str_eq(path, want);
	*strrchr(want, '/') = '\0';
	ck_assert_int_eq(access(want, W_OK), 0);
	setenv("XDG_STATE_HOME", "relative", 1);
	setenv("HOME", dir, 1);
	snprintf(want, sizeof(want), "%s/.local/state/morph/morph.db", dir);
	ok(mp_store_default_path(path, sizeof(path), false, &err));
	ck_assert_str_eq(path, want);
	unsetenv("HOME");
	ck_assert_int_eq(mp_store_default_path(path, sizeof(path), false, &err), -ENOENT);
	setenv("HOME", dir, 1);
	ck_assert_int_eq(mp_store_default_path(path, 10, false, &err), -ENAMETOOLONG);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0); /* teardown removes root's files */
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("store");
	TCase *tc = tcase_create("store");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, codec_gives_back_what_it_took);
	tcase_add_test(tc, codec_refuses_what_it_never_wrote);
	tcase_add_test(tc, codec_keeps_a_run_of_equal_counts_in_a_byte_each);
	tcase_add_test(tc, store_names_modules_by_id_not_by_path);
	tcase_add_test(tc, store_adds_counts_of_one_address);
	tcase_add_test(tc, store_refuses_counts_that_do_not_ascend);
	tcase_add_test(tc, store_lists_modules_by_samples);
	tcase_add_test(tc, store_folds_days_beyond_a_week);
	tcase_add_test(tc, store_stays_below_its_share_of_the_text);
	tcase_add_test(tc, store_keeps_a_ledger_that_balances);
	tcase_add_test(tc, store_check_finds_counts_without_a_ledger);
	tcase_add_test(tc, store_adds_activity_per_program_and_folds_it);
	tcase_add_test(tc, store_shows_nothing_of_a_rolled_back_transaction);
	tcase_add_test(tc, store_reader_never_writes);
	tcase_add_loop_test(tc, store_loses_and_doubles_nothing_when_killed, 0, 12);
	tcase_add_test(tc, store_reads_while_another_writes);
	tcase_add_test(tc, store_lets_two_processes_create_and_write_it);
	tcase_add_test(tc, store_full_disk_rolls_back_and_goes_on);
	tcase_add_test(tc, store_full_file_system_keeps_what_was_committed);
	tcase_add_test(tc, store_open_refuses_what_is_no_store);
	tcase_add_test(tc, store_open_refuses_a_newer_schema);
	tcase_add_test(tc, store_open_refuses_a_schema_with_more_in_it);
	tcase_add_test(tc, store_migrates_step_by_step_and_keeps_the_data);
	tcase_add_test(tc, store_reads_where_it_cannot_write);
	tcase_add_test(tc, store_reads_on_a_read_only_file_system);
	tcase_add_test(tc, store_says_when_a_dead_writers_wal_cannot_be_read);
	tcase_add_test(tc, store_truncated_anywhere_is_an_error);
	tcase_add_test(tc, store_with_flipped_bits_never_crashes_nor_lies_about_counts);
	tcase_add_test(tc, store_flipped_count_is_found);
	tcase_add_test(tc, store_path_follows_the_documented_order);
	suite_add_tcase(s, tc);
	return s;
}

MORPH_SUITE_MAIN(suite)
