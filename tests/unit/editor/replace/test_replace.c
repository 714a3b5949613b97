// SPDX-License-Identifier: Apache-2.0
/* test_replace - there is always the complete old or the complete new file, whatever happens. */
#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "editor/replace/replace.h"
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

static char path[280], other[280];

static void put_file(const char *name, const char *text, mode_t mode)
{
	write_text(name, text);
	ck_assert_int_eq(chmod(name, mode), 0);
}

static void setup(void)
{
	scratch_make();
	snprintf(path, sizeof(path), "%s/prog", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	put_file(path, "old", 0751);
}

static void begin(struct me_replace *r, const char *name)
{
	ck_assert_msg(!me_replace_begin(r, name, 0, &err), "%s", err.msg);
}

static void refused(const char *name, int want, const char *text)
{
	struct me_replace r;
	struct mp_err err = {""};
	int rc = me_replace_begin(&r, name, 0, &err);

	ck_assert_msg(rc == want, "%d %s", rc, err.msg);
	ck_assert_msg(strstr(err.msg, text) != NULL, "'%s' is not in: %s", text, err.msg);
	me_replace_end(&r);
}

FIXTURE(setup, scratch_remove);

TEST(replace_puts_a_new_inode_there)
{
	struct me_replace r;
	struct stat before, after;
	int running = open(path, O_RDONLY);
	char buf[4] = "";

	ck_assert_int_eq(fstat(running, &before), 0);
	begin(&r, path);
	ck_assert_int_eq(nr_files_below(dir), 1); /* no name before it is complete */
	ck_assert_int_eq(write(r.new_fd, "new one", 7), 7);
	file_holds(path, "old");
	ck_assert_msg(!me_replace_commit(&r, NULL, &err), "%s", err.msg);
	me_replace_end(&r);
	file_holds(path, "new one");
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_ne(before.st_ino, after.st_ino);
	ck_assert_int_eq(after.st_mode & 07777, 0751);
	ck_assert_int_eq(nr_files_below(dir), 1);
	/* A process that has the old file open keeps it. */
	ck_assert_int_eq(pread(running, buf, 3, 0), 3);
	ck_assert_str_eq(buf, "old");
	close(running);
}

/* Whoever may read the file can lock it. */
TEST(replace_goes_on_while_another_program_locks_the_file)
{
	int locked = open(path, O_RDONLY);
	struct me_replace r, second;

	ck_assert_int_eq(flock(locked, LOCK_EX), 0);
	begin(&r, path);
	/* Two runs of one user exclude each other. */
	ck_assert_int_eq(me_replace_begin(&second, path, 0, &err), -EBUSY);
	me_replace_end(&second);
	ck_assert_int_eq(me_replace_commit(&r, NULL, &err), 0);
	me_replace_end(&r);
	begin(&r, path);
	me_replace_end(&r);
	close(locked);
}

TEST(replace_without_commit_leaves_everything)
{
	struct me_replace r;

	begin(&r, path);
	ck_assert_int_eq(write(r.new_fd, "new", 3), 3);
	me_replace_end(&r);
	file_holds(path, "old");
	ck_assert_int_eq(nr_files_below(dir), 1);
}

TEST(replace_sets_the_time_that_it_is_told)
{
	struct timespec when = {1000000000, 123456789};
	struct me_replace r;
	struct stat st;

	begin(&r, path);
	ck_assert_int_eq(me_replace_commit(&r, &when, &err), 0);
	me_replace_end(&r);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mtim.tv_sec, when.tv_sec);
	ck_assert_int_eq(st.st_mtim.tv_nsec, when.tv_nsec);
}

TEST(replace_follows_links_and_keeps_them)
{
	struct me_replace r;
	struct stat st;

	ck_assert_int_eq(symlink("prog", other), 0);
	begin(&r, other);
	ck_assert(r.through_link);
	ck_assert_int_eq(write(r.new_fd, "new", 3), 3);
	ck_assert_int_eq(me_replace_commit(&r, NULL, &err), 0);
	me_replace_end(&r);
	ck_assert_int_eq(lstat(other, &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	file_holds(path, "new");
	begin(&r, path);
	ck_assert(!r.through_link);
	me_replace_end(&r);
}

TEST(replace_refuses_other_names_unless_told)
{
	struct me_replace r;
	char below[320], elsewhere[340];

	/* A name in another directory keeps the old file. */
	snprintf(below, sizeof(below), "%s/below", dir);
	snprintf(elsewhere, sizeof(elsewhere), "%s/prog", below);
	ck_assert_int_eq(mkdir(below, 0700), 0);
	ck_assert_int_eq(link(path, elsewhere), 0);
	begin(&r, path);
	me_replace_end(&r);
	ck_assert_int_eq(unlink(elsewhere), 0);

	ck_assert_int_eq(link(path, other), 0);
	refused(path, -EPERM, "is the same file (a hard link)");
	ck_assert_int_eq(me_replace_begin(&r, path, ME_REPLACE_BREAK_LINKS, &err), 0);
	ck_assert_int_eq(write(r.new_fd, "new", 3), 3);
	ck_assert_int_eq(me_replace_commit(&r, NULL, &err), 0);
	me_replace_end(&r);
	file_holds(path, "new");
	file_holds(other, "old");
}

TEST(replace_without_symlinks_refuses_a_path_through_one)
{
	struct me_replace r;
	char real[PATH_MAX], name[PATH_MAX + 32], link_to[320];

	ck_assert_ptr_nonnull(realpath(path, real));
	ck_assert_int_eq(me_replace_begin(&r, real, ME_REPLACE_NO_SYMLINKS, &err), 0);
	ck_assert_int_eq(write(r.new_fd, "new", 3), 3);
	ck_assert_int_eq(me_replace_commit(&r, NULL, &err), 0);
	me_replace_end(&r);
	file_holds(path, "new");

	/* The directory is a link: to itself, here. */
	snprintf(link_to, sizeof(link_to), "%s/link", dir);
	ck_assert_int_eq(symlink(".", link_to), 0);
	*strrchr(real, '/') = '\0';
	snprintf(name, sizeof(name), "%s/link/prog", real);
	ck_assert_int_eq(me_replace_begin(&r, name, 0, &err), 0);
	me_replace_end(&r);
	ck_assert_int_eq(me_replace_begin(&r, name, ME_REPLACE_NO_SYMLINKS, &err), -EPERM);
	ck_assert_msg(strstr(err.msg, "a directory of this path is a symbolic link"), "%s",
		      err.msg);
	me_replace_end(&r);

	/* The file itself is a link; a path from the current directory. */
	snprintf(link_to, sizeof(link_to), "%s/prog-link", dir);
	ck_assert_int_eq(symlink("prog", link_to), 0);
	snprintf(name, sizeof(name), "%s/prog-link", real);
	ck_assert_int_eq(me_replace_begin(&r, name, ME_REPLACE_NO_SYMLINKS, &err), -EPERM);
	me_replace_end(&r);
	ck_assert_int_eq(me_replace_begin(&r, "prog", ME_REPLACE_NO_SYMLINKS, &err), -EPERM);
	me_replace_end(&r);
}

TEST(replace_refuses_what_is_not_to_be_replaced)
{
	char name[300];

	ck_assert_int_eq(chmod(path, 04755), 0);
	refused(path, -EPERM, "set-user-ID");
	ck_assert_int_eq(chmod(path, 02755), 0);
	refused(path, -EPERM, "set-group-ID");
	ck_assert_int_eq(chmod(path, 0755), 0);
	refused(dir, -EINVAL, "not a regular file");
	refused("/", -EISDIR, "/: Is a directory");
	snprintf(name, sizeof(name), "%s/nowhere", dir);
	refused(name, -ENOENT, "No such file");
	ck_assert_int_eq(symlink("nowhere", other), 0);
	refused(other, -ENOENT, other);
	snprintf(name, sizeof(name), "%s/fifo", dir);
	ck_assert_int_eq(mkfifo(name, 0600), 0);
	refused(name, -EINVAL, "not a regular file");
	file_holds(path, "old");
}

TEST(replace_refuses_immutable_files)
{
	int fd = open(path, O_RDONLY), flags = 0, set;

	ck_assert_int_ge(fd, 0);
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags))
		MORPH_SKIP("no inode flags here");
	set = flags | FS_IMMUTABLE_FL;
	if (ioctl(fd, FS_IOC_SETFLAGS, &set))
		MORPH_SKIP("may not make files immutable");
	refused(path, -EPERM, "immutable");
	ck_assert_int_eq(ioctl(fd, FS_IOC_SETFLAGS, &flags), 0);
	close(fd);
}

static void not_committed(struct me_replace *r, const char *text)
{
	struct mp_err err = {""};

	ck_assert_int_eq(me_replace_commit(r, NULL, &err), -EBUSY);
	ck_assert_msg(strstr(err.msg, "changed this file meanwhile") != NULL, "%s", err.msg);
	me_replace_end(r);
	file_holds(path, text);
	ck_assert_int_eq(nr_files_below(dir), 1);
}

/* Waits until the clock for file times, which advances in ticks, has changed. */
static void await_tick(void)
{
	struct timespec before, now;

	clock_gettime(CLOCK_REALTIME_COARSE, &before);
	do {
		usleep(1000);
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
}

TEST(replace_keeps_what_others_changed_meanwhile)
{
	struct me_replace r;

	/* Another file was put at the path: an upgrade. */
	begin(&r, path);
	put_file(other, "upgraded", 0755);
	ck_assert_int_eq(rename(other, path), 0);
	not_committed(&r, "upgraded");
	/* The file itself was written. */
	begin(&r, path);
	await_tick();
	put_file(path, "written", 0755);
	not_committed(&r, "written");
	/* Its attributes changed. */
	begin(&r, path);
	await_tick();
	ck_assert_int_eq(chmod(path, 0700), 0);
	not_committed(&r, "written");
}

TEST(replace_is_done_by_one_at_a_time)
{
	struct me_replace first, second;

	begin(&first, path);
	ck_assert_int_eq(me_replace_begin(&second, path, 0, &err), -EBUSY);
	ck_assert_ptr_nonnull(strstr(err.msg, "another morph-optimize"));
	me_replace_end(&second);
	ck_assert_int_eq(write(first.new_fd, "new", 3), 3);
	ck_assert_int_eq(me_replace_commit(&first, NULL, &err), 0);
	me_replace_end(&first);
	begin(&second, path);
	me_replace_end(&second);
	file_holds(path, "new");
}

/* Removes what a kill between link and rename leaves, and nothing else. */
TEST(replace_removes_what_a_kill_left)
{
	char left[340], stranger[340];
	struct me_replace r;

	begin(&r, path);
	snprintf(left, sizeof(left), "%s/%s", dir, r.temporary);
	me_replace_end(&r);
	snprintf(stranger, sizeof(stranger), "%s/.morph-new.0000000000000000", dir);
	put_file(left, "left", 0755);
	put_file(stranger, "another file's", 0755);
	begin(&r, path);
	me_replace_end(&r);
	ck_assert_int_eq(access(left, F_OK), -1);
	ck_assert_int_eq(access(stranger, F_OK), 0);
}

TEST(replace_tells_of_a_limit_on_the_size_of_files)
{
	struct rlimit before, limit;
	struct me_replace r;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){4, before.rlim_max};
	begin(&r, path);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(pwrite(r.new_fd, "x", 1, 100), -1);
	ck_assert_int_eq(errno, EFBIG);
	me_replace_end(&r);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	file_holds(path, "old");
}

/* A file that is open for writing cannot be executed; once it has its name, it must not be. */
TEST(replace_gives_a_file_that_can_run_at_once)
{
	struct me_replace r;
	char buf[4096];
	ssize_t n;
	int in = open("/bin/true", O_RDONLY), status;
	pid_t pid;

	ck_assert_int_ge(in, 0);
	begin(&r, path);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		ck_assert_int_eq(write(r.new_fd, buf, (size_t)n), n);
	close(in);
	ck_assert_int_eq(me_replace_commit(&r, NULL, &err), 0);
	fflush(stdout);
	pid = fork(); /* before me_replace_end() */
	if (!pid) {
		execl(path, path, NULL);
		_exit(errno == ETXTBSY ? 99 : 98);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	me_replace_end(&r);
}
