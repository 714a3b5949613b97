// SPDX-License-Identifier: Apache-2.0
/*
 * sandbox - lets processes that can do nothing else read files that any user may have made.
 *
 *	morphd --exec--> reader --fork--> worker, one for each file
 *
 * The reader is morphd's program executed anew: it has none of morphd's memory, descriptors or
 * rights, and waits for files. A worker has one file, open for reading, and a pipe for its
 * reply. It may read, allocate and write; any other system call ends it. A file that
 * compromises its worker can lie only about itself, since the next file has another worker.
 * Called by morphd's main and by modcache.
 */
#ifndef MD_SANDBOX_H
#define MD_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record/record.h"
#include "libprof/base/err.h"

/*
 * Runs in a worker: fills @reply from @fd, a regular file of @size bytes. Return: 0; else there
 * is no reply.
 */
typedef int md_sandbox_work(int fd, uint64_t size, struct md_buf *reply);

struct md_sandbox_config {
	/*
	 * Time per file, of waiting or of its worker's CPU; a worker that gets too little of the CPU has
	 * three times as long. Shorter for a while after a file took longer.
	 */
	uint32_t deadline_ms;
	size_t reply_max; /* in bytes */
	const char *name; /* that of md_sandbox_reader(); NULL: MD_SANDBOX_MODULES */
};

/* argv[0] of the readers: their names say which work they do. */
#define MD_SANDBOX_MODULES "morphd: reader"
#define MD_SANDBOX_AUDITS  "morphd: audit reader"
#define MD_SANDBOX_ROWS	   "morphd: unwind reader"
#define MD_SANDBOX_WAYS	   "morphd: branch reader"

struct md_sandbox_counts {
	uint64_t files, failed;
	uint64_t readers; /* readers started: the first, and one for each that ended */
};

struct md_sandbox;

/*
 * md_sandbox_reader - call first in main(), once for each name. If this process was started as the
 * reader with this name, it never returns.
 */
void md_sandbox_reader(char **argv, const char *name, md_sandbox_work *work);

/* Return: true if this process has rights that a file's author may not have. */
bool md_sandbox_is_needed(void);

/* Starts the reader. Return: 0; -errno: no sandbox is possible here, and @err says why. */
int md_sandbox_open(const struct md_sandbox_config *config, struct md_sandbox **out,
		    struct mp_err *err);
void md_sandbox_close(struct md_sandbox *sandbox);

/*
 * md_sandbox_read - add a worker's reply to @reply. The caller must check it: a worker may say
 * anything. @fd: a regular file of @size bytes, open for reading. Return: 0; -ETIMEDOUT;
 * -EFBIG: the reply is too large; -EPROTO: the worker died or gave up; -errno: no worker could
 * be started.
 */
int md_sandbox_read(struct md_sandbox *sandbox, int fd, uint64_t size, struct md_buf *reply,
		    struct mp_err *err);

const struct md_sandbox_counts *md_sandbox_counts(const struct md_sandbox *sandbox);
/* Return: process id of the reader; 0: none runs. */
pid_t md_sandbox_pid(const struct md_sandbox *sandbox);

/* Return: false: a sanitizer needs more memory than any limit would allow. */
bool md_sandbox_limits_memory(void);

#endif
