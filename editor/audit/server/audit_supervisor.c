// SPDX-License-Identifier: Apache-2.0
/* audit_supervisor - the process itself (supervise), and how the audit talks to it. */
#include "editor/audit/server/audit_supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "editor/audit/run/audit_child.h"
#include "editor/audit/server/audit_tree.h"
#include "libprof/base/clock.h"

/* How long the kernel may take to end processes that were killed. */
#define KILL_NS (20 * ME_NS_PER_SEC)

/* ---- in the supervisor ----------------------------------------------------------------- */

struct supervised_process {
	struct me_supervised *server;
	int life, ended, log, children; /* descriptors; children: a signalfd */
};

/* Keep the last line that is not empty. A line longer than the buffer keeps its end. */
static void supervise_log(struct supervised_process *sp)
{
	char buf[4096], *last = sp->server->last_line;
	size_t room = sizeof(sp->server->last_line) - 1, end, start;
	ssize_t got = read(sp->log, buf, sizeof(buf));

	if (got <= 0) {
		if (got == 0 || errno != EINTR) {
			close(sp->log);
			sp->log = -1;
		}
		return;
	}
	end = (size_t)got;
	while (end > 0 && (buf[end - 1] == '\n' || buf[end - 1] == '\r'))
		end--;
	start = end;
	while (start > 0 && buf[start - 1] != '\n' && end - start < room)
		start--;
	if (start == end)
		return;
	memcpy(last, buf + start, end - start);
	last[end - start] = 0;
}

/* Wait for children that ended. Return: false if no child is left. */
static bool supervise_reap(struct supervised_process *sp)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(sp->children, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != sp->server->main)
			continue;
		sp->server->status = status;
		atomic_store(&sp->server->ended, 1);
		if (status && sp->ended >= 0) {
			close(sp->ended);
			sp->ended = -1;
		}
	}
	return pid == 0 || errno == EINTR;
}

static void supervise_loop(struct supervised_process *sp)
{
	while (supervise_reap(sp)) {
		struct pollfd fds[3] = {
			{.fd = sp->children, .events = POLLIN},
			{.fd = sp->log, .events = POLLIN},
			{.fd = sp->life, .events = POLLIN},
		};

		/* While processes are being killed, look again soon. */
		poll(fds, 3, sp->life < 0 ? 10 : -1);
		if (fds[1].revents)
			supervise_log(sp);
		if (fds[2].revents)
			sp->life = -1; /* the audit closed it, or is dead */
		if (sp->life < 0)
			me_tree_signal(getpid(), SIGKILL, true);
	}
	while (sp->log >= 0) {
		struct pollfd rest = {.fd = sp->log, .events = POLLIN};

		if (poll(&rest, 1, 0) <= 0)
			break;
		supervise_log(sp);
	}
}

static int supervise_start(struct supervised_process *sp, const struct me_run_spec *spec,
			   const struct me_cgroup *cgroup, struct mp_err *err)
{
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC), log[2], ret = 0;

	if (in < 0)
		return mp_err_set(err, errno, "/dev/null: %s", strerror(errno));
	if (pipe2(log, O_CLOEXEC)) {
		close(in);
		return mp_err_set(err, errno, "pipe: %s", strerror(errno));
	}
	if (cgroup)
		ret = me_cgroup_enter(cgroup);
	if (ret)
		mp_err_set(err, -ret, "%s: %s", cgroup->path, strerror(-ret));
	if (!ret)
		ret = me_child_start(&(struct me_child){.path = spec->path,
							.argv = spec->argv,
							.envp = spec->envp,
							.fds = {in, log[1], log[1]},
							.cpu = spec->cpu,
							.mask = spec->mask},
				     &sp->server->main, err);
	if (cgroup)
		me_cgroup_leave(cgroup);
	close(in);
	close(log[1]);
	sp->log = log[0];
	return ret;
}

static _Noreturn void supervise(struct me_supervised *server, const struct me_run_spec *spec,
				const struct me_cgroup *cgroup, int life, int ended, int started)
{
	struct supervised_process sp = {.server = server, .life = life, .ended = ended, .log = -1};
	struct mp_err err = {""};
	sigset_t child;
	int ret;

	setpgid(0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, "morph-audit-sup");
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sp.children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	ret = sp.children < 0 ? mp_err_set(&err, errno, "signalfd: %s", strerror(errno))
			      : supervise_start(&sp, spec, cgroup, &err);
	if (ret) {
		server->start_errno = -ret;
		snprintf(server->start_said, sizeof(server->start_said), "%s", err.msg);
		_exit(1);
	}
	close(started);
	supervise_loop(&sp);
	_exit(0);
}

/* ---- in the audit ---------------------------------------------------------------------- */

static void supervisor_forget(struct me_supervisor *sup)
{
	if (sup->life_fd >= 0)
		close(sup->life_fd);
	if (sup->ended_fd >= 0)
		close(sup->ended_fd);
	if (sup->server != MAP_FAILED)
		munmap(sup->server, sizeof(*sup->server));
	*sup = (struct me_supervisor){
		.pid = -1, .life_fd = -1, .ended_fd = -1, .server = MAP_FAILED};
}

int me_supervisor_start(struct me_supervisor *sup, const struct me_run_spec *spec,
			const struct me_cgroup *cgroup, struct mp_err *err)
{
	int life[2] = {-1, -1}, ended[2] = {-1, -1}, started[2] = {-1, -1}, ret = 0;
	char byte;

	*sup = (struct me_supervisor){.pid = -1, .life_fd = -1, .ended_fd = -1};
	sup->server = mmap(NULL, sizeof(*sup->server), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sup->server == MAP_FAILED || pipe2(life, O_CLOEXEC) || pipe2(ended, O_CLOEXEC) ||
	    pipe2(started, O_CLOEXEC) || (sup->pid = fork()) < 0) {
		ret = mp_err_set(err, errno, "cannot start a process: %s", strerror(errno));
		sup->pid = -1;
	}
	if (sup->pid == 0) {
		close(life[1]);
		close(ended[0]);
		close(started[0]);
		supervise(sup->server, spec, cgroup, life[0], ended[1], started[1]);
	}
	close(life[0]);
	close(ended[1]);
	close(started[1]);
	sup->life_fd = life[1];
	sup->ended_fd = ended[0];
	while (!ret && read(started[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(started[0]);
	if (!ret && sup->server->start_errno) {
		ret = mp_err_set(err, sup->server->start_errno, "%s", sup->server->start_said);
		waitpid(sup->pid, NULL, 0);
	}
	if (ret)
		supervisor_forget(sup);
	return ret;
}

bool me_supervisor_failed(const struct me_supervisor *sup)
{
	struct pollfd ended = {.fd = sup->ended_fd};

	return poll(&ended, 1, 0) > 0;
}

int me_supervisor_end(struct me_supervisor *sup, uint64_t grace_ns, const sigset_t *mask,
		      bool *killed, struct mp_err *err)
{
	int status, ret;

	*killed = false;
	if (sup->pid < 0)
		return 0;
	if (!atomic_load(&sup->server->ended))
		kill(sup->server->main, SIGTERM);
	else
		me_tree_signal(sup->pid, SIGTERM, false);
	grace_ns += mp_now_ns();
	/* The first signal to the audit does not cut the server's grace time short. */
	do
		ret = me_child_wait(sup->pid, grace_ns, mask, &status);
	while (ret == -ECANCELED && me_run_cancelled() < 2);
	if (ret) {
		*killed = true;
		close(sup->life_fd); /* the supervisor now kills all */
		sup->life_fd = -1;
		ret = me_child_wait(sup->pid, mp_now_ns() + KILL_NS, mask, &status);
		/* A third signal does not end the audit earlier. */
		while (ret == -ECANCELED)
			ret = me_child_wait(sup->pid, mp_now_ns() + KILL_NS, mask, &status);
	}
	supervisor_forget(sup);
	return ret ? mp_err_set(err, EBUSY, "processes of the server cannot be ended") : 0;
}
