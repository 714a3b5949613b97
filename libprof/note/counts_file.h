// SPDX-License-Identifier: Apache-2.0
/*
 * counts_file - reads the file into which an instrumented program counts.
 * The header below, zeros up to @header_bytes, then the counters: one set, or in version 2
 * several sets, which add up. The program itself writes the file, which it has mapped
 * (editor/runtime). The format is in Documentation/abi.md.
 */
#ifndef MP_COUNTS_FILE_H
#define MP_COUNTS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/err.h"

#define MP_COUNTS_FILE_MAGIC	    "MORPHCNT"
#define MP_COUNTS_FILE_VERSION	    1
#define MP_COUNTS_FILE_VERSION_SETS 2
#define MP_COUNTS_FILE_HEADER_BYTES 4096
/* Version 2: offset of the table of the sets' owners, 8 bytes for each set. */
#define MP_COUNTS_FILE_CLAIMS	2048
#define MP_COUNTS_FILE_MAX_SETS 128

struct mp_counts_file_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint64_t counters_bytes; /* bytes of one set; a multiple of 4096 */
	uint64_t table_hash;	 /* mp_edge_table_hash() of the file that the counters belong to */
	uint64_t nr_sets;	 /* version 2; 0 in version 1 */
};

/*
 * True if @fd, at the start of the file, is a file of counts. @fd must be seekable; its
 * position stays.
 */
bool mp_counts_file_is(int fd);
/*
 * mp_counts_file_add - adds the @nr counters of the file to @counters. @fd may be anywhere in the file, and is
 * moved.
 * @table_hash: of the instrumented file. The program may still be running, and the file's owner may change or
 * cut the file meanwhile; @counters are then of no use.
 * Return: 0, -ENODATA (no program has begun to count in it), -EBADMSG (not a file of counts, damaged, cut short,
 * or of another program), -EINVAL (not a regular file), -EOVERFLOW, -errno.
 */
int mp_counts_file_add(const char *name, int fd, uint64_t table_hash, uint64_t *counters,
		       uint32_t nr, struct mp_err *err);

#endif
