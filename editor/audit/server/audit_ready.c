// SPDX-License-Identifier: Apache-2.0
/* audit_ready - connects, or runs the user's command. */
#include "editor/audit/server/audit_ready.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "editor/audit/run/audit_child.h"

/* Limit of one attempt to connect. */
#define CONNECT_MS 1000

/* Split tcp:[HOST:]PORT. @host holds 256 bytes. Return: the port; NULL: another form. */
static const char *ready_tcp(const char *ready, char *host)
{
	const char *port, *body = ready + 4;

	if (strncmp(ready, "tcp:", 4))
		return NULL;
	port = strrchr(body, ':');
	if (!port)
		snprintf(host, 256, "localhost");
	else if (body[0] == '[' && port > body && port[-1] == ']')
		snprintf(host, 256, "%.*s", (int)(port - body - 2), body + 1);
	else
		snprintf(host, 256, "%.*s", (int)(port - body), body);
	return port ? port + 1 : body;
}

int me_ready_check(const char *ready, struct mp_err *err)
{
	char host[256], *end;
	const char *port = ready_tcp(ready, host);
	long number;

	if (port) {
		number = strtol(port, &end, 10);
		if (end == port || *end || number < 1 || number > 65535 || !host[0])
			return mp_err_set(err, EINVAL, "'%s' is not tcp:[HOST:]PORT", ready);
	}
	if (!strncmp(ready, "unix:", 5) &&
	    (!ready[5] || strlen(ready + 5) >= sizeof(((struct sockaddr_un *)0)->sun_path)))
		return mp_err_set(err, EINVAL, "'%s' is not unix:PATH, or too long", ready);
	return 0;
}

static bool ready_connects(int family, const struct sockaddr *address, socklen_t size)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(error);

	if (fd < 0)
		return false;
	if (connect(fd, address, size)) {
		error = errno;
		if (error == EINPROGRESS && (poll(&wait, 1, CONNECT_MS) != 1 ||
					     getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len)))
			error = ETIMEDOUT;
	}
	close(fd);
	return !error;
}

static int ready_connect_tcp(const char *host, const char *port, struct mp_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *list, *at;
	int code = getaddrinfo(host, port, &hints, &list);
	bool answers = false;

	if (code)
		return mp_err_set(err, EHOSTUNREACH, "--ready: %s: %s", host, gai_strerror(code));
	for (at = list; at && !answers; at = at->ai_next)
		answers = ready_connects(at->ai_family, at->ai_addr, at->ai_addrlen);
	freeaddrinfo(list);
	return answers;
}

static bool ready_connect_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	return ready_connects(AF_UNIX, (struct sockaddr *)&address, sizeof(address));
}

static int ready_command(const char *command, uint64_t deadline_ns, char *const *envp,
			 const sigset_t *mask, struct mp_err *err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), status, ret;
	struct mp_err cause = {""};
	pid_t pid;

	if (null < 0)
		return mp_err_set(err, errno, "/dev/null: %s", strerror(errno));
	ret = me_child_shell(
		(struct me_child){.envp = envp, .fds = {null, null, null}, .cpu = -1, .mask = mask},
		command, &pid, &cause);
	close(null);
	if (ret)
		return mp_err_set(err, -ret, "--ready: %s", cause.msg);
	ret = me_child_wait(pid, deadline_ns, mask, &status);
	if (!ret)
		return !status;
	me_child_kill(pid);
	if (ret == -ETIMEDOUT)
		return 0;
	return mp_err_set(err, -ret, "--ready: %s", strerror(-ret));
}

int me_ready_now(const char *ready, uint64_t deadline_ns, char *const *envp, const sigset_t *mask,
		 struct mp_err *err)
{
	char host[256];
	const char *port = ready_tcp(ready, host);

	if (port)
		return ready_connect_tcp(host, port, err);
	if (!strncmp(ready, "unix:", 5))
		return ready_connect_unix(ready + 5);
	return ready_command(ready, deadline_ns, envp, mask, err);
}
