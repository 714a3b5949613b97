// SPDX-License-Identifier: Apache-2.0
/* test_worker_child - how a child ends, and what is kept of its messages. */
#include "tests/unit/suite.h"

#include <signal.h>

#include "daemon/worker/child.h"

static struct md_child_result run(const char *script, double limit_s)
{
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, NULL};
	struct md_child child = {.argv = argv, .limit_s = limit_s};
	struct md_child_result result;
	struct mp_err err = {0};

	ck_assert_msg(!md_child_run(&child, &result, &err), "%s", err.msg);
	return result;
}

TEST(child_ends_with_its_status_and_first_message)
{
	struct md_child_result r =
		run("echo 'morph-audit: no: room' >&2; echo more >&2; exit 3", 0);

	ck_assert_int_eq(r.end, MD_CHILD_EXITED);
	ck_assert_int_eq(r.status, 3);
	ck_assert_str_eq(r.reason, "no: room");
}

TEST(child_need_not_say_anything)
{
	struct md_child_result r = run("exec 2>&-; kill -SEGV $$", 0);

	ck_assert_int_eq(r.end, MD_CHILD_DIED);
	ck_assert_int_eq(r.status, SIGSEGV);
	ck_assert_str_eq(r.reason, "");
}

/* Many times what a pipe holds: the child must not wait for a reader, and a long first line is cut. */
TEST(child_may_print_much)
{
	struct md_child_result r = run("yes | tr -d '\\n' | head -c 8000000 >&2; exit 7", 0);

	ck_assert_int_eq(r.end, MD_CHILD_EXITED);
	ck_assert_int_eq(r.status, 7);
	ck_assert_uint_eq(strlen(r.reason), sizeof(r.reason) - 1);
}

TEST(child_that_prints_endlessly_is_ended)
{
	struct md_child_result r = run("yes message >&2", 0.1);

	ck_assert_int_eq(r.end, MD_CHILD_LATE);
	ck_assert_str_eq(r.reason, "message");
}

/* A process that the child left behind keeps the pipe open: nobody waits for it. */
TEST(child_ends_before_what_it_started)
{
	struct md_child_result r = run("sleep 60 & echo first >&2", 20);

	ck_assert_int_eq(r.end, MD_CHILD_EXITED);
	ck_assert_str_eq(r.reason, "first");
}
