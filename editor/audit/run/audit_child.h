// SPDX-License-Identifier: Apache-2.0
/*
 * audit_child - starts a process: its streams, signals and CPU, and why it could not start.
 *
 * Decides in which state each child of the audit starts. The state is the same for both programs.
 * Called by audit_run, audit_hooks, audit_ready and audit_supervisor.
 */
#ifndef ME_AUDIT_CHILD_H
#define ME_AUDIT_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libprof/base/err.h"

/* One process to start. */
struct me_child {
	const char *path;
	char *const *argv;
	char *const *envp;
	int fds[3]; /* its standard streams */
	int cpu;    /* run on this CPU only; -1: any */
	const sigset_t *mask;
	int (*before_exec)(void); /* called in the child; 0 or -errno; NULL: nothing */
};

/*
 * me_child_start - start the process in a process group of its own. It is killed when the
 * calling process ends. Return: 0 once the program runs; -errno with @err set if it cannot be
 * executed. Ownership: the caller waits for *@pid.
 */
int me_child_start(const struct me_child *child, pid_t *pid, struct mp_err *err);
/* me_child_shell - the same for a shell command. */
int me_child_shell(struct me_child child, const char *command, pid_t *pid, struct mp_err *err);
/*
 * me_child_wait - wait until the process ends, which *@status then describes. The signals of
 * @mask may arrive meanwhile. Return: 0; -ETIMEDOUT at @deadline_ns (0: none) and -ECANCELED
 * if me_run_cancel() is called meanwhile: the process still runs then.
 */
int me_child_wait(pid_t pid, uint64_t deadline_ns, const sigset_t *mask, int *status);
/* me_child_kill - kill the process and its group, and wait for it. */
void me_child_kill(pid_t pid);
/* me_child_describe - the end of a process in words, such as "exit status 1". */
void me_child_describe(int status, char *to, size_t size);

#define ME_NS_PER_SEC 1000000000ull

#endif
