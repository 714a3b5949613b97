// SPDX-License-Identifier: Apache-2.0
/* idle - parses what the kernel says about the machine; see idle.h. */
#include "daemon/worker/idle.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/clock.h"

/* Looks that are closer together tell nothing: the kernel counts in ticks of 10 ms. */
#define LEAST_LOOK_S 0.8

/* ---- parsers ------------------------------------------------------------------------------ */

int md_idle_parse_load(const char *text, double *load)
{
	double value;

	if (sscanf(text, "%lf", &value) != 1 || !(value >= 0 && value < 1e9))
		return -EINVAL;
	*load = value;
	return 0;
}

int md_idle_parse_stat(const char *text, uint64_t *busy)
{
	uint64_t user, nice, system, idle, wait, irq = 0, soft = 0;

	if (sscanf(text,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64,
		   &user, &nice, &system, &idle, &wait, &irq, &soft) < 5)
		return -EINVAL;
	*busy = user + nice + system + irq + soft;
	return 0;
}

int md_idle_parse_process(const char *text, pid_t *session, uint64_t *ticks)
{
	/* The name may hold anything, parentheses as well. */
	const char *end = strrchr(text, ')');
	uint64_t own[2], children[2];
	int sid;

	if (!end || sscanf(end + 1,
			   " %*c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64,
			   &sid, &own[0], &own[1], &children[0], &children[1]) != 5)
		return -EINVAL;
	*session = sid;
	*ticks = own[0] + own[1] + children[0] + children[1];
	return 0;
}

/* Reads the beginning of a file of the kernel. */
static bool read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = 0;
	return n > 0;
}

bool md_idle_on_battery(const char *dir)
{
	bool mains = false, online = false, battery = false;
	struct dirent *entry;
	DIR *d = opendir(dir);

	while (d && (entry = readdir(d))) {
		char path[PATH_MAX], type[32], state[32];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/type", dir, entry->d_name);
		if (!read_text(path, type, sizeof(type)))
			continue;
		battery |= !strncmp(type, "Battery", 7);
		if (strncmp(type, "Mains", 5) && strncmp(type, "USB", 3))
			continue;
		snprintf(path, sizeof(path), "%s/%s/online", dir, entry->d_name);
		mains |= !strncmp(type, "Mains", 5);
		online |= read_text(path, state, sizeof(state)) && state[0] == '1';
	}
	if (d)
		closedir(d);
	return battery && mains && !online;
}

/* ---- before a step ------------------------------------------------------------------------- */

bool md_idle_check(const struct md_policy *policy, char *why, size_t size)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double value;
	char text[512];

	if (!policy->on_battery && md_idle_on_battery("/sys/class/power_supply")) {
		snprintf(why, size, "the machine runs on its battery");
		return false;
	}
	if (read_text("/proc/loadavg", text, sizeof(text)) && !md_idle_parse_load(text, &value) &&
	    value > policy->max_load * (double)cpus) {
		snprintf(why, size, "the load is %.2f on %ld CPUs", value, cpus);
		return false;
	}
	return true;
}

/* ---- while a child works ------------------------------------------------------------------- */

/* A service has a control group of its own, whose time includes all its children. */
static void find_cgroup(char *path, size_t size)
{
	char text[4096], *end;

	path[0] = 0;
	if (!read_text("/proc/self/cgroup", text, sizeof(text)) || strncmp(text, "0::", 3))
		return;
	end = strchr(text, '\n');
	if (end)
		*end = 0;
	/* The root's group has everybody's time; that of a login, the user's. */
	if (!strstr(text, ".service"))
		return;
	if (snprintf(path, size, "/sys/fs/cgroup%s/cpu.stat", text + 3) >= (int)size ||
	    access(path, R_OK))
		path[0] = 0;
}

/* CPU seconds of all processes of a session. */
static double session_s(pid_t session)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;
	uint64_t sum = 0;

	while (d && (entry = readdir(d))) {
		char path[300], text[1024];
		uint64_t ticks;
		pid_t sid;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		if (read_text(path, text, sizeof(text)) &&
		    !md_idle_parse_process(text, &sid, &ticks) && sid == session)
			sum += ticks;
	}
	if (d)
		closedir(d);
	return (double)sum / (double)sysconf(_SC_CLK_TCK);
}

static double own_s(const struct md_idle_watch *watch)
{
	unsigned long long usec;
	char text[512];

	if (watch->cgroup[0] && read_text(watch->cgroup, text, sizeof(text)) &&
	    sscanf(text, "usage_usec %llu", &usec) == 1)
		return (double)usec / 1e6;
	return session_s(watch->session);
}

static bool look(struct md_idle_watch *watch, double *busy, double *own)
{
	uint64_t ticks;
	char text[512];

	if (!read_text("/proc/stat", text, sizeof(text)) || md_idle_parse_stat(text, &ticks))
		return false;
	*busy = (double)ticks / (double)sysconf(_SC_CLK_TCK);
	*own = own_s(watch);
	return true;
}

void md_idle_watch_begin(struct md_idle_watch *watch, pid_t session)
{
	*watch = (struct md_idle_watch){.session = session, .at_s = mp_now_s()};
	find_cgroup(watch->cgroup, sizeof(watch->cgroup));
	watch->begun = look(watch, &watch->busy_s, &watch->own_s);
}

bool md_idle_is_wanted(struct md_idle_watch *watch, const struct md_policy *policy)
{
	double at = mp_now_s(), past = at - watch->at_s, busy, own, others;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!watch->begun || past < LEAST_LOOK_S || !look(watch, &busy, &own))
		return false;
	others = (busy - watch->busy_s) - (own - watch->own_s);
	watch->busy_s = busy;
	watch->own_s = own;
	watch->at_s = at;
	return others > policy->busy_share * past * (double)cpus;
}
