// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_fingerprint - fingerprints in the store: separate from counts, found by path and
 * name, merged, checked.
 */
#include "libprof/store/store_fingerprint.h"

#include "libprof/store/whole/store_merge.h"
#include "tests/unit/store_fixture.h"

static struct mp_print_func funcs[2] = {
	{.vaddr = 0x1000, .name = 7, .full = 9, .nr_blocks = 3, .entry = MP_NONE},
	{.vaddr = 0x2000, .full = 11, .nr_blocks = 1, .first_block = 0, .entry = MP_NONE}};
static const struct mp_fingerprint sample = {.funcs = funcs, .nr_funcs = 2};

static int64_t module_at(struct mp_store *store, unsigned int n, const char *path, int64_t when_s)
{
	struct mp_ip_count count = {0x1000, 5};
	struct mp_id id = id_of(n);
	int64_t key = 0;

	ok(mp_store_put_module(store, &id, MP_MODULE_FILE, path, 4096, when_s, &key, &err));
	ok(mp_store_add_ip_counts(store, key, when_s, &count, 1, &err));
	return key;
}

FIXTURE(setup, teardown);

TEST(fingerprint_is_kept_beside_the_counts)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = module_at(store, 1, "/usr/bin/x", NOW), made_s;
	struct mp_fingerprint print;
	AUTO_FREE struct mp_ip_count *counts = NULL;
	size_t nr, size;

	ck_assert_int_eq(mp_store_read_fingerprint(store, module, &print, &err), -ENOENT);
	ok(mp_store_fingerprint_time(store, module, &made_s, &err));
	ck_assert_int_eq(made_s, 0);
	ok(mp_store_put_fingerprint(store, module, NOW, &sample, NULL, &err));
	ok(mp_store_put_fingerprint(store, module, NOW + 5, &sample, &size, &err));
	ck_assert_uint_gt(size, 10);
	ok(mp_store_fingerprint_time(store, module, &made_s, &err));
	ck_assert_int_eq(made_s, NOW + 5);
	ok(mp_store_read_fingerprint(store, module, &print, &err));
	ck_assert_uint_eq(print.nr_funcs, 2);
	ck_assert_uint_eq(print.funcs[0].name, 7);
	ck_assert_uint_eq(print.funcs[1].vaddr, 0x2000);
	mp_fingerprint_fini(&print);
	ok(mp_store_read_ip_counts(store, module, 0, &counts, &nr, &err));
	ck_assert_uint_eq(nr, 1);
	ck_assert_uint_eq(counts[0].count, 5);
}

static void expect_other(struct mp_store *store, unsigned int n, const char *path, int64_t key)
{
	struct mp_id id = id_of(n);
	struct mp_module other;
	int r = mp_store_find_other_build(store, &id, path, &other, &err);

	ck_assert_int_eq(r, key ? 0 : -ENOENT);
	ck_assert_int_eq(other.key, key);
	free(other.path);
}

TEST(fingerprint_finds_the_nearest_other_build)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t a = module_at(store, 1, "/usr/bin/x", NOW);
	int64_t b = module_at(store, 2, "/usr/bin/x", NOW + 9);
	int64_t c = module_at(store, 3, "/opt/x", NOW + 20);
	int64_t d = module_at(store, 4, "/usr/lib/libz.so.1.2.3", NOW);

	expect_other(store, 9, "/usr/bin/x", 0);
	ok(mp_store_put_fingerprint(store, a, NOW, &sample, NULL, &err));
	ok(mp_store_put_fingerprint(store, d, NOW, &sample, NULL, &err));
	/* The later one has no fingerprint yet. */
	expect_other(store, 9, "/usr/bin/x", a);
	ok(mp_store_put_fingerprint(store, b, NOW, &sample, NULL, &err));
	ok(mp_store_put_fingerprint(store, c, NOW, &sample, NULL, &err));
	/*
	 * A module with the same path is preferred to one with the same name, and a later one
	 * to an earlier one.
	 */
	expect_other(store, 9, "/usr/bin/x", b);
	expect_other(store, 9, "/home/x", c);
	/* Not the module itself. */
	expect_other(store, 2, "/usr/bin/x", a);
	/* The version after .so may differ. */
	expect_other(store, 9, "/lib/libz.so.1.2.9", d);
	expect_other(store, 9, "/lib/libzz.so.1", 0);
	expect_other(store, 9, "/usr/bin/y", 0);
}

TEST(fingerprint_goes_along_when_databases_are_merged)
{
	struct mp_store *in = open_as(MP_STORE_WRITE), *out;
	int64_t module = module_at(in, 1, "/usr/bin/x", NOW), made_s;
	struct mp_session session = start(in);
	struct mp_ledger ledger = {.emitted = 5, .attributed = 5};
	struct mp_merge_stats stats;
	struct mp_module found;
	struct mp_id id = id_of(1);
	char other[256];

	ok(mp_store_put_fingerprint(in, module, NOW, &sample, NULL, &err));
	ok(mp_store_add_ledger(in, session.key, NOW, &ledger, &err));
	ok(mp_store_check(in, &err));
	snprintf(other, sizeof(other), "%s/other.db", dir);
	ok(mp_store_open(other, MP_STORE_WRITE, &out, &err));
	ok(mp_store_begin(in, &err));
	ok(mp_store_begin(out, &err));
	ok(mp_store_merge(out, in, false, &stats, &err));
	ok(mp_store_commit(out, &err));
	mp_store_rollback(in);
	ok(mp_store_find_module(out, &id, &found, &err));
	ok(mp_store_fingerprint_time(out, found.key, &made_s, &err));
	ck_assert_int_eq(made_s, NOW);
	ok(mp_store_check(out, &err));
	free(found.path);
	mp_store_close(out);
	mp_store_close(in);
}

TEST(fingerprint_that_is_damaged_is_refused)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t module = module_at(store, 1, "/usr/bin/x", NOW);
	struct mp_fingerprint print;

	ok(mp_store_put_fingerprint(store, module, NOW, &sample, NULL, &err));
	ck_assert_int_eq(sqlite3_exec(store->db, "UPDATE fingerprint SET data = data || x'00'",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	ck_assert_int_eq(mp_store_read_fingerprint(store, module, &print, &err), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(err.msg, "checksum"));
	ck_assert_int_eq(sqlite3_exec(store->db, "UPDATE fingerprint SET module = 99", NULL, NULL,
				      NULL),
			 SQLITE_OK);
	ck_assert_int_eq(mp_store_check(store, &err), -EBADMSG);
}
