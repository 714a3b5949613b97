// SPDX-License-Identifier: Apache-2.0
/* test_cpus - lists of CPUs in the kernel's format. */
#include <fcntl.h>

#include "daemon/source/cpus.h"
#include "tests/unit/suite.h"

TEST(cpus_are_in_ranges)
{
	const struct md_cpu_list list = {"0-3,6,64-127\n"};
	static const uint32_t in[] = {0, 3, 6, 64, 100, 127},
			      out[] = {4, 5, 7, 63, 128, UINT32_MAX};
	size_t i;

	for (i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		ck_assert(md_cpus_has(&list, in[i]));
		ck_assert(!md_cpus_has(&list, out[i]));
	}
	ck_assert_uint_eq(md_cpus_first(&list), 0);
	ck_assert_uint_eq(md_cpus_end(&list), 128);
}

TEST(cpus_begin_anywhere)
{
	const struct md_cpu_list list = {"2\n"}, none = {""}, bad = {"\n-,x"};

	ck_assert_uint_eq(md_cpus_first(&list), 2);
	ck_assert_uint_eq(md_cpus_end(&list), 3);
	ck_assert(!md_cpus_has(&list, 0));
	ck_assert_uint_eq(md_cpus_end(&none), 0);
	ck_assert(!md_cpus_has(&none, 0));
	ck_assert_uint_eq(md_cpus_end(&bad), 0);
	ck_assert(!md_cpus_has(&bad, 0));
}

/* Like the kernel's file, each read from its start gives the current contents. */
TEST(cpus_say_what_changed)
{
	char path[] = "/tmp/morph-test-cpus.XXXXXX";
	struct md_cpu_list list = {""};
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert(!md_cpus_read(fd, &list)); /* empty: not known */
	ck_assert_int_eq(pwrite(fd, "0-1\n", 4, 0), 4);
	ck_assert(md_cpus_read(fd, &list));
	ck_assert(!md_cpus_read(fd, &list));
	ck_assert_int_eq(pwrite(fd, "0\n", 2, 0), 2);
	ck_assert_int_eq(ftruncate(fd, 2), 0);
	ck_assert(md_cpus_read(fd, &list));
	ck_assert(!md_cpus_has(&list, 1));
	ck_assert(!md_cpus_read(-1, &list));
	ck_assert(md_cpus_has(&list, 0));
	close(fd);
}

TEST(cpus_of_this_machine)
{
	struct md_cpu_list list = {""};
	int fd = md_cpus_open("online");

	if (fd < 0)
		MORPH_SKIP("no /sys here");
	ck_assert(md_cpus_read(fd, &list));
	ck_assert(md_cpus_has(&list, md_cpus_first(&list)));
	ck_assert_uint_ge(md_cpus_end(&list), sysconf(_SC_NPROCESSORS_ONLN));
	close(fd);
}
