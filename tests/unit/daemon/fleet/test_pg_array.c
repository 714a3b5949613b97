// SPDX-License-Identifier: Apache-2.0
/* test_pg_array - the bytes of PostgreSQL's arrays, keys of modules, and hashed names. */
#include <errno.h>
#include <string.h>

#include "daemon/fleet/file_names.h"
#include "daemon/fleet/module_key.h"
#include "daemon/fleet/pg_array.h"
#include "tests/unit/suite.h"

START_TEST(array_has_the_documented_bytes)
{
	struct md_pg_array array = {.type = MD_PG_INT4};
	static const char want[] = "\0\0\0\1\0\0\0\1\0\0\0\27\0\0\0\3\0\0\0\1"
				   "\0\0\0\4\0\0\1\2\377\377\377\377\0\0\0\4\377\377\377\376";

	md_pg_array_clear(&array);
	md_pg_array_add_number(&array, 258);
	md_pg_array_add_null(&array);
	md_pg_array_add_number(&array, -2);
	ck_assert(!array.failed);
	ck_assert_uint_eq(array.size, sizeof(want) - 1);
	ck_assert_mem_eq(array.bytes, want, sizeof(want) - 1);
	md_pg_array_clear(&array);
	ck_assert_uint_eq(array.size, 20);
	ck_assert_uint_eq(array.bytes[15], 0);
	free(array.bytes);
}
END_TEST

START_TEST(numbers_come_back)
{
	static const int64_t numbers[] = {0, 1, -1, 127, -128, INT64_MAX, INT64_MIN};
	char bytes[8];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		md_pg_put(bytes, numbers[i], 8);
		ck_assert_int_eq(md_pg_get(bytes, 8), numbers[i]);
	}
	md_pg_put(bytes, -128, 1);
	ck_assert_int_eq(md_pg_get(bytes, 1), -128);
}
END_TEST

START_TEST(key_of_a_module_comes_back)
{
	struct mp_id id = {.build_id = {9, 8, 7},
			   .build_id_len = 3,
			   .text_hash = 0xff00000000000001u},
		     back;
	uint8_t key[MD_MODULE_KEY_MAX];

	ck_assert_uint_eq(md_module_key(&id, key), 11);
	ck_assert_uint_eq(key[0], 0xff);
	ck_assert_uint_eq(key[7], 1);
	ck_assert_int_eq(md_module_of_key(key, 11, &back), 0);
	ck_assert(mp_id_equal(&id, &back));
	ck_assert_int_eq(md_module_of_key(key, 7, &back), -EINVAL);
	ck_assert_int_eq(md_module_of_key(key, MD_MODULE_KEY_MAX + 1, &back), -EINVAL);
}
END_TEST

START_TEST(name_is_hashed_or_not_sent)
{
	struct md_file_names names = {.how = MD_NAMES_HASHED};
	char one[MD_NAME_SIZE], two[MD_NAME_SIZE];

	ck_assert_ptr_null(md_file_name(&names, "/usr/bin/secret", one));
	memset(names.salt, 's', 16);
	names.salt_size = 16;
	ck_assert_ptr_nonnull(md_file_name(&names, "/usr/bin/secret", one));
	ck_assert_uint_eq(strlen(one), 33);
	ck_assert_int_eq(one[0], '#');
	ck_assert_uint_eq(strspn(one + 1, "0123456789abcdef"), 32);
	names.salt[0] = 't';
	md_file_name(&names, "/usr/bin/secret", two);
	ck_assert_str_ne(one, two);
	names.how = MD_NAMES_PLAIN;
	ck_assert_str_eq(md_file_name(&names, "/a\n\xff", one), "/a\\x0a\\xff");
	names.how = MD_NAMES_NONE;
	ck_assert_ptr_null(md_file_name(&names, "/usr/bin/secret", one));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("pg_array");
	TCase *tc = tcase_create("bytes");

	tcase_add_test(tc, array_has_the_documented_bytes);
	tcase_add_test(tc, numbers_come_back);
	tcase_add_test(tc, key_of_a_module_comes_back);
	tcase_add_test(tc, name_is_hashed_or_not_sent);
	suite_add_tcase(s, tc);
	return s;
}

MORPH_SUITE_MAIN(suite)
