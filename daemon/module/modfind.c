// SPDX-License-Identifier: Apache-2.0
/* modfind - finds the file of a mapping; see modfind.h. */
#include "daemon/module/modfind.h"
#include "libprof/base/defaults.h"
#include "libprof/elf/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int64_t stamp_ns(const struct timespec *t)
{
	return t->tv_sec * INT64_C(1000000000) + t->tv_nsec;
}

enum morph_module_status md_modfind_classify(const char *path, uint64_t ino)
{
	/* What perf and, of a file, morphmon say instead of a path. */
	if (!strcmp(path, MD_MODFIND_TOO_LONG) || !strcmp(path, "//enomem") || (!path[0] && ino))
		return MORPH_MODULE_UNREADABLE;
	if (!strncmp(path, "[vdso]", 6) || !strncmp(path, "[vsyscall]", 10))
		return MORPH_MODULE_VDSO;
	/* "//anon", "[heap]", "[stack]", "[anon:...]", "", shared memory */
	if (path[0] != '/' || path[1] == '/' || !strncmp(path, "/dev/zero", 9) ||
	    !strncmp(path, "/anon_hugepage", 14) || !strncmp(path, "/SYSV", 5))
		return MORPH_MODULE_ANONYMOUS;
	return MORPH_MODULE_KNOWN;
}

/* Return: true if /proc/PID/maps gives this device and inode for the mapping at @mmap->start. */
static bool maps_agree(const struct morph_mmap *mmap)
{
	struct mp_mappings maps;
	struct mp_mapping map;
	bool found = false;

	if (!mp_mappings_open(&maps, (pid_t)mmap->task.tgid))
		while (!found && mp_mappings_next(&maps, &map) > 0)
			found = map.start == mmap->start;
	mp_mappings_close(&maps);
	return found && map.dev_major == mmap->dev_major && map.dev_minor == mmap->dev_minor &&
	       map.ino == mmap->ino;
}

/*
 * Return: true if @fd is the file of @mmap. A file opened through map_files is the mapping's
 * own inode. Then a file system that gives stat() another device (btrfs, overlayfs) is accepted
 * if /proc/PID/maps agrees with the record.
 */
static bool is_same_file(int fd, const struct morph_mmap *mmap, bool through_map,
			 struct md_modfind *out)
{
	bool has_generation;
	struct stat st;
	long version = 0;

	if (fstat(fd, &st) < 0)
		return false;
	has_generation = ioctl(fd, FS_IOC_GETVERSION, &version) == 0;
	out->dev = st.st_dev;
	out->ino = st.st_ino;
	out->generation = has_generation ? (uint32_t)version : 0;
	out->mtime_ns = stamp_ns(&st.st_mtim);
	out->ctime_ns = stamp_ns(&st.st_ctim);
	if (st.st_ino != mmap->ino || major(st.st_dev) != mmap->dev_major ||
	    minor(st.st_dev) != mmap->dev_minor)
		return through_map && maps_agree(mmap);
	if (has_generation && (mmap->task.flags & MORPH_MMAP_GENERATION))
		return (uint32_t)version == (uint32_t)mmap->ino_generation;
	return true;
}

static bool is_elsewhere(uint32_t tgid)
{
	struct stat theirs, init;
	char name[64];

	/* morphd may have a mount namespace of its own, so compare with process 1. */
	snprintf(name, sizeof(name), "/proc/%u/ns/mnt", tgid);
	if (stat(name, &theirs) < 0)
		return false;
	if (stat("/proc/1/ns/mnt", &init) < 0 && stat("/proc/self/ns/mnt", &init) < 0)
		return false;
	return theirs.st_ino != init.st_ino;
}

static void strip_deleted(char *path)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(path), cut = sizeof(mark) - 1;

	if (len > cut && !strcmp(path + len - cut, mark))
		path[len - cut] = 0;
}

/*
 * Another user may have put a device or a pipe in the file's place. Check the type before
 * opening for reading.
 */
static int open_regular(const char *path)
{
	int fd, look = open(path, O_PATH | O_CLOEXEC), saved;
	struct stat st;
	char name[64];

	if (look < 0)
		return -1;
	if (fstat(look, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(look);
		errno = ENOENT;
		return -1;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", look);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	saved = errno;
	close(look);
	errno = saved;
	return fd;
}

void md_modfind_open(const struct morph_mmap *mmap, int64_t mapped_ns, struct md_modfind *out)
{
	char names[3][MP_PATH_ROOM], plain[PATH_MAX];
	bool other_file = false, denied = false;
	int64_t changed;
	size_t i;

	*out = (struct md_modfind){.fd = -1};
	out->status = md_modfind_classify(mmap->path, mmap->ino);
	if (out->status)
		return;
	snprintf(plain, sizeof(plain), "%s", mmap->path);
	strip_deleted(plain);
	snprintf(names[0], sizeof(names[0]), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64,
		 mmap->task.tgid, (uint64_t)mmap->start, (uint64_t)(mmap->start + mmap->len));
	snprintf(names[1], sizeof(names[1]), "/proc/%u/root%s", mmap->task.tgid, plain);
	snprintf(names[2], sizeof(names[2]), "%s", plain);
	for (i = 0; i < 3; i++) {
		int fd = open_regular(names[i]);

		if (fd < 0) {
			denied |= i && errno != ENOENT && errno != ENOTDIR && errno != ESRCH;
			continue;
		}
		if (is_same_file(fd, mmap, i == 0, out)) {
			/*
			 * If the file was written after it was mapped, samples did not hit its
			 * present contents. If the file system has no generations, a changed
			 * inode may even be another file with a reused number.
			 */
			changed = out->mtime_ns;
			if (i && !(mmap->task.flags & MORPH_MMAP_GENERATION) &&
			    out->ctime_ns > changed)
				changed = out->ctime_ns;
			if (mapped_ns && changed > mapped_ns) {
				close(fd);
				out->status = MORPH_MODULE_REPLACED;
				out->written_later = true;
				return;
			}
			out->fd = fd;
			return;
		}
		close(fd);
		other_file |= i != 0;
	}
	if ((mmap->task.flags & MORPH_MMAP_NAMESPACE) || is_elsewhere(mmap->task.tgid))
		out->status = MORPH_MODULE_NAMESPACE;
	else if (other_file)
		out->status = MORPH_MODULE_REPLACED;
	else if (denied)
		out->status = MORPH_MODULE_UNREADABLE;
	else
		out->status = MORPH_MODULE_DELETED;
	if (!strncmp(plain, "/memfd:", 7))
		out->status = MORPH_MODULE_ANONYMOUS;
}

bool md_modfind_is_steady(const struct md_modfind *found)
{
	struct stat st;

	return !fstat(found->fd, &st) && stamp_ns(&st.st_mtim) == found->mtime_ns;
}

static bool is_same(const struct stat *st, uint64_t dev, uint64_t ino, int64_t mtime_ns,
		    int64_t ctime_ns)
{
	return st->st_dev == dev && st->st_ino == ino && stamp_ns(&st->st_mtim) == mtime_ns &&
	       stamp_ns(&st->st_ctim) == ctime_ns;
}

bool md_modfind_is_unchanged(const char *path, uint64_t dev, uint64_t ino, int64_t mtime_ns,
			     int64_t ctime_ns)
{
	struct stat st;

	return !stat(path, &st) && is_same(&st, dev, ino, mtime_ns, ctime_ns);
}

bool md_modfind_is_open(int fd, uint64_t dev, uint64_t ino, int64_t mtime_ns, int64_t ctime_ns)
{
	struct stat st;

	return !fstat(fd, &st) && is_same(&st, dev, ino, mtime_ns, ctime_ns);
}
