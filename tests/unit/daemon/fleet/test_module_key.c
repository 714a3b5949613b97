// SPDX-License-Identifier: Apache-2.0
/* test_module_key - bytes in hex, keys of modules, and hashed names. */

#include "daemon/fleet/file_names.h"
#include "daemon/fleet/module_key.h"
#include "tests/unit/suite.h"

TEST(hex_comes_back)
{
	uint8_t bytes[MP_BUILD_ID_MAX];
	char hex[9];

	ck_assert_uint_eq(md_hex_read("00ff7a", bytes, 4), 3);
	md_hex_write(bytes, 3, hex);
	ck_assert_str_eq(hex, "00ff7a");
	ck_assert_uint_eq(md_hex_read("\\x0102", bytes, 2), 2);
	ck_assert_uint_eq(bytes[1], 2);
	ck_assert_uint_eq(md_hex_read("010203", bytes, 2), 0);
	ck_assert_uint_eq(md_hex_read("012", bytes, 4), 0);
	ck_assert_uint_eq(md_hex_read("0g", bytes, 4), 0);
	ck_assert_uint_eq(md_build_id_parse("0102", bytes), 2);
	ck_assert_uint_eq(md_build_id_parse("01", bytes), 0);
}

TEST(key_of_a_module_comes_back)
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
	ck_assert_int_eq(md_module_of_text("\\xff000000000000010908ff", &back), 0);
	ck_assert_uint_eq(back.build_id_len, 3);
	ck_assert_int_eq(md_module_of_key(key, 7, &back), -EINVAL);
	ck_assert_int_eq(md_module_of_key(key, MD_MODULE_KEY_MAX + 1, &back), -EINVAL);
}

TEST(name_is_hashed_or_not_sent)
{
	struct md_file_names names = {.how = MD_NAMES_HASHED};
	char one[MD_NAME_SIZE], two[MD_NAME_SIZE], path[4096];

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
	/* Escaped, this one is longer than what the server takes. */
	memset(path, '\n', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	ck_assert_uint_eq(strlen(md_file_name(&names, path, one)), 4096);
	names.how = MD_NAMES_NONE;
	ck_assert_ptr_null(md_file_name(&names, "/usr/bin/secret", one));
}
