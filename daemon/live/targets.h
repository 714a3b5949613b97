// SPDX-License-Identifier: Apache-2.0
/*
 * targets - which processes the user means: a number, a unit of systemd, or the path of a program or a library. A path
 * means the processes that run the file there, or have loaded it, and those that did before another file got the name:
 * the kernel then calls theirs "PATH (deleted)". Called by `morph live'.
 */
#ifndef MD_LIVE_TARGETS_H
#define MD_LIVE_TARGETS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libprof/base/err.h"

struct md_target {
	pid_t pid;
	uint64_t start_time; /* md_process_start_time() */
};

struct md_targets {
	struct md_target *list; /* each parent before its children */
	size_t nr;
	bool searched; /* the user did not name one process by its number */
	bool library;  /* they are those that have loaded a library */
};

/*
 * md_targets_find - @name: NULL: all processes that this user may look at. A unit: the processes of its control group that
 * run the program of its first one. @program: NULL; else only those that md_targets_keep_program() keeps, and where
 * @name is a path, the mappings of no others are read. Return: 0; -ESRCH: there is none, -ENOMEM, -errno, each with a message.
 * Ownership: md_targets_free().
 */
int md_targets_find(const char *name, const char *program, struct md_targets *out,
		    struct mp_err *err);
/*
 * md_targets_keep - of the processes of @path, keeps those that a version of @output's original is meant for. A process that
 * has the file at @path stays, unless that is another version of the same original; one that has an earlier file, if
 * that is the original. Return: 0; -ESRCH: none is left; -errno; each with a message.
 */
int md_targets_keep(struct md_targets *targets, const char *path, const char *output,
		    struct mp_err *err);
/*
 * md_unit_holds - does @line of /proc/PID/cgroup name the control group of @unit, or one below it? Only slices may be
 * above it, and for a user the manager of this user's units. Units of others, such as containers', may have any name.
 */
bool md_unit_holds(const char *unit, const char *line);
/*
 * md_targets_keep_program - keeps those that run @program, or ran it before another file got the name. Return: 0;
 * -ESRCH: none is left; -ENOMEM; each with a message.
 */
int md_targets_keep_program(struct md_targets *targets, const char *program, struct mp_err *err);
/* The program that the process runs, as the kernel names it; "": it has ended, or this user may not know. */
struct md_target_program {
	char path[PATH_MAX];
};
struct md_target_program md_target_program(const struct md_target *target);
/* Has the process ended meanwhile? */
bool md_target_has_ended(const struct md_target *target);
void md_targets_free(struct md_targets *targets);

#endif
