// SPDX-License-Identifier: Apache-2.0
/* test_packages - places of packages, and indexes of Debian archives with sound and hostile entries. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/fleet/packages/package_contents.h"
#include "daemon/fleet/packages/package_index.h"
#include "daemon/fleet/packages/packages.h"
#include "tests/unit/suite.h"

#define BUILD_ID "00112233445566778899aabbccddeeff00112233"

static const struct md_package_look nobody;

/* A file with @text. Ownership: unlink() and free(). */
static char *text_file(const char *text)
{
	char *path = strdup("/tmp/test_packages.XXXXXX");
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return path;
}

static int read_text(const char *text, const struct md_package_query *query,
		     struct md_package_entry **entries, size_t *nr)
{
	char *path = text_file(text);
	struct mp_err err = {""};
	int r = md_package_index_read(path, query, "/tmp", &nobody, entries, nr, &err);

	ck_assert(!r == !err.msg[0]);
	unlink(path);
	free(path);
	return r;
}

START_TEST(entry_with_the_build_id_is_found)
{
	static const char text[] =
		"Package: first\nVersion: 1\nArchitecture: amd64\nBuild-Ids: 0011\n\n"
		"Package: second-dbgsym\nVersion: 1:2~rc1-3+b1\nArchitecture: amd64\n"
		"Depends: second (= 1:2~rc1-3+b1)\nBuild-Ids: 4455 " BUILD_ID " 6677\n"
		"Filename: pool/s.deb\nSize: 12\n"
		"SHA256: 000102030405060708090A0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n\n"
		"Package: third\nVersion: 1\nArchitecture: arm64\nBuild-Ids: " BUILD_ID "\n\n"
		"Package: fourth\nVersion: 1\nArchitecture: amd64\nBuild-Ids:\n " BUILD_ID "\n";
	const struct md_package_query query = {.build_id = BUILD_ID};
	struct md_package_entry *e;
	size_t nr;

	ck_assert_int_eq(read_text(text, &query, &e, &nr), 0);
	ck_assert_uint_eq(nr, 2);
	ck_assert_str_eq(e[0].is.name, "second-dbgsym");
	ck_assert_str_eq(e[0].is.version, "1:2~rc1-3+b1");
	ck_assert_str_eq(e[0].filename, "pool/s.deb");
	ck_assert_uint_eq(e[0].size, 12);
	ck_assert(e[0].has_sha256 && e[0].has_build_id);
	for (int i = 0; i < MD_SHA256_SIZE; i++)
		ck_assert_int_eq(e[0].sha256[i], i);
	ck_assert_str_eq(e[1].is.name, "fourth");
	free(e);
}
END_TEST

START_TEST(entry_is_found_by_name_and_version)
{
	static const char text[] = "Package: a\nVersion: 1\nArchitecture: amd64\n\n"
				   "Package: a\nVersion: 2\nArchitecture: amd64\n\n"
				   "Package: ab\nVersion: 2\nArchitecture: amd64\n\n";
	const struct md_package_name exact = {"a", "2"}, any = {"a", ""};
	struct md_package_query query = {.names = &exact, .nr_names = 1};
	struct md_package_entry *e;
	size_t nr;

	ck_assert_int_eq(read_text(text, &query, &e, &nr), 0);
	ck_assert_uint_eq(nr, 1);
	ck_assert_str_eq(e[0].is.version, "2");
	free(e);
	query.names = &any;
	ck_assert_int_eq(read_text(text, &query, &e, &nr), 0);
	ck_assert_uint_eq(nr, 2);
	free(e);
}
END_TEST

START_TEST(hostile_entries_are_left_out)
{
	static const char *const names[] = {"../x", "a/../../x", "/etc/passwd", "..",	  "a/..",
					    "a b",  "a\tb",	 "a\x80",	"a\x1b[m"};
	const struct md_package_name a = {"a", ""};
	const struct md_package_query query = {.names = &a, .nr_names = 1};
	struct md_package_entry *e;
	char text[200];
	size_t nr;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text),
			 "Package: a\nVersion: 1\nArchitecture: amd64\nFilename: %s\n", names[i]);
		ck_assert_int_eq(read_text(text, &query, &e, &nr), 0);
		ck_assert_msg(!nr, "%s", names[i]);
		free(e);
	}
	ck_assert_int_eq(read_text("Package: a\nFilename: ./a..b/c...deb\n", &query, &e, &nr), 0);
	ck_assert_uint_eq(nr, 1);
	free(e);
	ck_assert_int_eq(read_text("Package: a\nno field\n", &query, &e, &nr), -EBADMSG);
	ck_assert_int_eq(read_text("Package: a\nVersion: cut sh", &query, &e, &nr), -EBADMSG);
	ck_assert_int_eq(read_text("", &query, &e, &nr), 0);
	ck_assert_uint_eq(nr, 0);
	free(e);
}
END_TEST

START_TEST(long_values_and_many_entries_are_bounded)
{
	const struct md_package_query query = {.build_id = BUILD_ID};
	struct md_package_entry *e;
	FILE *f;
	char *text;
	size_t size, nr;

	f = open_memstream(&text, &size);
	for (int i = 0; i < 1000; i++)
		fprintf(f, "Package: p%d\nVersion: %0*d\nBuild-Ids: %s\n\n", i, i % 400, 1,
			BUILD_ID);
	/* A long line of build-ids is read whole. */
	fclose(f);
	ck_assert_int_eq(read_text(text, &query, &e, &nr), 0);
	ck_assert_uint_eq(nr, 256);
	/* A version that does not fit is left out; it is not cut. */
	ck_assert_str_eq(e[200].is.version, "");
	free(e);
	free(text);
	f = open_memstream(&text, &size);
	fprintf(f, "Package: kernel\nBuild-Ids:");
	for (int i = 0; i < 20000; i++)
		fprintf(f, " %040d", i);
	fprintf(f, " " BUILD_ID "\n");
	fclose(f);
	ck_assert_int_eq(read_text(text, &query, &e, &nr), 0);
	ck_assert_uint_eq(nr, 1);
	free(e);
	free(text);
}
END_TEST

START_TEST(dependencies_have_exact_versions)
{
	struct md_package_name names[4];

	ck_assert_uint_eq(
		md_package_depends("a (= 1:2-3), b (>= 4), c, d:amd64 (=5)|e (= 6 )", names, 4), 3);
	ck_assert_str_eq(names[0].name, "a");
	ck_assert_str_eq(names[0].version, "1:2-3");
	ck_assert_str_eq(names[1].name, "d");
	ck_assert_str_eq(names[1].version, "5");
	ck_assert_str_eq(names[2].name, "e");
	ck_assert_str_eq(names[2].version, "6");
	ck_assert_uint_eq(md_package_depends("a (= 1), b (= 1), c (= 1)", names, 2), 2);
	ck_assert_uint_eq(md_package_depends("(= 1), (=), a (= , b (=)", names, 4), 0);
	ck_assert_uint_eq(md_package_depends("", names, 4), 0);
}
END_TEST

/* Return: the names of packages that have @wanted, each followed by a space. */
static const char *contents(const char *text, const char *wanted, const struct md_file_names *names)
{
	static char found[1000];
	struct md_package_name packages[4];
	char *path = text_file(text);
	struct mp_err err = {""};
	size_t nr;
	int r = md_package_contents_read(path, wanted, names, "/tmp", &nobody, packages, 4, &nr,
					 &err);

	unlink(path);
	free(path);
	ck_assert_msg(!r, "%s", err.msg);
	found[0] = '\0';
	for (size_t i = 0; i < nr; i++) {
		strcat(found, packages[i].name);
		strcat(found, " ");
	}
	return found;
}

START_TEST(contents_name_packages)
{
	static const char text[] =
		"usr/bin/a b\t  utils/with-space\nbin/tool   non-free/utils/one,utils/two\n"
		"usr/sbin/tool x/three\nusr/share/tool x/four\nnothing\nusr/bin/evil x/E..vil,x/\n";
	struct md_file_names names = {.how = MD_NAMES_NONE, .salt = "0123456789abcdef"};
	char hash[MD_NAME_SIZE];

	ck_assert_str_eq(contents(text, "/usr/bin/a b", &names), "with-space ");
	ck_assert_str_eq(contents(text, "/usr/bin/tool", &names), "one two ");
	ck_assert_str_eq(contents(text, "/bin/tool", &names), "one two ");
	ck_assert_str_eq(contents(text, "/usr/sbin/tool", &names), "three ");
	ck_assert_str_eq(contents(text, "/usr/share/tool", &names), "four ");
	ck_assert_str_eq(contents(text, "/tool", &names), "");
	ck_assert_str_eq(contents(text, "/usr/bin/evil", &names), "");
	names.salt_size = 16;
	names.how = MD_NAMES_HASHED;
	ck_assert_str_eq(contents(text, md_file_name(&names, "/usr/bin/tool", hash), &names),
			 "one two ");
	ck_assert_str_eq(contents(text, md_file_name(&names, "/usr/bin/other", hash), &names), "");
}
END_TEST

START_TEST(places_are_checked)
{
	static const char *const wrong[] = {"",
					    "  ",
					    "ftp://127.0.0.1/debian",
					    "/nowhere/at/all",
					    "/tmp ../x",
					    "/tmp a/../../x",
					    "http://name:secret@127.0.0.1/debian",
					    "https://name@127.0.0.1 bookworm",
					    "/tmp /x",
					    "http://127.0.0.1/ x main?y",
					    "/tmp x 1 2 3 4 5 6 7 8 9"};
	struct md_packages p = {.nr = 0};
	struct mp_err err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(md_packages_add(&p, wrong[i], &err) < 0, "%s", wrong[i]);
	ck_assert_uint_eq(p.nr, 0);
	ck_assert_int_eq(md_packages_add(&p,
					 "http://127.0.0.1/debian// bookworm/updates main contrib",
					 &err),
			 0);
	ck_assert_str_eq(p.places[0].base, "http://127.0.0.1/debian");
	ck_assert_str_eq(p.places[0].suite, "bookworm/updates");
	ck_assert_uint_eq(p.places[0].nr_components, 2);
	ck_assert(p.places[0].is_url);
	ck_assert_int_eq(md_packages_add(&p, "/tmp/../tmp", &err), 0);
	ck_assert_str_eq(p.places[1].base, "/tmp");
	ck_assert_ptr_null(p.places[1].suite);
	ck_assert_int_eq(md_packages_add(&p, "/tmp bookworm", &err), 0);
	ck_assert_str_eq(p.places[2].components[0], "main");
	ck_assert_int_eq(md_packages_add(&p, "http://127.0.0.1/flat@2 ./", &err), 0);
	ck_assert_ptr_null(p.places[3].suite);
	while (p.nr < MD_PACKAGE_PLACES_MAX)
		ck_assert_int_eq(md_packages_add(&p, "/tmp", &err), 0);
	ck_assert_int_eq(md_packages_add(&p, "/tmp", &err), -E2BIG);
	md_packages_fini(&p);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("packages");
	TCase *tc = tcase_create("indexes");

	tcase_add_test(tc, entry_with_the_build_id_is_found);
	tcase_add_test(tc, entry_is_found_by_name_and_version);
	tcase_add_test(tc, hostile_entries_are_left_out);
	tcase_add_test(tc, long_values_and_many_entries_are_bounded);
	tcase_add_test(tc, dependencies_have_exact_versions);
	tcase_add_test(tc, contents_name_packages);
	tcase_add_test(tc, places_are_checked);
	suite_add_tcase(s, tc);
	return s;
}

MORPH_SUITE_MAIN(suite)
