// SPDX-License-Identifier: Apache-2.0
/*
 * sandbox - files that anybody may have made are read by processes that can do nothing else.
 *
 *	morphd --exec--> reader --fork--> worker, one for each file
 *
 * The reader is this program anew, with nothing of ours in memory or open; it has no rights, and
 * waits for files. A worker has one file, open for reading, and a pipe for its reply. It may read,
 * allocate and write; any other system call ends it. A file that takes a worker over can say
 * what it likes of itself and of nothing else: the next file has another worker. Called by morphd's
 * main and by modcache.
 */
#ifndef MD_SANDBOX_H
#define MD_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record.h"
#include "libprof/err.h"

/* In a worker: fills @reply from @fd, a regular file of @size bytes. Return: 0, else no reply. */
typedef int md_sandbox_work(int fd, uint64_t size, struct md_buf *reply);

struct md_sandbox_config {
	uint32_t deadline_ms; /* for one file; shorter for a while after one that took longer */
	size_t reply_max;     /* bytes */
};

struct md_sandbox_counts {
	uint64_t files, failed;
	uint64_t readers; /* started: one, and one for each that ended or was ended */
};

struct md_sandbox;

/*
 * md_sandbox_reader - to be called first in main(): where this process was started to be the
 * reader, it never returns.
 */
void md_sandbox_reader(char **argv, md_sandbox_work *work);

/* True where we have rights that a file's author may not have. */
bool md_sandbox_is_needed(void);

/* Starts the reader. Return: 0; -errno: no sandbox can be had here, @err says why. */
int md_sandbox_open(const struct md_sandbox_config *config, struct md_sandbox **out,
		    struct mp_err *err);
void md_sandbox_close(struct md_sandbox *sandbox);

/*
 * md_sandbox_read - adds what a worker replied to @reply, which is to be checked: it may say
 * anything. @fd: of a regular file of @size bytes, open for reading.
 * Return: 0; -ETIMEDOUT, -EFBIG (the reply), -EPROTO (the worker died, or gave up); -errno: there
 * was none.
 */
int md_sandbox_read(struct md_sandbox *sandbox, int fd, uint64_t size, struct md_buf *reply,
		    struct mp_err *err);

const struct md_sandbox_counts *md_sandbox_counts(const struct md_sandbox *sandbox);
/* The reader's process, 0 where there is none now. */
pid_t md_sandbox_pid(const struct md_sandbox *sandbox);

#endif
