// SPDX-License-Identifier: Apache-2.0
/*
 * test_probation - a version that takes more of its own time for the same work elsewhere is slower; more
 * work of the same kind is not; few samples tell nothing; core files are counted by name and time.
 */
#include "tests/unit/suite.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "daemon/everyday/probation.h"

static enum md_probation_verdict judge(uint64_t own, uint64_t elsewhere, double *ratio)
{
	const struct md_work_samples before = {20000, 10000}, after = {own, elsewhere};

	return md_probation_judge(&before, &after, 0.1, ratio);
}

TEST(probation_compares_work_and_not_use)
{
	double ratio;

	ck_assert_int_eq(judge(20000, 10000, &ratio), MD_PROBATION_FINE);
	ck_assert_double_eq_tol(ratio, 1, 1e-9);
	/* Ten times as much use. */
	ck_assert_int_eq(judge(200000, 100000, &ratio), MD_PROBATION_FINE);
	ck_assert_int_eq(judge(15000, 10000, &ratio), MD_PROBATION_FINE);
	ck_assert_double_eq_tol(ratio, 0.75, 1e-9);
	ck_assert_int_eq(judge(40000, 10000, &ratio), MD_PROBATION_SLOWER);
	ck_assert_double_eq_tol(ratio, 2, 1e-9);
}

TEST(probation_allows_the_margin_and_chance)
{
	double ratio;

	ck_assert_int_eq(judge(21800, 10000, &ratio), MD_PROBATION_FINE);
	/* 20 % with few samples may be chance; with many it is not. */
	ck_assert_int_eq(judge(2400, 1000, &ratio), MD_PROBATION_FINE);
	ck_assert_int_eq(md_probation_judge(&(struct md_work_samples){2000000, 1000000},
					    &(struct md_work_samples){2400000, 1000000}, 0.1,
					    &ratio),
			 MD_PROBATION_SLOWER);
}

TEST(probation_says_nothing_by_few_samples)
{
	double ratio;

	ck_assert_int_eq(judge(999, 10000, &ratio), MD_PROBATION_UNKNOWN);
	ck_assert_int_eq(judge(90000, 999, &ratio), MD_PROBATION_UNKNOWN);
	ck_assert_int_eq(judge(0, 0, &ratio), MD_PROBATION_UNKNOWN);
	ck_assert_double_eq(ratio, 0);
}

static void touch(const char *dir, const char *name, time_t when)
{
	char path[256];
	struct timespec times[2] = {{when, 0}, {when, 0}};
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(futimens(fd, times), 0);
	close(fd);
}

TEST(probation_counts_core_files_of_a_program)
{
	char dir[] = "/tmp/morph-cores-XXXXXX", cmd[64];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	touch(dir, "core.nginx.33.0123abcd.77.1700000000.zst", 2000);
	touch(dir, "core.nginx.33.0123abcd.78.1700000001", 3000);
	touch(dir, "core.nginx-debug.33.0123abcd.79.1700000001", 3000);
	touch(dir, "core.nginx.old", 3000);
	touch(dir, "core.a-long-program-.0.0123.1.2", 3000);
	ck_assert_uint_eq(md_probation_crashes(dir, "nginx", 0), 2);
	ck_assert_uint_eq(md_probation_crashes(dir, "nginx", 2500), 1);
	ck_assert_uint_eq(md_probation_crashes(dir, "ngin", 0), 0);
	ck_assert_uint_eq(md_probation_crashes(dir, "a-long-program-with-a-name", 0), 1);
	ck_assert_uint_eq(md_probation_crashes("/no/such/directory", "nginx", 0), 0);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(cmd), 0);
}
