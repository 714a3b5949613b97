// SPDX-License-Identifier: Apache-2.0
/* test_since - the forms that --since accepts. */
#include <time.h>

#include "libprof/cli/since.h"
#include "tests/unit/suite.h"

/* 2026-11-20 14:30:00 UTC */
#define NOW 1795185000LL

static int64_t since(const char *text)
{
	int64_t s = -1;

	ck_assert_msg(mp_since_parse(text, NOW, &s) == 0, "%s", text);
	return s;
}

static void setup(void)
{
	setenv("TZ", "UTC", 1);
	tzset();
}

FIXTURE(setup, NULL);

TEST(since_takes_spans)
{
	ck_assert_int_eq(since("90s"), NOW - 90);
	ck_assert_int_eq(since("10m"), NOW - 600);
	ck_assert_int_eq(since("2h"), NOW - 7200);
	ck_assert_int_eq(since("3d"), NOW - 3 * 86400);
	ck_assert_int_eq(since("1w"), NOW - 7 * 86400);
	/* Long ago enough to include everything, but not 0, which means "not given". */
	ck_assert_int_eq(since("99999w"), 1);
}

TEST(since_takes_dates)
{
	ck_assert_int_eq(since("2026-11-20"), NOW - 14 * 3600 - 1800);
	ck_assert_int_eq(since("2026-11-20 14:00"), NOW - 1800);
	ck_assert_int_eq(since("2026-11-20T14:29:59"), NOW - 1);
	ck_assert_int_eq(since("today"), NOW - 14 * 3600 - 1800);
	ck_assert_int_eq(since("yesterday"), NOW - 14 * 3600 - 1800 - 86400);
	ck_assert_int_eq(since("@1234"), 1234);
}

TEST(since_reads_dates_in_local_time)
{
	setenv("TZ", "XXX-3", 1); /* three hours east */
	tzset();
	ck_assert_int_eq(since("2026-11-20 14:00"), NOW - 1800 - 3 * 3600);
}

TEST(since_refuses_the_rest)
{
	static const char *const bad[] = {
		"",
		"h",
		"2",
		"2x",
		"2hh",
		"-2h",
		"+2h",
		"2.5h",
		" 2h",
		"2026-13-01",
		"2026-06-31",
		"2026-11-20 25:00",
		"2026-11-20x",
		"@",
		"@x",
		"@0",
		"@1x",
		"tomorrow",
		"99999999999999999999d",
		"9223372036854775807w",
		"1969-01-01",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t s;

		ck_assert_msg(mp_since_parse(bad[i], NOW, &s) == -EINVAL, "'%s'", bad[i]);
	}
}
