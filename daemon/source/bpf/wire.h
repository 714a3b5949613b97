/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * wire - the records of the BPF ring and each CPU's stage, shared by the BPF programs and
 * source_bpf.
 *
 * Events use the records of the ABI. Each sample carries its own time, because a batch may span
 * a mapping made by its process; the daemon splits the batch there.
 */
#ifndef MD_BPF_WIRE_H
#define MD_BPF_WIRE_H

#include "kmod/uapi/morph_abi.h"

#define MD_WIRE_SAMPLES	     0x8001 /* a type that the ABI does not use */
#define MD_WIRE_STACK	     0x8002
#define MD_WIRE_COPY	     0x8003
#define MD_WIRE_REGISTERS    0x8004
#define MD_WIRE_BATCH	     62
#define MD_WIRE_STACK_MAX    255 /* callers, and the user code that entered the kernel */
#define MD_WIRE_COPY_BYTES   16384
#define MD_WIRE_MAX_CPUS     4096
#define MD_WIRE_MAX_TRACKED  65536 /* processes of one command */
#define MD_WIRE_NR_REGISTERS 16	   /* all but rsp, and the flags */

struct md_wire_sample {
	__u64 time_ns;
	__u64 ip;
};

/* @task.record.size gives the number of samples. */
struct md_wire_batch {
	struct morph_task task;
	struct md_wire_sample samples[MD_WIRE_BATCH];
};

struct md_wire_frame {
	__u64 ip;
	__u64 slot; /* where it lay; 0: user code that entered the kernel */
};

/* One sample with its stack. @task has the sample's time, and the flags of a STACK record. */
struct md_wire_stack {
	struct morph_task task;
	__u64 ip;
	struct md_wire_frame frames[MD_WIRE_STACK_MAX];
};

/*
 * One sample with registers and a copy of its stack, to be walked by morphd: the rows of a file came
 * too late for the walk in the kernel. @task has the flags of a USER_STACK record. What follows @ip
 * is what follows @task in that record.
 */
struct md_wire_copy {
	struct morph_task task;
	__u64 ip;
	__u64 user_ip;
	__u64 registers[MORPH_NR_REGS];
	__u32 nr; /* bytes */
	__u32 below;
	__u8 bytes[MD_WIRE_COPY_BYTES];
};
/* Flag of a stack or a copy: the sample itself was sent right before, with registers or a stack. */
#define MD_WIRE_AGAIN (1U << 31)

/* One sample of 64-bit user code with its registers, straight to the ring. */
struct md_wire_registers {
	struct morph_task task;
	__u64 ip;
	__u64 values[MD_WIRE_NR_REGISTERS]; /* of MORPH_REGS_BRANCHES, ascending */
};

/*
 * The stage of one CPU. The daemon maps it read-only. A sample is put into the stage first and
 * moves to the ring later. @entered counts handlers that began, each before it reads the clock;
 * @left counts those that ended. If both are equal, and @first_ns is 0 or later than a time T,
 * then everything up to T is in the ring.
 */
struct md_wire_stage {
	__u64 entered;
	__u64 left;
	__u64 first_ns; /* time of the oldest sample in @batch; 0: @batch is empty */
	__u64 nr_samples;
	__u64 nr_lost;	      /* samples for which the ring had no room */
	__u64 nr_lost_events; /* other records for which the ring had no room */
	/* @batch is being changed: an interrupting handler must not touch it */
	__u32 busy;
	__u32 nr; /* samples in @batch */
	__u64 pad;
	struct md_wire_batch batch;
	__u64 pad_line[8]; /* pads to whole cache lines */
};

MORPH_ASSERT_SIZE(md_wire_sample, 16);
MORPH_ASSERT_SIZE(md_wire_batch, 1024);
MORPH_ASSERT_SIZE(md_wire_stage, 1152);
MORPH_ASSERT_OFFSET(md_wire_stack, frames, 40);
MORPH_ASSERT_OFFSET(md_wire_copy, bytes, 184);
MORPH_ASSERT_SIZE(md_wire_registers, 168);
MORPH_ASSERT_OFFSET(md_wire_stage, batch, 64);

#endif
