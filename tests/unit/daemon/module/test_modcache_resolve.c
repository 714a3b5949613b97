// SPDX-License-Identifier: Apache-2.0
/* test_modcache_resolve - which file a mapping is of, when its process has ended. */
#include "tests/unit/suite.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/module/modcache_private.h"
#include "libprof/base/clock.h"
#include "tests/unit/scratch.h"

static struct md_modcache *mc;
static struct morph_mmap *record;
static char path[300], hidden[300];

static void setup(void)
{
	char command[800];
	struct stat st;

	scratch_make();
	mc = md_modcache_new();
	ck_assert_ptr_nonnull(mc);
	snprintf(path, sizeof(path), "%s/program", dir);
	snprintf(hidden, sizeof(hidden), "%s/hidden", dir);
	snprintf(command, sizeof(command), "cp /proc/%d/exe '%s'", getpid(), path);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	record = calloc(1, sizeof(*record) + sizeof(path));
	ck_assert_ptr_nonnull(record);
	record->task.tgid = 0x3fffffff; /* no such process */
	record->dev_major = major(st.st_dev);
	record->dev_minor = minor(st.st_dev);
	record->ino = st.st_ino;
	snprintf(record->path, sizeof(path), "%s", path);
}

static void teardown(void)
{
	free(record);
	md_modcache_free(mc);
	scratch_remove();
}

static const struct md_file *resolve(void)
{
	struct md_file *file = NULL;

	ck_assert_int_eq(md_modcache_resolve(mc, record, 0, &file), 0);
	ck_assert_ptr_nonnull(file);
	return file;
}

FIXTURE(setup, teardown);

TEST(file_is_read_once)
{
	const struct md_file *file = resolve();

	ck_assert_uint_ne(file->module, 0);
	ck_assert_ptr_eq(resolve(), file);
}

TEST(missing_file_is_not_looked_for_at_each_mapping)
{
	ck_assert_int_eq(rename(path, hidden), 0);
	ck_assert_uint_eq(resolve()->why, MP_UNATTR_DELETED);
	ck_assert_int_eq(rename(hidden, path), 0);
	ck_assert_uint_eq(resolve()->why, MP_UNATTR_DELETED);
	/* Another file is another question. */
	record->ino++;
	ck_assert_uint_eq(resolve()->why, MP_UNATTR_REPLACED);
	record->ino--;
	/* A process that runs may show its file. */
	record->task.tgid = (uint32_t)getpid();
	ck_assert_uint_ne(resolve()->module, 0);
}

TEST(changed_file_is_read_again)
{
	const struct md_file *file = resolve();
	struct timespec times[2] = {{1000, 0}, {1000, 0}};

	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	ck_assert_ptr_ne(resolve(), file);
}

TEST(file_is_looked_at_again_for_a_later_mapping)
{
	const struct md_file *file = resolve();
	struct timespec times[2] = {{1000, 0}, {1000, 0}};

	record->task.time_ns = mp_now_ns();
	ck_assert_ptr_eq(resolve(), file);
	/* It was as it had been read after this mapping was made. */
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	ck_assert_ptr_eq(resolve(), file);
	record->task.time_ns = mp_now_ns();
	ck_assert_ptr_ne(resolve(), file);
}

/* The record names the inode's generation, as those of kernels do. Return: the file, open. */
static int add_generation(void)
{
	int fd = open(path, O_RDONLY), version = 0;

	ck_assert_int_ge(fd, 0);
	(void)ioctl(fd, FS_IOC_GETVERSION, &version);
	record->task.flags |= MORPH_MMAP_GENERATION;
	record->ino_generation = (uint32_t)version;
	return fd;
}

TEST(file_that_is_gone_is_not_looked_for_at_each_mapping)
{
	const struct md_file *file;
	struct timespec times[2] = {{1000, 0}, {1000, 0}};

	close(add_generation());
	file = resolve();
	ck_assert_uint_ne(file->module, 0);
	ck_assert_int_eq(rename(path, hidden), 0);
	ck_assert_ptr_eq(resolve(), file);
	ck_assert_int_eq(utimensat(AT_FDCWD, hidden, times, 0), 0);
	ck_assert_int_eq(rename(hidden, path), 0);
	ck_assert_ptr_eq(resolve(), file);
	/* A process that runs may show its file. */
	record->task.tgid = (uint32_t)getpid();
	ck_assert_ptr_ne(resolve(), file);
}

TEST(mapped_file_without_its_path_is_looked_at_again_for_a_later_mapping)
{
	struct timespec times[2] = {{1000, 0}, {1000, 0}};
	const struct md_file *file;
	int fd = add_generation();
	void *mapping = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	ck_assert_ptr_ne(mapping, MAP_FAILED);
	if (geteuid())
		MORPH_SKIP("/proc/PID/map_files needs root");
	close(fd);
	file = resolve();
	record->task.tgid = (uint32_t)getpid();
	record->start = (uint64_t)mapping;
	record->len = 4096;
	record->task.time_ns = mp_now_ns();
	ck_assert_int_eq(rename(path, hidden), 0);
	ck_assert_ptr_eq(resolve(), file);
	/* It was as it had been read after this mapping was made. */
	ck_assert_int_eq(utimensat(AT_FDCWD, hidden, times, 0), 0);
	ck_assert_ptr_eq(resolve(), file);
	record->task.time_ns = mp_now_ns();
	ck_assert_ptr_ne(resolve(), file);
}
