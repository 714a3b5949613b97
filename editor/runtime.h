// SPDX-License-Identifier: Apache-2.0
/*
 * runtime - the piece of machine code that an instrumented file runs before anything of its own:
 * it maps the file of counts over the counters.
 *
 * Position-independent and without data of its own; the parameters follow directly behind it. The
 * code is in editor/runtime/; the editor puts it into files, verify compares it there.
 */
#ifndef ME_RUNTIME_H
#define ME_RUNTIME_H

#include <stdint.h>

#define ME_RUNTIME_MAGIC 0x3354524850524f4dull /* "MORPHRT3" */
#define ME_RUNTIME_PATH	 1024
#define ME_RUNTIME_PAGE	 4096
/*
 * Where to enter it. START instead of e_entry: everything is restored before it goes on at @next.
 * INIT instead of DT_INIT: a function, which goes on at @next in the same way, or returns.
 * THREAD: a function that leaves all registers alone, for a thread without counters of its own.
 */
#define ME_RUNTIME_START  0
#define ME_RUNTIME_INIT	  16
#define ME_RUNTIME_THREAD 32

/* Addresses are relative to that of these parameters. */
struct me_runtime_params {
	uint64_t magic;
	int64_t counters;	 /* page-aligned, zeros in private memory */
	uint64_t counters_bytes; /* a multiple of 4096 */
	int64_t next;		 /* 0: return (INIT only) */
	int64_t base;		 /* of a word that gets the address of what follows the first page
				     * of the counters once they are mapped; 0: none */
	int64_t state; /* of a struct me_thread_state, directly behind the counters; 0: threads
				     * have no counters of their own */
	uint64_t table_hash;	    /* mp_edge_table_hash() of the file's section .morph.edges, or
				     * mp_path_table_hash() of its section .morph.paths */
	char path[ME_RUNTIME_PATH]; /* of the file of counts; the first "%p" is the process id */
};

/*
 * Where threads have counters of their own, a page follows each set of counters. That of the counters
 * that the file has is a struct me_thread_state. The others begin with a struct me_thread_window;
 * fork() fills them with zeros in the child, which so loses what its parent owns.
 */
struct me_thread_window {
	uint64_t high, low; /* the owner's stack pointer was between them; others' are not */
	uint64_t tp;	    /* the owner's base of %fs */
	uint64_t claim;	    /* what the owner wrote into the file's header; 0: no owner */
};

struct me_thread_state {
	struct me_thread_window
		first;	 /* of threads with 0 as the base of %gs: no stack pointer lies in
					* it; without sets for threads every one */
	uint64_t region; /* address of the first thread's counters; the others' follow */
	uint64_t stride; /* bytes from one thread's counters to the next one's, the page included */
	uint64_t file; /* address at which the file is mapped, but for sets that went to the region */
	uint64_t mapped[3]; /* one bit for each set that did, and for the shared one behind them */
	uint64_t sets;	    /* of counters in the file; 0: threads cannot have their own */
	uint64_t fsgsbase;  /* user space may read and write the bases of %fs and %gs */
};

/* Its size is a multiple of 16. */
extern const uint8_t me_runtime_blob[];
extern const uint32_t me_runtime_blob_size;

#endif
