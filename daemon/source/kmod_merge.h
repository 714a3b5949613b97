// SPDX-License-Identifier: Apache-2.0
/*
 * kmod_merge - merges the rings of all CPUs into one stream in the order of time. Called by
 * source_kmod.
 *
 * Decides which records are wanted (a command's, or all), where the mappings found in /proc are
 * inserted, and which samples stay unknown because of that. Asks no clock and no kernel.
 */
#ifndef MD_KMOD_MERGE_H
#define MD_KMOD_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/source/kmod_ring.h"
#include "daemon/source/kmod_expand.h"
#include "daemon/source/pidmap.h"

#define MD_KMOD_BATCH_BYTES (256u << 10)

struct md_kmod_merge {
	struct md_kmod_ring *rings;
	struct md_kmod_files *files; /* one per ring */
	uint32_t nr_rings, rings_capacity;
	struct md_buf out, taken; /* @taken: the record that is being processed */
	/* exec_id of each process whose program or mappings are known */
	struct md_pidmap known_programs;
	uint64_t nr_samples; /* samples read, wanted or not */
	uint64_t nr_lost;    /* samples reported by LOST records */
	bool is_quiet;	     /* the caller sets it; any record but samples clears it */
	/*
	 * Mappings found in /proc, to be inserted when the stream reaches @scan_ns. @seen_at
	 * has the time at which each process was read: older records of the process are already
	 * included.
	 */
	struct md_buf scan;
	uint64_t scan_ns, seen_ns;
	struct md_pidmap seen_at;
	/* drop hidden samples (before collecting began); else their process is unknown */
	bool drop_hidden_samples;
	bool wants_scan; /* events were lost: all processes must be read again */
	uint64_t nr_lost_events, nr_lost_events_at_scan;
	/* for a command: */
	uint32_t command; /* its process; 0: all records are wanted */
	struct md_pidmap command_processes;
	uint32_t waiting_exec_id; /* of the command's process before its exec */
	bool is_waiting;
};

/*
 * @command: 0, or the process whose samples are wanted. @exec_id: its current exec_id, before
 * its exec.
 */
int md_kmod_merge_init(struct md_kmod_merge *merge, uint32_t command, uint32_t exec_id);
void md_kmod_merge_fini(struct md_kmod_merge *merge);
/* Adds a ring; existing rings may move in memory. Return: 0 or -ENOMEM. */
int md_kmod_merge_add_ring(struct md_kmod_merge *merge, const struct md_kmod_ring *ring);

/*
 * Between begin and end the caller writes the contents of /proc to @merge->scan. Samples from
 * that time are hidden; with @now_ns 0, for the first scan, earlier samples too.
 * @nr_lost_events: number so far. If more are lost before the stream reaches the scan, the scan
 * is discarded.
 */
void md_kmod_merge_begin_scan(struct md_kmod_merge *merge, uint64_t now_ns,
			      uint64_t nr_lost_events);
/* Return: 0 or -ENOMEM. */
int md_kmod_merge_end_scan(struct md_kmod_merge *merge, uint64_t now_ns);

/* Reads the heads of all rings. Return: 0 or -EBADMSG. */
int md_kmod_merge_refresh(struct md_kmod_merge *merge, struct mp_err *err);
/* Return: true if there are records to give out, now or later. */
bool md_kmod_merge_is_pending(const struct md_kmod_merge *merge);
/*
 * Reports how many events were lost until now. The record goes out before all that is still
 * pending.
 */
int md_kmod_merge_set_lost(struct md_kmod_merge *merge, uint64_t nr_lost_events, uint64_t time_ns);
/*
 * Adds to @merge->out the records that the last refresh saw, up to @limit_ns. Return: 0; 1: the
 * batch is full and there is more; -EBADMSG, -ENOMEM.
 */
int md_kmod_merge_run(struct md_kmod_merge *merge, uint64_t limit_ns, struct mp_err *err);
/* Returns the space of records that were taken to the module. */
void md_kmod_merge_release(struct md_kmod_merge *merge);

#endif
