// SPDX-License-Identifier: Apache-2.0
/* stop - seizes and interrupts threads; see stop.h. */
#include "daemon/live/stop.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/live/process.h"
#include "libprof/base/clock.h"
#include "libprof/base/grow.h"

/* A thread that waits in the kernel for this long is not waited for. */
#define KERNEL_LIMIT_NS 20000000u
/* One that has no processor, or that a debugger holds, is not waited for longer than this. */
#define STOP_LIMIT_NS 3000000000u
/* How long those that did not stop in time are then waited for, while the others run. */
#define LATE_LIMIT_NS 1000000000u
/* Threads may come and go all the time, so running ones are sought only so often before any is stopped. */
#define SEIZE_PASSES 8

/* ---- waiting ------------------------------------------------------------------------------------ */

/* Does the thread wait in the kernel in a way that no signal ends? */
static bool is_blocked(pid_t tid)
{
	char state[64];

	return md_process_status(tid, "State", state, sizeof(state)) && *state == 'D';
}

int md_stop_await(pid_t tid, bool blocked, int *status)
{
	const struct timespec pause = {.tv_nsec = 20000};
	uint64_t start = mp_now_ns(), took;

	for (unsigned int turn = 0;; turn++) {
		pid_t got = waitpid(tid, status, __WALL | WNOHANG);

		if (got == tid)
			return WIFSTOPPED(*status) ? 0 : -ESRCH;
		if (got < 0 && errno != EINTR)
			return -ESRCH;
		took = mp_now_ns() - start;
		if (took > STOP_LIMIT_NS || (!blocked && took > KERNEL_LIMIT_NS && is_blocked(tid)))
			return -EAGAIN;
		nanosleep(&pause, NULL);
	}
}

/*
 * While a process stands still, this program goes before others where it may, so that a busy machine does not make
 * the stop longer. It sleeps whenever it waits.
 */
static void hurry(struct md_stop *s)
{
	const struct sched_param param = {.sched_priority = 1};

	s->policy = sched_getscheduler(0);
	if (s->policy == SCHED_OTHER || s->policy == SCHED_BATCH)
		sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param);
}

static void relax(const struct md_stop *s)
{
	const struct sched_param param = {0};

	if (s->policy == SCHED_OTHER || s->policy == SCHED_BATCH)
		sched_setscheduler(0, s->policy, &param);
}

/* ---- going on ----------------------------------------------------------------------------------- */

/* A call of another file than a socket may have done something, such as a driver's. */
static bool is_socket(pid_t tid, uint64_t fd)
{
	char name[64], to[8];

	snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)tid, (int)fd);
	return readlink(name, to, sizeof(to)) == sizeof(to) && !memcmp(to, "socket:[", sizeof(to));
}

/*
 * Some system calls end with EINTR when a thread is stopped, as if a signal had come, although none has. Where the
 * thread has no signal to take, the call is made again instead: it has not done anything, or it would say how much.
 * signal(7) lists them, those with sockets that have a time limit, too; calls with other results restart by themselves.
 */
static bool ends_early(const struct md_thread *t)
{
	if (t->signal || (long)t->regs.rax != -EINTR)
		return false;
	switch ((long)t->regs.orig_rax) {
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
	case SYS_sendfile: return is_socket(t->tid, t->regs.rdi);
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_io_uring_enter:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents: return true;
	}
	return false;
}

/* Are signals pending that the thread would take? */
static bool has_signal(pid_t tid)
{
	char pending[64] = "0", shared[64] = "0", blocked[64] = "0";
	unsigned long long all;

	if (!md_process_status(tid, "SigPnd", pending, sizeof(pending)) ||
	    !md_process_status(tid, "ShdPnd", shared, sizeof(shared)) ||
	    !md_process_status(tid, "SigBlk", blocked, sizeof(blocked)))
		return true;
	all = strtoull(pending, NULL, 16) | strtoull(shared, NULL, 16);
	return (all & ~strtoull(blocked, NULL, 16)) != 0;
}

static void restart_early_end(struct md_thread *t)
{
	struct user_regs_struct regs = t->regs;

	if (!ends_early(t) || has_signal(t->tid))
		return;
	regs.rip -= 2; /* the instruction syscall */
	regs.rax = regs.orig_rax;
	regs.orig_rax = (unsigned long long)-1;
	ptrace(PTRACE_SETREGS, t->tid, 0, &regs);
}

/*
 * One that did not stop in time can be let go only once it stops, until @end_ns. Return: whether it has gone on, or
 * ended.
 */
static bool let_go_late(struct md_thread *t, uint64_t end_ns)
{
	const struct timespec pause = {.tv_nsec = 500000};
	int status;

	for (;;) {
		pid_t got = waitpid(t->tid, &status, __WALL | WNOHANG);

		if (got < 0 && errno != EINTR)
			return true;
		if (got == t->tid) {
			/* At the end of a system call it has the signal that came meanwhile, if one did. */
			int signal = status >> 16 == PTRACE_EVENT_STOP ||
						     WSTOPSIG(status) == (SIGTRAP | 0x80)
					     ? t->signal
					     : WSTOPSIG(status);

			return !WIFSTOPPED(status) ||
			       !ptrace(PTRACE_DETACH, t->tid, 0, (long)signal) || errno == ESRCH;
		}
		if (mp_now_ns() >= end_ns)
			return false;
		nanosleep(&pause, NULL);
	}
}

/* All threads go on. *@took: how long they stood. Return: false: one still has to stop before it can be let go. */
static bool release(struct md_stop *s, uint64_t *took)
{
	uint64_t end_ns;
	bool all = true;

	for (size_t i = 0; i < s->nr; i++)
		if (s->threads[i].stopped)
			restart_early_end(&s->threads[i]);
	for (size_t i = 0; i < s->nr; i++)
		if (s->threads[i].stopped)
			ptrace(PTRACE_DETACH, s->threads[i].tid, 0, (long)s->threads[i].signal);
	*took = mp_now_ns() - s->start_ns;
	relax(s);
	end_ns = mp_now_ns() + LATE_LIMIT_NS;
	for (size_t i = 0; i < s->nr; i++) /* may have been seized without being interrupted */
		if (!s->threads[i].stopped)
			ptrace(PTRACE_INTERRUPT, s->threads[i].tid, 0, 0);
	for (size_t i = 0; i < s->nr; i++)
		if (!s->threads[i].stopped)
			all &= let_go_late(&s->threads[i], end_ns);
	free(s->threads);
	*s = (struct md_stop){0};
	return all;
}

uint64_t md_stop_end(struct md_stop *s)
{
	uint64_t took;

	release(s, &took);
	return took;
}

/* After the error @r. Another try would find the thread that did not stop still traced, by this program. */
static int give_up(struct md_stop *s, int r)
{
	uint64_t took;

	return release(s, &took) ? r : -ETIMEDOUT;
}

/* ---- stopping ----------------------------------------------------------------------------------- */

static struct md_thread *find_thread(struct md_stop *s, pid_t tid)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->threads[i].tid == tid)
			return &s->threads[i];
	return NULL;
}

static int seize_failed(pid_t pid, struct mp_err *err)
{
	return mp_err_set(err, errno, "process %d: cannot stop it: %s", (int)pid,
			  errno == EPERM
				  ? "not permitted; another user's process, another tracer, or "
				    "Yama's kernel.yama.ptrace_scope"
				  : strerror(errno));
}

/* Has the thread ended, although its process, or its number, may still be there? */
static bool has_ended(pid_t tid)
{
	char state[64];

	return !md_process_status(tid, "State", state, sizeof(state)) || *state == 'Z' ||
	       *state == 'X';
}

/*
 * Seizes the threads that are not known yet, without stopping them. @found: how many these were. One that has just ended
 * counts, too: it may have made another one, which was not there yet when it was its turn.
 */
static int seize_new(struct md_stop *s, size_t *found, struct mp_err *err)
{
	pid_t *tids;
	size_t nr;
	int r = md_process_threads(s->pid, &tids, &nr);

	*found = 0;
	if (r)
		return mp_err_set(err, -r, "process %d: %s", (int)s->pid, strerror(-r));
	for (size_t i = 0; i < nr && !r; i++) {
		if (find_thread(s, tids[i]))
			continue;
		if (mp_grow(s->threads, s->room, s->nr + 1)) {
			r = mp_err_code(err, ENOMEM);
			break;
		}
		++*found;
		if (!ptrace(PTRACE_SEIZE, tids[i], 0, 0)) {
			s->threads[s->nr++] = (struct md_thread){.tid = tids[i]};
			continue;
		}
		/* Else it has ended, or the process becomes another program. */
		if (errno != ESRCH && (tids[i] == s->pid || !has_ended(tids[i]))) {
			r = seize_failed(s->pid, err);
			break;
		}
	}
	free(tids);
	return r;
}

/* Return: 0; -ESRCH: the thread has ended; -EAGAIN: it does not stop. */
static int stop_one(struct md_thread *t)
{
	int status, r = md_stop_await(t->tid, false, &status);

	if (r)
		return r;
	t->stopped = true;
	t->signal = 0;
	/* Not our interrupt: a signal that it is about to take, or a stop by one. */
	if (status >> 16 != PTRACE_EVENT_STOP)
		t->signal = WSTOPSIG(status);
	return ptrace(PTRACE_GETREGS, t->tid, 0, &t->regs) ? -ESRCH : 0;
}

static void drop_thread(struct md_stop *s, size_t i)
{
	s->threads[i] = s->threads[--s->nr];
}

static int stop_known(struct md_stop *s, struct mp_err *err)
{
	for (size_t i = 0; i < s->nr; i++)
		if (!s->threads[i].stopped)
			ptrace(PTRACE_INTERRUPT, s->threads[i].tid, 0, 0);
	for (size_t i = 0; i < s->nr;) {
		int r = s->threads[i].stopped ? 0 : stop_one(&s->threads[i]);

		if (r == -ESRCH) {
			drop_thread(s, i);
			continue;
		}
		if (r)
			return mp_err_set(err, EAGAIN,
					  "process %d: thread %d does not stop; it waits in the "
					  "kernel (state D, or a vfork)",
					  (int)s->pid, (int)s->threads[i].tid);
		i++;
	}
	return s->nr ? 0 : mp_err_set(err, ESRCH, "process %d: has ended", (int)s->pid);
}

int md_stop_all(pid_t pid, struct md_stop *out, struct mp_err *err)
{
	size_t found = 1;
	int r = 0;

	*out = (struct md_stop){.pid = pid};
	hurry(out);
	for (int i = 0; !r && found && i < SEIZE_PASSES; i++)
		r = seize_new(out, &found, err);
	out->start_ns = mp_now_ns();
	/* Only a thread that still ran can have made another one. */
	do {
		if (!r && mp_now_ns() - out->start_ns > STOP_LIMIT_NS)
			r = mp_err_set(err, EAGAIN,
				       "process %d: makes threads faster than they can be stopped",
				       (int)pid);
		if (!r)
			r = stop_known(out, err);
		if (!r)
			r = seize_new(out, &found, err);
	} while (!r && found);
	out->stood_ns = mp_now_ns();
	out->all = true;
	return r ? give_up(out, r) : 0;
}

int md_stop_thread(pid_t pid, pid_t tid, struct md_stop *out, struct mp_err *err)
{
	int r = 0;

	*out = (struct md_stop){.pid = pid};
	hurry(out);
	if (mp_grow(out->threads, out->room, 1))
		r = mp_err_code(err, ENOMEM);
	else if (ptrace(PTRACE_SEIZE, tid, 0, 0))
		r = has_ended(tid) ? -ESRCH : seize_failed(pid, err);
	if (!r) {
		out->threads[out->nr++] = (struct md_thread){.tid = tid};
		out->start_ns = mp_now_ns();
		r = stop_known(out, err);
	}
	return r ? give_up(out, r) : 0;
}
