// SPDX-License-Identifier: Apache-2.0
/* notify - sends one datagram to the service manager; see notify.h. */
#include "daemon/morphd/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void md_notify(const char *format, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;
	char state[768];
	va_list args;
	int fd;

	if (!len || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	va_start(args, format);
	vsnprintf(state, sizeof(state), format, args);
	va_end(args);
	/* Do not block: a manager that does not read must not stop the daemon. */
	sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&to,
	       offsetof(struct sockaddr_un, sun_path) + len);
	close(fd);
}
