// SPDX-License-Identifier: Apache-2.0
/* test_json - strings of any bytes become valid JSON; valid text is unchanged. */

#include "libprof/cli/json.h"
#include "tests/unit/suite.h"

static void becomes(const char *text, const char *want)
{
	json_t *string = mp_json_string(text);

	ck_assert_ptr_nonnull(string);
	ck_assert_str_eq(json_string_value(string), want);
	json_decref(string);
}

TEST(json_keeps_what_is_utf8)
{
	becomes("", "");
	becomes("/usr/bin/a b\"\\", "/usr/bin/a b\"\\");
	becomes("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(json_replaces_only_what_is_not)
{
	becomes("a\xff"
		"b",
		"a\xef\xbf\xbd"
		"b");
	becomes("\xc3\xbc\xff", "\xc3\xbc\xef\xbf\xbd");
	becomes("\xc3", "\xef\xbf\xbd");
	becomes("\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd");
	becomes("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"); /* overlong */
	/* half of a surrogate pair */
	becomes("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(json_takes_any_bytes)
{
	char text[256];

	srandom(1);
	for (int i = 0; i < 2000; i++) {
		size_t nr = (size_t)random() % sizeof(text);
		json_t *string, *again;
		char *dump;

		for (size_t k = 0; k < nr; k++)
			text[k] = (char)(random() % 255 + 1);
		text[nr ? nr - 1 : 0] = '\0';
		string = mp_json_string(text);
		ck_assert_ptr_nonnull(string);
		dump = json_dumps(string, JSON_ENCODE_ANY);
		again = json_loads(dump, JSON_DECODE_ANY, NULL);
		ck_assert(again && json_equal(string, again));
		free(dump);
		json_decref(again);
		json_decref(string);
	}
}

TEST(json_object_says_schema_and_command)
{
	json_t *root = mp_json_new(3, "query");

	ck_assert_int_eq(json_integer_value(json_object_get(root, "schema")), 3);
	ck_assert_str_eq(json_string_value(json_object_get(root, "command")), "query");
	json_decref(root);
}
