// SPDX-License-Identifier: Apache-2.0
/* collector - the process that the lock file names; see collector.h. */
#include "daemon/worker/collector.h"
#include "libprof/base/defaults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Reads the first line. Return: false: there is none. */
static bool read_line(const char *path, char *buf, size_t size)
{
	FILE *file = fopen(path, "re");
	bool ok = file && fgets(buf, (int)size, file);

	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	if (file)
		fclose(file);
	return ok;
}

/* A daemon empties the file at its end. After a crash the number may be another process's. */
static pid_t running_pid(const char *db)
{
	char path[MP_PATH_ROOM], text[64];
	pid_t pid;

	snprintf(path, sizeof(path), "%s.lock", db);
	if (!read_line(path, text, sizeof(text)) || (pid = atoi(text)) <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	return read_line(path, text, sizeof(text)) && !strcmp(text, "morphd") ? pid : 0;
}

static void read_cost(struct md_collector *out)
{
	unsigned long long user, system, start;
	double tick = (double)sysconf(_SC_CLK_TCK), up = 0, age;
	char path[64], line[1024], *rest;
	long pages;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)out->pid);
	if (!read_line(path, line, sizeof(line)) || !(rest = strrchr(line, ')')) ||
	    sscanf(rest + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d"
		   " %llu %*u %ld",
		   &user, &system, &start, &pages) != 4 ||
	    !read_line("/proc/uptime", line, sizeof(line)) || sscanf(line, "%lf", &up) != 1)
		return;
	age = up - (double)start / tick;
	out->since_s = (int64_t)time(NULL) - (int64_t)(age > 0 ? age : 0);
	out->cpu_percent = age > 0 ? 100 * (double)(user + system) / tick / age : 0;
	out->rss_bytes = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static void explain_absence(struct md_collector *out)
{
	char text[64];
	int paranoid = 0;

	if (read_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text)))
		paranoid = atoi(text);
	out->may_not = paranoid > 2 && access("/sys/module/morphmon", F_OK);
	if (out->may_not)
		snprintf(out->why, sizeof(out->why),
			 "morphd does not run or waits, since it may not sample: "
			 "kernel.perf_event_paranoid is %d and the module morphmon is not loaded; "
			 "`sysctl kernel.perf_event_paranoid=2' lets it",
			 paranoid);
	else
		snprintf(out->why, sizeof(out->why),
			 "morphd does not run: systemctl enable --now morphd");
}

void md_collector_look(const char *db, struct md_collector *out)
{
	*out = (struct md_collector){.pid = running_pid(db)};
	out->runs = out->pid != 0;
	if (out->runs)
		read_cost(out);
	else
		explain_absence(out);
}
