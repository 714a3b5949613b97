// SPDX-License-Identifier: Apache-2.0
/*
 * test_store_crashes - crashes are counted by module and time, forgotten after a month, and go with their
 * module.
 */
#include <signal.h>

#include "libprof/store/jobs/store_crashes.h"
#include "libprof/store/store_drop.h"
#include "tests/unit/store_fixture.h"

static uint64_t count(struct mp_store *store, int64_t module, int64_t since_s)
{
	uint64_t nr;

	ok(mp_store_count_crashes(store, module, since_s, &nr, &err));
	return nr;
}

FIXTURE(setup, teardown);

TEST(store_counts_crashes_of_a_module_since_a_time)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t one = put(store, 1, 100), two = put(store, 2, 100);

	ok(mp_store_add_crash(store, one, NOW, SIGSEGV, &err));
	ok(mp_store_add_crash(store, one, NOW, SIGSEGV, &err));
	ok(mp_store_add_crash(store, one, NOW + 10, SIGABRT, &err));
	ok(mp_store_add_crash(store, two, NOW + 20, SIGSEGV, &err));
	ck_assert_uint_eq(count(store, one, 0), 3);
	ck_assert_uint_eq(count(store, one, NOW + 10), 1);
	ck_assert_uint_eq(count(store, one, NOW + 11), 0);
	ck_assert_uint_eq(count(store, two, NOW), 1);
	ck_assert_int_eq(mp_store_add_crash(store, one, -1, SIGSEGV, &err), -EINVAL);
	ck_assert_int_eq(mp_store_add_crash(store, one, NOW, 0, &err), -EINVAL);
}

TEST(store_forgets_crashes_after_a_month_and_with_their_module)
{
	AUTO(close_store) struct mp_store *store = open_as(MP_STORE_WRITE);
	int64_t one = put(store, 1, 100), two = put(store, 2, 100);

	ok(mp_store_add_crash(store, one, NOW, SIGSEGV, &err));
	ok(mp_store_add_crash(store, two, NOW + MP_CRASHES_KEPT_S, SIGBUS, &err));
	ck_assert_uint_eq(count(store, one, 0), 1);
	ok(mp_store_add_crash(store, two, NOW + MP_CRASHES_KEPT_S + 1, SIGBUS, &err));
	ck_assert_uint_eq(count(store, one, 0), 0);
	ck_assert_uint_eq(count(store, two, 0), 2);
	ok(mp_store_drop_module(store, two, &err));
	ck_assert_uint_eq(count(store, two, 0), 0);
}

TEST(store_notices_what_another_connection_changed)
{
	struct mp_store *store = open_as(MP_STORE_WRITE), *other = open_as(MP_STORE_WRITE);

	ck_assert(mp_store_was_changed(store));
	ck_assert(!mp_store_was_changed(store));
	put(store, 1, 100);
	ck_assert(!mp_store_was_changed(store));
	put(other, 2, 100);
	ck_assert(mp_store_was_changed(store));
	ck_assert(!mp_store_was_changed(store));
	mp_store_close(other);
	mp_store_close(store);
}
