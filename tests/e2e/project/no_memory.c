// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded: allocation number $NO_MEMORY_AT fails; with $NO_MEMORY_FROM, each one from that number on.
 * The number of allocations is appended to the file $NO_MEMORY_COUNT. Children that execute another program
 * than $NO_MEMORY_PROGRAM are left alone.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t nr, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static long at, from;
static atomic_long nr_so_far;

__attribute__((constructor)) static void start(void)
{
	const char *text = getenv("NO_MEMORY_PROGRAM");

	if (text && strcmp(text, program_invocation_short_name) != 0)
		return;
	text = getenv("NO_MEMORY_AT");
	at = text ? atol(text) : 0;
	text = getenv("NO_MEMORY_FROM");
	from = text ? atol(text) : 0;
	nr_so_far = 0;
}

__attribute__((destructor)) static void stop(void)
{
	const char *path = getenv("NO_MEMORY_COUNT"), *name = getenv("NO_MEMORY_PROGRAM");
	int fd;

	if (!path || (name && strcmp(name, program_invocation_short_name) != 0))
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || dprintf(fd, "%ld\n", (long)nr_so_far) < 0)
		abort();
	close(fd);
}

static bool fails(void)
{
	long nr = ++nr_so_far;

	if (nr != at && (!from || nr < from))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __libc_calloc(nr, size);
}

void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t nr, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(nr, size, &all) || fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_realloc(old, all);
}

void *memalign(size_t align, size_t size)
{
	return fails() ? NULL : __libc_memalign(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
	void *got = memalign(align, size);

	if (!got)
		return ENOMEM;
	*out = got;
	return 0;
}
