// SPDX-License-Identifier: Apache-2.0
/* audit_server - the order of one run, and what a server's failure looks like. */
#include "editor/audit/server/audit_server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "editor/audit/run/audit_child.h"
#include "editor/audit/server/audit_ready.h"
#include "libprof/base/clock.h"

/* Time that a server gets between SIGTERM and SIGKILL. */
#define GRACE_NS (10 * ME_NS_PER_SEC)
/* First and longest waiting time between two questions whether the server answers. */
#define ASK_FIRST_NS (ME_NS_PER_SEC / 1000)
#define ASK_MAX_NS   (ME_NS_PER_SEC / 20)
/* Longest time from a failure of the client to the report that the server has ended. */
#define LATE_MS 200

void me_server_open(struct me_server *server)
{
	server->sup.pid = -1;
	server->started = false;
	server->nr_killed = 0;
	/* Without a control group, /proc is read. */
	server->cgroup.path[0] = 0;
	if (server->read_cpu && me_cgroup_open(&server->cgroup))
		server->cgroup.path[0] = 0;
}

void me_server_close(struct me_server *server)
{
	me_cgroup_close(&server->cgroup);
}

static int server_cpu(const struct me_server *server, struct me_cpu_time *time, struct mp_err *err)
{
	int ret;

	memset(time, 0, sizeof(*time));
	if (!server->read_cpu)
		return 0;
	if (!server->cgroup.path[0])
		return me_tree_cpu(server->sup.pid, time, err);
	ret = me_cgroup_cpu(&server->cgroup, time);
	return ret ? mp_err_set(err, -ret, "%s: %s", server->cgroup.path, strerror(-ret)) : 0;
}

/* Describe a failed server: how it ended, and what it said last. */
static void server_describe(const struct me_server *server, const char *what, struct me_run *run)
{
	const struct me_supervised *reports = server->sup.server;
	char end[80] = "";

	if (atomic_load(&reports->ended))
		me_child_describe(reports->status, end, sizeof(end));
	snprintf(run->server, sizeof(run->server), "the server %s%s%s%s%.160s", what,
		 end[0] ? ": " : "", end, reports->last_line[0] ? "; it said: " : "",
		 reports->last_line);
}

/* Let the server write its last line, which says why it ended. */
static void server_settle(const struct me_server *server)
{
	struct timespec wait = {.tv_nsec = 1000000};

	for (int i = 0; i < 100 && !atomic_load(&server->sup.server->ended); i++)
		nanosleep(&wait, NULL);
	wait.tv_nsec = 10000000;
	nanosleep(&wait, NULL);
}

/* Return: 0 ready, 1 failed (run->server says how), -errno. */
static int server_wait_ready(struct me_server *server, const struct me_run_spec *client,
			     struct me_run *run, struct mp_err *err)
{
	uint64_t deadline = mp_now_ns() + server->ready_ns, pause = ASK_FIRST_NS;
	struct pollfd ended = {.fd = server->sup.ended_fd};
	char what[64];
	int ready;

	for (;;) {
		struct timespec wait = {.tv_nsec = (long)pause};

		ready = me_ready_now(server->ready, deadline, client->envp, client->mask, err);
		if (ready < 0)
			return ready;
		if (me_supervisor_failed(&server->sup)) {
			server_settle(server);
			server_describe(server, "ended before it was ready", run);
			return 1;
		}
		if (ready)
			return 0;
		if (mp_now_ns() >= deadline)
			break;
		ppoll(&ended, 1, &wait, client->mask);
		if (me_run_cancelled())
			return mp_err_set(err, ECANCELED, "interrupted");
		pause = 2 * pause < ASK_MAX_NS ? 2 * pause : ASK_MAX_NS;
	}
	snprintf(what, sizeof(what), "was not ready within %g s",
		 (double)server->ready_ns / (double)ME_NS_PER_SEC);
	server_describe(server, what, run);
	return 1;
}

/* The window that is measured. */
static int server_drive(struct me_server *server, const struct me_run_spec *client,
			const struct stat *library, struct me_run *run, struct mp_err *err)
{
	struct pollfd ended = {.fd = server->sup.ended_fd};
	struct me_run_spec watched = *client;
	struct me_cpu_time before, after;
	int ret = server_cpu(server, &before, err);

	watched.watch_fd = server->sup.ended_fd;
	if (!ret)
		ret = me_run(&watched, run, err);
	if (ret)
		return ret;
	/* A client may see that the server is gone before the supervisor does. */
	if (run->status)
		poll(&ended, 1, LATE_MS);
	if (me_supervisor_failed(&server->sup)) {
		server_settle(server);
		server_describe(server, "ended while the client ran", run);
		return 0;
	}
	ret = server_cpu(server, &after, err);
	if (ret)
		return ret;
	/* A process that ended meanwhile now counts in ticks: an idle window could be negative. */
	run->cpu_ns = after.cpu_ns > before.cpu_ns ? after.cpu_ns - before.cpu_ns : 0;
	run->user_ns = after.user_ns > before.user_ns ? after.user_ns - before.user_ns : 0;
	if (library && !me_tree_maps(server->sup.pid, library))
		return mp_err_set(err, ENOLINK, "no process of the server maps it");
	return 0;
}

/* Whatever answers before the first start is not the server that is to be measured. */
static int server_check_alone(const struct me_server *server, const struct me_run_spec *client,
			      struct mp_err *err)
{
	int ready;

	if (server->started)
		return 0;
	ready = me_ready_now(server->ready, mp_now_ns() + server->ready_ns, client->envp,
			     client->mask, err);
	if (ready <= 0)
		return ready;
	return mp_err_set(
		err, EADDRINUSE,
		"--ready=%s: succeeds before the server is started; does another one run?",
		server->ready);
}

int me_server_run(struct me_server *server, const struct me_run_spec *spec,
		  const struct me_run_spec *client, const struct stat *library, struct me_run *run,
		  struct mp_err *err)
{
	struct mp_err end_err = {""};
	bool killed = false;
	int ret, end;

	memset(run, 0, sizeof(*run));
	ret = server_check_alone(server, client, err);
	if (ret)
		return ret;
	server->started = true;
	ret = me_supervisor_start(&server->sup, spec,
				  server->cgroup.path[0] ? &server->cgroup : NULL, err);
	if (ret)
		return ret;
	ret = server_wait_ready(server, client, run, err);
	if (!ret)
		ret = server_drive(server, client, library, run, err);
	end = me_supervisor_end(&server->sup, GRACE_NS, spec->mask, &killed, &end_err);
	if (end == 0 && me_run_cancelled() && ret >= 0)
		ret = mp_err_set(err, ECANCELED, "interrupted");
	server->nr_killed += killed;
	if (ret < 0)
		return ret;
	return end ? mp_err_set(err, -end, "%s", end_err.msg) : 0;
}
