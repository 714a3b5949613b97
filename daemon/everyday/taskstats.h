// SPDX-License-Identifier: Apache-2.0
/*
 * taskstats - what the kernel tells of each thread that ends, and of a running one when asked: the messages of
 * the generic netlink family TASKSTATS as a struct. Adds up nothing; called by cpu_time.
 */
#ifndef MD_TASKSTATS_H
#define MD_TASKSTATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libprof/base/err.h"

struct md_task {
	pid_t tid, tgid;
	dev_t dev; /* the executed file, as stat() names it on most filesystems; 0: none */
	ino_t ino;
	uint64_t cpu_ns, user_ns, system_ns; /* see cpu_time.h */
	bool is_last;			     /* of its process, which has ended with it */
	int signal;			     /* which killed it, or 0 */
};

struct md_taskstats {
	int events, requests; /* sockets: what the kernel tells by itself; questions and answers */
	uint64_t tick_ns;     /* the scheduler takes account at least so often */
	uint16_t family;
	uint32_t seq;
};

/* Return: 0, or -errno and @err. Ends with md_taskstats_close(). */
int md_taskstats_open(struct md_taskstats *ts, struct mp_err *err);
void md_taskstats_close(struct md_taskstats *ts);
/*
 * md_taskstats_next - the next thread that has ended. Does not wait. Return: 1; 0: none is known;
 * -ENOBUFS: the kernel dropped some, the next call goes on; another -errno.
 */
int md_taskstats_next(struct md_taskstats *ts, struct md_task *out);
/* md_taskstats_get - a running thread. Return: 0; -ESRCH: there is none; another -errno. */
int md_taskstats_get(struct md_taskstats *ts, pid_t tid, struct md_task *out);

#endif
