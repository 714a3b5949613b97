// SPDX-License-Identifier: Apache-2.0
/*
 * audit_server - one measured run of a server: start it, wait until it answers, let a client
 * drive it, read the server's CPU time for this window, and end it.
 *
 * The CPU time is that of all processes that the server started, between the first answer and
 * the end of the client. A control group gives it to the microsecond, also for processes that
 * ended; without the right to make one, audit_tree reads it from /proc. The times that wait4()
 * gives would include start and shutdown. Called by audit_stage.
 */
#ifndef ME_AUDIT_SERVER_H
#define ME_AUDIT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "editor/audit/run/audit_run.h"
#include "editor/audit/server/audit_supervisor.h"
#include "libprof/base/err.h"

struct me_server {
	const char *ready; /* see audit_ready.h */
	uint64_t ready_ns; /* limit of the start */
	bool read_cpu;	   /* else only the client is measured */
	size_t nr_killed;  /* servers that SIGTERM did not end */
	/* private */
	struct me_supervisor sup;
	struct me_cgroup cgroup;
	bool started;
};

/* me_server_open - prepare; the first fields of @server are set. Ownership: me_server_close(). */
void me_server_open(struct me_server *server);
/*
 * me_server_run - one run. @client: the client's run, which also decides exit status and output.
 * cpu_ns and user_ns of @run are the server's, wall_ns is the client's, and the field server says
 * how the server failed. @library: NULL, or a file that the server must map. Return: 0 whatever
 * the client's status; -ECANCELED; -ENOLINK if @library is not mapped; -errno; with @err set.
 */
int me_server_run(struct me_server *server, const struct me_run_spec *spec,
		  const struct me_run_spec *client, const struct stat *library, struct me_run *run,
		  struct mp_err *err);
void me_server_close(struct me_server *server);

#endif
