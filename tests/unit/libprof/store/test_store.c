// SPDX-License-Identifier: Apache-2.0
/*
 * test_store - the database: data is read back as written, adds up, and survives kill and a
 * full disk.
 */
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "libprof/store/store_process.h"
#include "tests/unit/store_fixture.h"

/* ---- modules, counts ----------------------------------------------------------------------- */

FIXTURE(setup, teardown);

TEST(store_names_modules_by_id_not_by_path)
{
	struct mp_id a = id_of(1), b = id_of(1), none = {.text_hash = 7};
	int64_t key_a, key_b, key_again, key_none;
	struct mp_module module;

	store = open_as(MP_STORE_WRITE);
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
}

TEST(store_adds_counts_of_one_address)
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
	ok(mp_store_add_ip_counts(store, module, NOW, a, 3, &err));
	ok(mp_store_add_ip_counts(store, module, NOW + DAY, b, 3, &err));
	ok(mp_store_add_ip_counts(store, other, NOW, b, 3, &err));
	ok(mp_store_commit(store, &err));
	expect(store, module, 0, both, 5);
	expect(store, module, NOW + DAY, b, 3);
	expect(store, module, NOW + 2 * DAY, NULL, 0);
	expect(store, other, 0, b, 3);
	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	expect(store, module, 0, both, 5);
	ck_assert_int_eq(mp_store_read_ip_counts(store, 99, 0, &(struct mp_ip_count *){0},
						 &(size_t){0}, &err),
			 -ENOENT);
	mp_store_close(store);
}

TEST(store_refuses_counts_that_do_not_ascend)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_ip_count bad[] = {{2, 1}, {1, 1}}, huge[] = {{1, INT64_MAX}, {2, 1}};
	struct mp_ip_count one = {1, 1};
	int64_t module = put(store, 1, 0);

	ck_assert_int_eq(mp_store_add_ip_counts(store, module, NOW, bad, 2, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_ip_counts(store, module, NOW, huge, 2, &err), -EOVERFLOW);
	ck_assert_int_eq(mp_store_add_ip_counts(store, module, -1, &one, 1, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_ip_counts(store, 77, NOW, &one, 1, &err), -ENOENT);
	expect(store, module, 0, NULL, 0);
}

TEST(store_lists_modules_by_samples)
{
	struct mp_module *modules;
	size_t nr;

	store = open_as(MP_STORE_WRITE);
	for (unsigned int i = 1; i <= 3; i++) {
		struct mp_ip_count count = {0x1000, i * 10};

		ok(mp_store_add_ip_counts(store, put(store, i, 0), NOW - i * DAY, &count, 1, &err));
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
}

TEST(store_folds_days_beyond_a_week)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 1 << 20), from_s;
	struct mp_session session = start(store);
	struct mp_ip_count count = {0x1234, 1};

	for (int day = 0; day < 30; day++) {
		count.count = 1;
		ok(mp_store_add_ip_counts(store, module, NOW + day * DAY, &count, 1, &err));
		add_ledger(store, session.key, 1);
	}
	/*
	 * Days 23 to 29 are separate; days 0 to 22 form one bucket, which any of its days
	 * selects.
	 */
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
	/* Late data is added to the bucket that contains its day, or to the oldest one. */
	ok(mp_store_add_ip_counts(store, module, NOW + 5 * DAY, &count, 1, &err));
	ok(mp_store_add_ip_counts(store, module, NOW - 5 * DAY, &count, 1, &err));
	add_ledger(store, session.key, 2);
	count.count = 32;
	expect(store, module, 0, &count, 1);
	expect(store, module, NOW + 22 * DAY, &count, 1);
	ok(mp_store_check(store, &err));
}

TEST(store_stays_below_its_share_of_the_text)
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
	uint64_t tables;
	size_t nr;

	mp_store_close(store);
	store = open_as(MP_STORE_WRITE);
	tables = mp_store_size_bytes(store);
	/*
	 * Every day has some common and some different code. 60 days in daily buckets would
	 * hold more than 4 x 8 x 5,000 addresses.
	 */
	for (int day = 0; day < 60; day++) {
		ok(mp_store_begin(store, &err));
		for (unsigned int i = 0; i < NR_MODULES; i++) {
			fill(counts, NR_IPS, 0x1000, 100, day % 3 + 1);
			ok(mp_store_add_ip_counts(store, put(store, i, TEXT), NOW + day * DAY,
						  counts, NR_IPS, &err));
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
	ck_assert_uint_le(mp_store_size_bytes(store) - tables, NR_MODULES * (65536 + TEXT / 10));
	ok(mp_store_check(store, &err));
	mp_store_close(store);
}

/* ---- ledger, activity ---------------------------------------------------------------------- */

TEST(store_keeps_a_ledger_that_balances)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
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
}

TEST(store_check_finds_counts_without_a_ledger)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store);
	struct mp_ip_count count = {0x1000, 5};

	ok(mp_store_check(store, &err));
	ok(mp_store_add_ip_counts(store, put(store, 1, 0), NOW, &count, 1, &err));
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "5 samples are stored, the ledgers say 0"));
	add_ledger(store, session.key, 5);
	ok(mp_store_check(store, &err));
}

TEST(store_adds_activity_per_program_and_folds_it)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
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
}

TEST(store_adds_processes_and_folds_old_days)
{
	struct mp_process some[] = {{.name = "cc1", .unit = "build.service", .uid = 1, .nr = 3},
				    {.name = "cc1", .uid = MP_UID_UNKNOWN, .nr = 2},
				    {.name = "idle", .nr = 0}};
	struct mp_process *all;
	sqlite3_stmt *stmt;
	size_t nr;

	store = open_as(MP_STORE_WRITE);
	for (int day = 0; day < 20; day++)
		ok(mp_store_add_processes(store, NOW + day * DAY, some, 3, &err));
	ok(mp_store_add_processes(store, NOW + 19 * DAY, some, 3, &err));
	ok(mp_store_list_processes(store, 0, &all, &nr, &err));
	ck_assert_uint_eq(nr, 2);
	ck_assert_str_eq(all[0].unit, "build.service");
	ck_assert_uint_eq(all[0].nr, 63);
	ck_assert_uint_eq(all[1].uid, MP_UID_UNKNOWN);
	ck_assert_uint_eq(all[1].nr, 42);
	free(all);
	ok(mp_store_list_processes(store, NOW + 18 * DAY, &all, &nr, &err));
	ck_assert_uint_eq(nr, 2);
	ck_assert_uint_eq(all[0].nr, 9);
	free(all);
	/* Eight rows each: seven days, and one for older days. */
	ck_assert_int_eq(sqlite3_prepare_v2(store->db, "SELECT count(*) FROM process", -1, &stmt,
					    NULL),
			 SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	ck_assert_int_eq(sqlite3_column_int(stmt, 0), 16);
	sqlite3_finalize(stmt);
	ok(mp_store_check(store, &err));
}

TEST(store_bounds_the_processes_of_a_day)
{
	struct mp_process one = {.uid = 1, .nr = 1}, *all;
	size_t nr;

	store = open_as(MP_STORE_WRITE);
	ok(mp_store_begin(store, &err));
	for (int i = 0; i < 2 * MP_PROCESS_ROWS_DAY; i++) {
		snprintf(one.name, sizeof(one.name), "p%d", i);
		ok(mp_store_add_processes(store, NOW, &one, 1, &err));
	}
	ok(mp_store_commit(store, &err));
	ok(mp_store_list_processes(store, 0, &all, &nr, &err));
	ck_assert_uint_eq(nr, MP_PROCESS_ROWS_DAY + 1);
	ck_assert_str_eq(all[0].name, MP_PROCESS_OTHERS);
	ck_assert_uint_eq(all[0].nr, MP_PROCESS_ROWS_DAY);
	free(all);
}

/* ---- transactions -------------------------------------------------------------------------- */

TEST(store_shows_nothing_of_a_rolled_back_transaction)
{
	struct mp_store *store = open_as(MP_STORE_WRITE), *reader;
	int64_t module = put(store, 1, 0);
	struct mp_ip_count count = {0x1000, 5};

	ok(mp_store_begin(store, &err));
	ok(mp_store_add_ip_counts(store, module, NOW, &count, 1, &err));
	reader = open_as(MP_STORE_READ);
	expect(reader, module, 0, NULL, 0);
	mp_store_rollback(store);
	expect(store, module, 0, NULL, 0);
	ok(mp_store_begin(store, &err));
	ok(mp_store_add_ip_counts(store, module, NOW, &count, 1, &err));
	ok(mp_store_commit(store, &err));
	expect(reader, module, 0, &count, 1);
	mp_store_close(reader);
	mp_store_close(store);
}

TEST(store_reader_never_writes)
{
	struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = put(store, 1, 0);
	struct mp_ip_count count = {0x1000, 5};

	mp_store_close(store);
	store = open_as(MP_STORE_READ);
	ck_assert_int_eq(mp_store_add_ip_counts(store, module, NOW, &count, 1, &err), -EROFS);
	expect(store, module, 0, NULL, 0);
	mp_store_close(store);
}

/* Commits flushes of 1,000 addresses until killed, and reports each commit through a pipe. */
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
		ok(mp_store_add_ip_counts(store, module, NOW + (int64_t)(round / 20) * DAY, counts,
					  1000, &err));
		add_ledger(store, session.key, 1000);
		ok(mp_store_commit(store, &err));
		if (write(out, "x", 1) != 1)
			_exit(1);
	}
}

TEST_EACH(store_loses_and_doubles_nothing_when_killed, 12)
{
	int pipes[2], status;
	char buf[4096];
	uint64_t committed = 0, stored;
	AUTO(close_store) struct mp_store *store = NULL;
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
	/* _i varies the point of a flush at which the signal comes. */
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
	/* The last flush may be committed but not reported. */
	ck_assert_uint_ge(stored, committed * 1000);
	ck_assert_uint_le(stored, (committed + 1) * 1000);
}

TEST(store_reads_while_another_writes)
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
		/* In one snapshot, counts and ledger always agree. */
		ok(mp_store_check(store, &err));
		ck_assert_int_eq(read(pipes[0], &c, 1), 1);
	}
	mp_store_close(store);
	kill(child, SIGKILL);
	close(pipes[0]);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
}

TEST(store_lets_two_processes_create_and_write_it)
{
	pid_t children[2];
	struct mp_store *store;
	AUTO_FREE struct mp_session *sessions = NULL;
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
			ok(mp_store_add_ip_counts(store, put(store, 1, 0), NOW, &count, 1, &err));
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
	mp_store_close(store);
}

TEST(store_full_disk_rolls_back_and_goes_on)
{
	static struct mp_ip_count counts[20000];
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	struct mp_session session = start(store);
	struct mp_ip_count one = {0x1000, 1};
	int64_t module = put(store, 1, 16 << 20);
	int r = 0;

	ok(mp_store_add_ip_counts(store, module, NOW, &one, 1, &err));
	add_ledger(store, session.key, 1);
	/* SQLite limits this to the pages that exist. */
	ck_assert_int_eq(sqlite3_exec(store->db, "PRAGMA max_page_count=1", NULL, NULL, NULL), 0);
	fill(counts, 20000, 0x2000, 30, 1);
	ok(mp_store_begin(store, &err));
	r = mp_store_add_ip_counts(store, module, NOW, counts, 20000, &err);
	ck_assert_int_eq(r, -ENOSPC);
	ck_assert_ptr_nonnull(strstr(err.msg, "No space left"));
	mp_store_rollback(store);
	ok(mp_store_check(store, &err));
	expect(store, module, 0, &one, 1);
	/* With space again, the same connection continues. */
	ck_assert_int_eq(sqlite3_exec(store->db, "PRAGMA max_page_count=100000", NULL, NULL, NULL),
			 0);
	ok(mp_store_begin(store, &err));
	ok(mp_store_add_ip_counts(store, module, NOW, counts, 20000, &err));
	add_ledger(store, session.key, sum(counts, 20000));
	ok(mp_store_commit(store, &err));
	ok(mp_store_check(store, &err));
}

TEST(store_that_lost_its_file_writes_nothing_more)
{
	struct mp_store *store = open_as(MP_STORE_WRITE), *other;

	put(store, 1, 0);
	ck_assert_int_eq(unlink(db), 0);
	ck_assert_int_eq(mp_store_begin(store, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.msg, "was removed or replaced"));
	other = open_as(MP_STORE_WRITE);
	ck_assert_int_eq(mp_store_begin(store, &err), -ESTALE);
	put(other, 1, 0);
	mp_store_close(other);
	mp_store_close(store);
}

TEST(store_full_file_system_keeps_what_was_committed)
{
	static struct mp_ip_count counts[2000];
	struct mp_store *store;
	struct mp_session session;
	uint64_t committed = 0;
	char mnt[256];
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
			r = mp_store_add_ip_counts(store, key, NOW, counts, 2000, &err);
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
