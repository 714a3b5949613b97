// SPDX-License-Identifier: Apache-2.0
/*
 * proc_scan - describes the processes that ran before collecting began, as records.
 *
 * Reads /proc/PID/maps and makes an EXEC and MMAPs for each process, as if their events had
 * been seen. Called by the live sources.
 */
#ifndef MD_PROC_SCAN_H
#define MD_PROC_SCAN_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/record/record.h"

/* How the source numbers address spaces (exec_id). */
struct md_proc_ids {
	int (*get)(void *arg, pid_t pid, uint32_t *exec_id); /* Return: 0 or -errno */
	void *arg;
};

/*
 * md_proc_scan - add records of every process (@root 0), or of @root and its descendants.
 * @time_ns: time for the MMAPs; 0: the mappings exist now. The time of an EXEC is when its
 * process was read; earlier events are included. @ids: NULL: use 0 for all. Processes that exit
 * meanwhile, or may not be read, are skipped. Return: 0, -ENOMEM, -errno: /proc cannot be read.
 */
int md_proc_scan(pid_t root, uint64_t time_ns, const struct md_proc_ids *ids, struct md_buf *out);
/* Adds the records of one process. */
int md_proc_scan_one(pid_t pid, uint64_t time_ns, const struct md_proc_ids *ids,
		     struct md_buf *out);
/* Return: true if @pid is @root or its descendant. */
bool md_proc_descends_from(pid_t pid, pid_t root);
/* Return: true if this process is in the initial PID namespace. */
bool md_proc_is_whole(void);

#endif
