// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_merge - merging databases gives what one database with all data would hold.
 * Nothing is added twice, and a failure changes nothing.
 */

#include "libprof/store/store_paths.h"
#include "libprof/store/store_private.h"
#include "libprof/store/store_process.h"
#include "libprof/store/whole/store_merge.h"
#include "tests/unit/scratch.h"

#define DAY MP_SECONDS_PER_DAY
#define NOW (20000LL * DAY + 5000)

static struct mp_store *a, *b, *out;
static struct mp_merge_stats stats;

#define ok(call) ck_assert_msg((call) == 0, "%s: %s", #call, err.msg)

static struct mp_store *open_store(const char *name)
{
	struct mp_store *store = NULL;
	char db[256];

	snprintf(db, sizeof(db), "%s/%s.db", dir, name);
	ok(mp_store_open(db, MP_STORE_WRITE, &store, &err));
	return store;
}

static void setup(void)
{
	scratch_make();
	a = open_store("a");
	b = open_store("b");
	out = open_store("out");
}

static void teardown(void)
{
	mp_store_close(a);
	mp_store_close(b);
	mp_store_close(out);
	scratch_remove();
}

static struct mp_id id_of(unsigned int n)
{
	struct mp_id id = {.build_id_len = 20, .text_hash = 0x9000000000000000ull + n};

	memset(id.build_id, (int)n, 20);
	return id;
}

/* Adds a session whose ledger has @nr samples, without the samples. */
static void promise(struct mp_store *store, int64_t when_s, uint64_t nr)
{
	struct mp_session session = {.start_s = when_s, .collector = "import"};
	struct mp_ledger ledger = {.emitted = nr, .attributed = nr};

	ok(mp_store_start_session(store, &session, &err));
	ok(mp_store_add_ledger(store, session.key, when_s, &ledger, &err));
}

/* Stores one session with @nr samples of module @n, like a collector. */
static void collect(struct mp_store *store, unsigned int n, int64_t when_s, uint64_t vaddr,
		    uint64_t nr)
{
	struct mp_session session = {.start_s = when_s,
				     .collector = "perf",
				     .why = "asked for",
				     .event = "cpu-clock",
				     .rate_hz = 100};
	struct mp_ledger ledger = {.emitted = nr + 3, .attributed = nr};
	struct mp_edge_count edge = {vaddr, 0x10, nr, nr / 2};
	uint8_t bytes[] = {(uint8_t)(n & 0x7f), 8};
	struct mp_path_count path = {bytes, sizeof(bytes), nr / 2};
	struct mp_activity activity = {.app = nr, .other = 1};
	struct mp_process process = {.name = "worker", .unit = "a.service", .uid = n, .nr = nr};
	struct mp_ip_count counts[] = {{vaddr, nr - 1}, {vaddr + 0x10000, 1}};
	struct mp_id id = id_of(n);
	char name[32];
	int64_t key;

	ledger.lost[MP_LOST_TORN] = 2;
	ledger.paths[MP_PATH_DECODED] = nr / 2;
	ledger.paths[MP_PATH_STUB] = 1;
	ledger.unattributed[MP_UNATTR_VDSO] = 1;
	snprintf(name, sizeof(name), "/bin/%u.%lld", n, (long long)when_s);
	ok(mp_store_begin(store, &err));
	ok(mp_store_start_session(store, &session, &err));
	ok(mp_store_put_module(store, &id, MP_MODULE_FILE, name, 1 << 20, when_s, &key, &err));
	ok(mp_store_add_ip_counts(store, key, when_s, counts, 2, &err));
	ok(mp_store_add_edges(store, key, when_s, &edge, 1, &err));
	ok(mp_store_add_paths(store, key, when_s, &path, 1, &err));
	ok(mp_store_add_activity(store, key, when_s, &activity, &err));
	ok(mp_store_add_processes(store, when_s, &process, 1, &err));
	ok(mp_store_add_ledger(store, session.key, when_s + 60, &ledger, &err));
	ok(mp_store_commit(store, &err));
}

static int merge(struct mp_store *to, struct mp_store *from, bool again)
{
	int r;

	ok(mp_store_begin(to, &err));
	ok(mp_store_begin(from, &err));
	r = mp_store_merge(to, from, again, &stats, &err);
	mp_store_rollback(from);
	if (r)
		mp_store_rollback(to);
	else
		ok(mp_store_commit(to, &err));
	return r;
}

static void expect_equal(struct mp_store *x, struct mp_store *y, int64_t since_s)
{
	struct mp_module *mx, *my;
	size_t nx, ny;

	ok(mp_store_list_modules(x, since_s, &mx, &nx, &err));
	ok(mp_store_list_modules(y, since_s, &my, &ny, &err));
	ck_assert_uint_eq(nx, ny);
	for (size_t i = 0; i < nx; i++) {
		struct mp_ip_count *cx = NULL, *cy = NULL;
		struct mp_edge_count *ex = NULL, *ey = NULL;
		struct mp_path_count *px = NULL, *py = NULL;
		struct mp_module *m = NULL;
		size_t k, l;

		for (k = 0; k < ny; k++)
			if (mp_id_equal(&mx[i].id, &my[k].id))
				m = &my[k];
		ck_assert_ptr_nonnull(m);
		ck_assert_str_eq(mx[i].path, m->path);
		ck_assert_int_eq(mx[i].first_s, m->first_s);
		ck_assert_int_eq(mx[i].last_s, m->last_s);
		ck_assert_uint_eq(mx[i].text_size, m->text_size);
		ck_assert_uint_eq(mx[i].nr_samples, m->nr_samples);
		ok(mp_store_read_ip_counts(x, mx[i].key, since_s, &cx, &k, &err));
		ok(mp_store_read_ip_counts(y, m->key, since_s, &cy, &l, &err));
		ck_assert_uint_eq(k, l);
		ck_assert(!k || !memcmp(cx, cy, k * sizeof(*cx)));
		ok(mp_store_read_edges(x, mx[i].key, since_s, &ex, &k, &err));
		ok(mp_store_read_edges(y, m->key, since_s, &ey, &l, &err));
		ck_assert_uint_eq(k, l);
		ck_assert(!k || !memcmp(ex, ey, k * sizeof(*ex)));
		ok(mp_store_read_paths(x, mx[i].key, since_s, &px, &k, &err));
		ok(mp_store_read_paths(y, m->key, since_s, &py, &l, &err));
		ck_assert_uint_eq(k, l);
		while (k--) {
			ck_assert_uint_eq(px[k].count, py[k].count);
			ck_assert_uint_eq(px[k].key_size, py[k].key_size);
			ck_assert_mem_eq(px[k].key, py[k].key, px[k].key_size);
		}
		free(px);
		free(py);
		free(cx);
		free(cy);
		free(ex);
		free(ey);
	}
	mp_store_free_modules(mx, nx);
	mp_store_free_modules(my, ny);
}

FIXTURE(setup, teardown);

TEST(merge_is_what_one_database_would_hold)
{
	struct mp_store *both = open_store("both");
	struct mp_program_activity *px, *py;
	struct mp_process *wx, *wy;
	struct mp_session *sx, *sy;
	size_t nx, ny;

	for (int i = 0; i < 6; i++) {
		int64_t when_s = NOW + i * DAY + i;
		struct mp_store *in = i % 2 ? a : b;

		collect(in, 1 + (unsigned int)i % 3, when_s, 0x1000 + 4 * (uint64_t)i, 100);
		collect(both, 1 + (unsigned int)i % 3, when_s, 0x1000 + 4 * (uint64_t)i, 100);
	}
	ok(merge(out, b, false));
	ck_assert_uint_eq(stats.nr_samples, 300);
	ck_assert_uint_eq(stats.nr_transfers, 300);
	ck_assert_uint_eq(stats.nr_paths, 150);
	ck_assert_uint_eq(stats.nr_modules, 3);
	ck_assert_uint_eq(stats.nr_sessions, 3);
	ok(merge(out, a, false));
	ok(mp_store_check(out, &err));
	for (int i = 0; i < 7; i++)
		expect_equal(out, both, i ? NOW + (i - 1) * DAY : 0);
	ok(mp_store_list_sessions(out, &sx, &nx, &err));
	ok(mp_store_list_sessions(both, &sy, &ny, &err));
	ck_assert_uint_eq(nx, ny);
	for (size_t i = 0; i < nx; i++) {
		ck_assert_int_eq(sx[i].start_s, sy[i].start_s);
		ck_assert_int_eq(sx[i].last_s, sy[i].last_s);
		ck_assert_str_eq(sx[i].why, sy[i].why);
		ck_assert_int_eq(memcmp(&sx[i].ledger, &sy[i].ledger, sizeof(sx[i].ledger)), 0);
	}
	free(sx);
	free(sy);
	ok(mp_store_list_activity(out, 0, &px, &nx, &err));
	ok(mp_store_list_activity(both, 0, &py, &ny, &err));
	ck_assert_uint_eq(nx, ny);
	for (size_t i = 0; i < nx; i++)
		ck_assert_uint_eq(px[i].activity.app, py[i].activity.app);
	free(px);
	free(py);
	ok(mp_store_list_processes(out, 0, &wx, &nx, &err));
	ok(mp_store_list_processes(both, 0, &wy, &ny, &err));
	ck_assert_uint_eq(nx, 3);
	ck_assert_uint_eq(nx, ny);
	for (size_t i = 0; i < nx; i++) {
		ck_assert_uint_eq(wx[i].uid, wy[i].uid);
		ck_assert_uint_eq(wx[i].nr, wy[i].nr);
	}
	free(wx);
	free(wy);
	mp_store_close(both);
}

TEST(merge_adds_exact_counts_to_exact_ones_only)
{
	const int64_t day = NOW / DAY;
	const struct mp_span days[] = {{day, day, true}, {day + 1, day + 1, true}};
	struct mp_ip_count count = {0x1000, 8};
	struct mp_module module = {0};
	struct mp_id id = id_of(1);
	struct mp_store *in[] = {a, b};
	bool exact;
	int64_t key;

	for (int i = 0; i < 2; i++) {
		ok(mp_store_put_module(in[i], &id, MP_MODULE_FILE, "/bin/x", 1 << 20, NOW, &key,
				       &err));
		ok(mp_store_add_ip_count_span(in[i], key, &days[0], &count, 1, &err));
		ok(mp_store_add_ip_count_span(in[i], key, &days[1], &count, 1, &err));
	}
	ok(mp_store_add_ip_counts(b, key, NOW, &count, 1, &err));
	promise(a, NOW, 16);
	promise(b, NOW + 1, 24);
	ok(merge(out, a, false));
	ok(mp_store_find_module(out, &id, &module, &err));
	free(module.path);
	ok(mp_store_is_exact(out, module.key, 0, &exact, &err));
	ck_assert(exact);
	ok(merge(out, b, false));
	ok(mp_store_is_exact(out, module.key, 0, &exact, &err));
	ck_assert(!exact);
	ok(mp_store_is_exact(out, module.key, NOW + DAY, &exact, &err));
	ck_assert_msg(exact, "the day that has no samples");
}

TEST(merge_of_the_same_again_is_refused)
{
	collect(a, 1, NOW, 0x1000, 50);
	ok(merge(out, a, false));
	ck_assert_int_eq(merge(out, a, false), -EEXIST);
	ck_assert_ptr_nonnull(strstr(err.msg, "was added before"));
	/* It has grown meanwhile, but is still the same session. */
	collect(a, 1, NOW + 100, 0x1000, 50);
	ck_assert_int_eq(merge(out, a, false), -EEXIST);
	ok(mp_store_check(out, &err));
	ok(merge(out, a, true));
	ck_assert_uint_eq(stats.nr_samples, 100);
	ok(mp_store_check(out, &err));
}

TEST(merge_knows_a_session_that_went_on)
{
	struct mp_ledger more = {.emitted = 7, .attributed = 7};
	struct mp_ip_count count = {0x1000, 7};
	struct mp_session *sessions;
	struct mp_module module;
	struct mp_id id = id_of(1);
	size_t nr;

	collect(a, 1, NOW, 0x1000, 50);
	ok(merge(out, a, false));
	ok(mp_store_list_sessions(a, &sessions, &nr, &err));
	ok(mp_store_find_module(a, &id, &module, &err));
	ok(mp_store_begin(a, &err));
	ok(mp_store_add_ip_counts(a, module.key, NOW, &count, 1, &err));
	ok(mp_store_add_ledger(a, sessions[0].key, NOW + 600, &more, &err));
	ok(mp_store_commit(a, &err));
	free(sessions);
	free(module.path);
	ck_assert_int_eq(merge(out, a, false), -EEXIST);
	/* The other direction: an earlier state is merged into its later one. */
	ck_assert_int_eq(merge(a, out, false), -EEXIST);
	ok(mp_store_check(out, &err));
	ok(mp_store_check(a, &err));
}

TEST(merge_knows_a_session_by_more_than_its_second)
{
	/* Two machines started in the same second: neither ledger includes the other. */
	collect(a, 1, NOW, 0x1000, 50);
	ok(mp_store_begin(b, &err));
	{
		struct mp_session session = {.start_s = NOW,
					     .collector = "perf",
					     .why = "asked for",
					     .event = "cpu-clock",
					     .rate_hz = 100};
		struct mp_ledger ledger = {.emitted = 9};

		ledger.unattributed[MP_UNATTR_DELETED] = 9;
		ok(mp_store_start_session(b, &session, &err));
		ok(mp_store_add_ledger(b, session.key, NOW, &ledger, &err));
	}
	ok(mp_store_commit(b, &err));
	ok(merge(out, a, false));
	ok(merge(out, b, false));
	ok(mp_store_check(out, &err));
}

TEST(merge_keeps_the_path_seen_last)
{
	struct mp_module module;
	struct mp_id id = id_of(1);
	char want[32];

	collect(a, 1, NOW + DAY, 0x1000, 10);
	collect(b, 1, NOW, 0x1000, 10);
	ok(merge(out, a, false));
	ok(merge(out, b, false));
	ok(mp_store_find_module(out, &id, &module, &err));
	snprintf(want, sizeof(want), "/bin/1.%lld", (long long)(NOW + DAY));
	ck_assert_str_eq(module.path, want);
	ck_assert_int_eq(module.first_s, NOW);
	ck_assert_int_eq(module.last_s, NOW + DAY);
	free(module.path);
}

/* Old days share a bucket in one database, and are separate in the other. */
TEST(merge_of_folded_days_is_exact)
{
	struct mp_module *modules;
	uint64_t total = 0;
	size_t nr;

	for (int i = 0; i < 30; i++)
		collect(a, 1, NOW + i * DAY, 0x1000, 10);
	for (int i = 10; i < 14; i++)
		collect(b, 1, NOW + i * DAY + 7, 0x1000, 10);
	ok(merge(out, b, false));
	ok(merge(out, a, false));
	ok(mp_store_check(out, &err));
	ok(mp_store_list_modules(out, 0, &modules, &nr, &err));
	for (size_t i = 0; i < nr; i++)
		total += modules[i].nr_samples;
	ck_assert_uint_eq(total, 340);
	mp_store_free_modules(modules, nr);
	/* The last days are unchanged. */
	ok(mp_store_list_modules(out, NOW + 27 * DAY, &modules, &nr, &err));
	ck_assert_uint_eq(modules[0].nr_samples, 30);
	mp_store_free_modules(modules, nr);
}

/* Changes one row of database a without the store's code. */
static void damage(const char *sql)
{
	char path[256];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/a.db", dir);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_changes(db), 1);
	sqlite3_close(db);
}

TEST(merge_that_fails_can_be_rolled_back)
{
	collect(out, 1, NOW, 0x1000, 10);
	collect(a, 2, NOW + 1, 0x1000, 10);
	collect(a, 3, NOW + 2, 0x1000, 10);
	damage("UPDATE chunk SET checksum = 0 WHERE key = (SELECT max(key) FROM chunk)");
	ck_assert_int_eq(merge(out, a, false), -EBADMSG);
	ok(mp_store_check(out, &err));
	ok(mp_store_begin(out, &err));
	ok(mp_store_commit(out, &err));
	{
		AUTO_FREE struct mp_session *sessions = NULL;
		size_t nr;

		ok(mp_store_list_sessions(out, &sessions, &nr, &err));
		ck_assert_uint_eq(nr, 1);
	}
	/* Merging needs a transaction, to be undone on failure. */
	ck_assert_int_eq(mp_store_merge(out, b, false, &stats, &err), -EINVAL);
}

TEST_EACH(merge_finds_what_ledgers_do_not_know, 2)
{
	static const struct {
		const char *sql, *what;
	} cases[] = {
		{"DELETE FROM bucket WHERE key = (SELECT max(key) FROM bucket)", "samples that"},
		{"DELETE FROM path_bucket WHERE key = (SELECT max(key) FROM path_bucket)",
		 "paths that"},
	};

	collect(a, 2, NOW + 1, 0x1000, 10);
	collect(a, 3, NOW + 2, 0x1000, 10);
	damage(cases[_i].sql);
	ck_assert_int_eq(merge(out, a, false), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, cases[_i].what));
	ok(mp_store_check(out, &err));
}
