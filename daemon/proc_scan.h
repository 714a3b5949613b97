// SPDX-License-Identifier: Apache-2.0
/*
 * proc_scan - what was running before the collector looked, as records.
 *
 * Reads /proc/PID/maps and makes an EXEC and its MMAPs of each process, so that
 * attribute need not know where they come from. Called by source_perf.
 */
#ifndef MD_PROC_SCAN_H
#define MD_PROC_SCAN_H

#include <sys/types.h>

#include "daemon/record.h"

/*
 * md_proc_scan - records of every process (@root 0), or of @root and its descendants.
 * @time_ns is put into the records; 0 says that the mappings are there now.
 * Processes that end meanwhile, or may not be looked at, are left out.
 * Return: 0 or -ENOMEM, -errno where /proc cannot be read.
 */
int md_proc_scan(pid_t root, uint64_t time_ns, struct md_buf *out);
/* The same for one process. */
int md_proc_scan_one(pid_t pid, uint64_t time_ns, struct md_buf *out);

#endif
