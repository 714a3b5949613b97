// SPDX-License-Identifier: Apache-2.0
/*
 * audit_cgroup - a control group of our own, in which the kernel adds up the CPU time of all
 * processes of a server, living or ended.
 *
 * Needs a writable cgroup v2, which root has on most machines. Called by audit_server.
 */
#ifndef ME_AUDIT_CGROUP_H
#define ME_AUDIT_CGROUP_H

#include <limits.h>
#include <sys/types.h>

#include "editor/audit/server/audit_tree.h"

struct me_cgroup {
	char outer[PATH_MAX]; /* directory of the group that we are in */
	char path[PATH_MAX];  /* directory of the new group; "": there is none */
};

/* me_cgroup_open - make a group below our own. Return: 0, or -errno: it is not possible here. */
int me_cgroup_open(struct me_cgroup *group);
/* me_cgroup_enter - move the calling process, and its later children, into the group. */
int me_cgroup_enter(const struct me_cgroup *group);
/* me_cgroup_leave - move the calling process back; its children stay. */
void me_cgroup_leave(const struct me_cgroup *group);
/* me_cgroup_cpu - CPU time of all processes in the group, to the microsecond. Return: 0, -errno. */
int me_cgroup_cpu(const struct me_cgroup *group, struct me_cpu_time *time);
/* me_cgroup_close - remove the group, which must be empty. */
void me_cgroup_close(struct me_cgroup *group);

#endif
