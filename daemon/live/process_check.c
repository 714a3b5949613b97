// SPDX-License-Identifier: Apache-2.0
/* process_check - reasons to leave a process alone; see process.h. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/live/process.h"

/* Every 2 ms. */
#define BLOCKED_LOOKS 250

static int refuse(pid_t pid, const char *why, struct mp_err *err)
{
	return mp_err_set(err, EPERM, "process %d: %s", (int)pid, why);
}

static bool same_namespace(pid_t pid, const char *which)
{
	char name[64], theirs[64] = "", ours[64] = "";

	snprintf(name, sizeof(name), "/proc/%d/ns/%s", (int)pid, which);
	if (readlink(name, theirs, sizeof(theirs) - 1) < 0)
		return false;
	snprintf(name, sizeof(name), "/proc/self/ns/%s", which);
	return readlink(name, ours, sizeof(ours) - 1) >= 0 && !strcmp(theirs, ours);
}

static int check_namespaces(pid_t pid, struct mp_err *err)
{
	static const char *const kinds[] = {"pid", "user"};
	static const char *const what[] = {"it lives in another PID namespace (a container)",
					   "it lives in another user namespace"};

	for (int i = 0; i < 2; i++)
		if (!same_namespace(pid, kinds[i]))
			return refuse(pid, what[i], err);
	return 0;
}

/* A line of a file below /proc or /sys; "" if there is none. */
static void read_line(const char *name, char *buf, size_t size)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}

static int check_confined(pid_t pid, struct mp_err *err)
{
	char name[64], value[256];

	/* Filters are asked for each system call (filter.h). */
	if (md_process_status(pid, "Seccomp", value, sizeof(value)) && !strcmp(value, "1"))
		return refuse(pid, "seccomp permits it no system call that maps the new code", err);
	read_line("/sys/fs/selinux/enforce", value, sizeof(value));
	if (!strcmp(value, "1"))
		return refuse(pid, "SELinux is in force, which may forbid changed code", err);
	snprintf(name, sizeof(name), "/proc/%d/attr/apparmor/current", (int)pid);
	read_line(name, value, sizeof(value));
	if (strstr(value, "(enforce)") || strstr(value, "(kill)"))
		return refuse(pid, "AppArmor confines it, which may forbid to map the new code",
			      err);
	return 0;
}

/* Does the file have the line @line? */
static bool has_line(const char *name, const char *line)
{
	char *text = NULL;
	size_t room = 0;
	bool has = false;
	FILE *f = fopen(name, "re");

	while (f && !has && getline(&text, &room, f) > 0) {
		text[strcspn(text, "\n")] = '\0';
		has = !strcmp(text, line);
	}
	free(text);
	if (f)
		fclose(f);
	return has;
}

/* Is the control group in the directory @group, or one around it below @mount, told to freeze? Shortens @group. */
static bool group_is_frozen(const char *mount, char *group, size_t size)
{
	size_t len = strlen(group);

	for (;;) {
		char *end;

		if (snprintf(group + len, size - len, "/cgroup.freeze") >= (int)(size - len))
			return false;
		if (has_line(group, "1"))
			return true;
		group[len] = '\0';
		end = strrchr(group, '/');
		if (!end || end < group + strlen(mount))
			return false;
		*end = '\0';
		len = (size_t)(end - group);
	}
}

/*
 * Has somebody frozen its control group, as systemctl freeze does? Its threads then stop for ptrace, but make no system
 * call until they are thawed. What version 1 has frozen is in state D.
 */
static bool is_frozen(pid_t pid)
{
	/* systemd mounts version 2 of control groups at the first one; if it mounts version 1 as well, at the second one. */
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char name[64], *line = NULL, group[PATH_MAX + 64];
	size_t room = 0;
	bool frozen = false;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	f = fopen(name, "re");
	while (f && !frozen && getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		for (int i = 0; i < 2 && !frozen && !strncmp(line, "0::/", 4); i++) {
			snprintf(group, sizeof(group), "%s%.*s", mounts[i], PATH_MAX, line + 3);
			frozen = group_is_frozen(mounts[i], group, sizeof(group));
		}
	}
	free(line);
	if (f)
		fclose(f);
	return frozen;
}

/* Is the program of the process 64-bit? */
static int check_class(pid_t pid, struct mp_err *err)
{
	unsigned char ident[EI_NIDENT] = "";
	char name[64];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return mp_err_set(err, errno, "process %d: its program: %s", (int)pid,
				  strerror(errno));
	n = read(fd, ident, sizeof(ident));
	close(fd);
	if (n != sizeof(ident) || memcmp(ident, ELFMAG, SELFMAG) || ident[EI_CLASS] != ELFCLASS64)
		return refuse(pid, "its program is no 64-bit one", err);
	return 0;
}

/* A process that reads from a disk is in state D, too, but soon leaves it. */
static bool stays_blocked(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = 2000000};

	for (int i = 0; i < BLOCKED_LOOKS; i++) {
		nanosleep(&pause, NULL);
		if (md_process_state(pid) != 'D')
			return false;
	}
	return true;
}

/*
 * Do both use the same memory? Return: 1, 0; -errno: that cannot be told. A process that may not be looked at has other rights
 * than @pid, such as a set-uid program that it has started: between vfork() and exec it has the same.
 */
static int share(pid_t pid, pid_t other)
{
	int r = (int)syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0);

	if (r >= 0)
		return r == 0;
	return errno == ESRCH || errno == EPERM ? 0 : -errno;
}

static int refuse_unknown(pid_t pid, int r, struct mp_err *err)
{
	return mp_err_set(err, EPERM,
			  "process %d: whether another one shares its memory cannot be told: %s",
			  (int)pid, strerror(-r));
}

/* Can the kernel tell which processes share memory? */
static int check_kernel(pid_t pid, struct mp_err *err)
{
	int r = share(getpid(), getpid());

	if (r != 1)
		return refuse_unknown(pid, r ? r : -EPERM, err);
	return access("/proc/thread-self/children", F_OK)
		       ? refuse(pid, "the kernel does not list children (CONFIG_PROC_CHILDREN)",
				err)
		       : 0;
}

/* Does any process, child or not, share the memory of @pid? */
static int check_alone(pid_t pid, struct mp_err *err)
{
	struct dirent *e;
	DIR *dir = opendir("/proc");
	int r = 0;

	if (!dir)
		return mp_err_set(err, errno, "/proc: %s", strerror(errno));
	while (!r && (e = readdir(dir))) {
		pid_t other = (pid_t)atoi(e->d_name);

		r = other > 0 && other != pid ? share(pid, other) : 0;
	}
	closedir(dir);
	if (r < 0)
		return refuse_unknown(pid, r, err);
	return r ? refuse(pid, "another process shares its memory (between vfork and exec)", err)
		 : 0;
}

/* A child between vfork() and exec soon has memory of its own. */
static int stays_shared(pid_t pid, struct mp_err *err)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	int r = check_alone(pid, err);

	for (int i = 0; r == -EPERM && i < BLOCKED_LOOKS; i++) {
		nanosleep(&pause, NULL);
		r = check_alone(pid, err);
	}
	return r;
}

int md_process_check(const struct md_process *p, struct mp_err *err)
{
	char value[256];
	int r;

	if (p->pid == getpid())
		return refuse(p->pid, "is this command itself", err);
	if (!md_process_status(p->pid, "State", value, sizeof(value)))
		return mp_err_set(err, ESRCH, "process %d: there is none", (int)p->pid);
	if (*value == 'T' || *value == 't')
		return refuse(p->pid, *value == 't' ? "a debugger stopped it" : "it is stopped",
			      err);
	if (*value == 'Z' || *value == 'X')
		return refuse(p->pid, "its first thread has ended", err);
	if (*value == 'D' && stays_blocked(p->pid))
		return refuse(p->pid, "it waits in the kernel and cannot be stopped (state D)",
			      err);
	if (md_process_status(p->pid, "TracerPid", value, sizeof(value)) && strcmp(value, "0"))
		return mp_err_set(err, EPERM,
				  "process %d: process %s traces it already (a debugger?)",
				  (int)p->pid, value);
	if (is_frozen(p->pid))
		return refuse(p->pid, "its control group is frozen", err);
	if (md_process_status(p->pid, "x86_Thread_features", value, sizeof(value)) &&
	    strstr(value, "shstk"))
		return refuse(p->pid, "a shadow stack guards its return addresses", err);
	r = check_class(p->pid, err);
	if (!r)
		r = check_namespaces(p->pid, err);
	if (!r)
		r = check_confined(p->pid, err);
	if (!r)
		r = check_kernel(p->pid, err);
	return r ? r : stays_shared(p->pid, err);
}

/* Does any child that @thread made share the memory of @pid? Return: 1, 0; -errno: that cannot be told. */
static int child_shares(pid_t pid, pid_t thread)
{
	char name[96], *text = NULL, *at, *end;
	size_t room = 0;
	int r = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/children", (int)pid, (int)thread);
	f = fopen(name, "re");
	if (!f) {
		r = -errno;
		/* The thread has ended, and with it the list; its children are another thread's now. */
		*strrchr(name, '/') = '\0';
		return r == -ENOENT && access(name, F_OK) ? 0 : r;
	}
	if (getdelim(&text, &room, '\0', f) > 0)
		for (at = text; !r; at = end) {
			long child = strtol(at, &end, 10);

			if (end == at)
				break;
			r = share(pid, (pid_t)child);
		}
	else if (ferror(f))
		r = -errno;
	free(text);
	fclose(f);
	return r;
}

int md_process_check_shared(pid_t pid, struct mp_err *err)
{
	pid_t *threads;
	size_t nr;
	int r = md_process_threads(pid, &threads, &nr);

	if (r)
		return mp_err_set(err, -r, "process %d: %s", (int)pid, strerror(-r));
	for (size_t i = 0; i < nr && !r; i++)
		r = child_shares(pid, threads[i]);
	free(threads);
	if (r < 0)
		return refuse_unknown(pid, r, err);
	return r ? refuse(pid, "a child shares its memory (between vfork and exec)", err) : 0;
}
