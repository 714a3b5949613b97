// SPDX-License-Identifier: Apache-2.0
/* sandbox_private - messages between morphd and its reader, for sandbox's own files only. */
#ifndef MD_SANDBOX_PRIVATE_H
#define MD_SANDBOX_PRIVATE_H

#include <stdint.h>
#include <stddef.h>

#define MD_SANDBOX_SOCK 3 /* the only descriptor besides 0, 1 and 2 */
/* For 2^24 pieces: 128 MiB for the note, 128 packed, 64 for the ends, 256 for the reply. */
#define MD_SANDBOX_AS  (UINT64_C(768) << 20)
#define MD_SANDBOX_CPU 20 /* seconds of processor time per file */

#if defined(__SANITIZE_ADDRESS__)
#define MD_SANDBOX_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MD_SANDBOX_ASAN 1
#endif
#endif
#ifndef MD_SANDBOX_ASAN
#define MD_SANDBOX_ASAN 0
#endif

/*
 * Sent to the reader with two or three descriptors: the file, the write end of the reply's pipe, and
 * perhaps a file beside.
 */
#define MD_SANDBOX_FDS 3
struct md_sandbox_request {
	uint64_t size;
};

enum md_sandbox_step {
	MD_SANDBOX_READY,
	/* the step that failed during the start; @value: errno */
	MD_SANDBOX_EXEC,
	MD_SANDBOX_STDIO,
	MD_SANDBOX_LIMITS,
	MD_SANDBOX_CAPABILITIES,
	MD_SANDBOX_PRIVILEGES,
	MD_SANDBOX_FILTER,
	/* for a file: */
	MD_SANDBOX_STARTED, /* @value: process id of its worker */
	MD_SANDBOX_ENDED,   /* @value: as from waitpid() */
	MD_SANDBOX_FORK,    /* @value: errno */
};

/* Sent by the reader when it is ready, and at the start and the end of each file. */
struct md_sandbox_answer {
	int32_t step, value;
};

/* Exit status of a worker. */
enum md_sandbox_exit {
	MD_SANDBOX_DONE,
	MD_SANDBOX_GAVE_UP, /* @work returned an error */
	MD_SANDBOX_UNREADY, /* confining it failed; it read nothing */
};

/* Installs the filter: other system calls end this process from now on. Return: 0 or -errno. */
int md_sandbox_filter_reader(void);
int md_sandbox_filter_worker(void);

#endif
