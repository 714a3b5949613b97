// SPDX-License-Identifier: Apache-2.0
#include "libprof/base/search.h"

#include <stdint.h>

#include "tests/unit/suite.h"

TEST(finds_the_first_that_is_not_before)
{
	static const uint64_t v[] = {2, 4, 4, 7};

	ck_assert_uint_eq(mp_search(i, 0, 4, v[i] < 4), 1);
	ck_assert_uint_eq(mp_search(i, 0, 4, v[i] <= 4), 3);
	ck_assert_uint_eq(mp_search(i, 0, 4, v[i] < 2), 0);
	ck_assert_uint_eq(mp_search(i, 0, 4, v[i] < 9), 4);
}

TEST(searches_only_where_it_is_told)
{
	static const uint64_t v[] = {9, 1, 2, 0};

	ck_assert_uint_eq(mp_search(i, 1, 3, v[i] < 2), 2);
	ck_assert_uint_eq(mp_search(i, 1, 3, v[i] < 5), 3);
	ck_assert_uint_eq(mp_search(i, 2, 2, v[i] < 5), 2);
}

TEST(indexes_do_not_overflow)
{
	const uint32_t nr = UINT32_MAX;

	ck_assert_uint_eq(mp_search(i, 0, nr, i < nr - 2), nr - 2);
}
