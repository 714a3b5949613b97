// SPDX-License-Identifier: Apache-2.0
/* lock - the lock file beside a database; see lock.h. */
#include "daemon/morphd/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "libprof/base/defaults.h"
#include "libprof/store/store.h"

/* Return: the process id in the file; 0: none. */
static pid_t read_pid(int fd)
{
	char text[32] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	return n > 0 && atoi(text) > 0 ? atoi(text) : 0;
}

/* @pid: 0: no holder. */
static int write_pid(int fd, pid_t pid)
{
	char text[32] = "";
	ssize_t n = pid ? snprintf(text, sizeof(text), "%d\n", (int)pid) : 0;

	if (ftruncate(fd, 0) || pwrite(fd, text, n, 0) != n)
		return -errno;
	return 0;
}

int md_lock_take(const char *db, bool shared, struct md_lock *out, struct mp_err *err)
{
	char path[MP_PATH_ROOM], who[32] = "";
	int fd, ret;
	pid_t pid;

	*out = (struct md_lock){.fd = -1};
	snprintf(path, sizeof(path), "%s.lock", db);
	ret = mp_store_make_file(path, err);
	if (ret == -EPERM)
		return ret;
	if (ret)
		return mp_err_set(err, -ret, "%s: cannot create: %s", path, strerror(-ret));
	/* Another user may own the directory, and morphd may be root: follow no symbolic link. */
	fd = mp_store_file_open(path, O_RDWR, 0);
	if (fd < 0)
		return mp_err_set(err, errno, "%s: cannot create: %s", path, strerror(errno));
	if (!flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB)) {
		out->unclean_pid = read_pid(fd);
		ret = write_pid(fd, shared ? 0 : getpid());
		if (!ret) {
			out->fd = fd;
			return 0;
		}
		mp_err_set(err, -ret, "%s: cannot write: %s", path, strerror(-ret));
	} else if (errno == EWOULDBLOCK) {
		pid = read_pid(fd);
		if (pid)
			snprintf(who, sizeof(who), ", process %d", (int)pid);
		ret = mp_err_set(err, EBUSY,
				 "%s: in use by another morphd%s; name another with --db", db, who);
	} else {
		ret = mp_err_set(err, errno, "%s: cannot lock: %s", path, strerror(errno));
	}
	close(fd);
	return ret;
}

void md_lock_release(struct md_lock *lock)
{
	if (lock->fd < 0)
		return;
	/* If this fails, the next daemon only reports an end that was proper. */
	write_pid(lock->fd, 0);
	close(lock->fd);
	lock->fd = -1;
}
