// SPDX-License-Identifier: Apache-2.0
/*
 * idle - does somebody want the machine? Reads the load, the power supply and the CPU time
 * that others use. Called by the worker before a step, and each second while one runs.
 */
#ifndef MD_IDLE_H
#define MD_IDLE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/policy/policy.h"

/* The load of the last minute, of /proc/loadavg. Return: 0, -EINVAL. */
int md_idle_parse_load(const char *text, double *load);
/* Ticks that all CPUs were at work, of /proc/stat. Return: 0, -EINVAL. */
int md_idle_parse_stat(const char *text, uint64_t *busy);
/*
 * Ticks of a process and of the children that it waited for, and its session, of /proc/PID/stat.
 * Return: 0, -EINVAL.
 */
int md_idle_parse_process(const char *text, pid_t *session, uint64_t *ticks);
/* Do the supplies below @dir (/sys/class/power_supply) say that there is only a battery? */
bool md_idle_on_battery(const char *dir);

/*
 * May work begin? If not, @why gets the reason. A value that cannot be read does not prevent work.
 */
bool md_idle_check(const struct md_policy *policy, char *why, size_t size);

/* CPU time that others use while a child works. */
struct md_idle_watch {
	pid_t session; /* of the child */
	bool begun;
	double busy_s, own_s, at_s; /* at the last look */
	char cgroup[PATH_MAX];	    /* cpu.stat of this process's own group; "": there is none */
};
void md_idle_watch_begin(struct md_idle_watch *watch, pid_t session);
/* Return: others used more than the policy's share of the CPUs since the last look. */
bool md_idle_is_wanted(struct md_idle_watch *watch, const struct md_policy *policy);

#endif
