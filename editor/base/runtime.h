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

#include <stdint.h>

#define ME_RUNTIME_MAGIC 0x3354524850524f4dull /* "MORPHRT3" */
#define ME_RUNTIME_PATH	 1024
#define ME_RUNTIME_PAGE	 4096
/*
 * Entries. START replaces e_entry: it restores everything and continues at @next. INIT replaces
 * DT_INIT: a function that continues at @next in the same way, or returns. THREAD: a function
 * that changes no register, for a thread without counters.
 */
#define ME_RUNTIME_START  0
#define ME_RUNTIME_INIT	  16
#define ME_RUNTIME_THREAD 32

/* Addresses are relative to the address of these parameters. */
struct me_runtime_params {
	uint64_t magic;
	int64_t counters;	    /* page-aligned, zeros in private memory */
	uint64_t counters_bytes;    /* a multiple of 4096 */
	int64_t next;		    /* 0: return (INIT only) */
	int64_t base;		    /* word for the address behind the mapped first page; 0: none */
	int64_t state;		    /* struct me_thread_state, behind the counters; 0: none */
	uint64_t table_hash;	    /* mp_edge_table_hash() of the file's section .morph.edges, or
				     * mp_path_table_hash() of its section .morph.paths */
	char path[ME_RUNTIME_PATH]; /* of the file of counts; the first "%p" is the process id */
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

/* Its size is a multiple of 16. */
extern const uint8_t me_runtime_blob[];
extern const uint32_t me_runtime_blob_size;

#endif
