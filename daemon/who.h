// SPDX-License-Identifier: Apache-2.0
/*
 * who - whose samples they are: process, unit and user; and whether they were asked for.
 *
 * Follows the records of processes. Looks a process up in /proc once, when its first samples of a
 * program come, never for each sample. Where the process is gone, what is known of its parent holds.
 * Called by the pipeline, before attribution.
 */
#ifndef MD_WHO_H
#define MD_WHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record.h"
#include "libprof/store_process.h"

/* What --pid, --unit and --user name; any one of them suffices. */
struct md_who_selection {
	const pid_t *pids; /* and all that they start */
	size_t nr_pids;
	const char *const *units; /* "nginx", "nginx.service", a container's id, or "/a/cgroup" */
	size_t nr_units;
	const uint32_t *uids;
	size_t nr_uids;
};

struct md_who;

/* The file name of the program that a process runs, where the stream tells; else NULL. */
typedef const char *md_who_program(void *arg, const struct morph_task *task);

/*
 * md_who_new - @is_live: /proc speaks of the processes of the records. @selection: NULL: all
 * samples are wanted; else must outlive the result. @program names what is gone from /proc.
 * Return: NULL: no memory.
 */
struct md_who *md_who_new(bool is_live, const struct md_who_selection *selection,
			  md_who_program *program, void *arg);
void md_who_free(struct md_who *who);

/* Return: false for a sample that was not asked for, or what belongs to one. */
bool md_who_record(struct md_who *who, const struct morph_record *record);

/* Samples since md_who_clear(). Valid until the next call. Return: how many entries. */
size_t md_who_list(struct md_who *who, const struct mp_process **out);
void md_who_clear(struct md_who *who);

/* True where a process of the selection is alive, as /proc has it now. */
bool md_who_any_alive(const struct md_who *who);

/* True where the cgroup @path, as in /proc/PID/cgroup, is or lies in the unit @name. */
bool md_who_is_unit(const char *path, const char *name);
/* The unit that the cgroup @path is of: the innermost service or scope, else the path's end. */
void md_who_unit_of(const char *path, char *unit, size_t size);

#endif
