/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * wire - what the BPF programs and source_bpf share: the ring's records and each CPU's stage.
 *
 * Events travel as records of the ABI. Samples travel with a time each, since a batch
 * may straddle a mapping of its own process; the daemon takes it apart there.
 */
#ifndef MD_BPF_WIRE_H
#define MD_BPF_WIRE_H

#include "kmod/uapi/morph_abi.h"

#define MD_WIRE_SAMPLES	    0x8001 /* a type that no record of the ABI has */
#define MD_WIRE_BATCH	    62
#define MD_WIRE_MAX_CPUS    4096
#define MD_WIRE_MAX_TRACKED 65536 /* processes of one command */

struct md_wire_sample {
	__u64 time_ns;
	__u64 ip;
};

/* @task.record.size tells how many samples there are. */
struct md_wire_batch {
	struct morph_task task;
	struct md_wire_sample samples[MD_WIRE_BATCH];
};

/*
 * One for each CPU, mapped by the daemon, which only reads. A sample is in the stage before
 * it is in the ring. @entered counts handlers that began, each before it looks at the clock, and
 * @left those that ended: where both are equal, and @first_ns is 0 or later than some
 * moment, everything up to that moment is in the ring.
 */
struct md_wire_stage {
	__u64 entered;
	__u64 left;
	__u64 first_ns; /* of the oldest sample in @batch; 0: it is empty */
	__u64 nr_samples;
	__u64 nr_lost;	      /* samples without room in the ring */
	__u64 nr_lost_events; /* other records without */
	__u32 busy;	      /* @batch is being changed: whoever interrupts leaves it alone */
	__u32 nr;	      /* samples in @batch */
	__u64 pad;
	struct md_wire_batch batch;
	__u64 pad_line[8]; /* to a cache line of its own */
};

MORPH_ASSERT_SIZE(md_wire_sample, 16);
MORPH_ASSERT_SIZE(md_wire_batch, 1024);
MORPH_ASSERT_SIZE(md_wire_stage, 1152);
MORPH_ASSERT_OFFSET(md_wire_stage, batch, 64);

#endif
