// SPDX-License-Identifier: Apache-2.0
/*
 * audit_tree - the processes below one process: their CPU time, the files that they map, and
 * their end.
 *
 * Reads /proc only, so it needs no privileges. Called by audit_server and audit_supervisor.
 */
#ifndef ME_AUDIT_TREE_H
#define ME_AUDIT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "libprof/base/err.h"

struct me_cpu_time {
	uint64_t cpu_ns, user_ns; /* cpu: user + system */
};

/*
 * me_tree_cpu - CPU time of all processes below @root, and of those that have ended there. A
 * living process is read to the nanosecond; children that have ended, and all user times, in
 * clock ticks (10 ms). Return: 0; -ENOTSUP with @err set if a process below @root discards the
 * times of its children; -EBUSY with @err set if processes end so fast that no moment can be read.
 */
int me_tree_cpu(pid_t root, struct me_cpu_time *time, struct mp_err *err);
/* me_tree_signal - send @sig to the children of @root, or to all processes below it. Return: their
 * number. */
size_t me_tree_signal(pid_t root, int sig, bool all);
/* me_tree_maps - does a process below @root map the file @file? */
bool me_tree_maps(pid_t root, const struct stat *file);

#endif
