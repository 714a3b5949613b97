// SPDX-License-Identifier: Apache-2.0
/*
 * test_task - what another user wrote is taken over up to a size, also if that user makes it longer meanwhile; whose
 * crashes are those of a library.
 */
#include "tests/unit/suite.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/worker/worker.h"
#include "libprof/store/jobs/store_crashes.h"
#include "tests/unit/files.h"

#define MOST  (UINT64_C(16) << 20)
#define LARGE (UINT64_C(160) << 20)

static struct md_task task;
static struct md_work_path from, to, part;
static struct mp_err err;

static void setup(void)
{
	task = (struct md_task){.err = &err};
	strcpy(task.dir.path, "/tmp/morph-task-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(task.dir.path));
	from = md_work_path(&task.dir, "theirs");
	to = md_work_path(&task.dir, "ours");
	part = md_work_path(&task.dir, "taken.new");
}

static void teardown(void)
{
	unlink(from.text);
	unlink(to.text);
	unlink(part.text);
	rmdir(task.dir.path);
}

static void write_bytes(uint64_t size)
{
	int fd = open(from.text, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	char block[4096];

	memset(block, 7, sizeof(block));
	ck_assert_int_ge(fd, 0);
	for (uint64_t at = 0; at < size; at += sizeof(block))
		ck_assert_int_eq(write(fd, block, sizeof(block)), sizeof(block));
	close(fd);
}

static uint64_t size_of(const char *path)
{
	struct stat st = {0};

	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

FIXTURE(setup, teardown);

TEST(task_takes_a_file_of_the_right_size)
{
	write_bytes(MOST);
	ck_assert_int_eq(md_task_take(&task, from.text, to.text, MOST), 0);
	ck_assert_uint_eq(size_of(to.text), MOST);
	write_bytes(MOST + 4096);
	ck_assert_int_lt(md_task_take(&task, from.text, to.text, MOST), 0);
}

TEST(task_takes_no_more_of_a_file_that_grows)
{
	pid_t pid;

	write_bytes(MOST);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		while (access(part.text, F_OK))
			;
		_exit(truncate(from.text, LARGE) != 0);
	}
	/* It may be whole before its user sees that. */
	if (!md_task_take(&task, from.text, to.text, MOST))
		ck_assert_uint_eq(size_of(to.text), MOST);
	else
		ck_assert_uint_eq(size_of(to.text), 0);
	ck_assert_uint_lt(size_of(part.text), LARGE);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void add_crash(struct mp_store *store, uint64_t hash, const char *path, int64_t when_s)
{
	const struct mp_id id = {.text_hash = hash};
	int64_t key;

	ck_assert(!mp_store_put_module(store, &id, MP_MODULE_FILE, path, 4096, when_s, &key, &err));
	ck_assert(!mp_store_add_crash(store, key, when_s, SIGSEGV, &err));
}

/* No process executes a library: what had loaded it when the round began is asked, in each of its builds. */
TEST(task_counts_crashes_of_the_program_with_the_library)
{
	struct mp_job job = {.path = (char *)"/usr/lib/libwork.so", .id = {.text_hash = 3}};
	struct md_work_path db = md_work_path(&task.dir, "db"),
			    note = md_work_path(&task.dir, "running"),
			    core = md_work_path(&task.dir, "core.prog.0.0123.77.1");
	struct md_worker worker = {.coredumps = "/nowhere"};
	const int64_t now_s = time(NULL);

	task.worker = &worker;
	task.job = &job;
	ck_assert(!mp_store_open(db.text, MP_STORE_WRITE, &worker.store, &err));
	add_crash(worker.store, 1, "/usr/bin/prog", now_s - 100);
	add_crash(worker.store, 2, "/usr/bin/prog", now_s - 10);
	add_crash(worker.store, 3, "/usr/lib/libwork.so", now_s - 10);
	add_crash(worker.store, 4, "/usr/bin/another", now_s - 10);
	ck_assert_uint_eq(md_task_crashes(&task, now_s - 1000), 1);
	write_text(note.text, "{\"places\": [1, 2, 3, 4], \"program\": \"/usr/bin/prog\"}");
	ck_assert_uint_eq(md_task_crashes(&task, now_s - 1000), 2);
	ck_assert_uint_eq(md_task_crashes(&task, now_s - 50), 1);
	/* A core file is of one of the same crashes, or of one more. */
	write_text(core.text, "");
	worker.coredumps = task.dir.path;
	ck_assert_uint_eq(md_task_crashes(&task, now_s - 50), 1);
	ck_assert_uint_eq(md_task_crashes(&task, now_s - 5), 1);
	mp_store_close(worker.store);
	unlink(core.text);
	unlink(note.text);
	unlink(db.text);
}
