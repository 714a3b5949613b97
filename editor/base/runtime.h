// SPDX-License-Identifier: Apache-2.0
/*
 * runtime - machine code that an instrumented file runs before its own code: it maps the file
 * of counts over the counters.
 *
 * It is position-independent and has no data; the parameters follow directly behind it. Its
 * source is in editor/runtime/. The editor puts it into files; verify compares it.
 */
#ifndef ME_RUNTIME_H
#define ME_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#define ME_RUNTIME_MAGIC 0x3654524850524f4dull /* "MORPHRT6" */
#define ME_RUNTIME_PATH	 1024
#define ME_RUNTIME_PAGE	 4096
/*
 * Entries. START replaces e_entry: it restores everything and continues at @next. INIT replaces
 * DT_INIT: a function that continues at @next in the same way, or returns. THREAD: a function that
 * changes no register, for a thread without counters. ENTER, LEAVE, POINT: the same, for the stubs
 * at entries, at exits and in loops of audited functions; a number stands one byte behind the
 * return address (place/audit_code.h). CALL: the same, for the stubs that sample calls, without a
 * number (place/clock_code.h). The callers of these five have lowered %rsp below the red zone; the five
 * raise it again.
 */
#define ME_RUNTIME_START  0
#define ME_RUNTIME_INIT	  16
#define ME_RUNTIME_THREAD 32
#define ME_RUNTIME_ENTER  48
#define ME_RUNTIME_LEAVE  64
#define ME_RUNTIME_POINT  80
#define ME_RUNTIME_CALL	  96

/* Offset of the call for ENTER in the stub at an entry, behind three jumps (place/audit_code.h). */
#define ME_RUNTIME_ENTER_CALL 29

/* Bytes below the stack pointer that a function may use, by the ABI. */
#define ME_RED_ZONE 128

/*
 * The number in a stub of an audit: the function's; at an entry also whether the function is timed
 * in loops; in a loop also the timing point, the version, and the least rounds between two calls of
 * the runtime.
 */
#define ME_AUDIT_NUMBER_FUNCTION 0xffu
#define ME_AUDIT_NUMBER_LOOPS	 0x80000000u
#define ME_AUDIT_NUMBER_POINT	 8  /* first of 2 bits */
#define ME_AUDIT_NUMBER_VERSION	 10 /* bit */
#define ME_AUDIT_NUMBER_ROUNDS	 11 /* first bit of the rest */
#define ME_AUDIT_MAX_POINTS	 4
#define ME_AUDIT_MAX_ROUNDS	 (UINT32_MAX >> ME_AUDIT_NUMBER_ROUNDS)

/* Addresses are relative to the address of these parameters. */
struct me_runtime_params {
	uint64_t magic;
	int64_t counters;	 /* page-aligned, zeros in private memory */
	uint64_t counters_bytes; /* a multiple of 4096 */
	int64_t next;		 /* 0: return (INIT only) */
	int64_t base;		 /* word for the address behind the mapped first page; 0: none */
	int64_t state;		 /* struct me_thread_state, behind the counters; 0: none */
	uint64_t table_hash;	 /* mp_edge_table_hash() of the file's section .morph.edges, or
				     * that of .morph.paths, .morph.audit or .morph.calls */
	uint64_t nr_audited;	 /* audited functions, whose slots the counters are; or 0 */
	uint64_t has_clock;	 /* 1: the counters are a struct me_call_clock; else 0 */
	char path[ME_RUNTIME_PATH]; /* of the file of counts; the first "%p" is the process id, the first "%u" the effective user */
};

/*
 * With counters per thread, a page follows each set of counters. The page behind the file's own
 * counters is a struct me_thread_state. The others begin with a struct me_stack_range; fork()
 * fills them with zeros in the child, so the child owns none of its parent's counters.
 */
struct me_stack_range {
	uint64_t high, low; /* bounds of the owner's stack pointer, and of no other thread's */
	uint64_t tp;	    /* the owner's base of %fs */
	uint64_t claim;	    /* number that the owner wrote into the file's header; 0: none */
};

struct me_thread_state {
	/* Window of threads whose base of %gs is 0. It contains no stack pointer; if there are no
	 * counters per thread, it contains every one. */
	struct me_stack_range first;
	uint64_t region;    /* address of the first thread's counters; the others' follow */
	uint64_t stride;    /* bytes from one thread's counters to the next, with the page */
	uint64_t file;	    /* address of the mapped file, without sets mapped in @region */
	uint64_t mapped[3]; /* one bit per set mapped there, and one for the shared set */
	uint64_t sets;	    /* sets of counters in the file; 0: no counters per thread */
	uint64_t fsgsbase;  /* user space may read and write the bases of %fs and %gs */
};

/* A timing point, in one thread. */
struct me_audit_point {
	int32_t left[2]; /* of each version: rounds until the runtime is called; below 0: now */
	uint64_t since;	 /* time-stamp when @left was set ... */
	uint64_t rounds; /* ... for so many rounds */
	uint64_t least;	 /* least rounds in a timing */
};

/*
 * An audited function, in one thread. An audited file has such slots instead of counters: one per
 * function, one behind the other. The page behind a thread's slots holds a struct me_audit_thread,
 * the page behind the file's own slots a struct me_audit_state. All of it is private memory.
 */
struct me_audit_slot {
	int32_t countdown; /* entries until the runtime is called; below 0: now */
	uint8_t version;   /* enum mp_audit_version: the one that runs */
	uint8_t timing;	   /* not 0: a timing has started */
	uint8_t window;	   /* the next, or open, window of a pair: 1 or 2; 0: no pair has begun */
	uint8_t first;	   /* version of the first window */
	uint64_t pair;	   /* number of the pair */
	uint64_t due;	   /* time-stamp before which no pair begins */
	uint64_t paid;	   /* time-stamp until which the pauses pay for the pairs so far */
	uint64_t since;	   /* time-stamp when @countdown was set ... */
	uint64_t entries;  /* ... to this value */
	uint64_t spent;	   /* ticks that this pair's timings cost, estimated */
	uint8_t point;	   /* of the pair: 0: entry to exit; else 1 + index in @points */
	uint8_t decided; /* not 0: there is a verdict; stubs in loops lead to code without stubs */
	uint8_t zero[6];
	struct me_audit_point points[ME_AUDIT_MAX_POINTS];
};

_Static_assert(sizeof(struct me_audit_slot) == 192, "three cache lines");

/* Threads beyond this number run version A untimed. */
#define ME_AUDIT_MAX_THREADS 512

struct me_audit_state {
	uint64_t region;    /* address of the first thread's slots; the others' follow */
	uint64_t stride;    /* bytes from one thread's slots to the next, with the page */
	uint64_t fsgsbase;  /* user space may read and write the bases of %fs and %gs */
	uint64_t ring;	    /* address of the ring file; 0: there is none */
	uint64_t ready;	    /* the region may be used */
	uint64_t ticks, ns; /* two clocks at the start, to learn how fast the first one runs */
	uint64_t least;	    /* ticks in the shortest window; 0: not known yet */
	uint64_t writing;   /* a thread changes code (untimed.c) */
	uint32_t claims[ME_AUDIT_MAX_THREADS]; /* thread id of each region; 0: it is free */
};

/* fork() fills it with zeros in the child, so the child owns none of its parent's windows. */
struct me_audit_thread {
	uint64_t tp;	   /* the owner's base of %fs */
	uint64_t busy;	   /* stack pointer while the runtime runs; 0: it does not */
	uint64_t random;   /* state of the generator */
	uint64_t paid;	   /* as a slot's, for all functions: no pair begins before */
	uint64_t open;	   /* 1 + number of the function whose window is open; 0: none is */
	uint64_t began;	   /* time-stamp when the window began */
	uint64_t switches; /* how often the thread had left its processor by then */
	uint64_t rsp;	   /* where the timing began: at an entry, or in a loop; 0: none has */
	uint64_t entered;  /* time-stamp of that */
	uint64_t cost;	   /* ticks that the stubs of this invocation cost, estimated */
	uint64_t nested;   /* recursive calls in the invocation that is timed */
	uint64_t longest;  /* ticks after which others may end a window in a loop */
	uint64_t ticks;	   /* sum of the window's timings */
	uint64_t rounds;   /* of these timings: invocations, or rounds of the loop */
	uint64_t starts, stops, abandoned; /* timings of the window */
	uint64_t tid;
};

/* The clock of calls, in a page of each process. Its threads share it. */
struct me_call_clock {
	int32_t left; /* calls until one is sampled; below 0: now */
	uint32_t zero;
	uint64_t file;	  /* address of the mapped file (libprof/note/call_file.h); 0: none */
	uint64_t process; /* number of the process that mapped it */
	uint64_t draws;	  /* numbers that were drawn */
};

/* Its size is a multiple of 16. */
extern const uint8_t me_runtime_blob[];
extern const uint32_t me_runtime_blob_size;

/*
 * The blob's unwind information: CIEs and FDEs without an end. Unwinders
 * need it in signal handlers that interrupt the runtime.
 */
extern const uint32_t me_runtime_frames_size;
/* Write it to @out, which will be loaded at @vaddr, for the blob at @runtime. */
void me_runtime_frames_write(uint64_t runtime, uint64_t vaddr, uint8_t *out);
/*
 * me_runtime_frames_next - the next FDE among these bytes, from offset *@off on, which moves on.
 * Its place is @frame, its code starts at @start bytes behind the blob's start and takes @size.
 * Return: false: there is none.
 */
bool me_runtime_frames_next(uint32_t *off, uint32_t *frame, uint64_t *start, uint64_t *size);

#endif
