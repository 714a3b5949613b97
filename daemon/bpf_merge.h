// SPDX-License-Identifier: Apache-2.0
/*
 * bpf_merge - what the BPF programs wrote into their ring, put back into the order of time.
 *
 * Keeps each CPU's samples until something happened, or all is known to have come, up to
 * some moment; then they go into batches that straddle no event of their process.
 * It asks no clock and no kernel. Called by source_bpf.
 */
#ifndef MD_BPF_MERGE_H
#define MD_BPF_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/perf_decode.h"

struct md_bpf_sample {
	uint64_t time_ns, ip;
	uint32_t tgid, tid;
};

/* Ascending in time. Those before @first were given out. */
struct md_bpf_queue {
	struct md_bpf_sample *samples;
	size_t first, nr, capacity;
};

union md_bpf_event {
	struct morph_task task;
	struct morph_exec exec;
	struct morph_fork fork;
	struct morph_exit exit;
	struct morph_comm comm;
};

struct md_bpf_merge {
	struct md_perf_decoder decoder; /* a stage for each CPU; what goes out is in its out */
	struct md_bpf_queue *queues;	/* likewise */
	union md_bpf_event *events;	/* ascending in time, those before @first_event given out */
	size_t first_event, nr_events, events_capacity;
	uint64_t since_ns;   /* set by the caller: events from before are passed over */
	uint64_t nr_samples; /* taken in */
};

int md_bpf_merge_init(struct md_bpf_merge *merge, uint32_t nr_cpus, uint32_t rate_hz);
void md_bpf_merge_fini(struct md_bpf_merge *merge);

/* Takes in one record of the ring. Return: 0, -EBADMSG no such record, -ENOMEM. */
int md_bpf_merge_take(struct md_bpf_merge *merge, const void *data, size_t size);
/* When the oldest event happened that was not given out yet; UINT64_MAX: there is none. */
uint64_t md_bpf_merge_event_ns(const struct md_bpf_merge *merge);
/* Gives out every sample from before @until_ns. */
void md_bpf_merge_samples(struct md_bpf_merge *merge, uint64_t until_ns);
/* Gives out the oldest event. */
void md_bpf_merge_event(struct md_bpf_merge *merge);

#endif
