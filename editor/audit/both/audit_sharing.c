// SPDX-License-Identifier: Apache-2.0
/*
 * audit_sharing - a child process traces the run, so that waiting for any of the run's processes
 * takes no child away from the audit.
 */
#include "editor/audit/both/audit_sharing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/audit/both/sharing_calls.h"
#include "editor/audit/run/audit_child.h"
#include "libprof/base/clock.h"

/* A run may need at most this part of the machine's memory, as two of them run. */
#define MEMORY_PART 4

struct sharing {
	struct me_own_names own;
	char *why;
	size_t size;
	pid_t pid; /* of the command */
};

static int trace_me(void)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? -errno : me_sharing_filter();
}

static void judge(struct sharing *s, pid_t pid)
{
	struct user_regs_struct regs;
	struct me_call call;

	if (s->why[0] || ptrace(PTRACE_GETREGS, pid, NULL, &regs))
		return;
	/* The code segment of 32-bit code. */
	call = (struct me_call){.pid = pid,
				.nr = regs.cs == 0x23 ? UINT64_MAX : regs.orig_rax,
				.args = {regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9}};
	me_sharing_judge(&call, &s->own, s->why, s->size);
}

/* The signal to deliver to the stopped process. A new process begins with a SIGSTOP of nobody's. */
static int signal_of(pid_t pid, int status)
{
	siginfo_t info;
	int signal = WSTOPSIG(status);

	if (status >> 16 || signal == SIGTRAP)
		return 0;
	if (signal == SIGSTOP && !ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) && !info.si_pid)
		return 0;
	return signal;
}

/* Follow all processes of the run to their ends. */
static void follow(struct sharing *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		/* As in each run, nothing of its process group goes on after it. */
		if (pid == s->pid && !WIFSTOPPED(status))
			kill(-s->pid, SIGKILL);
		if (pid <= 0 || !WIFSTOPPED(status))
			continue;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8))
			judge(s, pid);
		ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signal_of(pid, status));
	}
}

static void judge_memory(struct sharing *s)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	struct rusage usage;

	if (!s->why[0] && !getrusage(RUSAGE_CHILDREN, &usage) &&
	    (uint64_t)usage.ru_maxrss * 1024 > all / MEMORY_PART)
		snprintf(s->why, s->size, "a run needs %ld MiB of memory", usage.ru_maxrss >> 10);
}

static void begin(struct sharing *s)
{
	const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int status;

	/* The child has stopped behind its execve(). */
	if (waitpid(s->pid, &status, 0) != s->pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, s->pid, NULL, (void *)options) ||
	    ptrace(PTRACE_CONT, s->pid, NULL, NULL)) {
		snprintf(s->why, s->size, "its system calls cannot be watched");
		kill(s->pid, SIGKILL);
	}
}

/* Start a process that reads the command's output. Return: the descriptor to write to, or -1. */
static int start_reader(const struct me_run_spec *spec, int null, struct mp_err *err)
{
	struct me_child reader = {.envp = spec->envp, .cpu = -1, .mask = spec->mask};
	int out[2], rc;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC))
		return -1;
	reader.fds[0] = out[0];
	reader.fds[1] = reader.fds[2] = null;
	rc = me_child_shell(reader, "exec cat", &pid, err);
	close(out[0]);
	if (!rc)
		return out[1];
	close(out[1]);
	return -1;
}

static void watch(const struct me_run_spec *spec, struct sharing *s)
{
	struct mp_err err = {""};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int in = open(spec->stdin_path ? spec->stdin_path : "/dev/null", O_RDONLY | O_CLOEXEC);
	int out = start_reader(spec, null, &err);
	int rc = null < 0 || in < 0 || out < 0;

	if (!rc)
		rc = me_child_start(&(struct me_child){.path = spec->path,
						       .argv = spec->argv,
						       .envp = spec->envp,
						       .fds = {in, out, out},
						       .cpu = spec->cpu,
						       .mask = spec->mask,
						       .before_exec = trace_me},
				    &s->pid, &err);
	close(out);
	if (rc) {
		snprintf(s->why, s->size, "its system calls cannot be watched");
		return;
	}
	begin(s);
	follow(s);
	judge_memory(s);
	me_own_names_fini(&s->own);
}

int me_sharing_watch(const struct me_run_spec *spec, char *why, size_t size, struct mp_err *err)
{
	uint64_t deadline_ns = spec->timeout_ns ? mp_now_ns() + spec->timeout_ns : 0;
	char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0, rc;
	pid_t pid;

	if (shared == MAP_FAILED)
		return mp_err_set(err, errno, "out of memory");
	pid = fork();
	if (!pid) {
		/* The run dies with this process (PTRACE_O_EXITKILL), which dies with the audit. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		watch(spec, &(struct sharing){.why = shared, .size = size});
		_exit(0);
	}
	rc = pid < 0 ? -errno : me_child_wait(pid, deadline_ns, spec->mask, &status);
	if (rc && pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	snprintf(why, size, "%s", rc || status ? "its system calls cannot be watched" : shared);
	munmap(shared, size);
	return rc == -ECANCELED ? mp_err_set(err, ECANCELED, "interrupted") : 0;
}
