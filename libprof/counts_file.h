// SPDX-License-Identifier: Apache-2.0
/*
 * counts_file - what the counters of an instrumented program's runs amount to, on disk.
 *
 * The header below, zeros up to @header_bytes, then the counters. Written by the program itself,
 * which has it mapped (editor/runtime); format in Documentation/abi.md.
 */
#ifndef MP_COUNTS_FILE_H
#define MP_COUNTS_FILE_H

#include <stdint.h>

#define MP_COUNTS_FILE_MAGIC	    "MORPHCNT"
#define MP_COUNTS_FILE_VERSION	    1
#define MP_COUNTS_FILE_HEADER_BYTES 4096

struct mp_counts_file_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint64_t counters_bytes; /* a multiple of 4096 */
	uint64_t table_hash;	 /* mp_edge_table_hash() of the file whose counters these are */
};

#endif
