// SPDX-License-Identifier: Apache-2.0
/* test_lease - leases come back from their file, end in time, and a damaged file is refused. */
#include <sys/stat.h>

#include "daemon/fleet/rollout/lease.h"
#include "tests/unit/suite.h"

static char dir[] = "/tmp/test_lease.XXXXXX";

static struct md_lease lease(const char *path, int64_t expires_s)
{
	struct md_lease l = {
		.id = {.text_hash = 0x0102030405060708, .build_id = {0xab}, .build_id_len = 1},
		.options = "--layout=x",
		.version = "1.2",
		.release = 7,
		.granted_s = 1000,
		.expires_s = expires_s};

	snprintf(l.path, sizeof(l.path), "%s", path);
	snprintf(l.layout, sizeof(l.layout), "0123456789abcdef0123456789abcdef");
	return l;
}

static void make_dir(void)
{
	strcpy(dir, "/tmp/test_lease.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static char *file(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void remove_dir(void)
{
	unlink(file("fleet-leases.json"));
	unlink(file("fleet-leases.json.new"));
	unlink(file("fleet-leases.lock"));
	ck_assert_int_eq(rmdir(dir), 0);
}

TEST(lease_is_over_at_its_end_and_when_the_clock_was_set_back)
{
	struct md_lease l = lease("/x", 2000), released = lease("/x", 0);

	ck_assert(!md_lease_is_over(&l, 1000));
	ck_assert(!md_lease_is_over(&l, 1999));
	ck_assert(md_lease_is_over(&l, 2000));
	ck_assert(md_lease_is_over(&l, INT64_MAX));
	ck_assert(!md_lease_is_over(&l, 900)); /* a clock that was corrected a little */
	ck_assert(md_lease_is_over(&l, 100));
	ck_assert(!md_lease_is_over(&released, INT64_MAX));
	ck_assert(!md_lease_is_over(&released, 0));
}

TEST(leases_come_back_and_are_replaced_by_path)
{
	struct md_lease a = lease("/a \"\\\xc3\xa9", 2000), b = lease("/b", 0);
	struct md_leases leases;

	make_dir();
	ck_assert_int_eq(md_leases_open(dir, &leases, &err), 0);
	ck_assert_uint_eq(leases.nr, 0);
	ck_assert_int_eq(md_leases_put(&leases, &a, &err), 0);
	ck_assert_int_eq(md_leases_put(&leases, &b, &err), 0);
	a.expires_s = 3000;
	ck_assert_int_eq(md_leases_put(&leases, &a, &err), 0);
	md_leases_close(&leases);
	ck_assert_int_eq(md_leases_open(dir, &leases, &err), 0);
	ck_assert_uint_eq(leases.nr, 2);
	ck_assert_mem_eq(&leases.list[0], &a, sizeof(a));
	ck_assert_mem_eq(&leases.list[1], &b, sizeof(b));
	ck_assert_int_eq(md_leases_remove(&leases, "/none", &err), 0);
	ck_assert_int_eq(md_leases_remove(&leases, a.path, &err), 0);
	md_leases_close(&leases);
	ck_assert_int_eq(md_leases_open(dir, &leases, &err), 0);
	ck_assert_uint_eq(leases.nr, 1);
	ck_assert_str_eq(leases.list[0].path, "/b");
	md_leases_close(&leases);
	remove_dir();
}

TEST(lease_of_a_path_that_is_no_text_is_refused)
{
	struct md_lease good = lease("/good", 2000), bad = lease("/\xff\xfe", 2000);
	struct md_leases leases;

	make_dir();
	ck_assert_int_eq(md_leases_open(dir, &leases, &err), 0);
	ck_assert_int_eq(md_leases_put(&leases, &good, &err), 0);
	ck_assert_int_eq(md_leases_put(&leases, &bad, &err), -EILSEQ);
	ck_assert_uint_eq(leases.nr, 1);
	md_leases_close(&leases);
	ck_assert_int_eq(md_leases_open(dir, &leases, &err), 0);
	ck_assert_uint_eq(leases.nr, 1);
	md_leases_close(&leases);
	remove_dir();
}

/* Cut at each byte, and with each byte changed: it is read as leases with sound fields, or refused. */
TEST(damaged_file_is_refused)
{
	struct md_lease a = lease("/a", 2000);
	struct md_leases leases;
	char text[2048];
	size_t size, nr_refused = 0;
	FILE *f;

	make_dir();
	ck_assert_int_eq(md_leases_open(dir, &leases, &err), 0);
	ck_assert_int_eq(md_leases_put(&leases, &a, &err), 0);
	md_leases_close(&leases);
	f = fopen(file("fleet-leases.json"), "r");
	ck_assert_ptr_nonnull(f);
	size = fread(text, 1, sizeof(text), f);
	fclose(f);
	for (size_t i = 0; i < 2 * size; i++) {
		char changed[sizeof(text)];
		int r;

		memcpy(changed, text, size);
		if (i >= size)
			changed[i - size] ^= 0x21;
		f = fopen(file("fleet-leases.json"), "w");
		ck_assert_ptr_nonnull(f);
		fwrite(changed, 1, i < size ? i : size, f);
		fclose(f);
		r = md_leases_open(dir, &leases, &err);
		ck_assert(!r || r == -EBADMSG);
		nr_refused += r == -EBADMSG;
		if (!r) {
			ck_assert_uint_eq(leases.nr, 1);
			ck_assert_int_eq(leases.list[0].path[0], '/');
		}
		md_leases_close(&leases);
	}
	/* All that were cut, and most of those that were changed. */
	ck_assert_uint_gt(nr_refused, size);
	remove_dir();
}

TEST(directory_of_others_is_refused)
{
	struct md_leases leases;

	make_dir();
	ck_assert_int_eq(chmod(dir, 0777), 0);
	ck_assert_int_eq(md_leases_open(dir, &leases, &err), -EPERM);
	ck_assert_int_eq(rmdir(dir), 0);
}
