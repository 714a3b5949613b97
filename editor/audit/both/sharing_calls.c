// SPDX-License-Identifier: Apache-2.0
/* sharing_calls - a table of system calls, and a rule for each kind. */
#include "editor/audit/both/sharing_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "libprof/base/grow.h"

enum kind {
	OPENS,	   /* @path, @flags */
	OPENS_HOW, /* openat2: the flags lie in memory */
	MAKES,	   /* a directory: fails if it exists, so that it is this run's own */
	WRITES,	   /* the file at @path, which need not be there */
	CHANGES,   /* the file at @path; fails if it is not there */
	TWO_NAMES, /* renames or links @path; the new name is in argument @flags */
	THREADS,   /* clone: flags in argument @flags */
	THREADS_HOW,
	CONNECTS, /* a socket's address in argument @path */
	SHARES,	  /* a key in argument @path */
	UNKNOWN,  /* nobody can say what two of these would do */
};

/* @path, @flags: numbers of arguments. @at: the argument before a path is its directory. */
static const struct {
	int nr;
	enum kind kind;
	uint8_t path, flags;
	bool at;
} calls[] = {
	{SYS_open, OPENS, 0, 1, false},
	{SYS_openat, OPENS, 1, 2, true},
	{SYS_openat2, OPENS_HOW, 1, 2, true},
	{SYS_creat, WRITES, 0, 0, false},
	{SYS_mkdir, MAKES, 0, 0, false},
	{SYS_mkdirat, MAKES, 1, 0, true},
	{SYS_truncate, CHANGES, 0, 0, false},
	{SYS_unlink, CHANGES, 0, 0, false},
	{SYS_unlinkat, CHANGES, 1, 0, true},
	{SYS_rmdir, CHANGES, 0, 0, false},
	{SYS_chmod, CHANGES, 0, 0, false},
	{SYS_fchmodat, CHANGES, 1, 0, true},
	{SYS_chown, CHANGES, 0, 0, false},
	{SYS_lchown, CHANGES, 0, 0, false},
	{SYS_fchownat, CHANGES, 1, 0, true},
	{SYS_setxattr, CHANGES, 0, 0, false},
	{SYS_lsetxattr, CHANGES, 0, 0, false},
	{SYS_mknod, WRITES, 0, 0, false},
	{SYS_mknodat, WRITES, 1, 0, true},
	{SYS_rename, TWO_NAMES, 0, 1, false},
	{SYS_renameat, TWO_NAMES, 1, 3, true},
	{SYS_renameat2, TWO_NAMES, 1, 3, true},
	{SYS_link, TWO_NAMES, 0, 1, false},
	{SYS_linkat, TWO_NAMES, 1, 3, true},
	{SYS_symlink, WRITES, 1, 0, false},
	{SYS_symlinkat, WRITES, 2, 0, true},
	{SYS_clone, THREADS, 0, 0, false},
	{SYS_clone3, THREADS_HOW, 0, 0, false},
	{SYS_connect, CONNECTS, 1, 0, false},
	{SYS_bind, CONNECTS, 1, 0, false},
	{SYS_shmget, SHARES, 0, 0, false},
	{SYS_semget, SHARES, 0, 0, false},
	{SYS_msgget, SHARES, 0, 0, false},
	{SYS_mq_open, UNKNOWN, 0, 0, false},
	{SYS_sched_setaffinity, UNKNOWN, 0, 0, false},
	{SYS_unshare, UNKNOWN, 0, 0, false},
	{SYS_setns, UNKNOWN, 0, 0, false},
	{SYS_mount, UNKNOWN, 0, 0, false},
	{SYS_ptrace, UNKNOWN, 0, 0, false},
	{SYS_io_uring_setup, UNKNOWN, 0, 0, false},
	{SYS_perf_event_open, UNKNOWN, 0, 0, false},
	{SYS_add_key, UNKNOWN, 0, 0, false},
	{SYS_process_vm_writev, UNKNOWN, 0, 0, false},
};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

int me_sharing_filter(void)
{
	struct sock_filter code[NR_CALLS + 8];
	struct sock_fprog program = {.filter = code};
	size_t nr = 0, i;

	/* The calls of other architectures have other numbers: the tracer stops them as unknown. */
	code[nr++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, arch));
	code[nr++] =
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	code[nr++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	code[nr++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, nr));
	for (i = 0; i < NR_CALLS; i++)
		code[nr++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							  (uint32_t)calls[i].nr,
							  (uint8_t)(NR_CALLS - i), 0);
	code[nr++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[nr++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	program.len = (unsigned short)nr;
	if (!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 0;
	/* Without the right to install a filter, programs may gain no privileges. A traced program
	 * gains none anyway. */
	if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return -errno;
	return 0;
}

void me_own_names_fini(struct me_own_names *own)
{
	for (uint32_t i = 0; i < own->nr; i++)
		free(own->names[i]);
	free(own->names);
	*own = (struct me_own_names){0};
}

/* Without memory the name is not remembered, and the run counts as one that shares it. */
static void own_add(struct me_own_names *own, const char *name)
{
	if (mp_grow(own->names, own->room, own->nr + 1))
		return;
	own->names[own->nr] = strdup(name);
	if (own->names[own->nr])
		own->nr++;
}

/* Did the run make @name, or a directory above it? */
static bool own_has(const struct me_own_names *own, const char *name)
{
	for (uint32_t i = 0; i < own->nr; i++) {
		size_t len = strlen(own->names[i]);

		if (!strncmp(name, own->names[i], len) && (!name[len] || name[len] == '/'))
			return true;
	}
	return false;
}

static bool read_memory(pid_t pid, uint64_t from, void *to, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)(uintptr_t)from, size};

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* Read up to the end of the string, in pieces that do not cross a page. */
static bool read_name(pid_t pid, uint64_t from, char *to, size_t size)
{
	size_t got = 0;

	while (got < size) {
		size_t piece = 4096 - ((from + got) & 4095);

		if (piece > size - got)
			piece = size - got;
		if (!read_memory(pid, from + got, to + got, piece))
			return false;
		if (memchr(to + got, 0, piece))
			return true;
		got += piece;
	}
	return false;
}

/* The absolute name of the file at argument @arg. */
static bool call_name(const struct me_call *call, uint8_t arg, bool at, char *to, size_t size)
{
	int dir = at ? (int)call->args[arg - 1] : AT_FDCWD;
	char given[PATH_MAX], link[64];
	ssize_t len;

	if (!read_name(call->pid, call->args[arg], given, sizeof(given)))
		return false;
	if (given[0] == '/')
		return snprintf(to, size, "%s", given) < (int)size;
	if (dir == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/cwd", (int)call->pid);
	else
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)call->pid, dir);
	len = readlink(link, to, size);
	return len > 0 && (size_t)len < size &&
	       snprintf(to + len, size - (size_t)len, "/%s", given) < (int)(size - (size_t)len);
}

/* Files that any number of writers may have open. */
static bool is_harmless(const char *name)
{
	static const char *const names[] = {"/dev/null",   "/dev/zero",	  "/dev/full",
					    "/dev/tty",	   "/dev/stdout", "/dev/stderr",
					    "/dev/random", "/dev/urandom"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "/proc/self/", 11) || !strncmp(name, "/dev/fd/", 8);
}

static bool no(char *why, size_t size, const char *what, const char *name)
{
	snprintf(why, size, "%s%s", what, name);
	return true;
}

static bool exists(const char *name)
{
	return !faccessat(AT_FDCWD, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* @kind: WRITES or CHANGES. */
static bool judge_name(const struct me_call *call, const struct me_own_names *own, enum kind kind,
		       uint8_t arg, bool at, char *why, size_t size)
{
	char name[2 * PATH_MAX];

	if (!call_name(call, arg, at, name, sizeof(name)))
		return no(why, size, "it changes a file whose name cannot be read", "");
	if (is_harmless(name) || own_has(own, name) || (kind == CHANGES && !exists(name)))
		return false;
	return no(why, size, "it changes the file ", name);
}

static bool judge_two_names(const struct me_call *call, const struct me_own_names *own,
			    uint8_t from, uint8_t to, bool at, char *why, size_t size)
{
	char name[2 * PATH_MAX];

	if (call_name(call, from, at, name, sizeof(name)) && !exists(name))
		return false;
	return judge_name(call, own, CHANGES, from, at, why, size) ||
	       judge_name(call, own, WRITES, to, at, why, size);
}

/* Remember the name that a call is about to make as the run's own. It is not if it is there already:
 * then the call fails. */
static void own_make(struct me_own_names *own, const struct me_call *call, uint8_t arg, bool at)
{
	char name[2 * PATH_MAX];

	if (call_name(call, arg, at, name, sizeof(name)) && !exists(name))
		own_add(own, name);
}

static bool judge_open(const struct me_call *call, struct me_own_names *own, uint8_t arg, bool at,
		       uint64_t flags, char *why, size_t size)
{
	if ((flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC)))
		return false;
	/* A file without a name, and a file that must not exist before, are this run's own. */
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return false;
	if ((flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL))
		return judge_name(call, own, WRITES, arg, at, why, size);
	own_make(own, call, arg, at);
	return false;
}

static bool judge_open_how(const struct me_call *call, struct me_own_names *own, char *why,
			   size_t size)
{
	struct open_how how;

	if (!read_memory(call->pid, call->args[2], &how, sizeof(how)))
		return no(why, size, "it opens a file in an unknown way", "");
	return judge_open(call, own, 1, true, how.flags, why, size);
}

static bool judge_clone_how(const struct me_call *call, char *why, size_t size)
{
	uint64_t flags; /* the first member of struct clone_args */

	if (!read_memory(call->pid, call->args[0], &flags, sizeof(flags)) || flags & CLONE_THREAD)
		return no(why, size, "it has several threads", "");
	return false;
}

/* The kernel itself answers on netlink. The name service's cache only answers questions. */
static bool judge_address(const struct me_call *call, char *why, size_t size)
{
	struct sockaddr_un address = {0};
	size_t len = call->args[2] < sizeof(address) ? call->args[2] : sizeof(address);

	if (!read_memory(call->pid, call->args[1], &address, len))
		return no(why, size, "it uses a socket", "");
	address.sun_path[sizeof(address.sun_path) - 1] = 0;
	if (address.sun_family == AF_NETLINK || address.sun_family == AF_UNSPEC)
		return false;
	if (address.sun_family == AF_UNIX && call->nr == SYS_connect &&
	    !strcmp(address.sun_path, "/var/run/nscd/socket"))
		return false;
	return no(why, size,
		  call->nr == SYS_bind ? "it listens on a socket" : "it talks to a server", "");
}

bool me_sharing_judge(const struct me_call *call, struct me_own_names *own, char *why, size_t size)
{
	size_t i = 0;
	uint8_t path;
	bool at;

	while (i < NR_CALLS && (uint64_t)calls[i].nr != call->nr)
		i++;
	if (i == NR_CALLS)
		return no(why, size, "it makes system calls of another architecture", "");
	path = calls[i].path;
	at = calls[i].at;
	switch (calls[i].kind) {
	case OPENS: return judge_open(call, own, path, at, call->args[calls[i].flags], why, size);
	case OPENS_HOW: return judge_open_how(call, own, why, size);
	case MAKES: own_make(own, call, path, at); return false;
	case WRITES:
	case CHANGES: return judge_name(call, own, calls[i].kind, path, at, why, size);
	case TWO_NAMES: return judge_two_names(call, own, path, calls[i].flags, at, why, size);
	case THREADS:
		return call->args[0] & CLONE_THREAD && no(why, size, "it has several threads", "");
	case THREADS_HOW: return judge_clone_how(call, why, size);
	case CONNECTS: return judge_address(call, why, size);
	case SHARES:
		return call->args[0] != IPC_PRIVATE &&
		       no(why, size, "it shares memory or semaphores with other processes", "");
	default:
		return no(why, size, "it makes a system call that two runs may not make at once",
			  "");
	}
}
