// SPDX-License-Identifier: Apache-2.0
/*
 * sample_owner - finds the process, unit and user that samples belong to, and whether they were
 * selected. Called by the pipeline, before attribution.
 *
 * Follows the records of processes. Reads a process in /proc once, when the first samples of a
 * program come. If the process is gone, uses what is known of its parent.
 */
#ifndef MD_SAMPLE_OWNER_H
#define MD_SAMPLE_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record/record.h"
#include "libprof/store/store_process.h"

/* The arguments of --pid, --unit and --user; one match is enough. */
struct md_sample_selection {
	const pid_t *pids; /* with all their children */
	size_t nr_pids;
	const char *const *units; /* "nginx", "nginx.service", a container's id, or "/a/cgroup" */
	size_t nr_units;
	const uint32_t *uids;
	size_t nr_uids;
};

struct md_sample_owner;

/* Return: file name of the program that a process runs, if the stream tells; else NULL. */
typedef const char *md_sample_owner_program(void *arg, const struct morph_task *task);

/*
 * md_sample_owner_new - @is_live: the records' processes are in /proc. @selection: NULL: all samples are
 * wanted; else must outlive the result. @program: names processes that are gone from /proc.
 * Return: NULL: no memory.
 */
struct md_sample_owner *md_sample_owner_new(bool is_live,
					    const struct md_sample_selection *selection,
					    md_sample_owner_program *program, void *arg);
void md_sample_owner_free(struct md_sample_owner *owner);

/*
 * Return: false for a sample, or a record that belongs to one, of a process that was not
 * selected.
 */
bool md_sample_owner_record(struct md_sample_owner *owner, const struct morph_record *record);

/* Lists the samples since md_sample_owner_clear(). Valid until the next call. Return: number of entries. */
size_t md_sample_owner_list(struct md_sample_owner *owner, const struct mp_process **out);
void md_sample_owner_clear(struct md_sample_owner *owner);

/* Return: true if /proc has a process of the selection. */
bool md_sample_owner_any_alive(const struct md_sample_owner *owner);

/* Return: true if the cgroup @path, as in /proc/PID/cgroup, is or lies in the unit @name. */
bool md_sample_owner_is_unit(const char *path, const char *name);
/* Finds the unit of the cgroup @path: the innermost service or scope, else the end of the path. */
void md_sample_owner_unit_of(const char *path, char *unit, size_t size);

#endif
