// SPDX-License-Identifier: Apache-2.0
/*
 * test_work_dir - one worker at a time; a job's files, which go without following links; the evidence of
 * an audit, complete or not at all.
 */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include <sys/stat.h>

#include "daemon/worker/work_dir.h"

static void setup(void)
{
	scratch_make();
	err.msg[0] = 0;
}

static struct md_work_dir open_job(void)
{
	struct md_work_dir job;

	ck_assert_msg(!md_work_dir_open(dir, "/usr/bin/prog", &job, &err), "%s", err.msg);
	return job;
}

FIXTURE(setup, scratch_remove);

TEST(work_dir_admits_one_worker)
{
	int first = md_state_lock(dir, &err), second;

	ck_assert_int_ge(first, 0);
	ck_assert_int_eq(md_state_lock(dir, &err), -EBUSY);
	close(first);
	second = md_state_lock(dir, &err);
	ck_assert_int_ge(second, 0);
	close(second);
	ck_assert_int_eq(chmod(dir, 0777), 0);
	ck_assert_int_eq(md_state_lock(dir, &err), -EPERM);
}

TEST(work_dir_is_removed_without_following_links)
{
	struct md_work_dir job = open_job(), again = open_job();
	char precious[256];

	ck_assert_str_eq(job.path, again.path);
	snprintf(precious, sizeof(precious), "%s/precious", dir);
	ck_assert_int_eq(mkdir(precious, 0755), 0);
	snprintf(precious, sizeof(precious), "%s/precious/file", dir);
	write_text(precious, "x");
	ck_assert_int_eq(md_work_dir_train(&job, NULL, &err), 0);
	ck_assert_int_eq(symlink("../precious", md_work_path(&job, "link").text), 0);
	ck_assert_int_eq(symlink("../../precious", md_work_path(&job, "train/link").text), 0);
	md_work_dir_remove(&job);
	ck_assert_int_eq(access(job.path, F_OK), -1);
	ck_assert_int_eq(access(precious, F_OK), 0);
}

TEST(evidence_is_read_back)
{
	struct md_work_dir job = open_job();
	struct md_evidence e = {.original = "aa",
				.output = "bb",
				.verdict = "faster",
				.gain = {1.05, 1.02, 1.08, 0},
				.pairs = 24},
			   back;

	ck_assert(!md_evidence_load(&job, &back));
	ck_assert_int_eq(md_evidence_save(&job, &e, &err), 0);
	ck_assert(md_evidence_load(&job, &back));
	ck_assert_str_eq(back.original, "aa");
	ck_assert_str_eq(back.output, "bb");
	ck_assert_str_eq(back.verdict, "faster");
	ck_assert_double_eq(back.gain.lowest, 1.02);
	ck_assert_uint_eq(back.pairs, 24);
	ck_assert_int_eq(access(md_work_path(&job, "evidence.new").text, F_OK), -1);
}

static const char *const damaged[] = {
	"",
	"{",
	"[]",
	"{\"original\": \"a\", \"output\": \"b\"}",
	"{\"original\": 1, \"output\": \"b\", \"verdict\": \"faster\"}",
	"{\"original\": \"a\", \"output\": \"b\", \"verdict\": \"faster\", \"lowest\": -1}",
	("{\"original\": \"a\", \"output\": \"0123456789012345678901234567890123456789012\", "
	 "\"verdict\": \"faster\"}"),
};

TEST_EACH(evidence_that_is_damaged_is_none, sizeof(damaged) / sizeof(damaged[0]))
{
	struct md_work_dir job = open_job();
	struct md_evidence e;

	write_text(md_work_path(&job, "evidence").text, damaged[_i]);
	ck_assert(!md_evidence_load(&job, &e));
}

TEST(evidence_reads_what_an_audit_printed)
{
	struct md_work_dir job = open_job();
	struct md_work_path report = md_work_path(&job, "report");
	struct md_evidence e = {0};

	ck_assert(!md_evidence_read_audit(report.text, &e));
	write_text(report.text, "{\"verdict\": \"undecided\", \"speedup\": 1.01, "
				"\"interval\": [null, null], \"pairs\": 3}");
	ck_assert(md_evidence_read_audit(report.text, &e));
	ck_assert_str_eq(e.verdict, "undecided");
	ck_assert_double_eq(e.gain.ratio, 1.01);
	ck_assert_double_eq(e.gain.highest, 0);
	ck_assert_uint_eq(e.pairs, 3);
}
