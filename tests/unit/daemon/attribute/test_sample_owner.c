// SPDX-License-Identifier: Apache-2.0
/*
 * test_sample_owner - units from cgroups, and samples by process without /proc.
 */

#include "daemon/attribute/sample_owner.h"
#include "tests/unit/suite.h"

static const char *unit_of(const char *path)
{
	static char unit[64];

	md_sample_owner_unit_of(path, unit, sizeof(unit));
	return unit;
}

TEST(who_knows_the_innermost_unit)
{
	ck_assert_str_eq(unit_of("/system.slice/nginx.service"), "nginx.service");
	ck_assert_str_eq(unit_of("/system.slice/nginx.service/worker"), "nginx.service");
	ck_assert_str_eq(unit_of("/user.slice/user-1.slice/user@1.service/app.slice/a.scope"),
			 "a.scope");
	ck_assert_str_eq(unit_of("/docker/0123456789abcdef"), "/docker/0123456789abcdef");
	ck_assert_str_eq(unit_of("/"), "/");
	ck_assert_str_eq(unit_of(""), "");
	/* Keeps the end of a path that is too long. */
	ck_assert_uint_eq(strlen(unit_of("/a23456789012345678901234567890123456789"
					 "/b23456789012345678901234567890123456789")),
			  63);
}

TEST(who_tells_what_lies_in_a_unit)
{
	const char *path = "/system.slice/nginx.service/worker";

	ck_assert(md_sample_owner_is_unit(path, "nginx"));
	ck_assert(md_sample_owner_is_unit(path, "nginx.service"));
	ck_assert(md_sample_owner_is_unit(path, "system.slice"));
	ck_assert(md_sample_owner_is_unit(path, "/system.slice"));
	ck_assert(md_sample_owner_is_unit(path, "/system.slice/nginx.service/"));
	ck_assert(md_sample_owner_is_unit(path, "/"));
	ck_assert(!md_sample_owner_is_unit(path, "ngin"));
	ck_assert(!md_sample_owner_is_unit(path, "nginx.serv"));
	ck_assert(!md_sample_owner_is_unit(path, "/system.slice/nginx"));
	ck_assert(!md_sample_owner_is_unit("/", "nginx"));
	ck_assert(!md_sample_owner_is_unit("", "/nginx"));
	/* A container's id, or a sufficient part of it. */
	ck_assert(md_sample_owner_is_unit("/system.slice/docker-0123456789abcdef00.scope",
					  "0123456789abcdef"));
	ck_assert(md_sample_owner_is_unit("/docker/0123456789abcdef00", "0123456789ab"));
	ck_assert(!md_sample_owner_is_unit("/docker/0123456789abcdef00", "01234567"));
}

static const char *program(void *arg, const struct morph_task *task)
{
	return task->tgid == 7 ? arg : NULL;
}

static struct md_buf buf;

static void tidy(void)
{
	md_buf_fini(&buf);
}

FIXTURE(NULL, tidy);

static const struct morph_record *samples(uint32_t tgid, uint32_t nr)
{
	struct morph_samples *record;

	buf.size = 0;
	record = md_record_add_task(&buf, MORPH_REC_SAMPLES, sizeof(*record) + nr * 8, 1, tgid,
				    tgid);
	ck_assert_ptr_nonnull(record);
	return &record->task.record;
}

static uint64_t of(struct md_sample_owner *owner, const char *name)
{
	const struct mp_process *all;
	size_t nr = md_sample_owner_list(owner, &all);
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		if (!strcmp(all[i].name, name))
			sum += all[i].nr;
	return sum;
}

TEST(who_counts_by_program_where_there_is_no_proc)
{
	struct md_sample_owner *owner =
		md_sample_owner_new(false, NULL, program, (char *)"a_name_that_is_too_long");
	struct morph_fork *fork;

	ck_assert_ptr_nonnull(owner);
	ck_assert(md_sample_owner_record(owner, samples(7, 3)));
	ck_assert(md_sample_owner_record(owner, samples(8, 2)));
	ck_assert(md_sample_owner_record(owner, samples(UINT32_MAX, 1)));
	ck_assert_uint_eq(of(owner, "a_name_that_is_"), 3);
	ck_assert_uint_eq(of(owner, ""), 2);
	/* A child has its parent's name until it executes another program. */
	buf.size = 0;
	fork = md_record_add_task(&buf, MORPH_REC_FORK, sizeof(*fork), 2, 9, 9);
	ck_assert_ptr_nonnull(fork);
	fork->parent_tgid = fork->parent_tid = 7;
	ck_assert(md_sample_owner_record(owner, &fork->task.record));
	ck_assert(md_sample_owner_record(owner, samples(9, 5)));
	ck_assert_uint_eq(of(owner, "a_name_that_is_"), 8);
	md_sample_owner_clear(owner);
	ck_assert_uint_eq(of(owner, "a_name_that_is_"), 0);
	md_sample_owner_free(owner);
}

TEST(who_forgets_what_ended_when_there_are_too_many)
{
	struct md_sample_owner *owner = md_sample_owner_new(false, NULL, NULL, NULL);
	uint64_t sum = 0;

	ck_assert_ptr_nonnull(owner);
	/* No process has such an id. */
	for (uint32_t i = 0; i < 200000; i++) {
		ck_assert(md_sample_owner_record(owner, samples(0x40000000 + i, 1)));
		sum++;
	}
	ck_assert_uint_eq(of(owner, ""), sum);
	md_sample_owner_free(owner);
}
