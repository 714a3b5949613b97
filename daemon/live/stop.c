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

#include "daemon/live/halfway.h"
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
/* A loop that waits for a thread reads its state in /proc once in so many turns. */
#define LOOK_TURNS 16
/*
 * A thread that runs is looked at so often before the first stop of all, or its own alone, and before others: it may run in a
 * system call that would end halfway, and then wait there.
 */
#define FIRST_LOOKS 8
#define OTHER_LOOKS 2
/* Threads that were seen to wait in such a call. */
#define MAX_SEEN 64

/* The kernel's own error. */
#define ERESTARTNOHAND 514

/* ---- waiting ------------------------------------------------------------------------------------ */

/* Has the thread ended, although its process, or its number, may still be there? */
static bool has_ended(pid_t tid)
{
	char state = md_process_state(tid);

	return !state || state == 'Z' || state == 'X';
}

/*
 * waitpid() does not tell that a first thread has ended while others go on; its state does. @turn: of somebody who waits; each
 * time, that would take too long. Return: as waitpid(), with 0 also after a signal; -1: it has ended.
 */
static pid_t look_for_stop(pid_t tid, unsigned int turn, int *status)
{
	bool ended = turn % LOOK_TURNS == LOOK_TURNS - 1 && has_ended(tid);
	pid_t got = waitpid(tid, status, __WALL | WNOHANG);

	if (got < 0)
		return errno == EINTR ? 0 : -1;
	return !got && ended ? -1 : got;
}

int md_stop_await(pid_t tid, bool blocked, int *status)
{
	const struct timespec pause = {.tv_nsec = 20000};
	uint64_t start = mp_now_ns(), took;

	for (unsigned int turn = 0;; turn++) {
		pid_t got = look_for_stop(tid, turn, status);

		if (got > 0)
			return WIFSTOPPED(*status) ? 0 : -ESRCH;
		if (got < 0)
			return -ESRCH;
		took = mp_now_ns() - start;
		if (took > STOP_LIMIT_NS ||
		    (!blocked && took > KERNEL_LIMIT_NS && md_process_state(tid) == 'D'))
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

	s->policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	if (s->policy == SCHED_OTHER || s->policy == SCHED_BATCH)
		sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param);
}

/* Only root may take the flag away again. */
static void relax(const struct md_stop *s)
{
	const struct sched_param param = {0};

	if (s->policy == SCHED_OTHER || s->policy == SCHED_BATCH)
		sched_setscheduler(0, s->policy | SCHED_RESET_ON_FORK, &param);
}

/* ---- calls that would end halfway --------------------------------------------------------------- */

/*
 * Kept from stop to stop: one that was seen in such a call may well be in it again when it runs, so it is then stopped only
 * where it waits elsewhere.
 */
static pid_t seen[MAX_SEEN];
static size_t nr_seen;

static bool was_seen(pid_t tid)
{
	for (size_t i = 0; i < nr_seen && i < MAX_SEEN; i++)
		if (seen[i] == tid)
			return true;
	return false;
}

/* May the thread be asked to stop now? Return: as md_halfway(). */
static int look_at(pid_t tid)
{
	int r = md_halfway(tid);

	if (r == MD_HALFWAY_YES && !was_seen(tid))
		seen[nr_seen++ % MAX_SEEN] = tid;
	return r == MD_HALFWAY_RUNS && was_seen(tid) ? MD_HALFWAY_YES : r;
}

/* The same. Return: 0: yes, or it runs, and then *@runs is set; -EAGAIN, -errno with a message. */
static int check_halfway(pid_t pid, pid_t tid, bool *runs, struct mp_err *err)
{
	int r = look_at(tid);

	*runs = r == MD_HALFWAY_RUNS;
	if (r < 0)
		return mp_err_set(err, -r, "process %d: thread %d: its system call: %s", (int)pid,
				  (int)tid, strerror(-r));
	return r != MD_HALFWAY_YES
		       ? 0
		       : mp_err_set(err, EAGAIN,
				    "process %d: thread %d is in a system call that a stop would "
				    "end halfway, such as a write of which a part is done",
				    (int)pid, (int)tid);
}

/*
 * The same for @nr threads, before any of them is touched: one that is seized can be let go only by a stop. @looks: at one that
 * runs. Changes @tids.
 */
static int check_each_halfway(pid_t pid, pid_t *tids, size_t nr, int looks, struct mp_err *err)
{
	struct timespec pause = {.tv_nsec = 50000};
	size_t running;
	bool runs;
	int r = 0;

	for (int i = 0; !r && nr && i < looks; i++) {
		if (i)
			nanosleep(&pause, NULL);
		pause.tv_nsec *= 2; /* it may only wait for a processor */
		running = 0;
		for (size_t k = 0; !r && k < nr; k++) {
			r = check_halfway(pid, tids[k], &runs, err);
			if (runs)
				tids[running++] = tids[k];
		}
		nr = running;
	}
	return r;
}

static int check_all_halfway(pid_t pid, struct mp_err *err)
{
	static int looks = FIRST_LOOKS;
	pid_t *tids;
	size_t nr;
	int r = md_process_threads(pid, &tids, &nr);

	if (r)
		return mp_err_set(err, -r, "process %d: %s", (int)pid, strerror(-r));
	r = check_each_halfway(pid, tids, nr, looks, err);
	if (!r)
		looks = OTHER_LOOKS;
	free(tids);
	return r;
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
 * Some system calls end with EINTR when a thread is stopped, as if a signal had come, although none has. Where no handler
 * runs, the call is made again instead: it has not done anything, or it would say how much.
 * signal(7) lists them, those with sockets that have a time limit, too; calls with other results restart by themselves.
 */
static bool ends_early(const struct md_thread *t)
{
	if ((long)t->regs.rax != -EINTR)
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

/*
 * The kernel decides when the thread goes on: ERESTARTNOHAND becomes EINTR if a handler runs then, and else the call is made
 * again. So no EINTR is lost, not even if the signal comes after this.
 */
static void restart_early_end(const struct md_thread *t)
{
	struct user_regs_struct regs = t->regs;

	if (!ends_early(t))
		return;
	regs.rax = (unsigned long long)-ERESTARTNOHAND;
	ptrace(PTRACE_SETREGS, t->tid, 0, &regs);
}

static void let_go(const struct md_thread *t)
{
	restart_early_end(t);
	ptrace(PTRACE_DETACH, t->tid, 0, (long)t->signal);
}

static void ask_to_stop(struct md_thread *t)
{
	ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	t->asked = true;
}

/* @status: of its stop. Return: false: it has ended. */
static bool note_stop(struct md_thread *t, int status)
{
	t->stopped = true;
	/* Else not our interrupt: a signal that it is about to take, or a stop by one. */
	t->signal = status >> 16 == PTRACE_EVENT_STOP || WSTOPSIG(status) == (SIGTRAP | 0x80)
			    ? 0
			    : WSTOPSIG(status);
	return !ptrace(PTRACE_GETREGS, t->tid, 0, &t->regs);
}

/*
 * One that did not stop in time can be let go only once it stops; also one that was seized, but not asked. If that is in a call
 * that would end halfway, it goes on without a stop when this program ends. Return: whether it has gone on, or ended.
 */
static bool let_go_late(struct md_thread *t, unsigned int turn)
{
	int status;
	pid_t got;

	if (!t->asked && look_at(t->tid) != MD_HALFWAY_YES)
		ask_to_stop(t);
	got = look_for_stop(t->tid, turn, &status);
	if (got > 0 && WIFSTOPPED(status) && note_stop(t, status))
		let_go(t);
	return got != 0;
}

static void drop_thread(struct md_stop *s, size_t i)
{
	s->threads[i] = s->threads[--s->nr];
}

/* All threads go on. *@took: how long they stood. Return: false: one still has to stop before it can be let go. */
static bool release(struct md_stop *s, uint64_t *took)
{
	const struct timespec pause = {.tv_nsec = 500000};
	size_t nr = 0;
	uint64_t end_ns;

	for (size_t i = 0; i < s->nr; i++)
		if (s->threads[i].stopped)
			let_go(&s->threads[i]);
		else
			s->threads[nr++] = s->threads[i];
	s->nr = nr;
	*took = mp_now_ns() - s->start_ns;
	relax(s);
	end_ns = mp_now_ns() + LATE_LIMIT_NS;
	/* None waits for another one. */
	for (unsigned int turn = 0; nr; turn++) {
		for (size_t i = 0; i < s->nr;)
			if (let_go_late(&s->threads[i], turn))
				drop_thread(s, i);
			else
				i++;
		nr = s->nr;
		if (nr && mp_now_ns() >= end_ns)
			break;
		if (nr)
			nanosleep(&pause, NULL);
	}
	free(s->threads);
	*s = (struct md_stop){0};
	return !nr;
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

static int compare_tid(const void *a, const void *b)
{
	const struct md_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int seize_failed(pid_t pid, struct mp_err *err)
{
	return mp_err_set(err, errno, "process %d: cannot stop it: %s", (int)pid,
			  errno == EPERM
				  ? "not permitted; another user's process, another tracer, or "
				    "Yama's kernel.yama.ptrace_scope"
				  : strerror(errno));
}

/*
 * Seizes the threads that are not known yet, without stopping them, and sorts those that are. @found: how many these were. One that has just ended
 * counts, too: it may have made another one, which was not there yet when it was its turn.
 */
static int seize_new(struct md_stop *s, size_t *found, struct mp_err *err)
{
	const size_t nr_known = s->nr;
	pid_t *tids;
	size_t nr;
	int r = md_process_threads(s->pid, &tids, &nr);

	*found = 0;
	if (r)
		return mp_err_set(err, -r, "process %d: %s", (int)s->pid, strerror(-r));
	if (nr_known)
		qsort(s->threads, nr_known, sizeof(*s->threads), compare_tid);
	for (size_t i = 0; i < nr && !r; i++) {
		const struct md_thread wanted = {.tid = tids[i]};

		if (nr_known && bsearch(&wanted, s->threads, nr_known, sizeof(wanted), compare_tid))
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

/* While it stands still, no other thread can get its number. */
static bool is_thread_of(pid_t pid, pid_t tid)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task/%d", (int)pid, (int)tid);
	return !access(name, F_OK);
}

/*
 * Return: 0; -ESRCH: the thread has ended, and perhaps another process's thread had its number when it was seized, which goes
 * on; -EAGAIN: it does not stop.
 */
static int stop_one(pid_t pid, struct md_thread *t)
{
	int status, r = md_stop_await(t->tid, false, &status);

	if (r)
		return r;
	if (!note_stop(t, status))
		return -ESRCH;
	if (is_thread_of(pid, t->tid))
		return 0;
	let_go(t);
	return -ESRCH;
}

static int stop_known(struct md_stop *s, struct mp_err *err)
{
	bool runs;

	for (size_t i = 0; i < s->nr; i++) {
		int r = s->threads[i].asked ? 0
					    : check_halfway(s->pid, s->threads[i].tid, &runs, err);

		if (r)
			return r;
		if (!s->threads[i].asked)
			ask_to_stop(&s->threads[i]);
	}
	for (size_t i = 0; i < s->nr;) {
		int r = s->threads[i].stopped ? 0 : stop_one(s->pid, &s->threads[i]);

		if (r == -ESRCH) {
			bool first = s->threads[i].tid == s->pid;

			drop_thread(s, i);
			if (first && md_process_goes_on_alone(s->pid))
				return mp_err_set(err, EPERM,
						  "process %d: its first thread has ended",
						  (int)s->pid);
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

/* @r: of the pass before. */
static int check_time(const struct md_stop *s, int r, struct mp_err *err)
{
	if (r || mp_now_ns() - s->start_ns <= STOP_LIMIT_NS)
		return r;
	return mp_err_set(
		err, EAGAIN,
		"process %d: its threads take too long to stop, or it makes them too fast",
		(int)s->pid);
}

int md_stop_all(pid_t pid, struct md_stop *out, struct mp_err *err)
{
	size_t found = 1;
	int r;

	*out = (struct md_stop){.pid = pid};
	r = check_all_halfway(pid, err);
	if (r)
		return r;
	hurry(out);
	for (int i = 0; !r && found && i < SEIZE_PASSES; i++)
		r = seize_new(out, &found, err);
	out->start_ns = mp_now_ns();
	/* Only a thread that still ran can have made another one. */
	do {
		if (!r)
			r = stop_known(out, err);
		if (!r)
			r = seize_new(out, &found, err);
		r = check_time(out, r, err);
	} while (!r && found);
	out->stood_ns = mp_now_ns();
	out->all = true;
	return r ? give_up(out, r) : 0;
}

int md_stop_thread(pid_t pid, pid_t tid, struct md_stop *out, struct mp_err *err)
{
	int r = check_each_halfway(pid, &(pid_t){tid}, 1, FIRST_LOOKS, err);

	*out = (struct md_stop){.pid = pid};
	if (r)
		return r;
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
