// SPDX-License-Identifier: Apache-2.0
/*
 * call_file - the file into which programs with a clock of calls write sampled calls. A program counts
 * calls down and writes the call that reaches zero; then it draws the next number, evenly from 1 to
 * twice the period less 1. Programs and libraries may share one file: a record names code by run-time
 * addresses, and the process that mapped it.
 *
 * The file: the header below, zeros up to @header_bytes, then @nr_records records, a ring. All
 * numbers are little-endian. The format is in Documentation/abi.md.
 */
#ifndef MP_CALL_FILE_H
#define MP_CALL_FILE_H

#include <stdint.h>

#define MP_CALL_FILE_MAGIC	  "MORPHCAL"
#define MP_CALL_FILE_VERSION	  1
#define MP_CALL_FILE_HEADER_BYTES 4096
#define MP_CALL_NR_RECORDS	  65536
#define MP_CALL_PERIOD_MAX	  (1u << 30)

struct mp_call_file_header {
	char magic[8];
	uint32_t version, header_bytes;
	uint64_t nr_records;
	uint64_t next; /* number of the next record, from 0 on; programs add 1 */
	/* Mean calls from one sample to the next, which the reader sets; 0: nobody reads. */
	uint64_t period;
	uint64_t seed; /* for the numbers that programs draw; the reader sets it */
};

struct mp_call_record {
	uint64_t number;   /* 1 + its number; 0: being written */
	uint64_t caller;   /* return address of the call */
	uint64_t function; /* address behind the call in the stub of the function that was called */
	uint64_t process;  /* that ran the program's first instruction; its children keep it */
};

#define MP_CALL_FILE_BYTES                                                                         \
	(MP_CALL_FILE_HEADER_BYTES + MP_CALL_NR_RECORDS * sizeof(struct mp_call_record))

#endif
