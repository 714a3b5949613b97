// SPDX-License-Identifier: Apache-2.0
/* halfway - looks at the system call of a thread; see halfway.h. */
#include "daemon/live/halfway.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/live/process.h"

struct call {
	int nr;
	uint64_t args[6];
	uint64_t sp, ip;
};

/* Return: as md_halfway(); MD_HALFWAY_YES: it waits in *@out. */
static int read_call(pid_t tid, struct call *out)
{
	char name[64], text[256];
	uint64_t *a = out->args;
	ssize_t n = -1;
	int fd, r;

	snprintf(name, sizeof(name), "/proc/%d/syscall", (int)tid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, text, sizeof(text) - 1);
	r = n < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (r)
		return r == ENOENT || r == ESRCH ? MD_HALFWAY_NO : -r;
	text[n] = '\0';
	if (!strcmp(text, "running\n"))
		return MD_HALFWAY_RUNS;
	if (sscanf(text,
		   "%d 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64
		   " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64,
		   &out->nr, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &out->sp, &out->ip) != 9)
		return MD_HALFWAY_NO;
	/* The kernel's own, such as a worker of io_uring: what it shows is the call that made it. */
	return out->sp || out->ip ? MD_HALFWAY_YES : MD_HALFWAY_NO;
}

/*
 * Does the call give something away, or take it, in several parts? *@fd: the file that gets them; -1: that does not matter.
 * *@size: bytes that a pipe gets at once, or not at all; 0: not known.
 */
static bool has_parts(const struct call *c, int *fd, uint64_t *size)
{
	const uint64_t *a = c->args;
	const uint32_t flags = (uint32_t)a[3], nr = (uint32_t)a[2];

	*fd = -1;
	*size = 0;
	switch (c->nr) {
	case SYS_write:
	case SYS_pwrite64:
		*size = a[2];
		*fd = (int)a[0];
		return *size > 1;
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2: *fd = (int)a[0]; return true;
	/* To a pipe, these give what has room at once. */
	case SYS_sendfile:
		*size = 1;
		*fd = (int)a[0];
		return a[3] > 1;
	case SYS_splice:
	case SYS_copy_file_range:
		*size = 1;
		*fd = (int)a[2];
		return a[4] > 1;
	case SYS_sendto: return a[2] > 1;
	case SYS_sendmsg:
	case SYS_sendmmsg: return true;
	case SYS_recvfrom: return a[2] > 1 && (flags & MSG_WAITALL);
	case SYS_recvmsg: return nr & MSG_WAITALL; /* its flags are there */
	case SYS_recvmmsg: return (flags & MSG_WAITALL) || (nr > 1 && !(flags & MSG_WAITFORONE));
	/* It has handed over, and now waits: the end of the wait does not show. */
	case SYS_io_uring_enter: return (uint32_t)a[1] && nr && (flags & IORING_ENTER_GETEVENTS);
	case SYS_io_getevents:
	case SYS_io_pgetevents: return (int64_t)a[1] > 1;
	}
	return false;
}

/* Without asking another machine, or a process that serves files, which may not answer. 0: not known. */
static mode_t kind_of(pid_t tid, int fd)
{
	char name[64];
	struct statx st;

	snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)tid, fd);
	return statx(AT_FDCWD, name, AT_STATX_DONT_SYNC, STATX_TYPE, &st)
		       ? 0
		       : (mode_t)st.stx_mode & S_IFMT;
}

/* Does it still wait where it waited? Return: as read_call(). */
static int read_call_again(pid_t tid, const struct call *before)
{
	struct call now;
	int r = read_call(tid, &now);
	bool same = r == MD_HALFWAY_YES && now.nr == before->nr && now.sp == before->sp &&
		    now.ip == before->ip && !memcmp(now.args, before->args, sizeof(now.args));

	return r == MD_HALFWAY_YES && !same ? MD_HALFWAY_RUNS : r;
}

/*
 * A write to a file on a disk waits where no signal ends it, in state D; not so where a process serves the file. The state is
 * read after the call: a thread in another one may have woken up meanwhile, as those that write a lot do all the time.
 * Return: as md_halfway().
 */
static int look_at_file(pid_t tid, const struct call *call)
{
	char state = md_process_state(tid);
	int r;

	if (state == 'D')
		return MD_HALFWAY_NO;
	if (state != 'S')
		return MD_HALFWAY_RUNS;
	r = read_call_again(tid, call);
	/* It may have slept elsewhere, and be back. */
	return r != MD_HALFWAY_YES || md_process_state(tid) == 'S' ? r : MD_HALFWAY_RUNS;
}

int md_halfway(pid_t tid)
{
	struct call call;
	uint64_t size;
	int fd, r = read_call(tid, &call);

	if (r != MD_HALFWAY_YES)
		return r;
	if (!has_parts(&call, &fd, &size))
		return MD_HALFWAY_NO;
	switch (fd >= 0 ? kind_of(tid, fd) : 0) {
	/* Such a write is done as a whole, or not at all. */
	case S_IFIFO: return size && size <= PIPE_BUF ? MD_HALFWAY_NO : MD_HALFWAY_YES;
	case S_IFREG:
	case S_IFBLK: return look_at_file(tid, &call);
	}
	return MD_HALFWAY_YES;
}
