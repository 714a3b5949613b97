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

#define ME_RUNTIME_MAGIC 0x3254524850524f4dull /* "MORPHRT2" */
#define ME_RUNTIME_PATH	 1024
/*
 * Where to enter it. START instead of e_entry: everything is restored before it goes on at @next.
 * INIT instead of DT_INIT: a function, which goes on at @next in the same way, or returns.
 */
#define ME_RUNTIME_START 0
#define ME_RUNTIME_INIT	 16

/* Addresses are relative to that of these parameters. */
struct me_runtime_params {
	uint64_t magic;
	int64_t counters;	 /* page-aligned, zeros in private memory */
	uint64_t counters_bytes; /* a multiple of 4096 */
	int64_t next;		 /* 0: return (INIT only) */
	int64_t base;		 /* of a word that gets the address of what follows the first page
				     * of the counters once they are mapped; 0: none */
	uint64_t table_hash;	 /* mp_edge_table_hash() of the file's section .morph.edges, or
				     * mp_path_table_hash() of its section .morph.paths */
	char path[ME_RUNTIME_PATH]; /* of the file of counts; the first "%p" is the process id */
};

/* Its size is a multiple of 16. */
extern const uint8_t me_runtime_blob[];
extern const uint32_t me_runtime_blob_size;

#endif
