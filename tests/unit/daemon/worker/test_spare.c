// SPDX-License-Identifier: Apache-2.0
/*
 * test_spare - two versions take turns by their names alone; one that somebody changed meanwhile, even with its size and its time of
 * modification as before, is not put in place, and is not taken for what was there.
 */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "daemon/worker/file_state.h"
#include "daemon/worker/live.h"
#include "libprof/base/newfile.h"

#define ORIGINAL "the original"
#define COUNTING "what counts!" /* as long */

static char path[PATH_MAX], kept[PATH_MAX];
static char clock_of_nobody;
static struct mp_job job;
static struct md_worker worker;
static struct md_task task;
static struct md_live *live;

/* Puts a new file at the path by a rename, as morph-optimize does. */
static void replace(const char *bytes)
{
	char new[PATH_MAX + 8];

	snprintf(new, sizeof(new), "%s.new", path);
	write_text(new, bytes);
	ck_assert(!rename(new, path));
}

static void note(enum md_variant there)
{
	live->there = there;
	ck_assert(!lstat(path, &live->file));
	live->proved = false;
}

/* The original is at the path, and the version that counts takes its place. */
static void setup(void)
{
	char name[MP_NEW_NAME_MAX], hash[33];

	scratch_make();
	ck_assert(!setenv("XDG_STATE_HOME", dir, 1)); /* for locks of users other than root */
	snprintf(path, sizeof(path), "%s/prog", dir);
	mp_kept_name("prog", name);
	snprintf(kept, sizeof(kept), "%s/%s", dir, name);
	write_text(path, COUNTING);
	ck_assert(!md_file_hash(path, hash));
	ck_assert(!md_work_dir_open(dir, path, &task.dir, &err));
	ck_assert(!md_variants_note(&task.dir, MD_COUNTING, hash, &err));

	replace(ORIGINAL);
	job = (struct mp_job){.path = path, .state = MP_JOB_COUNTING, .round = 1};
	ck_assert(!md_file_hash(path, job.file_hash));
	worker = (struct md_worker){.cpu_time = (struct md_cpu_time *)&clock_of_nobody};
	task.worker = &worker;
	task.job = &job;
	task.err = &err;
	ck_assert_int_eq(md_live_of(&task, &live), 0);
	note(MD_ORIGINAL);
}

static void teardown(void)
{
	worker.cpu_time = NULL;
	md_live_fini(&worker);
	scratch_remove();
}

FIXTURE(setup, teardown);

static void begin_turns(void)
{
	ck_assert(md_spare_keep(live));
	replace(COUNTING);
	md_spare_take(&task, live);
	note(MD_COUNTING);
	ck_assert_int_eq(live->spare.variant, MD_ORIGINAL);
	ck_assert_uint_ne(live->spare.file.st_ino, 0);
}

/* The same, and both have had a turn: nobody hashes any more. */
static void take_turns(void)
{
	begin_turns();
	ck_assert(md_spare_swap(&task, live, MD_ORIGINAL));
	live->there = MD_ORIGINAL;
	ck_assert(md_spare_swap(&task, live, MD_COUNTING));
	live->there = MD_COUNTING;
	ck_assert(live->proved);
}

/* Waits until a change gets a later time than the file has. */
static void wait_for_clock(const char *file)
{
	char other[PATH_MAX + 8];
	struct stat was, now;

	snprintf(other, sizeof(other), "%s.clock", path);
	ck_assert(!lstat(file, &was));
	do {
		write_text(other, "now");
		ck_assert(!lstat(other, &now));
	} while (now.st_ctim.tv_sec == was.st_ctim.tv_sec &&
		 now.st_ctim.tv_nsec == was.st_ctim.tv_nsec);
}

/* Writes into the file, and sets back what can be set back. */
static void damage(const char *file)
{
	struct stat st;
	int fd = open(file, O_WRONLY);

	wait_for_clock(file);
	ck_assert(!fstat(fd, &st));
	ck_assert_int_eq(pwrite(fd, "X", 1, 3), 1);
	ck_assert(!futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim}));
	close(fd);
}

static bool is_left(void)
{
	return !access(kept, F_OK);
}

TEST(spare_versions_take_turns_as_the_same_files)
{
	struct stat original, st;

	ck_assert(!lstat(path, &original));
	begin_turns();
	ck_assert(!md_spare_swap(&task, live, MD_COUNTING)); /* another one is spare */
	for (int i = 0; i < 3; i++) {
		ck_assert(md_spare_swap(&task, live, MD_ORIGINAL));
		file_holds(path, ORIGINAL);
		file_holds(kept, COUNTING);
		ck_assert(!lstat(path, &st) && md_file_is_as(&st, &live->file));
		ck_assert(st.st_ino == original.st_ino && st.st_nlink == 1);
		ck_assert(live->proved);
		live->there = MD_ORIGINAL;
		ck_assert(md_spare_swap(&task, live, MD_COUNTING));
		file_holds(path, COUNTING);
		file_holds(kept, ORIGINAL);
		live->there = MD_COUNTING;
	}
	md_spare_drop(live);
	ck_assert(!is_left());
	ck_assert(!md_spare_swap(&task, live, MD_ORIGINAL));
	file_holds(path, COUNTING);
}

TEST(spare_version_that_was_changed_is_not_put_in_place)
{
	take_turns();
	damage(kept);
	ck_assert(!md_spare_swap(&task, live, MD_ORIGINAL));
	file_holds(path, COUNTING);
	ck_assert(!is_left());
}

TEST(spare_swap_does_not_take_a_changed_file_away)
{
	enum md_variant there;

	take_turns();
	ck_assert(md_live_knows(&task, &there));
	damage(path);
	ck_assert(!md_live_knows(&task, &there));
	ck_assert(!md_spare_swap(&task, live, MD_ORIGINAL));
	file_holds(path, "whaX counts!");
	ck_assert(!is_left());
}

TEST(spare_swap_does_not_take_an_upgrade_away)
{
	take_turns();
	replace("the upgrade!");
	ck_assert(!md_spare_swap(&task, live, MD_ORIGINAL));
	file_holds(path, "the upgrade!");
	ck_assert(!is_left());
}

/* Between the renaming of a version and the look at it, somebody may have put another file there. */
TEST(spare_files_have_the_bytes_of_their_versions)
{
	begin_turns();
	replace("the upgrade!");
	note(MD_COUNTING);
	ck_assert(!md_spare_swap(&task, live, MD_ORIGINAL));
	file_holds(path, "the upgrade!");

	note(MD_ORIGINAL);
	ck_assert(md_spare_keep(live));
	replace(COUNTING);
	md_spare_take(&task, live);
	ck_assert_uint_eq(live->spare.file.st_ino, 0);
	ck_assert(!is_left());
}

/* A copy of the original would need room, and there may be none. */
TEST(spare_original_comes_back_when_the_worker_ends)
{
	struct stat original, st;

	ck_assert(!lstat(path, &original));
	begin_turns();
	worker.state_dir = dir;
	ck_assert_int_eq(md_round_leave(&worker, &job, &err), 0);
	file_holds(path, ORIGINAL);
	ck_assert(!lstat(path, &st) && st.st_ino == original.st_ino);
	md_live_drop(&worker, path);
	ck_assert(!is_left());
	file_holds(path, ORIGINAL);
}

/* Nor does another version keep the room that the copy needs. */
TEST(spare_version_goes_before_the_original_is_copied)
{
	take_turns();
	ck_assert(md_spare_swap(&task, live, MD_ORIGINAL));
	live->there = MD_ORIGINAL;
	ck_assert(is_left());
	ck_assert(!md_live_leave(&task));
	ck_assert(!is_left());
	file_holds(path, ORIGINAL);
}

TEST(spare_version_of_a_killed_worker_is_removed)
{
	begin_turns();
	ck_assert(is_left());
	md_spare_remove(path);
	ck_assert(!is_left());
	file_holds(path, COUNTING);
}

TEST(spare_file_gets_no_second_name_if_it_is_not_what_was_put_there)
{
	replace("the upgrade!");
	ck_assert(!md_spare_keep(live));
	ck_assert(!is_left());
}

TEST(spare_names_do_not_make_the_file_unknown)
{
	struct stat st;

	wait_for_clock(path);
	ck_assert(md_spare_keep(live));
	ck_assert(!lstat(path, &st));
	ck_assert(md_file_is_as(&st, &live->file));
	wait_for_clock(path);
	md_spare_drop(live);
	ck_assert(!is_left());
	ck_assert(!lstat(path, &st));
	ck_assert(md_file_is_as(&st, &live->file));
}

TEST(spare_file_whose_mode_changes_meanwhile_is_not_kept)
{
	ck_assert(md_spare_keep(live));
	ck_assert(!chmod(path, live->file.st_mode ^ 0100));
	replace(COUNTING);
	md_spare_take(&task, live);
	ck_assert_uint_eq(live->spare.file.st_ino, 0);
	ck_assert(!is_left());
}
