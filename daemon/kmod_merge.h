// SPDX-License-Identifier: Apache-2.0
/*
 * kmod_merge - the rings of all CPUs as one stream, in the order of time.
 *
 * Decides whose records these are (a command's, or everybody's), where what was looked up in
 * /proc belongs between them, and which samples that leaves unknown. It asks no clock
 * and no kernel. Called by source_kmod.
 */
#ifndef MD_KMOD_MERGE_H
#define MD_KMOD_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/kmod_ring.h"
#include "daemon/kmod_space.h"
#include "daemon/pidmap.h"

#define MD_KMOD_BATCH_BYTES (256u << 10)

struct md_kmod_merge {
	struct md_kmod_ring *rings;
	struct md_kmod_files *files; /* of each ring */
	uint32_t nr_rings, rings_capacity;
	struct md_buf out, taken; /* @taken: the record that is being looked at */
	/* Processes whose program was named by samples, or whose mappings are said: their exec_id. */
	struct md_pidmap named;
	uint64_t nr_samples; /* read, whoever's they are */
	uint64_t nr_lost;    /* samples that LOST records told of */
	bool is_quiet;	     /* set by the caller; cleared by whatever is no sample */
	/*
	 * Mappings looked up in /proc, to be given out when the stream gets to @scan_ns; and when each
	 * process was looked at: what its records from before that say is in them already.
	 */
	struct md_buf scan;
	uint64_t scan_ns, seen_ns;
	struct md_pidmap seen_at;
	bool hidden_are_none; /* nobody was collecting yet; else their process is unknown */
	bool wants_scan;      /* events were lost: nothing is known of any process */
	uint64_t nr_lost_events, nr_lost_events_at_scan;
	/* A command's: its processes. */
	uint32_t command; /* 0: everything is ours */
	struct md_pidmap family;
	uint32_t waiting_exec_id; /* of the command's process before its exec */
	bool is_waiting;
};

/* @command: 0, or the process whose samples are wanted, @exec_id its number now, before its exec. */
int md_kmod_merge_init(struct md_kmod_merge *merge, uint32_t command, uint32_t exec_id);
void md_kmod_merge_fini(struct md_kmod_merge *merge);
/* The rings' addresses change. Return: 0 or -ENOMEM. */
int md_kmod_merge_add_ring(struct md_kmod_merge *merge, const struct md_kmod_ring *ring);

/*
 * What is in /proc is written to @merge->scan between these two. Samples that come meanwhile
 * are hidden; with @now_ns 0, when it comes before all else, those from before as well.
 * @nr_lost_events: so far; more of them before the stream gets there make it worthless.
 */
void md_kmod_merge_begin_scan(struct md_kmod_merge *merge, uint64_t now_ns,
			      uint64_t nr_lost_events);
/* Return: 0 or -ENOMEM. */
int md_kmod_merge_end_scan(struct md_kmod_merge *merge, uint64_t now_ns);

/* Looks at the heads of all rings. Return: 0 or -EBADMSG. */
int md_kmod_merge_refresh(struct md_kmod_merge *merge, struct mp_err *err);
/* True where there is something to give out, now or later. */
bool md_kmod_merge_is_pending(const struct md_kmod_merge *merge);
/* How many events were lost until now: said before all that was not given out yet. */
int md_kmod_merge_set_lost(struct md_kmod_merge *merge, uint64_t nr_lost_events, uint64_t time_ns);
/*
 * Adds to @merge->out what was seen by the last refresh and is not later than @limit_ns.
 * Return: 0, 1: enough for one batch, and there is more; -EBADMSG, -ENOMEM.
 */
int md_kmod_merge_run(struct md_kmod_merge *merge, uint64_t limit_ns, struct mp_err *err);
/* Gives what was taken back to the module. */
void md_kmod_merge_release(struct md_kmod_merge *merge);

#endif
