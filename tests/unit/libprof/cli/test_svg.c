// SPDX-License-Identifier: Apache-2.0
/*
 * test_svg - pictures stay well-formed whatever a name contains; numbers are short and exact;
 * fitted text fits.
 */
#include <math.h>

#include "libprof/cli/svg.h"
#include "tests/unit/suite.h"

static char *buf;
static size_t size;

static FILE *begin(void)
{
	FILE *out;

	free(buf);
	buf = NULL;
	out = open_memstream(&buf, &size);
	ck_assert_ptr_nonnull(out);
	return out;
}

static const char *text(const char *given)
{
	FILE *out = begin();

	mp_svg_put_text(out, given);
	fclose(out);
	return buf;
}

static const char *number(double given)
{
	FILE *out = begin();

	mp_svg_put_number(out, given);
	fclose(out);
	return buf;
}

static void tidy(void)
{
	free(buf);
	buf = NULL;
}

FIXTURE(NULL, tidy);

TEST(svg_text_cannot_become_markup)
{
	ck_assert_str_eq(text("<script>alert(\"1\")&amp;</script>"),
			 "&lt;script&gt;alert(&quot;1&quot;)&amp;amp;&lt;/script&gt;");
	ck_assert_str_eq(text("]]>"), "]]&gt;");
}

TEST(svg_text_shows_control_characters)
{
	ck_assert_str_eq(text("a\nb\x01\x7f\t"), "a\\x0ab\\x01\\x7f\\x09");
	/* Also C1 control characters, which XML 1.0 allows but which are invisible. */
	ck_assert_str_eq(text("a\xc2\x85z"), "a\xef\xbf\xbdz");
}

TEST(svg_text_replaces_what_is_not_utf8)
{
	static const char *const bad[] = {"\x80",
					  "\xbf",
					  "\xc0\x80",
					  "\xc1\xbf",
					  "\xe0\x80\x80",
					  "\xed\xa0\x80",
					  "\xf0\x80\x80\x80",
					  "\xf4\x90\x80\x80",
					  "\xf8\x88\x80\x80\x80",
					  "\xff",
					  "\xc3",
					  "\xe2\x82",
					  "\xf0\x9f\x98"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *p = text(bad[i]);

		ck_assert_uint_gt(strlen(p), 0);
		for (; *p; p += 3)
			ck_assert_msg(!strncmp(p, "\xef\xbf\xbd", 3), "%zu: %s", i, buf);
	}
	/* Only the invalid byte is replaced. */
	ck_assert_str_eq(text("\xc3<"), "\xef\xbf\xbd&lt;");
	ck_assert_str_eq(text("h\xc3\xa9llo \xe2\x86\x92 \xf0\x9f\x98\x80"),
			 "h\xc3\xa9llo \xe2\x86\x92 \xf0\x9f\x98\x80");
}

TEST(svg_text_does_not_turn_the_line_around)
{
	ck_assert_str_eq(text("a\xe2\x80\xaez"), "a\xef\xbf\xbdz"); /* U+202E */
	ck_assert_str_eq(text("a\xe2\x81\xa7z"), "a\xef\xbf\xbdz"); /* U+2067 */
	ck_assert_str_eq(text("a\xef\xbf\xbez"), "a\xef\xbf\xbdz"); /* U+FFFE: forbidden in XML */
}

TEST(svg_numbers_are_short)
{
	ck_assert_str_eq(number(0), "0");
	ck_assert_str_eq(number(-0.001), "0");
	ck_assert_str_eq(number(12), "12");
	ck_assert_str_eq(number(12.5), "12.5");
	ck_assert_str_eq(number(12.05), "12.05");
	ck_assert_str_eq(number(0.25), ".25");
	ck_assert_str_eq(number(-0.5), "-.5");
	ck_assert_str_eq(number(-7.994), "-7.99");
	ck_assert_str_eq(number(99.999), "100");
	ck_assert_str_eq(number(NAN), "0");
	ck_assert_str_eq(number(INFINITY), "0");
	ck_assert_str_eq(number(-1e300), "0");
}

TEST(svg_put_knows_its_three_directives)
{
	FILE *out = begin();

	mp_svg_put(out, "<a x=\"%n\" w=\"100%%\">%t%s</a>", 1.5, "<", "<b/>");
	fclose(out);
	ck_assert_str_eq(buf, "<a x=\"1.5\" w=\"100%\">&lt;<b/></a>");
}

TEST(svg_counts_and_shares_read_well)
{
	char b[32];

	ck_assert_str_eq(mp_svg_format_count(0, b), "0");
	ck_assert_str_eq(mp_svg_format_count(999, b), "999");
	ck_assert_str_eq(mp_svg_format_count(1000, b), "1,000");
	ck_assert_str_eq(mp_svg_format_count(UINT64_MAX, b), "18,446,744,073,709,551,615");
	ck_assert_str_eq(mp_svg_format_share(0, b), "0 %");
	ck_assert_str_eq(mp_svg_format_share(0.123456, b), "12.3 %");
	ck_assert_str_eq(mp_svg_format_share(0.0005, b), "0.05 %");
	ck_assert_str_eq(mp_svg_format_share(0.00001, b), "<0.01 %");
	ck_assert_str_eq(mp_svg_format_share(1, b), "100.0 %");
}

TEST(svg_fitted_text_is_no_wider_than_asked)
{
	static const char *const names[] = {"main", "sqlite3VdbeExec", "WWWWWWWWWWWWWWWW",
					    "iiiiiiiiiiiiiiii", "h\xc3\xa9llo\xe2\x86\x92\x01\xff"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		double whole = mp_svg_text_width(names[i], 13);

		for (double width = 0; width < whole + 20; width += 3) {
			char *fit = mp_svg_fit_text(names[i], 13, width);

			if (!fit) {
				ck_assert(width < whole);
				continue;
			}
			ck_assert_msg(mp_svg_text_width(fit, 13) <= width + 2, "%s: %f", fit,
				      width);
			ck_assert(width < whole || !strcmp(fit, names[i]));
			free(fit);
		}
	}
	ck_assert_ptr_null(mp_svg_fit_text("", 13, 100));
	ck_assert_ptr_null(mp_svg_fit_text("abc", 13, 5));
}
