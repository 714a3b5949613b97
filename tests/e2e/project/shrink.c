// SPDX-License-Identifier: Apache-2.0
/* Preloaded: makes the file $SHRINK shorter when it is mapped, so that reading its pages raises SIGBUS. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t off)
{
	void *(*next)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
	void *map = next(addr, size, prot, flags, fd, off);
	const char *victim = getenv("SHRINK");
	struct stat a, b;

	if (victim && fd >= 0 && !fstat(fd, &a) && !stat(victim, &b) && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino && truncate(victim, 4096))
		abort();
	return map;
}

void *mmap64(void *addr, size_t size, int prot, int flags, int fd, off_t off)
{
	return mmap(addr, size, prot, flags, fd, off);
}
