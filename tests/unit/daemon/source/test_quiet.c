// SPDX-License-Identifier: Apache-2.0
/* test_quiet - waits grow while nothing happens, to at most one wake-up a second, and are short again then. */
#include "daemon/source/quiet.h"

#include "tests/unit/suite.h"

TEST(quiet_waits_grow_to_a_second)
{
	int quiet_ms = 0, waits_ms = 0;

	ck_assert_int_eq(md_quiet_wait(&quiet_ms, false, 100), 100);
	ck_assert_int_eq(md_quiet_wait(&quiet_ms, true, 100), 250);
	ck_assert_int_eq(md_quiet_wait(&quiet_ms, true, 100), 500);
	ck_assert_int_eq(md_quiet_wait(&quiet_ms, true, 100), 1000);
	/* Less than two wake-ups a second, however long it is quiet. */
	for (int i = 0; i < 1000; i++)
		waits_ms += md_quiet_wait(&quiet_ms, true, 100);
	ck_assert_int_ge(waits_ms, 1000 * 501);
	ck_assert_int_eq(quiet_ms, MD_QUIET_LONGEST_MS);
}

TEST(an_event_makes_waits_short_again)
{
	int quiet_ms = 0;

	for (int i = 0; i < 5; i++)
		md_quiet_wait(&quiet_ms, true, 100);
	ck_assert_int_eq(md_quiet_wait(&quiet_ms, false, 100), 100);
	ck_assert_int_eq(md_quiet_wait(&quiet_ms, true, 100), 250);
}

TEST(who_asks_for_no_wait_or_a_longer_one_gets_it)
{
	int quiet_ms = 0;

	ck_assert_int_eq(md_quiet_wait(&quiet_ms, true, 0), 0);
	ck_assert_int_eq(md_quiet_wait(&quiet_ms, true, 5000), 5000);
	ck_assert_int_eq(md_quiet_wait(&quiet_ms, true, -1), -1);
}
