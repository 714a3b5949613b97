// SPDX-License-Identifier: Apache-2.0
/* test_remove_tree - another user can neither keep root at work in a directory, nor lead it elsewhere. */
#include "libprof/base/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/scratch.h"
#include "tests/unit/suite.h"

#define NOBODY 65534

static uint32_t nr_names(const char *dir)
{
	uint32_t nr = 0;
	DIR *d = opendir(dir);

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		nr++;
	closedir(d);
	return nr - 2;
}

static void make_files(int dir, uint32_t nr)
{
	char name[16];

	for (uint32_t i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "%u", i);
		ck_assert_int_eq(mknodat(dir, name, S_IFREG | 0600, 0), 0);
	}
}

/* A user who has opened a directory of his own cannot create names there once root empties it. */
FIXTURE(scratch_make, scratch_remove);

TEST(root_takes_directories_from_their_owner)
{
	char path[sizeof(dir) + 8];
	struct stat st;
	int inner, status, made;
	pid_t child;

	if (geteuid())
		MORPH_SKIP("only root can take directories from others");
	snprintf(path, sizeof(path), "%s/inner", dir);
	ck_assert(!mkdir(path, 0755) && !chmod(dir, 0755));
	inner = open(path, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(inner, 0);
	ck_assert_int_eq(mkdirat(inner, "deep", 0755), 0);
	ck_assert_int_eq(fchown(inner, NOBODY, NOBODY), 0);
	make_files(inner, 10);
	mp_remove_tree(dir, 1);
	/* What is too deep stays, and so do the directories around it. */
	ck_assert_int_eq(fstatat(inner, "deep", &st, 0), 0);
	ck_assert_int_eq(fstat(inner, &st), 0);
	ck_assert_uint_eq(st.st_uid, 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(2);
		made = openat(inner, "new", O_CREAT | O_WRONLY, 0600);
		_exit(made < 0 && errno == EACCES ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	close(inner);
	mp_remove_tree(dir, 2);
	ck_assert_int_ne(access(dir, F_OK), 0);
}

TEST(removing_ends_behind_so_many_entries)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	ck_assert_int_ge(fd, 0);
	make_files(fd, 1000);
	/* The directory names itself and its parent, too. */
	mp_remove_some(dir, 1, 302);
	ck_assert_uint_ge(nr_names(dir), 698);
	ck_assert_uint_le(nr_names(dir), 700);
	mp_remove_some(dir, 1, 1000);
	ck_assert_int_ne(access(dir, F_OK), 0);
	close(fd);
}

TEST(other_file_systems_stay)
{
	char path[sizeof(dir) + 16];
	struct stat st, inner;

	snprintf(path, sizeof(path), "%s/mount", dir);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", path, "tmpfs", 0, NULL))
		MORPH_SKIP("only root can mount");
	ck_assert(!stat(dir, &st) && !stat(path, &inner) && st.st_dev != inner.st_dev);
	strcat(path, "/file");
	ck_assert_int_eq(mknod(path, S_IFREG | 0600, 0), 0);
	mp_remove_tree(dir, 2);
	ck_assert_int_eq(access(path, F_OK), 0);
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(umount(path), 0);
}
