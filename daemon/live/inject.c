// SPDX-License-Identifier: Apache-2.0
/*
 * inject - system calls in a thread of another process; see inject.h. Below the thread's red zone it writes
 *
 *	path		of the file
 *	frame 1		goes on behind a call with the call close(FD)
 *	frame 0		goes on behind a call as the thread would have gone on without all this
 *	xstate		floating-point registers of both
 *
 * and then sets the thread's registers, all at once, so that it makes a call and returns "from a signal" by
 * frame 1 or 0. Each call is watched; at its end the next registers are set. So a frame is used only if nobody sets
 * registers any more, because this program has died.
 */
#include "daemon/live/inject.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/rseq.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/live/filter.h"

#define RED_ZONE   128
#define XSTATE_MAX 16384
#define AMX	   UINT64_C(0x60000) /* tiles: the kernel gives their room only to threads that asked */

/* The kernel reads this from the stack when a signal handler returns (struct rt_sigframe). */
struct frame {
	uint64_t sigreturn; /* code that makes this call */
	uint64_t flags, link;
	uint64_t stack[3];
	struct sigcontext context;
	uint64_t mask;
};

#define UC_FLAGS 7 /* UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */

/* Since Linux 6.4: which system calls a thread wants to be told of by a signal. */
#ifndef PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG
#define PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211
#endif

struct dispatch {
	uint64_t mode, selector, offset, len;
};

/* As it is written to the thread's stack. */
struct scratch {
	uint8_t xstate[XSTATE_MAX + 64];
	struct frame frames[2];
	char path[PATH_MAX];
};

struct injector {
	struct md_thread *thread;
	int mem;
	const struct md_gadgets *gadgets;
	uint64_t at; /* of the scratch in the process */
	uint64_t frames[2], path;
	uint64_t mask; /* of signals */
	struct scratch scratch, seen;
	struct scratch before; /* what was there */
	size_t xstate_size;
};

/* ---- the frames --------------------------------------------------------------------------------- */

/* Bytes of the register state without tiles; also cuts @features down to it. */
static size_t state_size(uint64_t *features)
{
	size_t size = 576; /* FXSAVE and the header */

	*features &= ~AMX;
	for (unsigned int i = 2; i < 63; i++) {
		unsigned int bytes, off, c, d;

		if (!(*features >> i & 1) || !__get_cpuid_count(0xd, i, &bytes, &off, &c, &d))
			continue;
		if (off + bytes > size)
			size = off + bytes;
	}
	return size;
}

static int read_state(struct injector *in)
{
	struct iovec iov = {in->scratch.xstate, XSTATE_MAX};
	struct _fpx_sw_bytes sw = {.magic1 = FP_XSTATE_MAGIC1};
	uint32_t magic2 = FP_XSTATE_MAGIC2;
	uint64_t features, used;

	if (ptrace(PTRACE_GETREGSET, in->thread->tid, NT_X86_XSTATE, &iov) || iov.iov_len < 576)
		return -EPERM;
	memcpy(&features, in->scratch.xstate + 464, sizeof(features));
	memcpy(&used, in->scratch.xstate + 512, sizeof(used));
	in->xstate_size = state_size(&features);
	if ((used & AMX) || in->xstate_size > iov.iov_len)
		return -EPERM;
	sw.extended_size = (uint32_t)in->xstate_size + FP_XSTATE_MAGIC2_SIZE;
	sw.xstate_bv = features;
	sw.xstate_size = (uint32_t)in->xstate_size;
	memcpy(in->scratch.xstate + 464, &sw, sizeof(sw));
	memcpy(in->scratch.xstate + in->xstate_size, &magic2, sizeof(magic2));
	in->xstate_size += FP_XSTATE_MAGIC2_SIZE;
	return 0;
}

static void fill_frame(const struct injector *in, struct frame *f, const struct user_regs_struct *r,
		       uint64_t xstate)
{
	*f = (struct frame){
		.sigreturn = in->gadgets->sigreturn,
		.flags = UC_FLAGS,
		/* No valid stack for signals: the kernel leaves the thread's own as it is. */
		.stack = {0, 3, 0},
		.mask = in->mask,
		.context = {.r8 = r->r8,
			    .r9 = r->r9,
			    .r10 = r->r10,
			    .r11 = r->r11,
			    .r12 = r->r12,
			    .r13 = r->r13,
			    .r14 = r->r14,
			    .r15 = r->r15,
			    .rdi = r->rdi,
			    .rsi = r->rsi,
			    .rbp = r->rbp,
			    .rbx = r->rbx,
			    .rdx = r->rdx,
			    .rax = r->rax,
			    .rcx = r->rcx,
			    .rsp = r->rsp,
			    .rip = r->rip,
			    .eflags = r->eflags,
			    .cs = (uint16_t)r->cs,
			    .__pad0 = (uint16_t)r->ss, /* the kernel reads ss there */
			    .fpstate = (struct _fpstate *)xstate},
	};
}

/* Registers of a call that goes on by frame @next. */
static struct user_regs_struct call_regs(const struct injector *in, int next, long nr, uint64_t a,
					 uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	struct user_regs_struct r = in->thread->regs;

	r.rip = in->gadgets->syscall;
	r.rsp = in->frames[next];
	r.rax = (unsigned long long)nr;
	r.orig_rax = (unsigned long long)-1;
	r.rdi = a;
	r.rsi = b;
	r.rdx = c;
	r.r10 = d;
	r.r8 = e;
	r.r9 = f;
	return r;
}

/* The thread's registers as they are when its interrupted system call is left to itself. */
static struct user_regs_struct own_regs(const struct md_thread *t)
{
	struct user_regs_struct r = t->regs;
	long result = (long)r.rax;

	if ((long)r.orig_rax < 0)
		return r;
	/* ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND: the call is made again. */
	if (result == -512 || result == -513 || result == -514) {
		r.rax = r.orig_rax;
		r.rip -= 2;
	}
	/* ERESTART_RESTARTBLOCK: the kernel forgets how much time is left. */
	if (result == -516)
		r.rax = (unsigned long long)-EINTR;
	return r;
}

/* ---- a thread that serves ----------------------------------------------------------------------- */

/* Is memory below the thread's stack pointer its own, @size bytes of it? */
static bool has_room(const struct md_process *p, const struct md_thread *t, uint64_t size)
{
	const struct md_mapping *m = md_process_mapping(p, t->regs.rsp);

	if (!m || !m->write || m->shared || t->regs.rsp - m->start < size)
		return false;
	if (!strcmp(m->path, "[stack]"))
		return true;
	/*
	 * The stack with which a thread began has the thread's own data above it and a guard below it. Elsewhere, as in
	 * coroutines and in code that a just-in-time compiler made, other data may lie close below. The first thread's own data
	 * are not on its stack.
	 */
	return t->tid != p->pid && !*m->path &&
	       t->regs.fs_base - t->regs.rsp < m->end - t->regs.rsp && m > p->maps &&
	       m[-1].end == m->start && !m[-1].read && !m[-1].write && !m[-1].exec;
}

/* Each thread may have a shadow stack of its own. */
static bool has_shadow_stack(pid_t tid)
{
	char value[256];

	return md_process_status(tid, "x86_Thread_features", value, sizeof(value)) &&
	       strstr(value, "shstk");
}

static bool read_thread(pid_t tid, uint64_t address, void *to, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)address, size};

	return process_vm_readv(tid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/*
 * Is the thread in a restartable sequence? When it goes on after a stop, the kernel lets it begin that again. But if it goes
 * on elsewhere first, the kernel forgets the sequence.
 */
static bool is_in_sequence(const struct md_thread *t)
{
	struct __ptrace_rseq_configuration at;
	struct rseq_cs sequence;
	uint64_t pointer;

	/* Before Linux 5.13 the kernel does not tell. */
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, t->tid, sizeof(at), &at) != sizeof(at) ||
	    !at.rseq_abi_pointer)
		return false;
	if (!read_thread(t->tid, at.rseq_abi_pointer + offsetof(struct rseq, rseq_cs), &pointer,
			 sizeof(pointer)))
		return true;
	return pointer && (!read_thread(t->tid, pointer, &sequence, sizeof(sequence)) ||
			   t->regs.rip - sequence.start_ip < sequence.post_commit_offset);
}

/* Would the thread get a signal in place of a system call? Wine's do. */
static bool has_dispatch(pid_t tid)
{
	struct dispatch d;

	return !ptrace(PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, tid, sizeof(d), &d) &&
	       d.mode != PR_SYS_DISPATCH_OFF;
}

/*
 * A thread may have filters of its own, too. It serves only if all threads stand still: then its filters, which are
 * asked below, stay the same.
 */
static bool can_serve(const struct md_stop *stop, const struct md_process *p,
		      const struct md_thread *t)
{
	return t->stopped && !t->signal && t->regs.cs == 0x33 &&
	       has_room(p, t, sizeof(struct scratch) + RED_ZONE + 256) &&
	       !has_shadow_stack(t->tid) && !is_in_sequence(t) && !has_dispatch(t->tid) &&
	       (stop->all || !md_filter_is_there(t->tid));
}

static struct md_thread *choose_thread(const struct md_stop *stop, const struct md_process *p)
{
	struct md_thread *second = NULL;

	for (size_t i = 0; i < stop->nr; i++) {
		struct md_thread *t = &stop->threads[i];

		if (!can_serve(stop, p, t))
			continue;
		if ((long)t->regs.orig_rax < 0 || (long)t->regs.rax != -516)
			return t;
		second = second ? second : t;
	}
	return second;
}

/*
 * Writes back what was there before the scratch: below a signal handler's stack that is a part of the main stack, or below a
 * coroutine's, lies more than unused memory. The thread must have its own registers.
 */
static void remove_scratch(const struct injector *in)
{
	if (pwrite(in->mem, &in->before, sizeof(in->before), (off_t)in->at) < 0)
		return; /* the process has ended */
}

static int write_scratch(struct injector *in, const char *path)
{
	struct user_regs_struct own = own_regs(in->thread), close_regs;
	struct scratch *s = &in->scratch;
	uint64_t xstate = in->at + offsetof(struct scratch, xstate);

	in->frames[0] = in->at + offsetof(struct scratch, frames);
	in->frames[1] = in->frames[0] + sizeof(struct frame);
	in->path = in->at + offsetof(struct scratch, path);
	fill_frame(in, &s->frames[0], &own, xstate);
	close_regs = call_regs(in, 0, SYS_close, UINT64_MAX, 0, 0, 0, 0, 0);
	fill_frame(in, &s->frames[1], &close_regs, xstate);
	snprintf(s->path, sizeof(s->path), "%s", path);
	if (pread(in->mem, &in->before, sizeof(in->before), (off_t)in->at) != sizeof(in->before))
		return -EIO;
	if (pwrite(in->mem, s, sizeof(*s), (off_t)in->at) == sizeof(*s))
		return 0;
	remove_scratch(in);
	return -EIO;
}

/*
 * Is the scratch in the thread's memory? Not if it has become another program since the memory was opened, perhaps one
 * with more rights, while another process keeps the old memory: its mappings and code say nothing of this thread.
 */
static bool has_scratch(struct injector *in)
{
	return read_thread(in->thread->tid, in->at, &in->seen, sizeof(in->seen)) &&
	       !memcmp(&in->seen, &in->scratch, sizeof(in->seen));
}

/* ---- calls -------------------------------------------------------------------------------------- */

/*
 * Lets the thread run to the next entry or exit of a system call. All signals are blocked but SIGSTOP: the kernel notes it for the
 * whole process, and the thread stops when it is let go, unless a SIGCONT has come until then.
 */
static int next_syscall_stop(struct injector *in)
{
	int status, signal = 0, r;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, in->thread->tid, 0, (long)signal))
			return -ESRCH;
		r = md_stop_await(in->thread->tid, true, &status);
		if (r)
			return r;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			return 0;
		signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
	}
}

static int run_call(struct injector *in, const struct user_regs_struct *regs, long *result)
{
	struct user_regs_struct after;
	int r = 0;

	if (ptrace(PTRACE_SETREGS, in->thread->tid, 0, regs))
		return -ESRCH;
	for (int i = 0; i < 2 && !r; i++)
		r = next_syscall_stop(in);
	if (r)
		return r;
	if (ptrace(PTRACE_GETREGS, in->thread->tid, 0, &after))
		return -ESRCH;
	*result = (long)after.rax;
	return 0;
}

/* A thread may have descriptors of its own. */
static bool is_right_file(pid_t tid, long fd, const struct md_injection *what)
{
	struct stat st;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/fd/%ld", (int)tid, fd);
	return !stat(name, &st) && st.st_dev == what->dev && st.st_ino == what->ino;
}

static struct user_regs_struct open_regs(const struct injector *in, const struct md_injection *what)
{
	return call_regs(in, 0, SYS_openat, (uint64_t)AT_FDCWD, in->path,
			 what->kind == MD_INJECT_SHARE
				 ? O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
				 : O_RDONLY | O_CLOEXEC | O_NONBLOCK,
			 0, 0, 0);
}

static struct user_regs_struct map_regs(const struct injector *in, const struct md_injection *what,
					uint64_t fd)
{
	const bool share = what->kind == MD_INJECT_SHARE;

	if (what->kind == MD_INJECT_PAGE)
		return call_regs(in, 0, SYS_mmap, what->address, what->size, PROT_READ | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, UINT64_MAX, 0);
	return call_regs(in, 1, SYS_mmap, what->address, what->size,
			 PROT_READ | (share ? PROT_WRITE : PROT_EXEC),
			 (share ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED_NOREPLACE, fd, what->off);
}

static struct user_regs_struct unmap_regs(const struct injector *in,
					  const struct md_injection *what)
{
	return call_regs(in, 0, SYS_munmap, what->address, what->size, 0, 0, 0, 0);
}

static int map_file(struct injector *in, pid_t pid, const struct md_injection *what,
		    struct mp_err *err)
{
	const bool share = what->kind == MD_INJECT_SHARE;
	struct user_regs_struct regs;
	long fd, result = 0, closed;
	uint64_t rdi;
	int r;

	regs = open_regs(in, what);
	r = run_call(in, &regs, &fd);
	if (r)
		return r;
	if (fd < 0)
		return mp_err_set(err, EPERM, "process %d: cannot open %s: %s", (int)pid,
				  what->path, strerror((int)-fd));
	rdi = (uint64_t)fd;
	if (pwrite(in->mem, &rdi, sizeof(rdi),
		   (off_t)(in->frames[1] + offsetof(struct frame, context.rdi))) != sizeof(rdi))
		result = -EIO;
	else if (!is_right_file(in->thread->tid, fd, what))
		result = -ESTALE;
	else {
		regs = map_regs(in, what, (uint64_t)fd);
		r = run_call(in, &regs, &result);
	}
	if (r)
		return r;
	regs = call_regs(in, 0, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	r = run_call(in, &regs, &closed);
	if (r)
		return r;
	if ((uint64_t)result == what->address)
		return 0;
	if (result == -ESTALE)
		return mp_err_set(err, EPERM, "process %d: another file lies at %s there", (int)pid,
				  what->path);
	return mp_err_set(err, EPERM, "process %d: cannot map the %s at 0x%" PRIx64 ": %s",
			  (int)pid, share ? "counters" : "new code", what->address,
			  strerror((int)-result));
}

static int map_page(struct injector *in, pid_t pid, const struct md_injection *what,
		    struct mp_err *err)
{
	struct user_regs_struct regs = map_regs(in, what, UINT64_MAX);
	long result;
	int r = run_call(in, &regs, &result);

	if (!r && (uint64_t)result != what->address)
		r = mp_err_set(err, EPERM, "process %d: cannot map a page: %s", (int)pid,
			       strerror((int)-result));
	return r;
}

static int unmap(struct injector *in, pid_t pid, const struct md_injection *what,
		 struct mp_err *err)
{
	struct user_regs_struct regs = unmap_regs(in, what);
	long result;
	int r = run_call(in, &regs, &result);

	if (!r && result)
		r = mp_err_set(err, EPERM, "process %d: cannot unmap the copies: %s", (int)pid,
			       strerror((int)-result));
	return r;
}

/* ---- what its filters allow --------------------------------------------------------------------- */

static struct md_filter_call filter_call(const struct injector *in,
					 const struct user_regs_struct *r, unsigned int unknown)
{
	return (struct md_filter_call){
		.data = {.nr = (int)r->rax,
			 .arch = AUDIT_ARCH_X86_64,
			 .instruction_pointer = in->gadgets->syscall + 2,
			 .args = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9}},
		.unknown = unknown,
	};
}

/* Do the thread's seccomp filters allow each call that it will make? Return: 0; as md_filter_check(). */
static int check_filters(const struct injector *in, const struct md_injection *what,
			 struct mp_err *err)
{
	const struct user_regs_struct first = call_regs(in, 0, SYS_getpid, 0, 0, 0, 0, 0, 0),
				      back = call_regs(in, 0, SYS_rt_sigreturn, 0, 0, 0, 0, 0, 0),
				      close = call_regs(in, 0, SYS_close, 0, 0, 0, 0, 0, 0),
				      open = open_regs(in, what), map = map_regs(in, what, 0),
				      unmap = unmap_regs(in, what);
	const bool file = what->kind == MD_INJECT_MAP || what->kind == MD_INJECT_SHARE;
	struct md_filter_call calls[5] = {filter_call(in, &first, 0),
					  filter_call(in, &back, 0x3f | MD_FILTER_NO_IP)};
	size_t nr = 2;

	if (!md_filter_is_there(in->thread->tid))
		return 0;
	if (what->kind == MD_INJECT_UNMAP)
		calls[nr++] = filter_call(in, &unmap, 0);
	else
		calls[nr++] = filter_call(in, &map, file ? 1 << 4 : 0);
	if (file) {
		calls[nr++] = filter_call(in, &open, 0);
		calls[nr++] = filter_call(in, &close, 1);
	}
	return md_filter_check(in->thread->tid, calls, nr, err);
}

/*
 * Brings the thread back to where it stopped: not at the end of a system call, but where the kernel looks at
 * whether an interrupted call is to be made again.
 */
static int give_back(struct injector *in)
{
	pid_t tid = in->thread->tid;
	int status, r;

	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || ptrace(PTRACE_CONT, tid, 0, 0))
		return -ESRCH;
	r = md_stop_await(tid, true, &status);
	if (r)
		return r;
	ptrace(PTRACE_SETSIGMASK, tid, sizeof(in->mask), &in->mask);
	return ptrace(PTRACE_SETREGS, tid, 0, &in->thread->regs) ? -ESRCH : 0;
}

/* From here on the thread finds back by itself. Its signals wait. Return: as md_inject(). */
static int make_calls(struct injector *in, pid_t pid, const struct md_injection *what,
		      struct mp_err *err)
{
	const struct user_regs_struct safe = call_regs(in, 0, SYS_getpid, 0, 0, 0, 0, 0, 0);
	const uint64_t all = UINT64_MAX;
	int r, back;

	if (ptrace(PTRACE_SETREGS, in->thread->tid, 0, &safe))
		return mp_err_set(err, ESRCH, "process %d: has ended", (int)pid);
	ptrace(PTRACE_SETSIGMASK, in->thread->tid, sizeof(all), &all);
	r = what->kind == MD_INJECT_PAGE    ? map_page(in, pid, what, err)
	    : what->kind == MD_INJECT_UNMAP ? unmap(in, pid, what, err)
					    : map_file(in, pid, what, err);
	back = r == -EAGAIN ? r : give_back(in);
	/* It is let go wherever it stops, as after a kill of this program. */
	if (back == -EAGAIN) {
		in->thread->stopped = false;
		return mp_err_set(err, EIO, "process %d: a system call in it does not end",
				  (int)pid);
	}
	if (!back)
		remove_scratch(in);
	return r == -ESRCH || back ? mp_err_set(err, ESRCH, "process %d: has ended", (int)pid) : r;
}

int md_inject(struct md_stop *stop, const struct md_process *process, int mem,
	      const struct md_gadgets *gadgets, const struct md_injection *what, struct mp_err *err)
{
	static struct injector in; /* large */
	pid_t pid = stop->pid;
	int r;

	in = (struct injector){
		.thread = choose_thread(stop, process), .mem = mem, .gadgets = gadgets};
	if (!in.thread)
		return mp_err_set(
			err, EAGAIN,
			"process %d: no thread can make a system call: each lacks room on its "
			"stack, or is in a restartable sequence, or has its system calls turned "
			"into signals",
			(int)pid);
	in.at = (in.thread->regs.rsp - RED_ZONE - sizeof(in.scratch)) & ~(uint64_t)63;
	if (ptrace(PTRACE_GETSIGMASK, in.thread->tid, sizeof(in.mask), &in.mask) ||
	    ptrace(PTRACE_SETOPTIONS, in.thread->tid, 0, PTRACE_O_TRACESYSGOOD))
		return mp_err_set(err, ESRCH, "process %d: has ended", (int)pid);
	r = read_state(&in);
	if (!r)
		r = write_scratch(&in, what->path ? what->path : "");
	if (r)
		return mp_err_set(err, -r, "process %d: a thread's registers: %s", (int)pid,
				  strerror(-r));
	r = has_scratch(&in)
		    ? check_filters(&in, what, err)
		    : mp_err_set(err, ESRCH, "process %d: has become another program", (int)pid);
	if (!r)
		return make_calls(&in, pid, what, err);
	remove_scratch(&in);
	return r;
}
