// SPDX-License-Identifier: Apache-2.0
/*
 * kill-at N COMMAND ARGUMENTS - runs the command and kills it with SIGKILL just before its Nth
 * system call that changes files. Prints that call's number on stderr. Exit status: 137 if the
 * command was killed, else the command's. So N = 1, 2, 3, ... until another status tests every
 * moment.
 *
 *	kill-at -a N COMMAND...	before its Nth system call of any kind
 *	kill-at -e N COMMAND...	its Nth system call that reads fails with EIO instead; its exit status is the
 *				command's. If there are fewer such calls, it prints how many
 */
#include <errno.h>
#include <stddef.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <linux/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static bool opens_for_writing(long flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
}

static bool changes_files(const struct ptrace_syscall_info *info)
{
	switch (info->entry.nr) {
	case SYS_open: return opens_for_writing((long)info->entry.args[1]);
	case SYS_openat: return opens_for_writing((long)info->entry.args[2]);
	case SYS_write:
	case SYS_writev: return info->entry.args[0] > 2;
	case SYS_creat:
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_ftruncate:
	case SYS_fallocate:
	case SYS_copy_file_range:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_flock:
	case SYS_rename:
	case SYS_renameat:
	case SYS_renameat2:
	case SYS_link:
	case SYS_linkat:
	case SYS_symlink:
	case SYS_symlinkat:
	case SYS_unlink:
	case SYS_unlinkat:
	case SYS_mkdir:
	case SYS_mkdirat:
	case SYS_rmdir:
	case SYS_chmod:
	case SYS_fchmod:
	case SYS_fchmodat:
	case SYS_chown:
	case SYS_fchown:
	case SYS_fchownat:
	case SYS_fsetxattr:
	case SYS_fremovexattr:
	case SYS_utimensat: return true;
	default: return false;
	}
}

static bool any(const struct ptrace_syscall_info *info)
{
	(void)info;
	return true;
}

static bool reads_files(const struct ptrace_syscall_info *info)
{
	switch (info->entry.nr) {
	case SYS_read:
	case SYS_readv:
	case SYS_pread64:
	case SYS_preadv:
	case SYS_preadv2:
	case SYS_getdents64: return true;
	case SYS_mmap: return !(info->entry.args[3] & MAP_ANONYMOUS);
	default: return false;
	}
}

/* The system call at whose beginning the process stands fails with EIO. */
static int fail(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1L) ||
	    ptrace(PTRACE_SYSCALL, pid, 0, 0) || waitpid(pid, &status, 0) < 0 ||
	    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), (long)-EIO))
		return 125;
	return 0;
}

static int trace(pid_t pid, long nr, bool errors,
		 bool (*counts)(const struct ptrace_syscall_info *info))
{
	struct ptrace_syscall_info info;
	int status, deliver = 0;
	long all = nr;

	if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
		return 125;
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, 0, deliver) || waitpid(pid, &status, 0) < 0)
			return 125;
		deliver = 0;
		if (WIFEXITED(status)) {
			if (errors && nr > 0)
				fprintf(stderr, "kill-at: %ld system calls\n", all - nr);
			return WEXITSTATUS(status);
		}
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
			deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
			continue;
		}
		if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0)
			return 125;
		if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !counts(&info) || --nr)
			continue;
		if (errors) {
			fprintf(stderr, "kill-at: system call %llu fails\n",
				(unsigned long long)info.entry.nr);
			if (fail(pid))
				return 125;
			continue;
		}
		fprintf(stderr, "kill-at: before system call %llu\n",
			(unsigned long long)info.entry.nr);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return 137;
	}
}

int main(int argc, char **argv)
{
	bool errors = argc > 1 && !strcmp(argv[1], "-e"), all = argc > 1 && !strcmp(argv[1], "-a");
	pid_t pid;

	argc -= errors || all;
	argv += errors || all;
	if (argc < 3) {
		fprintf(stderr, "usage: kill-at [-a|-e] N COMMAND [ARGUMENT...]\n");
		return 2;
	}
	pid = fork();
	if (pid < 0)
		return 125;
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(125);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	return trace(pid, atol(argv[1]), errors, errors ? reads_files : all ? any : changes_files);
}
