// SPDX-License-Identifier: Apache-2.0
/*
 * bpf_merge - puts the contents of the BPF ring back into the order of time.
 *
 * Keeps each CPU's samples until an event happens, or until they are known to be complete up to
 * some time. Then it puts them into batches that span no event of their process. Asks no clock
 * and no kernel. Called by source_bpf.
 */
#ifndef MD_BPF_MERGE_H
#define MD_BPF_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/source/last_stacks.h"
#include "daemon/source/perf_decode.h"

struct md_bpf_sample {
	uint64_t time_ns, ip;
	uint32_t tgid, tid;
	struct morph_task *more; /* STACK, USER_STACK or REGISTERS; NULL: none */
	bool is_again;		 /* only @more, of the sample before */
};

/* In ascending time. Samples before index @first were given out. */
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
	/* has a stage for each CPU; records go out through its output */
	struct md_perf_decoder decoder;
	struct md_bpf_queue *queues; /* one per CPU */
	/* in ascending time; those before @first_event were given out */
	union md_bpf_event *events;
	size_t first_event, nr_events, events_capacity;
	struct md_last_stacks *last; /* NULL: no stack came yet */
	uint64_t since_ns;	     /* set by the caller; older events are ignored */
	uint64_t nr_samples;	     /* samples taken in so far */
};

/* @registers: of which samples carry those; 0: none. Return: 0, -ENOMEM. */
int md_bpf_merge_init(struct md_bpf_merge *merge, uint32_t nr_cpus, uint32_t rate_hz,
		      uint32_t registers);
void md_bpf_merge_fini(struct md_bpf_merge *merge);

/* Takes in one record of the ring. Return: 0, -EBADMSG not a valid record, -ENOMEM. */
int md_bpf_merge_take(struct md_bpf_merge *merge, const void *data, size_t size);
/* Return: time of the oldest event that was not given out yet; UINT64_MAX: there is none. */
uint64_t md_bpf_merge_event_ns(const struct md_bpf_merge *merge);
/* Gives out every sample older than @until_ns. */
void md_bpf_merge_samples(struct md_bpf_merge *merge, uint64_t until_ns);
/* Gives out the oldest event. */
void md_bpf_merge_event(struct md_bpf_merge *merge);

#endif
