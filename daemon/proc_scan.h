// SPDX-License-Identifier: Apache-2.0
/*
 * proc_scan - what was running before the collector looked, as records.
 *
 * Reads /proc/PID/maps and makes an EXEC and its MMAPs of each process, so that
 * attribute need not know where they come from. Called by the live sources.
 */
#ifndef MD_PROC_SCAN_H
#define MD_PROC_SCAN_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/record.h"

/* How the source that the records are for numbers address spaces (exec_id). */
struct md_proc_ids {
	int (*get)(void *arg, pid_t pid, uint32_t *exec_id); /* Return: 0 or -errno */
	void *arg;
};

/*
 * md_proc_scan - records of every process (@root 0), or of @root and its descendants.
 * @time_ns is put into the MMAPs; 0 says that the mappings are there now. An EXEC says when the
 * process was looked at: what happened before that is in the records. @ids: NULL: 0 for all.
 * Processes that end meanwhile, or may not be looked at, are left out.
 * Return: 0 or -ENOMEM, -errno where /proc cannot be read.
 */
int md_proc_scan(pid_t root, uint64_t time_ns, const struct md_proc_ids *ids, struct md_buf *out);
/* The same for one process. */
int md_proc_scan_one(pid_t pid, uint64_t time_ns, const struct md_proc_ids *ids,
		     struct md_buf *out);
/* True where @pid is @root, or was started by it or its children. */
bool md_proc_descends_from(pid_t pid, pid_t root);
/* True where our process ids are the machine's: we are in no PID namespace. */
bool md_proc_is_whole(void);

#endif
