/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * morph_abi - the records that every producer of samples writes, and morphd reads.
 * Defines the layout of each record, not its transport (a ring, a file). Every size and
 * offset is asserted below, so the kernel, the BPF and the user build all check it.
 * Described in Documentation/abi.md.
 */
#ifndef MORPH_ABI_H
#define MORPH_ABI_H

#include <linux/types.h>

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <stddef.h>
#endif

/*
 * MAJOR changes when an old reader would misread records. MINOR changes when records, or
 * fields at the end of records, are added. A reader accepts its own MAJOR only, and skips
 * records of unknown type by their size.
 */
#define MORPH_ABI_MAJOR 1
/*
 * 1: MODULE_ENDS; 2: STACK; 3: FILE, SPACE, program only; 4: REGISTERS, MODULE_PATHS; 5:
 * MODULE_OUTPUT; 6: MODULE_PIECES; 7: MODULE_UNWIND, USER_STACK, the flags of STACK, the signal in
 * EXIT; 8: ages in STACK; 9: rows that stop behind a change of stacks; 10: MODULE_CALLS;
 * 11: rflags in REGISTERS; 12: rsp and words of the stack in REGISTERS
 */
#define MORPH_ABI_MINOR 12

#define MORPH_RECORD_ALIGN    8
#define MORPH_RECORD_SIZE_MAX 65528 /* the largest multiple of 8 in a __u16 */
#define MORPH_BUILD_ID_MAX    32
#define MORPH_COMM_LEN	      16

enum morph_record_type {
	MORPH_REC_PAD = 0, /* padding to skip */
	MORPH_REC_SAMPLES = 1,
	MORPH_REC_BRANCHES = 2,
	MORPH_REC_EXEC = 3,
	MORPH_REC_MMAP = 4,
	MORPH_REC_MUNMAP = 5,
	MORPH_REC_FORK = 6,
	MORPH_REC_EXIT = 7,
	MORPH_REC_SWITCH = 8,
	MORPH_REC_COMM = 9,
	MORPH_REC_LOST = 10,
	MORPH_REC_MODULE = 11,	    /* added by morphd, never by a kernel producer */
	MORPH_REC_MODULE_MAP = 12,  /* also added by morphd */
	MORPH_REC_MODULE_ENDS = 13, /* also added by morphd */
	MORPH_REC_STACK = 14,
	MORPH_REC_FILE = 15,  /* only from the kernel module; morphd converts FILE */
	MORPH_REC_SPACE = 16, /* and SPACE into EXEC and MMAP */
	MORPH_REC_REGISTERS = 17,
	MORPH_REC_MODULE_PATHS = 18,  /* added by morphd */
	MORPH_REC_MODULE_OUTPUT = 19, /* also added by morphd */
	MORPH_REC_MODULE_PIECES = 20, /* also added by morphd */
	MORPH_REC_MODULE_UNWIND = 21, /* also added by morphd */
	MORPH_REC_USER_STACK = 22,    /* only from perf and bpf; morphd converts it into STACK */
	MORPH_REC_MODULE_CALLS = 23,  /* added by morphd */
};

/* The start of every record. @size counts the whole record, a multiple of 8. */
struct morph_record {
	__u16 size;
	__u16 type; /* enum morph_record_type */
	__u32 cpu;
};

/*
 * The start of every record about a task. @exec_id distinguishes successive address spaces
 * of one tgid. A producer that numbers them (self_exec_id) may write mappings before their
 * EXEC. If it is always 0, EXEC comes first.
 */
struct morph_task {
	struct morph_record record;
	__u64 time_ns; /* in the clock that the stream names */
	__u32 tgid;
	__u32 tid;
	__u32 exec_id;
	__u32 flags; /* MORPH_<TYPE>_* for the record's type */
};

/*
 * Several samples of one thread on one CPU, in order; @time_ns is the first one's. Kernel
 * addresses have the top bit set. Count: (size - sizeof) / 8. @flags, from the kernel
 * module only: not 0 if the process's mappings were not reported, because no sample of its
 * own code needs them. It is then 1 + the number of the program's FILE.
 */
struct morph_samples {
	struct morph_task task;
	__u64 ips[];
};

struct morph_branch {
	__u64 from;
	__u64 to;
};

/* One branch stack, newest first. It is no additional sample. */
struct morph_branches {
	struct morph_task task;
	struct morph_branch branches[];
};

/*
 * Callers of the last sample of the preceding SAMPLES record: return addresses, innermost
 * first. It is no additional sample. The lower bits of @flags say why there are no more.
 */
struct morph_stack {
	struct morph_task task;
	__u64 ips[];
};
#define MORPH_STACK_STOP    0xffU     /* enum morph_stack_stop */
#define MORPH_STACK_USER_IP (1U << 8) /* ips[0] is the user code that entered the kernel */
/*
 * The upper half of @flags is valid: how many of the addresses, the outermost ones, lie where they
 * lay at the thread's last walk, with the same frames further out. The calls that will return there may
 * be the same as then. The calls that will return to the other addresses are certainly new.
 * Without the flag, nothing is known: no earlier walk, or on another stack. Since 1.8.
 */
#define MORPH_STACK_AGED       (1U << 9)
#define MORPH_STACK_OLD(flags) (((flags) >> MORPH_STACK_OLD_SHIFT) & 0xffffU)
#define MORPH_STACK_OLD_SHIFT  16

enum morph_stack_stop {
	MORPH_STACK_UNSAID = 0,	  /* as from walks along frame pointers */
	MORPH_STACK_BOTTOM = 1,	  /* the stack is complete */
	MORPH_STACK_DEPTH = 2,	  /* more frames than a walk may take */
	MORPH_STACK_COPY = 3,	  /* beyond the copied piece, or not readable */
	MORPH_STACK_UNMAPPED = 4, /* an address in no known mapping */
	MORPH_STACK_NO_ROWS = 5,  /* code without rows, and no plausible frame pointer */
	MORPH_STACK_NO_ROW = 6,	  /* a gap between a module's rows */
	MORPH_STACK_RULE = 7,	  /* a rule that walkers do not compute */
	MORPH_STACK_REGISTER = 8, /* a caller's register that is not known */
	MORPH_STACK_ORDER = 9,	  /* the stack pointer moved back a second time */
	MORPH_NR_STACK_STOP,
};

/* General registers have the numbers of x86's encoding; r8 to r15 have the numbers 8 to 15. */
#define MORPH_REG_RAX	 0
#define MORPH_REG_RCX	 1
#define MORPH_REG_RDX	 2
#define MORPH_REG_RBX	 3
#define MORPH_REG_RSP	 4
#define MORPH_REG_RBP	 5
#define MORPH_REG_RSI	 6
#define MORPH_REG_RDI	 7
#define MORPH_NR_REGS	 16
#define MORPH_REG_FLAGS	 16	 /* rflags, where registers are named (since 1.11) */
#define MORPH_REGS_PATHS 0xffefU /* all that may hold a path's number: never rsp */

#define MORPH_REGS_BRANCHES   0x1ffffU /* all that may decide a branch */
#define MORPH_STACK_WORDS_MAX 512

/*
 * Registers of sampled 64-bit user code, for samples of the preceding SAMPLES record; they
 * are no additional samples. An entry is the sample's address, followed by the value of
 * each register in @registers, ascending, and by @stack_words words of the stack, from rsp on.
 */
struct morph_registers {
	struct morph_task task;
	__u32 registers;   /* bit n: register n */
	__u32 stack_words; /* at most MORPH_STACK_WORDS_MAX; 0: none; before 1.12 always 0 */
	__u64 entries[];
};

/*
 * Registers of interrupted 64-bit user code, and a copy of its stack from @below bytes below its
 * stack pointer on, for the last sample of the preceding SAMPLES record. It is no additional sample.
 */
struct morph_user_stack {
	struct morph_task task;
	__u64 ip;
	__u64 registers[MORPH_NR_REGS];
	__u32 nr; /* bytes */
	__u32 below;
	__u8 bytes[];
};
#define MORPH_USER_STACK_KERNEL (1U << 0) /* the sample is in the kernel */

/* A new program in @tgid. If @exec_id is 0 or new, the old mappings are gone. */
struct morph_exec {
	struct morph_task task;
	__u32 nr_threads; /* 1 after execve; more for a process that was already running */
	__u32 pad;
};
#define MORPH_EXEC_FOUND (1U << 0) /* was running before the collector */

/* Executable memory. A later mapping hides those that it overlaps. */
struct morph_mmap {
	struct morph_task task;
	__u64 start;
	__u64 len;
	__u64 off; /* offset in the file, bytes */
	__u32 dev_major;
	__u32 dev_minor;
	__u64 ino;
	__u64 ino_generation;
	__u32 module; /* number of an earlier MODULE record; 0: not looked up yet */
	__u32 build_id_len;
	__u8 build_id[MORPH_BUILD_ID_MAX];
	char path[]; /* ends with a NUL, padded with NULs; "" if not known */
};
#define MORPH_MMAP_PROGRAM    (1U << 0) /* the file is the program itself */
#define MORPH_MMAP_GENERATION (1U << 1) /* @ino_generation is valid */
#define MORPH_MMAP_NAMESPACE  (1U << 2) /* @path belongs to another mount namespace */
#define MORPH_MMAP_NOWHERE    (1U << 3) /* only names the program: there is no mapping */

struct morph_munmap {
	struct morph_task task;
	__u64 start;
	__u64 len;
};

/* @task is the child; a thread has its parent's tgid. */
struct morph_fork {
	struct morph_task task;
	__u32 parent_tgid;
	__u32 parent_tid;
};

/* The end of one thread; the process ends with its last thread, or if the flags say so. */
struct morph_exit {
	struct morph_task task;
	__u64 cpu_time_ns; /* used by the thread, or with the flag by the process; 0: not known */
};
#define MORPH_EXIT_PROCESS (1U << 0) /* the whole process ends */
/*
 * Bits 8 to 14: the signal that ended the process; 0: none, or the producer cannot tell. Threads that the
 * process's end takes along have its signal, too.
 */
#define MORPH_EXIT_SIGNAL(flags)       (((flags) >> 8) & 0x7f)
#define MORPH_EXIT_WITH_SIGNAL(status) (((status)&0x7f) << 8) /* of the kernel's exit_code */

/* @task starts to run on the CPU. */
struct morph_switch {
	struct morph_task task;
	__u32 prev_tgid;
	__u32 prev_tid;
};

struct morph_comm {
	struct morph_task task;
	char comm[MORPH_COMM_LEN];
};

enum morph_lost_why {
	MORPH_LOST_RING_FULL = 0,
	MORPH_LOST_THROTTLED = 1,
	MORPH_LOST_TORN = 2,
	MORPH_LOST_NO_MEMORY = 3,
};

struct morph_lost {
	struct morph_record record;
	__u64 time_ns;
	__u64 nr;  /* samples; from a ring: records, any of which may be a sample */
	__u32 why; /* enum morph_lost_why */
	__u32 flags;
};
/* Events were lost, too: all knowledge of address spaces is invalid. */
#define MORPH_LOST_STATE (1U << 0)

/* Number of files that have a number at a time in a ring of the kernel module. */
#define MORPH_NR_FILES 256

/* From here on @number means this file, in this CPU's ring. The other fields are as in MMAP. */
struct morph_file {
	struct morph_record record;
	__u64 time_ns;
	__u32 number; /* below MORPH_NR_FILES */
	__u32 flags;  /* MORPH_MMAP_GENERATION, MORPH_MMAP_NAMESPACE */
	__u32 dev_major;
	__u32 dev_minor;
	__u64 ino;
	__u64 ino_generation;
	__u32 pad;
	__u32 build_id_len;
	__u8 build_id[MORPH_BUILD_ID_MAX];
	char path[]; /* ends with a NUL, padded with NULs */
};

/* A mapping in pages of 4096 bytes. */
struct morph_space_map {
	/* in bytes; the lower 12 bits hold MORPH_SPACE_* and a file's number in this CPU's ring */
	__u64 start;
	__u32 nr_pages;
	__u32 off_pages; /* offset in the file */
};
#define MORPH_SPACE_FILE    0xffU
#define MORPH_SPACE_PROGRAM 0x100U /* as MORPH_MMAP_PROGRAM */
#define MORPH_SPACE_VDSO    0x200U /* [vdso], without a file */
#define MORPH_SPACE_START   (~(__u64)0xfff)

/*
 * Executable memory that was mapped earlier, in this order, and is reported when a sample
 * needs it. Count: (size - sizeof) / sizeof(struct morph_space_map).
 */
struct morph_space {
	struct morph_task task;
	__u32 nr_threads;
	__u32 pad;
	struct morph_space_map maps[];
};
#define MORPH_SPACE_NEW (1U << 0) /* the first record of this exec_id; without it, a continuation */

enum morph_module_kind {
	MORPH_MODULE_FILE = 0,
	/* mapped everywhere; @off of its segments are run-time addresses */
	MORPH_MODULE_KERNEL = 1,
};

/* Why a mapping's samples cannot be attributed to a module. */
enum morph_module_status {
	MORPH_MODULE_KNOWN = 0,
	MORPH_MODULE_ANONYMOUS = 1,
	MORPH_MODULE_DELETED = 2,
	MORPH_MODULE_REPLACED = 3,
	MORPH_MODULE_NAMESPACE = 4,
	MORPH_MODULE_UNREADABLE = 5,
	MORPH_MODULE_VDSO = 6,
};

struct morph_segment {
	__u64 off; /* offset in the file (kernel: the run-time address) */
	__u64 vaddr;
	__u64 size; /* bytes in the file */
};

/* Identity of a file, so that a recording can be read without the file. */
struct morph_module {
	struct morph_record record;
	__u32 module; /* 1, 2, ...; a repeated number means the new module */
	__u32 kind;   /* enum morph_module_kind */
	__u32 status; /* enum morph_module_status; identity is valid for 0 only */
	__u32 nr_segments;
	__u64 text_hash; /* XXH3-64 over the file's bytes of every executable segment */
	__u64 text_size;
	__u32 build_id_len;
	__u32 nr_pieces; /* in the following MODULE_MAP records; 0: not an optimised module */
	__u8 build_id[MORPH_BUILD_ID_MAX];
	struct morph_segment segments[]; /* executable ones; then the path, padded with NULs */
};

struct morph_piece {
	__u64 new_vaddr;
	__u64 old_vaddr;
	__u32 new_size;
	__u32 old_size;
};

/* Part of an optimised module's map: the origin of its moved code. */
struct morph_module_map {
	struct morph_record record;
	__u32 module;
	__u32 build_id_len; /* the original's */
	__u64 text_hash;    /* the original's */
	__u8 build_id[MORPH_BUILD_ID_MAX];
	struct morph_piece pieces[];
};

/*
 * The same in fewer bytes, for a map of more than 2^20 pieces. The bytes are pieces in the
 * form of the map note; the first piece is relative to address 0.
 */
struct morph_module_pieces {
	struct morph_record record;
	__u32 module;
	__u32 build_id_len; /* the original's */
	__u64 text_hash;    /* the original's */
	__u8 build_id[MORPH_BUILD_ID_MAX];
	__u32 nr_pieces;
	__u32 nr; /* bytes */
	__u8 bytes[];
};

#define MORPH_END_UNKNOWN 0xffffffffU

/*
 * Follows a module's whole map. Gives, for each piece, the offset of the branch that ends
 * it in the original, in bytes from the piece's start; the piece's original size if no
 * branch ends it.
 */
struct morph_module_ends {
	struct morph_record record;
	__u32 module;
	__u32 first; /* index of the piece of ends[0] */
	__u32 nr;
	__u32 pad;
	__u32 ends[]; /* offsets, or MORPH_END_UNKNOWN */
};

/* Pieces [first, first + nr) replace a call of the original. */
struct morph_module_call {
	__u64 back;   /* the original's address behind the call */
	__u64 callee; /* the original's address of the called function */
	__u32 first;
	__u32 nr;
};

/* Follows a module's whole map: some of the calls that pieces replace, in ascending order. */
struct morph_module_calls {
	struct morph_record record;
	__u32 module;
	__u32 first; /* how many calls came before */
	__u32 nr;
	__u32 pad;
	struct morph_module_call calls[];
};

/* Follows a module's whole map: part of its path table, as in the file's section .morph.paths. */
struct morph_module_paths {
	struct morph_record record;
	__u32 module;
	__u32 table_size; /* bytes of the whole table */
	__u32 off;	  /* offset of these bytes in it */
	__u32 nr;	  /* bytes in this record */
	__u8 bytes[];
};

/*
 * Follows a module's map, at once or later: morphd found that the module is an output of
 * the original in the map. Without this record the map must not be used for the original's
 * counts.
 */
struct morph_module_output {
	struct morph_record record;
	__u32 module;
	__u32 pad;
};

/*
 * Part of a module's unwind rows, in the form that Documentation/abi.md describes. Follows the
 * module's MODULE record and its whole map.
 */
struct morph_module_unwind {
	struct morph_record record;
	__u32 module;
	__u32 table_size; /* bytes of the whole table */
	__u32 off;	  /* offset of these bytes in it */
	__u32 nr;	  /* bytes in this record */
	__u8 bytes[];
};

#define MORPH_ASSERT_SIZE(type, size)                                                              \
	_Static_assert(sizeof(struct type) == (size), "size of struct " #type)
#define MORPH_ASSERT_OFFSET(type, field, off)                                                      \
	_Static_assert(offsetof(struct type, field) == (off), "offset of " #type "." #field)

MORPH_ASSERT_SIZE(morph_record, 8);
MORPH_ASSERT_OFFSET(morph_record, size, 0);
MORPH_ASSERT_OFFSET(morph_record, type, 2);
MORPH_ASSERT_OFFSET(morph_record, cpu, 4);
MORPH_ASSERT_SIZE(morph_task, 32);
MORPH_ASSERT_OFFSET(morph_task, record, 0);
MORPH_ASSERT_OFFSET(morph_task, time_ns, 8);
MORPH_ASSERT_OFFSET(morph_task, tgid, 16);
MORPH_ASSERT_OFFSET(morph_task, tid, 20);
MORPH_ASSERT_OFFSET(morph_task, exec_id, 24);
MORPH_ASSERT_OFFSET(morph_task, flags, 28);
MORPH_ASSERT_SIZE(morph_samples, 32);
MORPH_ASSERT_OFFSET(morph_samples, ips, 32);
MORPH_ASSERT_SIZE(morph_branch, 16);
MORPH_ASSERT_OFFSET(morph_branch, from, 0);
MORPH_ASSERT_OFFSET(morph_branch, to, 8);
MORPH_ASSERT_SIZE(morph_branches, 32);
MORPH_ASSERT_OFFSET(morph_branches, branches, 32);
MORPH_ASSERT_SIZE(morph_stack, 32);
MORPH_ASSERT_OFFSET(morph_stack, ips, 32);
MORPH_ASSERT_SIZE(morph_registers, 40);
MORPH_ASSERT_OFFSET(morph_registers, registers, 32);
MORPH_ASSERT_OFFSET(morph_registers, entries, 40);
MORPH_ASSERT_SIZE(morph_exec, 40);
MORPH_ASSERT_OFFSET(morph_exec, nr_threads, 32);
MORPH_ASSERT_OFFSET(morph_exec, pad, 36);
MORPH_ASSERT_SIZE(morph_mmap, 120);
MORPH_ASSERT_OFFSET(morph_mmap, start, 32);
MORPH_ASSERT_OFFSET(morph_mmap, len, 40);
MORPH_ASSERT_OFFSET(morph_mmap, off, 48);
MORPH_ASSERT_OFFSET(morph_mmap, dev_major, 56);
MORPH_ASSERT_OFFSET(morph_mmap, dev_minor, 60);
MORPH_ASSERT_OFFSET(morph_mmap, ino, 64);
MORPH_ASSERT_OFFSET(morph_mmap, ino_generation, 72);
MORPH_ASSERT_OFFSET(morph_mmap, module, 80);
MORPH_ASSERT_OFFSET(morph_mmap, build_id_len, 84);
MORPH_ASSERT_OFFSET(morph_mmap, build_id, 88);
MORPH_ASSERT_OFFSET(morph_mmap, path, 120);
MORPH_ASSERT_SIZE(morph_munmap, 48);
MORPH_ASSERT_OFFSET(morph_munmap, start, 32);
MORPH_ASSERT_OFFSET(morph_munmap, len, 40);
MORPH_ASSERT_SIZE(morph_fork, 40);
MORPH_ASSERT_OFFSET(morph_fork, parent_tgid, 32);
MORPH_ASSERT_OFFSET(morph_fork, parent_tid, 36);
MORPH_ASSERT_SIZE(morph_exit, 40);
MORPH_ASSERT_OFFSET(morph_exit, cpu_time_ns, 32);
MORPH_ASSERT_SIZE(morph_switch, 40);
MORPH_ASSERT_OFFSET(morph_switch, prev_tgid, 32);
MORPH_ASSERT_OFFSET(morph_switch, prev_tid, 36);
MORPH_ASSERT_SIZE(morph_comm, 48);
MORPH_ASSERT_OFFSET(morph_comm, comm, 32);
MORPH_ASSERT_SIZE(morph_lost, 32);
MORPH_ASSERT_OFFSET(morph_lost, time_ns, 8);
MORPH_ASSERT_OFFSET(morph_lost, nr, 16);
MORPH_ASSERT_OFFSET(morph_lost, why, 24);
MORPH_ASSERT_OFFSET(morph_lost, flags, 28);
MORPH_ASSERT_SIZE(morph_file, 88);
MORPH_ASSERT_OFFSET(morph_file, time_ns, 8);
MORPH_ASSERT_OFFSET(morph_file, number, 16);
MORPH_ASSERT_OFFSET(morph_file, flags, 20);
MORPH_ASSERT_OFFSET(morph_file, dev_major, 24);
MORPH_ASSERT_OFFSET(morph_file, dev_minor, 28);
MORPH_ASSERT_OFFSET(morph_file, ino, 32);
MORPH_ASSERT_OFFSET(morph_file, ino_generation, 40);
MORPH_ASSERT_OFFSET(morph_file, build_id_len, 52);
MORPH_ASSERT_OFFSET(morph_file, build_id, 56);
MORPH_ASSERT_OFFSET(morph_file, path, 88);
MORPH_ASSERT_SIZE(morph_space_map, 16);
MORPH_ASSERT_OFFSET(morph_space_map, start, 0);
MORPH_ASSERT_OFFSET(morph_space_map, nr_pages, 8);
MORPH_ASSERT_OFFSET(morph_space_map, off_pages, 12);
MORPH_ASSERT_SIZE(morph_space, 40);
MORPH_ASSERT_OFFSET(morph_space, nr_threads, 32);
MORPH_ASSERT_OFFSET(morph_space, maps, 40);
MORPH_ASSERT_SIZE(morph_segment, 24);
MORPH_ASSERT_OFFSET(morph_segment, off, 0);
MORPH_ASSERT_OFFSET(morph_segment, vaddr, 8);
MORPH_ASSERT_OFFSET(morph_segment, size, 16);
MORPH_ASSERT_SIZE(morph_module, 80);
MORPH_ASSERT_OFFSET(morph_module, module, 8);
MORPH_ASSERT_OFFSET(morph_module, kind, 12);
MORPH_ASSERT_OFFSET(morph_module, status, 16);
MORPH_ASSERT_OFFSET(morph_module, nr_segments, 20);
MORPH_ASSERT_OFFSET(morph_module, text_hash, 24);
MORPH_ASSERT_OFFSET(morph_module, text_size, 32);
MORPH_ASSERT_OFFSET(morph_module, build_id_len, 40);
MORPH_ASSERT_OFFSET(morph_module, nr_pieces, 44);
MORPH_ASSERT_OFFSET(morph_module, build_id, 48);
MORPH_ASSERT_OFFSET(morph_module, segments, 80);
MORPH_ASSERT_SIZE(morph_piece, 24);
MORPH_ASSERT_OFFSET(morph_piece, new_vaddr, 0);
MORPH_ASSERT_OFFSET(morph_piece, old_vaddr, 8);
MORPH_ASSERT_OFFSET(morph_piece, new_size, 16);
MORPH_ASSERT_OFFSET(morph_piece, old_size, 20);
MORPH_ASSERT_SIZE(morph_module_map, 56);
MORPH_ASSERT_OFFSET(morph_module_map, module, 8);
MORPH_ASSERT_OFFSET(morph_module_map, build_id_len, 12);
MORPH_ASSERT_OFFSET(morph_module_map, text_hash, 16);
MORPH_ASSERT_OFFSET(morph_module_map, build_id, 24);
MORPH_ASSERT_OFFSET(morph_module_map, pieces, 56);
MORPH_ASSERT_SIZE(morph_module_pieces, 64);
MORPH_ASSERT_OFFSET(morph_module_pieces, module, 8);
MORPH_ASSERT_OFFSET(morph_module_pieces, build_id_len, 12);
MORPH_ASSERT_OFFSET(morph_module_pieces, text_hash, 16);
MORPH_ASSERT_OFFSET(morph_module_pieces, build_id, 24);
MORPH_ASSERT_OFFSET(morph_module_pieces, nr_pieces, 56);
MORPH_ASSERT_OFFSET(morph_module_pieces, nr, 60);
MORPH_ASSERT_OFFSET(morph_module_pieces, bytes, 64);
MORPH_ASSERT_SIZE(morph_module_call, 24);
MORPH_ASSERT_OFFSET(morph_module_call, back, 0);
MORPH_ASSERT_OFFSET(morph_module_call, callee, 8);
MORPH_ASSERT_OFFSET(morph_module_call, first, 16);
MORPH_ASSERT_OFFSET(morph_module_call, nr, 20);
MORPH_ASSERT_SIZE(morph_module_calls, 24);
MORPH_ASSERT_OFFSET(morph_module_calls, module, 8);
MORPH_ASSERT_OFFSET(morph_module_calls, first, 12);
MORPH_ASSERT_OFFSET(morph_module_calls, nr, 16);
MORPH_ASSERT_OFFSET(morph_module_calls, calls, 24);
MORPH_ASSERT_SIZE(morph_module_ends, 24);
MORPH_ASSERT_OFFSET(morph_module_ends, module, 8);
MORPH_ASSERT_OFFSET(morph_module_ends, first, 12);
MORPH_ASSERT_OFFSET(morph_module_ends, nr, 16);
MORPH_ASSERT_OFFSET(morph_module_ends, ends, 24);
MORPH_ASSERT_SIZE(morph_module_paths, 24);
MORPH_ASSERT_OFFSET(morph_module_paths, module, 8);
MORPH_ASSERT_OFFSET(morph_module_paths, table_size, 12);
MORPH_ASSERT_OFFSET(morph_module_paths, off, 16);
MORPH_ASSERT_OFFSET(morph_module_paths, nr, 20);
MORPH_ASSERT_OFFSET(morph_module_paths, bytes, 24);
MORPH_ASSERT_SIZE(morph_module_unwind, 24);
MORPH_ASSERT_OFFSET(morph_module_unwind, module, 8);
MORPH_ASSERT_OFFSET(morph_module_unwind, table_size, 12);
MORPH_ASSERT_OFFSET(morph_module_unwind, off, 16);
MORPH_ASSERT_OFFSET(morph_module_unwind, nr, 20);
MORPH_ASSERT_OFFSET(morph_module_unwind, bytes, 24);
MORPH_ASSERT_SIZE(morph_user_stack, 176);
MORPH_ASSERT_OFFSET(morph_user_stack, ip, 32);
MORPH_ASSERT_OFFSET(morph_user_stack, registers, 40);
MORPH_ASSERT_OFFSET(morph_user_stack, nr, 168);
MORPH_ASSERT_OFFSET(morph_user_stack, bytes, 176);

#endif
