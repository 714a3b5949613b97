/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * morph_dev - the interface of /dev/morphmon: requests, and the rings that are mapped.
 * The rings hold the records of morph_abi.h. Described in Documentation/abi.md.
 */
#ifndef MORPH_DEV_H
#define MORPH_DEV_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "kmod/uapi/morph_abi.h"

/*
 * Who opens the device for writing is its reader. It has one reader at a time; open() by another
 * one fails with EBUSY. Closing it, as a dying reader does, too, stops collecting and frees the
 * rings. A reader either maps the rings or calls read(): the mapped tail and read()'s are the same.
 *
 * Whoever opens it for reading only may look beside the reader: HELLO, COUNTS and WALKS. Other
 * requests, and read(), fail with EBADF, mmap() with EACCES, and poll() gives POLLERR.
 *
 * Each CPU that was online since START has a ring, at the offset MORPH_DEV_RING(cpu):
 *	+----------------------+ MORPH_DEV_RING(cpu)
 *	| struct morph_tail    |  one page, the reader's: mapped alone, MAP_SHARED, may be writable
 *	+----------------------+ + page
 *	| struct morph_head    |  one page, the kernel's: mapped with the records, read-only
 *	+----------------------+ + 2 pages
 *	| records, ring_bytes  |  a power of two
 *	+----------------------+
 * @head and @tail count bytes from the start and never wrap; position p lies at p %
 * ring_bytes. No record lies across the ring's end: a PAD fills the rest.
 *
 * Reading: load-acquire @head; read records from @tail up to it; store-release @tail. The
 * last record before @head may be an *open* SAMPLES record. It grows by 8 bytes with each
 * sample: first the sample is written, then its size, then @head. Its size may therefore
 * exceed the @head that was read: then it ends at @head. An open record is read up to
 * @head, and later from there on. @tail may pass it only when a record follows it, or when
 * @head is at the ring's end.
 *
 * An invalid @tail (ahead of @head, or further behind than ring_bytes) counts as a full
 * ring: records are lost and counted.
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
 * An address of the kernel's own image is reported as an offset from _text, with the top
 * bit set. All other kernel code (modules, BPF) is MORPH_KERNEL_ELSEWHERE, which lies
 * beyond any image.
 */
#define MORPH_KERNEL_BASE      0x8000000000000000ULL
#define MORPH_KERNEL_ELSEWHERE 0xffffffffffffffffULL

enum morph_mode {
	MORPH_MODE_HRTIMER = 0, /* an own timer on each CPU */
	MORPH_MODE_TICK = 1,	/* at the kernel's tick */
};

/*
 * The handshake. Error EPROTO if @abi_major, set by the caller, differs from the module's;
 * the structure is filled in any case.
 */
struct morph_hello {
	__u32 abi_major;
	__u32 abi_minor;
	__u32 nr_cpu_ids; /* larger than every CPU number */
	__u32 nr_rings;	  /* existing rings; more may come when CPUs come online */
	__u64 ring_bytes;
	__u32 rate_hz; /* the module's parameter: the default of START */
	__u32 mode;
	__u32 tick_hz;
	__u32 has_kernel; /* 0: the start of the kernel's text is unknown: no kernel samples */
};

#define MORPH_START_NO_KERNEL (1U << 0) /* user code only */
#define MORPH_START_MODE      (1U << 1) /* use @mode, not the module's parameter */
/*
 * Processes that exec from now on are reported only when they are sampled: then with FILE
 * and SPACE instead of EXEC and MMAP, without FORK, and with one EXIT. Since 1.3.
 */
#define MORPH_START_LAZY (1U << 2)

#define MORPH_RATE_MAX 20000 /* samples per second and CPU */

struct morph_start {
	/* per CPU, 1 to MORPH_RATE_MAX; 0: the module's parameter; with tick: the tick's rate */
	__u32 rate_hz;
	__u32 mode;
	__u32 flags;
	/* poll() is ready once a ring holds so many bytes; 0: a quarter of the ring */
	__u32 wake_bytes;
};

/*
 * Totals of all CPUs since the device was opened. samples = samples in the rings +
 * lost_samples, exactly.
 */
struct morph_counts {
	__u64 samples; /* taken: in the stream, or lost */
	__u64 lost_samples;
	__u64 events; /* other records */
	__u64 lost_events;
	__u64 idle;    /* timer interrupts that found the CPU idle */
	__u64 wakeups; /* of the reader */
};

/* @exec_id of the process @tgid, as in its records. ESRCH if there is no such process. */
struct morph_exec_id {
	__u32 tgid;
	__u32 exec_id;
};

#define MORPH_IOC_HELLO	  _IOWR('M', 0, struct morph_hello)
#define MORPH_IOC_START	  _IOW('M', 1, struct morph_start) /* EALREADY while it collects */
#define MORPH_IOC_STOP	  _IO('M', 2)			   /* the rings and their content stay */
#define MORPH_IOC_RATE	  _IOW('M', 3, __u32) /* also while it collects; EOPNOTSUPP with tick */
#define MORPH_IOC_COUNTS  _IOR('M', 4, struct morph_counts)
#define MORPH_IOC_EXEC_ID _IOWR('M', 5, struct morph_exec_id)
/*
 * Gives a time T. When it returns, every record with time T or earlier is in the rings. It
 * waits until all CPUs have finished their current critical sections (some milliseconds,
 * without interrupting any).
 */
#define MORPH_IOC_SYNC _IOR('M', 6, __u64)

/*
 * From the next START on, each sample of 64-bit user code comes with a REGISTERS record of
 * these registers. Bit n: register n; only bits of MORPH_REGS_PATHS, and since 1.12 of
 * MORPH_REGS_BRANCHES; 0, as after open(): none. EPERM without CAP_PERFMON. If the ring has no
 * room for the record, the sample has none. Since 1.4.
 */
#define MORPH_IOC_REGISTERS _IOW('M', 7, __u32)

#define MORPH_ROWS_SEGMENTS_MAX 8
#define MORPH_ROWS_SIZE_MAX	(64U << 20)
#define MORPH_ROWS_GENERATION	(1U << 0) /* @ino_generation is valid */
#define MORPH_ROWS_VDSO		(1U << 1) /* of the [vdso]: no file, no segments but one */

/*
 * Unwind rows of the file that a FILE or MMAP record or /proc/PID/maps named, instead of earlier
 * ones of the same file. With a build-id, they are used only for mappings of a file that has it.
 */
struct morph_rows {
	__u32 flags; /* MORPH_ROWS_* */
	__u32 dev_major;
	__u32 dev_minor;
	__u32 nr_segments;
	__u64 ino;
	__u64 ino_generation;
	__u32 pad;
	__u32 build_id_len; /* 0: not compared */
	__u8 build_id[MORPH_BUILD_ID_MAX];
	__u64 segments; /* address of @nr_segments struct morph_segment: the file's code */
	__u64 bytes;	/* address of the rows, see morph_rows.h */
	__u64 size;	/* their bytes; 0: the file has no rows, its code is walked by rbp */
};

/*
 * The rows stay until the device is closed. EPERM without CAP_PERFMON: rows say which words of
 * any program's stack are reported. EBADMSG: the rows are not sound. ENOSPC: all rows together
 * would need more memory than the module's parameter rows_mib allows. Since 1.8.
 */
#define MORPH_IOC_ROWS _IOW('M', 8, struct morph_rows)

/*
 * From the next START on, each sample of a program comes with a STACK record of up to so many
 * callers (at most 127), found by rows; 0: none. Code of files without rows is then not walked.
 * After open() the module's parameter stack_depth holds, and frame pointers are followed
 * everywhere. EPERM without CAP_PERFMON. Since 1.8.
 */
#define MORPH_IOC_STACKS _IOW('M', 9, __u32)

/* Walks of stacks since the device was opened. */
struct morph_walks {
	__u64 walks;
	__u64 frames;	  /* callers in all walks */
	__u64 read_again; /* of them: found as they were at the last walk, without their rows */
	__u64 no_room;	  /* samples without a stack: the ring was full */
	__u64 busy;	  /* addresses that were not looked up: the mappings were locked */
	__u64 rows_files;
	__u64 rows_bytes; /* of memory */
	__u64 stops[16];  /* by enum morph_stack_stop */
};
#define MORPH_IOC_WALKS _IOR('M', 10, struct morph_walks) /* since 1.8 */

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
MORPH_ASSERT_SIZE(morph_rows, 96);
MORPH_ASSERT_OFFSET(morph_rows, build_id, 40);
MORPH_ASSERT_OFFSET(morph_rows, segments, 72);
MORPH_ASSERT_SIZE(morph_walks, 184);

#endif
