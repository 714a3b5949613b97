// SPDX-License-Identifier: Apache-2.0
/*
 * audit_supervisor - a small process between the audit and a server. Every process that the
 * server starts stays below it, also a daemon whose parent exits. If the audit dies, the
 * supervisor kills them all.
 *
 * Called by audit_server.
 */
#ifndef ME_AUDIT_SUPERVISOR_H
#define ME_AUDIT_SUPERVISOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "editor/audit/run/audit_run.h"
#include "editor/audit/server/audit_cgroup.h"
#include "libprof/base/err.h"

/* The supervisor's reports, in memory that it shares with morph-audit. */
struct me_supervised {
	pid_t main;	      /* the process that executes the server */
	_Atomic(int) ended;   /* the main process ended */
	int status;	      /* wait status of the main process, once it ended */
	char last_line[160];  /* last line that the server wrote */
	int start_errno;      /* the server could not be started */
	char start_said[256]; /* why */
};

struct me_supervisor {
	pid_t pid;    /* -1: none */
	int life_fd;  /* the supervisor ends everything when this closes */
	int ended_fd; /* hangs up when the server has failed or ended */
	struct me_supervised *server;
};

/*
 * me_supervisor_start - start the server of @spec, in the group @cgroup if that is not NULL.
 * Return: 0, or -errno with @err set. Ownership: me_supervisor_end().
 */
int me_supervisor_start(struct me_supervisor *sup, const struct me_run_spec *spec,
			const struct me_cgroup *cgroup, struct mp_err *err);
/*
 * me_supervisor_failed - has the server failed? It has if its main process ended with another
 * status than 0, or if no process is left. (A daemon's main process ends with status 0.)
 */
bool me_supervisor_failed(const struct me_supervisor *sup);
/*
 * me_supervisor_end - end the server with SIGTERM, or with SIGKILL after @grace_ns or a further
 * signal to the audit. *@killed: SIGKILL was needed. Return: 0 when no process is left; -EBUSY
 * with @err set if the kernel does not end all processes.
 */
int me_supervisor_end(struct me_supervisor *sup, uint64_t grace_ns, const sigset_t *mask,
		      bool *killed, struct mp_err *err);

#endif
