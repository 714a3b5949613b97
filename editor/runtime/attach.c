// SPDX-License-Identifier: Apache-2.0
/*
 * attach - maps the file of counts over the counters, begins to audit, or starts the clock of calls, before other code of the
 * program runs. Uses no library, no data and no relocation. If anything fails, the counters
 * stay private memory, and the program runs as usual. Called by start.S.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "editor/base/runtime.h"
#include "editor/runtime/audit.h"
#include "editor/runtime/call_clock.h"
#include "editor/runtime/shared_file.h"
#include "editor/runtime/system.h"
#include "editor/runtime/thread.h"
#include "libprof/note/counts_file.h"

#define HEADER_BYTES  MP_COUNTS_FILE_HEADER_BYTES
#define NUMBER_DIGITS 10 /* of a process or a user */

const void *me_runtime_attach(const struct me_runtime_params *params, uint64_t *stack);

static bool is_secure(const uint64_t *auxv)
{
	for (; auxv[0] != AT_NULL; auxv += 2)
		if (auxv[0] == AT_SECURE)
			return auxv[1];
	return true;
}

/* The same in a library, which is not given the auxiliary vector. @buf: scratch memory. */
static bool is_secure_library(uint64_t *buf)
{
	static const char name[] = "/proc/self/auxv";
	long fd, bytes;

	buf[0] = AT_NULL;
	if (call1(SYS_getuid, 0) != call1(SYS_geteuid, 0) ||
	    call1(SYS_getgid, 0) != call1(SYS_getegid, 0))
		return true;
	fd = call4(SYS_openat, AT_FDCWD, (long)name, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd != -ENOENT; /* without /proc, the ids decide */
	bytes = call4(SYS_read, fd, (long)buf, ME_RUNTIME_PATH - 16, 0);
	call1(SYS_close, fd);
	if (bytes < 16)
		return true;
	buf[bytes / 16 * 2] = AT_NULL;
	return is_secure(buf);
}

/*
 * A program with more rights than the user who started it must not write a file where
 * that user says. @stack: argc, the arguments, 0, the environment, 0, the auxiliary
 * vector; NULL: in a library. *@fsgsbase: user space may read and write the bases of %fs and %gs.
 */
static bool is_trusted(const uint64_t *stack, uint64_t *buf, bool *fsgsbase)
{
	const uint64_t *auxv = stack;
	bool secure;

	if (stack) {
		auxv += 1 + auxv[0] + 1;
		while (*auxv++)
			;
		secure = is_secure(auxv);
	} else {
		secure = is_secure_library(buf);
		auxv = buf;
	}
	for (*fsgsbase = false; !secure && auxv[0] != AT_NULL; auxv += 2)
		if (auxv[0] == AT_HWCAP2)
			*fsgsbase = auxv[1] & 2;
	return !secure;
}

static char *put_number(char *to, uint64_t number)
{
	uint64_t scale = 1;

	for (; number / scale >= 10; scale *= 10)
		;
	for (; scale; scale /= 10)
		*to++ = (char)('0' + number / scale % 10);
	return to;
}

/*
 * Copy the path, with the process id for the first "%p", and the effective user id for the first "%u", which
 * sets *@has_user. Return: false if the path has no end.
 */
static bool expand_path(const char *from, char *to, bool *has_user)
{
	bool has_process = false;

	*has_user = false;
	for (const char *end = from + ME_RUNTIME_PATH; from < end; from++) {
		bool is_pair = *from == '%' && from + 1 < end;

		if (is_pair && from[1] == 'p' && !has_process) {
			to = put_number(to, (uint64_t)call1(SYS_getpid, 0));
			has_process = true;
			from++;
		} else if (is_pair && from[1] == 'u' && !*has_user) {
			to = put_number(to, (uint64_t)call1(SYS_geteuid, 0));
			*has_user = true;
			from++;
		} else {
			*to++ = *from;
			if (!*from)
				return true;
		}
	}
	return false;
}

/* Growing a file beyond this limit raises a signal that ends the program; in memory, tmpfs, so does reserving space. */
static uint64_t largest_file(void)
{
	struct rlimit limit;

	return call4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit) ? 0 : limit.rlim_cur;
}

/*
 * May the file be used if others may write its directory? A file that others can open they can make shorter, which
 * ends the program. A second name is a sign that the file was made for another purpose. Where no space can be
 * reserved, a full disk would end the program.
 */
static bool is_private(int fd)
{
	struct stat st;

	return !call4(SYS_fstat, fd, (long)&st, 0, 0) && S_ISREG(st.st_mode) &&
	       st.st_uid == (uint64_t)call1(SYS_geteuid, 0) && st.st_nlink == 1 &&
	       !(st.st_mode & 077) &&
	       (st.st_size >= ME_RUNTIME_PAGE || largest_file() >= ME_RUNTIME_PAGE) &&
	       !call4(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, 0, ME_RUNTIME_PAGE);
}

/* Return: a descriptor, or an error below 0. */
static int open_file(const char *path, bool has_user)
{
	long fd = call4(SYS_openat, AT_FDCWD, (long)path,
			O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK,
			has_user ? 0600 : 0644);

	if (fd >= 0 && has_user && !is_private((int)fd)) {
		call1(SYS_close, fd);
		return -EPERM;
	}
	return (int)fd;
}

/*
 * Check the file's size: a header and 1 to @max sets of counters. An empty file gets
 * @max sets, or as many as are allowed. Space on disk is reserved for the first set,
 * since writing to mapped memory without space ends the program. Return: number of
 * sets; 0: the file cannot be used.
 */
static uint64_t size_file(int fd, uint64_t set, uint64_t max)
{
	uint64_t sets, bytes;
	struct stat st;
	long ret;

	if (call4(SYS_fstat, fd, (long)&st, 0, 0) || !S_ISREG(st.st_mode))
		return 0;
	sets = st.st_size ? ((uint64_t)st.st_size - HEADER_BYTES) / set : max;
	if (!sets || sets > max)
		return 0;
	while (!st.st_size && sets && largest_file() < HEADER_BYTES + sets * set)
		sets /= 2;
	bytes = HEADER_BYTES + sets * set;
	if (!sets || (st.st_size && (uint64_t)st.st_size != bytes))
		return 0;
	/* fallocate() never shrinks a file, so it cannot harm processes that have it mapped. */
	ret = call4(SYS_fallocate, fd, 0, (long)bytes - ME_RUNTIME_PAGE, ME_RUNTIME_PAGE);
	if (!ret)
		ret = call4(SYS_fallocate, fd, 0, 0, (long)(HEADER_BYTES + set));
	if (ret == -EOPNOTSUPP || ret == -ENOSYS)
		ret = st.st_size ? 0 : call4(SYS_ftruncate, fd, (long)bytes, 0, 0);
	return ret ? 0 : sets;
}

static bool is_ours(const uint64_t *header, const uint64_t *want)
{
	uint64_t i = 0;

	/* A field of 0 is new, or another process is about to write the same value. */
	for (; i < sizeof(struct mp_counts_file_header) / 8; i++)
		if (header[i] && header[i] != want[i])
			return false;
	for (; i < (want[4] ? MP_COUNTS_FILE_CLAIMS : HEADER_BYTES) / 8; i++)
		if (header[i])
			return false;
	return true;
}

/*
 * Fill in the header, perhaps while other processes do the same. The hash goes first:
 * if two different programs use one path, only one of them gets the file.
 */
static bool claim(uint64_t *header, const struct me_runtime_params *params, uint64_t sets)
{
	uint64_t want[5];

	_Static_assert(sizeof(want) == sizeof(struct mp_counts_file_header), "of these five");
	want[0] = 0x544e434850524f4dull; /* MP_COUNTS_FILE_MAGIC */
	want[1] = params->state ? MP_COUNTS_FILE_VERSION_SETS : MP_COUNTS_FILE_VERSION;
	want[1] |= (uint64_t)HEADER_BYTES << 32;
	want[2] = params->counters_bytes;
	want[3] = params->table_hash;
	want[4] = params->state ? sets : 0;
	if (!is_ours(header, want))
		return false;
	for (int k = 4; k >= 0; k--) {
		int i = k < 3 ? k : 7 - k; /* 3, 4, 2, 1, 0 */

		if (!claim_word(&header[i], want[i]))
			return false;
	}
	return true;
}

/* Add the counts so far: constructors of libraries, and resolvers, have run before. */
static void add_counts(uint64_t *to, const uint64_t *from, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes / 8; i++)
		if (from[i])
			__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
}

/* Return: address of the mapped file, which stays mapped if it has several sets; else 0. */
static uint64_t map_over(int fd, const struct me_runtime_params *params, uint64_t sets)
{
	char *counters = (char *)params + params->counters;
	uint64_t bytes = params->counters_bytes, all = HEADER_BYTES + sets * bytes;
	char *file;
	long ret;

	/* Map the file anywhere first: an error then leaves the counters in place. */
	ret = call6(SYS_mmap, 0, (long)all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (failed(ret))
		return 0;
	file = (char *)ret;
	if (!claim((uint64_t *)file, params, sets)) {
		call4(SYS_munmap, (long)file, (long)all, 0, 0);
		return 0;
	}
	add_counts((uint64_t *)(file + HEADER_BYTES), (const uint64_t *)counters, bytes);
	if (sets > 1)
		ret = call6(SYS_mmap, (long)counters, (long)bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_FIXED, fd, HEADER_BYTES);
	else
		ret = call6(SYS_mremap, (long)(file + HEADER_BYTES), (long)bytes, (long)bytes,
			    MREMAP_MAYMOVE | MREMAP_FIXED, (long)counters, 0);
	if (failed(ret)) {
		/* The failed call may have unmapped the counters. */
		call6(SYS_mmap, (long)counters, (long)bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		call4(SYS_munmap, (long)file, (long)all, 0, 0);
		return 0;
	}
	if (params->base)
		*(uint64_t *)((char *)params + params->base) = (uint64_t)counters + ME_RUNTIME_PAGE;
	if (sets > 1)
		return (uint64_t)file;
	call4(SYS_munmap, (long)file, HEADER_BYTES, 0, 0);
	return 0;
}

static void attach(const struct me_runtime_params *params, const uint64_t *stack)
{
	char path[ME_RUNTIME_PATH + 2 * NUMBER_DIGITS] __attribute__((aligned(8)));
	uint64_t sets, file = 0;
	bool fsgsbase, has_user;
	int fd;

	if (params->magic != ME_RUNTIME_MAGIC || !is_trusted(stack, (uint64_t *)path, &fsgsbase) ||
	    !expand_path(params->path, path, &has_user))
		return;
	fd = open_file(path, has_user);
	if (params->nr_audited) {
		me_audit_start(params, fd, fsgsbase);
		if (fd >= 0)
			call1(SYS_close, fd);
		return;
	}
	if (params->has_clock) {
		me_call_clock_start(params, fd);
		if (fd >= 0)
			call1(SYS_close, fd);
		return;
	}
	if (fd < 0)
		return;
	sets = size_file(fd, params->counters_bytes, params->state ? MP_COUNTS_FILE_MAX_SETS : 1);
	if (sets)
		file = map_over(fd, params, sets);
	call1(SYS_close, fd);
	if (file)
		me_runtime_threads_start(params, file, sets, fsgsbase, (uint64_t)path);
}

/* The kernel has told the program of the runtime's entry as its own. @stack: as for is_trusted(). */
static void tell_entry(const struct me_runtime_params *params, uint64_t *stack)
{
	uint64_t *auxv = stack + 1 + stack[0] + 1;

	while (*auxv)
		auxv++;
	/* The loader may have taken away parts of the environment. */
	while (!*auxv)
		auxv++;
	for (; auxv[0] != AT_NULL; auxv += 2)
		if (auxv[0] == AT_ENTRY)
			auxv[1] = (uint64_t)params + (uint64_t)params->next;
}

/*
 * @stack: as a program finds it at its start; NULL: in a library. Return: address to go
 * on at, or NULL.
 */
const void *me_runtime_attach(const struct me_runtime_params *params, uint64_t *stack)
{
	attach(params, stack);
	if (stack)
		tell_entry(params, stack);
	return params->next ? (const char *)params + params->next : NULL;
}
