// SPDX-License-Identifier: Apache-2.0
/* test_grow - arrays keep their elements as they grow, and stay as they are where they cannot. */
#include "libprof/base/grow.h"

#include <stdlib.h>

#include "tests/unit/suite.h"

TEST(elements_stay)
{
	uint32_t *list = NULL, nr = 0, room = 0;

	for (uint32_t i = 0; i < 10000; i++)
		ck_assert_int_eq(mp_push(list, nr, room, 3 * i), 0);
	ck_assert_uint_eq(nr, 10000);
	ck_assert_uint_ge(room, nr);
	for (uint32_t i = 0; i < nr; i++)
		ck_assert_uint_eq(list[i], 3 * i);
	free(list);
}

TEST(an_array_with_room_does_not_move)
{
	uint64_t *list = NULL;
	size_t room = 0;
	void *before;

	ck_assert_int_eq(mp_grow(list, room, 100), 0);
	ck_assert_uint_ge(room, 100);
	before = list;
	ck_assert_int_eq(mp_grow(list, room, room), 0);
	ck_assert_ptr_eq(list, before);
	free(list);
}

TEST(what_does_not_fit_is_no_memory)
{
	struct {
		char bytes[1 << 20];
	} *list = NULL;
	uint8_t *small = NULL, nr = 0, small_room = 0;
	uint64_t room = 0;

	ck_assert_int_eq(mp_grow(list, room, UINT64_MAX), -ENOMEM);
	ck_assert_int_eq(mp_grow(list, room, UINT64_MAX / (1 << 20) + 1), -ENOMEM);
	ck_assert_ptr_null(list);
	ck_assert_uint_eq(room, 0);
	/* The number that counts the room has an end, too. */
	while (nr < UINT8_MAX - 1)
		ck_assert_int_eq(mp_push(small, nr, small_room, 7), 0);
	ck_assert_int_eq(mp_push(small, nr, small_room, 7), -ENOMEM);
	ck_assert_uint_eq(nr, UINT8_MAX - 1);
	free(small);
}

TEST(what_is_new_is_zero)
{
	uint16_t *list = NULL;
	uint32_t room = 0;

	for (uint32_t nr = 1; nr < 3000; nr += 7) {
		ck_assert_int_eq(mp_grow_zeroed(list, room, nr), 0);
		for (uint32_t i = nr; i < room; i++)
			ck_assert_uint_eq(list[i], 0);
		list[nr - 1] = 9;
		ck_assert_uint_eq(list[0], 9);
	}
	free(list);
}

TEST(an_array_of_nothing_is_no_error)
{
	const volatile size_t too_many = SIZE_MAX / 2;
	uint32_t *list = NULL;

	ck_assert_int_eq(mp_resize(list, 3), 0);
	list[2] = 7;
	ck_assert_int_eq(mp_resize(list, too_many), -ENOMEM);
	ck_assert_uint_eq(list[2], 7);
	ck_assert_int_eq(mp_resize(list, 0), 0);
	ck_assert_ptr_nonnull(list);
	free(list);
}
