// SPDX-License-Identifier: Apache-2.0
/*
 * sandbox_filter - lists the system calls that the reader and its workers may make; any other
 * ends the process. Called by sandbox_reader.
 *
 * A worker has both filters; the kernel applies the stricter one.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "daemon/module/sandbox.h"
#include "daemon/module/sandbox_private.h"

#define FILTER_MAX 192
#define NR_CHECKS  2

/*
 * An allowed call. In the lower half of an argument, no forbidden bit may be set, and each
 * required bit must be.
 */
struct call {
	int nr;
	struct {
		uint8_t arg;
		uint32_t forbidden, required;
	} checks[NR_CHECKS];
};

/* Calls of both reader and worker: read an open file, and exit. */
static const struct call worker_calls[] = {
	{.nr = SYS_pread64},
	{.nr = SYS_write},
	{.nr = SYS_munmap},
	{.nr = SYS_mremap},
	{.nr = SYS_brk},
	{.nr = SYS_exit_group},
	{.nr = SYS_exit},
	/* memory: never a file's, never executable */
	{.nr = SYS_mmap,
	 .checks = {{.arg = 2, .forbidden = PROT_EXEC}, {.arg = 3, .required = MAP_ANONYMOUS}}},
	/* qsort() asks for the size of memory */
	{.nr = SYS_sysinfo},
	{.nr = SYS_rt_sigreturn},
};

/* Further calls of the reader. */
static const struct call reader_calls[] = {
	{.nr = SYS_recvmsg},
	{.nr = SYS_close},
	{.nr = SYS_wait4},
	/* fork(), but no thread and no namespace */
	{.nr = SYS_clone,
	 .checks = {{.arg = 0,
		     .forbidden = ~(uint32_t)(CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | 0xff)}}},
	{.nr = SYS_set_robust_list},
	{.nr = SYS_rt_sigprocmask},
	/* calls that a new worker makes before it is confined */
	{.nr = SYS_getppid},
	{.nr = SYS_prlimit64},
	{.nr = SYS_prctl},
};

/* A sanitizer's runtime needs many calls, so only dangerous ones are forbidden here. */
static const int sanitized_kills[] = {
	SYS_socket,    SYS_connect, SYS_bind, SYS_execve,	   SYS_execveat, SYS_ptrace,
	SYS_setresuid, SYS_capset,  SYS_kill, SYS_perf_event_open, SYS_bpf,
};

struct filter {
	struct sock_filter code[FILTER_MAX];
	unsigned short len;
	bool full;
};

static void add(struct filter *f, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (f->len == FILTER_MAX)
		f->full = true;
	else
		f->code[f->len++] = (struct sock_filter){code, jt, jf, k};
}

static void load(struct filter *f, size_t off)
{
	add(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)off);
}

static void end(struct filter *f, uint32_t what)
{
	add(f, BPF_RET | BPF_K, 0, 0, what);
}

/* The number of the call is in the accumulator before and after this code. */
static void add_call(struct filter *f, const struct call *call)
{
	unsigned short jump = f->len;
	size_t i;

	add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, (uint32_t)call->nr);
	for (i = 0; i < NR_CHECKS; i++) {
		if (!call->checks[i].forbidden && !call->checks[i].required)
			continue;
		/* Little-endian: the lower half comes first. */
		load(f,
		     offsetof(struct seccomp_data, args) + call->checks[i].arg * sizeof(uint64_t));
		if (call->checks[i].forbidden) {
			add(f, BPF_JMP | BPF_JSET | BPF_K, 0, 1, call->checks[i].forbidden);
			end(f, SECCOMP_RET_KILL_PROCESS);
		}
		if (call->checks[i].required) {
			add(f, BPF_JMP | BPF_JSET | BPF_K, 1, 0, call->checks[i].required);
			end(f, SECCOMP_RET_KILL_PROCESS);
		}
	}
	end(f, SECCOMP_RET_ALLOW);
	if (jump < f->len)
		f->code[jump].jf = (uint8_t)(f->len - jump - 1);
}

/* Installs a filter that allows a worker's calls and @more. */
static int install(const struct call *more, size_t nr_more)
{
	struct filter f = {.len = 0};
	struct sock_fprog program;
	size_t i;

	load(&f, offsetof(struct seccomp_data, arch));
	add(&f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
	end(&f, SECCOMP_RET_KILL_PROCESS);
	load(&f, offsetof(struct seccomp_data, nr));
	if (MD_SANDBOX_ASAN) {
		for (i = 0; i < sizeof(sanitized_kills) / sizeof(sanitized_kills[0]); i++) {
			add(&f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)sanitized_kills[i]);
			end(&f, SECCOMP_RET_KILL_PROCESS);
		}
		end(&f, SECCOMP_RET_ALLOW);
	} else {
		for (i = 0; i < sizeof(worker_calls) / sizeof(worker_calls[0]); i++)
			add_call(&f, &worker_calls[i]);
		for (i = 0; i < nr_more; i++)
			add_call(&f, &more[i]);
		/* This also rejects the numbers of x32. */
		end(&f, SECCOMP_RET_KILL_PROCESS);
	}
	if (f.full)
		return -E2BIG;
	program = (struct sock_fprog){.len = f.len, .filter = f.code};
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

int md_sandbox_filter_reader(void)
{
	return install(reader_calls, sizeof(reader_calls) / sizeof(reader_calls[0]));
}

int md_sandbox_filter_worker(void)
{
	return install(NULL, 0);
}

bool md_sandbox_limits_memory(void)
{
	return !MD_SANDBOX_ASAN;
}
