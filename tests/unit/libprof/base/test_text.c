// SPDX-License-Identifier: Apache-2.0
/*
 * test_text - names from files reach a terminal without control sequences; long messages keep
 * their reasons.
 */
#include "tests/unit/suite.h"

#include "libprof/base/err.h"
#include "libprof/base/text.h"

static const char *escaped(const char *text)
{
	static char buf[256];

	return mp_text_escape(text, buf, sizeof(buf));
}

TEST(text_that_is_printable_stays)
{
	ck_assert_str_eq(escaped("main.cold [a b]"), "main.cold [a b]");
	ck_assert_str_eq(escaped("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
			 "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(text_that_controls_a_terminal_is_escaped)
{
	ck_assert_str_eq(escaped("a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
	ck_assert_str_eq(escaped("\x7f"), "\\x7f");
	/* CSI as one character, a change of direction, a line separator. */
	ck_assert_str_eq(escaped("\xc2\x9b"
				 "1m"),
			 "\\xc2\\x9b1m");
	ck_assert_str_eq(escaped("\xe2\x80\xae"), "\\xe2\\x80\\xae");
	ck_assert_str_eq(escaped("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");
}

TEST(text_that_is_no_utf8_is_escaped)
{
	ck_assert_str_eq(escaped("\xff\x80"), "\\xff\\x80");
	ck_assert_str_eq(escaped("\xc3"), "\\xc3");
	ck_assert_str_eq(escaped("\xc0\xaf"), "\\xc0\\xaf"); /* overlong */
	/* half of a surrogate pair */
	ck_assert_str_eq(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");
	ck_assert_str_eq(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80"); /* beyond Unicode */
}

TEST(output_keeps_lines_and_loses_what_controls_a_terminal)
{
	static const char in[] = "a\tb\n\x1b[31m\xc2\x9b\xe2\x80\xae\x9b\x7f\r\xc3\xa9\xc3";
	char out[sizeof(in) * MP_TEXT_FILTER_MAX + 1];
	size_t taken, nr = mp_text_filter(in, sizeof(in) - 1, out, &taken);

	out[nr] = '\0';
	ck_assert_str_eq(out, "a\tb\n\\x1b[31m\\u009b\\u202e\\x9b\\u007f\\x0d\xc3\xa9");
	/* The beginning of a character waits for the rest. */
	ck_assert_uint_eq(taken, sizeof(in) - 2);
	nr = mp_text_filter("\xe2\x41", 2, out, &taken);
	ck_assert_uint_eq(taken, 2);
	ck_assert_uint_eq(nr, 5);
}

TEST(text_is_cut_behind_a_whole_character)
{
	char buf[6];

	ck_assert_str_eq(mp_text_escape("abcd\xc3\xa9", buf, sizeof(buf)), "abcd");
	ck_assert_str_eq(mp_text_escape("ab\n", buf, sizeof(buf)), "ab");
	ck_assert_str_eq(mp_text_escape("", buf, sizeof(buf)), "");
}

TEST(message_has_room_for_the_longest_path)
{
	char path[4096];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	ck_assert_int_eq(mp_err_set(&err, EPERM, "%s: the reason", path), -EPERM);
	ck_assert_mem_eq(err.msg, path, sizeof(path) - 1);
	ck_assert_str_eq(err.msg + sizeof(path) - 1, ": the reason");
}

TEST(message_that_is_too_long_keeps_both_ends)
{
	char path[16384];
	size_t len;

	memset(path, 1, sizeof(path) - 1); /* each byte becomes four when escaped */
	path[sizeof(path) - 1] = '\0';
	mp_err_set(&err, EPERM, "/a%s: the reason", path);
	len = strlen(err.msg);
	ck_assert_uint_lt(len, sizeof(err.msg));
	ck_assert_ptr_nonnull(strstr(err.msg, "[...]"));
	ck_assert_int_eq(strncmp(err.msg, "/a\\x01", 6), 0);
	ck_assert_str_eq(err.msg + len - strlen(": the reason"), ": the reason");
}

TEST(message_escapes_what_names_hold)
{
	mp_err_set(&err, EPERM, "%s: refused", "a\x1b]0;title\x07\nmorphd: all is well");
	ck_assert_str_eq(err.msg, "a\\x1b]0;title\\x07\\x0amorphd: all is well: refused");
}
