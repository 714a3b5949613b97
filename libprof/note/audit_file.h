// SPDX-License-Identifier: Apache-2.0
/*
 * audit_file - shared memory between a program that holds two versions of some functions, and the
 * reader that decides which version is faster ("performance auditing", Lau and others, CGO 2008,
 * section 2).
 *
 * Each audited function exists twice in the program: version A in the original's order, and
 * version B in the new order. For each thread and function the program makes *pairs* of
 * *windows*: in the first window one version runs, in the second window the other version. A coin
 * chooses the first one. When a window ends, the program writes a record into the ring. The reader
 * takes the records, tests the pairs, and writes a verdict into the function's control word. From
 * then on only that version runs.
 *
 *	file:	header, zeros up to @header_bytes
 *		struct mp_audit_function[nr_functions], zeros up to a multiple of 4096
 *		struct mp_audit_record[nr_records]
 *
 * The program writes all of it, but @verdict is written by the reader only. The file is hostile
 * input for both: @verdict is compared and never used as an address, and the reader believes no
 * number without a check. A file that is missing, foreign, damaged or read-only changes nothing:
 * the program then runs version A and writes no records. The format is in Documentation/abi.md.
 */
#ifndef MP_AUDIT_FILE_H
#define MP_AUDIT_FILE_H

#include <stdint.h>

#define MP_AUDIT_FILE_MAGIC	   "MORPHAUD"
#define MP_AUDIT_FILE_VERSION	   1
#define MP_AUDIT_FILE_HEADER_BYTES 4096
#define MP_AUDIT_MAX_FUNCTIONS	   256
/* A power of two. */
#define MP_AUDIT_NR_RECORDS 16384

enum mp_audit_version {
	MP_AUDIT_A, /* the original's order */
	MP_AUDIT_B, /* the new order */
	MP_AUDIT_NR_VERSIONS
};

/* Values of struct mp_audit_function.verdict; any other value counts as NONE. */
enum mp_audit_verdict {
	MP_AUDIT_VERDICT_NONE, /* draw a version for each window */
	MP_AUDIT_VERDICT_A,    /* run A, time nothing */
	MP_AUDIT_VERDICT_B,    /* run B, time nothing */
};

/* The fate of a window. The rule is fixed before any time is looked at. */
enum mp_audit_fate {
	MP_AUDIT_TIMED,
	MP_AUDIT_PREEMPTED, /* the thread was switched off its processor */
	MP_AUDIT_ABANDONED, /* left by longjmp(), an exception, fork() or exit, or calls itself too
			       often; the time means nothing */
	MP_AUDIT_SIGNALLED, /* a signal handler ran meanwhile */
	MP_AUDIT_NR_FATES
};

struct mp_audit_file_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint64_t table_hash;   /* of the section .morph.audit, which names the functions */
	uint32_t nr_functions; /* 1 to MP_AUDIT_MAX_FUNCTIONS */
	uint32_t nr_records;   /* MP_AUDIT_NR_RECORDS */
	uint64_t next;	       /* number of the next record; grows only */
};

/* One function. The counts are of all threads and processes, and only grow. */
struct mp_audit_function {
	uint32_t verdict; /* enum mp_audit_verdict */
	uint32_t zero;
	uint64_t starts;    /* timings that were started */
	uint64_t stops;	    /* timings that ended at an exit or at a timing point */
	uint64_t abandoned; /* starts = stops + abandoned, once no thread is in a timing */
	uint64_t windows[MP_AUDIT_NR_FATES];
	uint64_t zeros[8];
};

/* One window. Record number n lies at index n % nr_records. */
struct mp_audit_record {
	uint64_t number;  /* n + 1, written last; another value: not yet written, or overwritten */
	uint64_t pair;	  /* the same in both windows of a pair, and in no other window */
	uint64_t ticks;	  /* of the time-stamp counter, sum over @rounds */
	uint64_t rounds;  /* timings in this window: entries, or rounds of the loop */
	uint64_t started; /* time-stamp counter when the window began */
	uint32_t function;
	uint32_t thread; /* thread id */
	uint16_t point;	 /* timing point: 0: from entry to exit; others: .morph.audit */
	uint8_t version; /* enum mp_audit_version */
	uint8_t second;	 /* 0: first window of its pair, 1: second */
	uint8_t fate;	 /* enum mp_audit_fate */
	uint8_t zeros[11];
};

_Static_assert(sizeof(struct mp_audit_function) == 128, "two cache lines");
_Static_assert(sizeof(struct mp_audit_record) == 64, "one cache line");

#endif
