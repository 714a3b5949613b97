// SPDX-License-Identifier: Apache-2.0
/*
 * counts_file - what the counters of an instrumented program's runs amount to, on disk.
 *
 * The header below, zeros up to @header_bytes, then the counters: one set, or in version 2 several,
 * which add up. Written by the program itself, which has it mapped (editor/runtime); format in
 * Documentation/abi.md.
 */
#ifndef MP_COUNTS_FILE_H
#define MP_COUNTS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/err.h"

#define MP_COUNTS_FILE_MAGIC	    "MORPHCNT"
#define MP_COUNTS_FILE_VERSION	    1
#define MP_COUNTS_FILE_VERSION_SETS 2
#define MP_COUNTS_FILE_HEADER_BYTES 4096
/* Version 2: who counts in which set. 8 bytes for each set. */
#define MP_COUNTS_FILE_CLAIMS	2048
#define MP_COUNTS_FILE_MAX_SETS 128

struct mp_counts_file_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint64_t counters_bytes; /* of one set; a multiple of 4096 */
	uint64_t table_hash;	 /* mp_edge_table_hash() of the file whose counters these are */
	uint64_t nr_sets;	 /* version 2; 0 in version 1 */
};

/* True where @fd is at the beginning of such a file, to which it can return; it stays there. */
bool mp_counts_file_is(int fd);
/*
 * mp_counts_file_add - add what @fd, at its beginning, counted to @counters, @nr of them.
 * @table_hash: of the instrumented file. That it may be running still is no matter.
 * Return: 0, -EBADMSG no such file, a damaged one, or another file's, -EOVERFLOW, -errno.
 */
int mp_counts_file_add(const char *name, int fd, uint64_t table_hash, uint64_t *counters,
		       uint32_t nr, struct mp_err *err);

#endif
