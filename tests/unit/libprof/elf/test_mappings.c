// SPDX-License-Identifier: Apache-2.0
/*
 * test_mappings - a process that names its files as it likes does not invent mappings in its list.
 */
#include "tests/unit/files.h"
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "libprof/elf/mappings.h"

static void setup(void)
{
	scratch_make();
	ck_assert_int_eq(chdir(dir), 0);
}

FIXTURE(setup, scratch_remove);

/* Maps a page of the file @name. */
static void *map_file(const char *name, int rights)
{
	void *at;
	int fd;

	write_file(name, "x", 1);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	at = mmap(NULL, 1, rights, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	close(fd);
	return at;
}

/* The mapping at @start; NULL: none. Its path is copied to @path. */
static bool find(void *start, bool code, struct mp_mapping *out, char path[8192])
{
	struct mp_mappings maps;
	bool found = false;
	int r;

	ck_assert_int_eq(mp_mappings_open(&maps, code ? getpid() : 0), 0);
	while (!found &&
	       (r = code ? mp_mappings_next_code(&maps, out) : mp_mappings_next(&maps, out)) > 0)
		found = out->start == (uintptr_t)start;
	ck_assert_int_ge(r, 0);
	if (found)
		snprintf(path, 8192, "%s", out->path);
	mp_mappings_close(&maps);
	return found;
}

TEST(mappings_tell_each_field)
{
	void *at = map_file("file", PROT_READ | PROT_EXEC);
	char path[8192];
	struct mp_mapping map;
	struct stat st;

	ck_assert(find(at, false, &map, path));
	ck_assert_uint_eq(map.end, (uintptr_t)at + 4096);
	ck_assert_uint_eq(map.off, 0);
	ck_assert_str_eq(map.rights, "r-xp");
	ck_assert_int_eq(stat("file", &st), 0);
	ck_assert_uint_eq(map.ino, st.st_ino);
	ck_assert_uint_eq(map.dev_major, major(st.st_dev));
	ck_assert_uint_eq(map.dev_minor, minor(st.st_dev));
	ck_assert_str_eq(strrchr(path, '/'), "/file");
	ck_assert(find(at, true, &map, path));
	ck_assert_int_eq(unlink("file"), 0);
	ck_assert(find(at, false, &map, path));
	ck_assert_str_eq(strrchr(path, '/'), "/file (deleted)");
	munmap(at, 1);
	ck_assert(!find(at, false, &map, path));
}

TEST(mappings_of_data_are_no_code)
{
	void *at = map_file("file", PROT_READ);
	char path[8192];
	struct mp_mapping map;

	ck_assert(find(at, false, &map, path));
	ck_assert(!find(at, true, &map, path));
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	ck_assert_int_eq(mprotect((char *)at, 4096, PROT_NONE), 0);
	ck_assert(find(at, false, &map, path));
	ck_assert_str_eq(map.rights, "---p");
	ck_assert_str_eq(path, "");
}

/* A line has any length, and what a name holds is a name. */
TEST(mappings_take_any_name)
{
	static const char line[] = "1000-2000 r-xp 00000000 08:01 7 file";
	char path[8192], name[300];
	struct mp_mapping map;
	void *at;

	for (int i = 0; i < 3; i++) {
		memset(name, 'a' + i, 200);
		snprintf(name + 200, sizeof(name) - 200, "\n%s", line);
		ck_assert_int_eq(mkdir(name, 0700), 0);
		ck_assert_int_eq(chdir(name), 0);
	}
	snprintf(name, sizeof(name), "\n%s", line);
	at = map_file(name, PROT_READ | PROT_EXEC);
	ck_assert(find(at, true, &map, path));
	ck_assert_uint_gt(strlen(path), 700);
	ck_assert_ptr_nonnull(strstr(path, "/\\0121000-2000 r-xp"));
	ck_assert(!find((void *)(uintptr_t)0x1000, false, &map, path));
	ck_assert_int_eq(chdir(dir), 0);
}

TEST(mappings_of_nobody)
{
	struct mp_mappings maps;

	/* No process has the largest number that proc can tell. */
	ck_assert_int_eq(mp_mappings_open(&maps, INT32_MAX), -ENOENT);
	mp_mappings_close(&maps);
}
