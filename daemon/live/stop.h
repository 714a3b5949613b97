// SPDX-License-Identifier: Apache-2.0
/*
 * stop - stops all threads of a process by ptrace, and lets them go on as if nothing had been. If this program dies at
 * any point, the kernel lets them go on. Called by live.
 */
#ifndef MD_LIVE_STOP_H
#define MD_LIVE_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "libprof/base/err.h"

struct md_thread {
	pid_t tid;
	bool asked; /* to stop */
	bool stopped;
	int signal; /* it stopped to take this signal, which it gets when it goes on; 0: none */
	struct user_regs_struct regs; /* when it stopped */
};

struct md_stop {
	pid_t pid;
	struct md_thread *threads;
	size_t nr, room;
	uint64_t start_ns; /* when the first thread was asked to stop */
	uint64_t stood_ns; /* when the last one stood still */
	bool all;	   /* all threads, so that none changes another one's filters */
	int policy;	   /* this program's way to be scheduled, before */
};

/*
 * md_stop_all - stops all threads. Return: 0; -EAGAIN: not in time, or one of them waits in the kernel, or in a system call
 * that would end halfway; -ETIMEDOUT: the same, and it still does, so that no other try is possible; -EPERM, -ESRCH; each with
 * a message. Then all go on.
 */
int md_stop_all(pid_t pid, struct md_stop *out, struct mp_err *err);
/*
 * md_stop_thread - stops only thread @tid, for which the others do not wait. Return: as above; -ESRCH, perhaps without a
 * message: it has ended, or is another process's.
 */
int md_stop_thread(pid_t pid, pid_t tid, struct md_stop *out, struct mp_err *err);
/* md_stop_end - all threads go on. Return: how long they stood, in nanoseconds. */
uint64_t md_stop_end(struct md_stop *stop);

/*
 * md_stop_await - waits for the next stop of @tid. @blocked: also while it waits in the kernel in a way that no signal ends.
 * Return: 0; -EAGAIN: not in time; -ESRCH: it has ended. @status: as waitpid().
 */
int md_stop_await(pid_t tid, bool blocked, int *status);

#endif
