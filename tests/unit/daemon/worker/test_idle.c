// SPDX-License-Identifier: Apache-2.0
/*
 * test_idle - what the kernel says about load, CPU time and power, and the policy's limits
 * applied to it.
 */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include <sys/stat.h>

#include "daemon/worker/idle.h"

FIXTURE(scratch_make, scratch_remove);

TEST(idle_reads_load)
{
	double load = -1;

	ck_assert_int_eq(md_idle_parse_load("1.98 2.46 1.46 1/95 9045\n", &load), 0);
	ck_assert_double_eq(load, 1.98);
	ck_assert_int_eq(md_idle_parse_load("", &load), -EINVAL);
	ck_assert_int_eq(md_idle_parse_load("-1 2 3", &load), -EINVAL);
	ck_assert_int_eq(md_idle_parse_load("many", &load), -EINVAL);
}

TEST(idle_reads_the_time_of_all_cpus)
{
	uint64_t busy = 0;

	ck_assert_int_eq(
		md_idle_parse_stat("cpu  10 20 30 400 50 6 7 8 0 0\ncpu0 1 1 1 1\n", &busy), 0);
	ck_assert_uint_eq(busy, 10 + 20 + 30 + 6 + 7);
	ck_assert_int_eq(md_idle_parse_stat("cpu  10 20 30 400 50\n", &busy), 0);
	ck_assert_uint_eq(busy, 60);
	ck_assert_int_eq(md_idle_parse_stat("cpu  10 20\n", &busy), -EINVAL);
	ck_assert_int_eq(md_idle_parse_stat("intr 1 2 3 4 5 6\n", &busy), -EINVAL);
}

TEST(idle_reads_the_time_of_a_process_with_any_name)
{
	uint64_t ticks = 0;
	pid_t session = 0;

	ck_assert_int_eq(
		md_idle_parse_process("7 (a) b) R 1 7 42 0 -1 4194304 100 0 0 0 5 6 7 8 20 0 "
				      "1 0 99\n",
				      &session, &ticks),
		0);
	ck_assert_int_eq(session, 42);
	ck_assert_uint_eq(ticks, 5 + 6 + 7 + 8);
	ck_assert_int_eq(md_idle_parse_process("7 (a", &session, &ticks), -EINVAL);
	ck_assert_int_eq(md_idle_parse_process("7 (a) R 1 7", &session, &ticks), -EINVAL);
}

static void supply(const char *name, const char *type, const char *online)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s/type", dir, name);
	write_text(path, type);
	if (!online)
		return;
	snprintf(path, sizeof(path), "%s/%s/online", dir, name);
	write_text(path, online);
}

TEST(idle_knows_a_battery_without_mains)
{
	ck_assert(!md_idle_on_battery("/no/such/directory"));
	ck_assert(!md_idle_on_battery(dir));
	supply("BAT0", "Battery\n", NULL);
	/* A machine that tells of no mains: a mouse, or a supply that nobody knows about. */
	ck_assert(!md_idle_on_battery(dir));
	supply("AC", "Mains\n", "0\n");
	ck_assert(md_idle_on_battery(dir));
	supply("USBC0", "USB\n", "1\n");
	ck_assert(!md_idle_on_battery(dir));
	supply("USBC0", "USB\n", "0\n");
	ck_assert(md_idle_on_battery(dir));
	supply("AC", "Mains\n", "1\n");
	ck_assert(!md_idle_on_battery(dir));
}

TEST(idle_is_what_the_policy_calls_idle)
{
	struct md_policy all = {.max_load = 1e6, .on_battery = true};
	struct md_policy none = {.max_load = -1, .on_battery = true};
	char why[200] = "";

	ck_assert_msg(md_idle_check(&all, why, sizeof(why)), "%s", why);
	ck_assert(!md_idle_check(&none, why, sizeof(why)));
	ck_assert_uint_gt(strlen(why), 10);
}
