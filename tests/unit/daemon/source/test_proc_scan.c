// SPDX-License-Identifier: Apache-2.0
/* test_proc_scan - records of running processes, with exec_ids given by a source. */
#include "daemon/source/proc_scan.h"

#include <signal.h>
#include <sys/wait.h>

#include "libprof/base/clock.h"
#include "tests/unit/suite.h"

static struct md_buf buf;

static void teardown(void)
{
	md_buf_fini(&buf);
}

/* The exec_ids that a process has one after the other; the last one stays. */
struct numbers {
	uint32_t ids[32];
	uint32_t nr_asked;
	int fails_at; /* with ESRCH; 0: never */
};

static int next_number(void *arg, pid_t pid, uint32_t *exec_id)
{
	struct numbers *n = arg;

	(void)pid;
	*exec_id = n->ids[n->nr_asked++];
	return n->fails_at && (int)n->nr_asked >= n->fails_at ? -ESRCH : 0;
}

/*
 * Checks @buf: an EXEC of the process, then only its mappings. Return: number of mappings of
 * the program.
 */
static uint32_t check(uint32_t exec_id, uint64_t since_ns)
{
	struct morph_record *record;
	struct morph_task *task;
	uint32_t nr_programs = 0;
	size_t pos = 0;

	ck_assert_int_eq(md_record_next(buf.data, buf.size, &pos, &record), 0);
	ck_assert_uint_eq(record->type, MORPH_REC_EXEC);
	task = (struct morph_task *)record;
	ck_assert_uint_eq(task->tgid, getpid());
	ck_assert_uint_eq(task->exec_id, exec_id);
	ck_assert_uint_eq(task->flags, MORPH_EXEC_FOUND);
	ck_assert_uint_ge(task->time_ns, since_ns);
	ck_assert_uint_le(task->time_ns, mp_now_ns());
	while (!md_record_next(buf.data, buf.size, &pos, &record)) {
		task = (struct morph_task *)record;
		ck_assert_uint_eq(record->type, MORPH_REC_MMAP);
		ck_assert_uint_eq(task->exec_id, exec_id);
		ck_assert_uint_eq(task->time_ns, 0);
		nr_programs += (task->flags & MORPH_MMAP_PROGRAM) != 0;
	}
	ck_assert_uint_eq(pos, buf.size);
	ck_assert_uint_ge(nr_programs, 1);
	return ((struct morph_exec *)buf.data)->nr_threads;
}

FIXTURE(NULL, teardown);

TEST(process_is_told_with_all_its_mappings)
{
	uint64_t now_ns = mp_now_ns();

	ck_assert_int_eq(md_proc_scan_one(getpid(), 0, NULL, &buf), 0);
	ck_assert_uint_eq(check(0, now_ns), 1);
}

TEST(number_is_in_every_record)
{
	struct numbers n = {.ids = {7, 7}};
	const struct md_proc_ids ids = {next_number, &n};

	ck_assert_int_eq(md_proc_scan_one(getpid(), 0, &ids, &buf), 0);
	check(7, 0);
}

/* If the exec_id changed while reading, the mappings may be of either program. */
TEST(process_that_execs_meanwhile_is_looked_at_again)
{
	struct numbers n = {.ids = {7, 8, 8, 9, 9, 9}};
	const struct md_proc_ids ids = {next_number, &n};

	ck_assert_int_eq(md_proc_scan_one(getpid(), 0, &ids, &buf), 0);
	check(9, 0);
	ck_assert_uint_eq(n.nr_asked, 6);
}

TEST_EACH(process_that_ends_or_never_rests_is_left_out, 3)
{
	struct numbers n = {.fails_at = 1 + _i};
	const struct md_proc_ids ids = {next_number, &n};
	uint32_t i;

	for (i = 0; i < 32; i++)
		n.ids[i] = i;
	if (_i == 2)
		n.fails_at = 0;
	ck_assert_int_eq(md_proc_scan_one(getpid(), 0, &ids, &buf), 0);
	ck_assert_uint_eq(buf.size, 0);
}

TEST(only_a_commands_own_descendants_are_told)
{
	struct morph_record *record;
	pid_t child = fork();
	uint32_t nr = 0;
	size_t pos = 0;

	if (!child) {
		pause();
		_exit(0);
	}
	ck_assert_int_eq(md_proc_scan(getpid(), 0, NULL, &buf), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	while (!md_record_next(buf.data, buf.size, &pos, &record)) {
		struct morph_task *task = (struct morph_task *)record;

		if (record->type != MORPH_REC_EXEC)
			continue;
		ck_assert(task->tgid == (uint32_t)getpid() || task->tgid == (uint32_t)child);
		nr++;
	}
	ck_assert_uint_eq(nr, 2);
}
