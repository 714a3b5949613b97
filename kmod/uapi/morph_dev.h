/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * morph_dev - how /dev/morphmon is spoken to: requests, and the rings to be mapped.
 *
 * What is in the rings are the records of morph_abi.h. Described in Documentation/abi.md.
 */
#ifndef MORPH_DEV_H
#define MORPH_DEV_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "kmod/uapi/morph_abi.h"

/*
 * The device has one reader at a time; another one's open() fails with EBUSY. Closing it, which
 * a dying reader does too, stops collecting and frees the rings. One reader either maps the rings or
 * calls read(): the mapped tail and read()'s are the same.
 *
 * Each CPU that was online since START has a ring, at the offset MORPH_DEV_RING(cpu):
 *
 *	+----------------------+ MORPH_DEV_RING(cpu)
 *	| struct morph_tail    |  one page, the reader's: mapped alone, MAP_SHARED, may be writable
 *	+----------------------+ + page
 *	| struct morph_head    |  one page, the kernel's: mapped with what follows, read-only
 *	+----------------------+ + 2 pages
 *	| records, ring_bytes  |  a power of two
 *	+----------------------+
 *
 * @head and @tail count bytes from the start and never wrap; position p lies at p % ring_bytes.
 * No record lies across the ring's end: a PAD fills the rest.
 *
 * Reading: load-acquire @head; read records from @tail up to it; store-release @tail. The last
 * record before @head may be an *open* SAMPLES record: it grows by 8 bytes with each sample (first
 * the sample, then its size, then @head), so its size may already be past the @head that was read:
 * then it ends at @head. An open record is read up to @head, and again later from there on; @tail
 * may pass it only when there is a record behind it (or @head is at the ring's end).
 *
 * A @tail that makes no sense (ahead of @head, or further behind than ring_bytes) is taken for a ring
 * that is full: records are lost and counted.
 */
#define MORPH_DEV_PATH	    "/dev/morphmon"
#define MORPH_DEV_RING(cpu) ((__u64)(cpu) << 32)

struct morph_tail {
	__u64 tail; /* written by the reader */
};

struct morph_head {
	__u64 head; /* written by the kernel */
	__u64 ring_bytes;
	__u32 cpu;
	__u32 pad;
};

/*
 * An address of the kernel's own image leaves as an offset from _text, with the top bit set; all
 * other kernel code (modules, BPF) as MORPH_KERNEL_ELSEWHERE, which is further than any image reaches.
 */
#define MORPH_KERNEL_BASE      0x8000000000000000ULL
#define MORPH_KERNEL_ELSEWHERE 0xffffffffffffffffULL

enum morph_mode {
	MORPH_MODE_HRTIMER = 0, /* a timer of our own on each CPU */
	MORPH_MODE_TICK = 1,	/* at the kernel's tick */
};

/* The handshake: EPROTO where @abi_major, set by the caller, is not the module's; filled in anyway. */
struct morph_hello {
	__u32 abi_major;
	__u32 abi_minor;
	__u32 nr_cpu_ids; /* CPU numbers are below it */
	__u32 nr_rings;	  /* that exist now; more may come when CPUs come online */
	__u64 ring_bytes;
	__u32 rate_hz; /* the module's parameters, what START takes for 0 */
	__u32 mode;
	__u32 tick_hz;
	__u32 has_kernel; /* 0: where the kernel's text begins is not known: no kernel samples */
};

#define MORPH_START_NO_KERNEL (1U << 0) /* user code only */
#define MORPH_START_MODE      (1U << 1) /* @mode holds, not the module's parameter */
/*
 * Of processes that exec from now on, nothing is said before a sample of them: then FILE and SPACE
 * instead of EXEC and MMAP, no FORK, and one EXIT. Since 1.3.
 */
#define MORPH_START_LAZY (1U << 2)

struct morph_start {
	__u32 rate_hz; /* of each CPU, 1 to 20000; 0: the module's parameter; with tick: the tick's */
	__u32 mode;
	__u32 flags;
	__u32 wake_bytes; /* poll() says ready once a ring holds so many; 0: a quarter of the ring */
};

/* Since the device was opened, all CPUs together. samples = in the rings + lost_samples, exactly. */
struct morph_counts {
	__u64 samples; /* taken, present in the stream or lost */
	__u64 lost_samples;
	__u64 events; /* other records */
	__u64 lost_events;
	__u64 idle;    /* timer interrupts that found the CPU idle */
	__u64 wakeups; /* of the reader */
};

/* @exec_id of the process @tgid, as its records bear it. ESRCH where there is none. */
struct morph_exec_id {
	__u32 tgid;
	__u32 exec_id;
};

#define MORPH_IOC_HELLO	  _IOWR('M', 0, struct morph_hello)
#define MORPH_IOC_START	  _IOW('M', 1, struct morph_start) /* EALREADY while it collects */
#define MORPH_IOC_STOP	  _IO('M', 2)			   /* the rings stay, and what is in them */
#define MORPH_IOC_RATE	  _IOW('M', 3, __u32) /* while it collects too; EOPNOTSUPP with tick */
#define MORPH_IOC_COUNTS  _IOR('M', 4, struct morph_counts)
#define MORPH_IOC_EXEC_ID _IOWR('M', 5, struct morph_exec_id)
/*
 * Gives the time T: every record of T or before is in the rings when it returns. It waits for all
 * CPUs to have left what they were in the middle of (some milliseconds, without interrupting any).
 */
#define MORPH_IOC_SYNC _IOR('M', 6, __u64)

/*
 * With each sample of 64-bit user code from the next START on comes a REGISTERS record with these,
 * bit n: register n, none but those of MORPH_REGS_PATHS; 0, as after open(): none. EPERM without
 * CAP_PERFMON. Where the ring has no room for it, the sample has none. Since 1.4.
 */
#define MORPH_IOC_REGISTERS _IOW('M', 7, __u32)

MORPH_ASSERT_SIZE(morph_tail, 8);
MORPH_ASSERT_SIZE(morph_head, 24);
MORPH_ASSERT_OFFSET(morph_head, head, 0);
MORPH_ASSERT_OFFSET(morph_head, ring_bytes, 8);
MORPH_ASSERT_OFFSET(morph_head, cpu, 16);
MORPH_ASSERT_SIZE(morph_hello, 40);
MORPH_ASSERT_OFFSET(morph_hello, ring_bytes, 16);
MORPH_ASSERT_OFFSET(morph_hello, has_kernel, 36);
MORPH_ASSERT_SIZE(morph_start, 16);
MORPH_ASSERT_SIZE(morph_counts, 48);
MORPH_ASSERT_SIZE(morph_exec_id, 8);

#endif
