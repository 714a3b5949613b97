// SPDX-License-Identifier: Apache-2.0
/*
 * lock - decides who may write to a database: one daemon, or any number of `morphd run`.
 *
 * A second daemon would count the same samples again, so a daemon takes an exclusive lock. The
 * kernel releases it when the process ends. The lock file names its holder and shows afterwards
 * whether a daemon ended properly.
 */
#ifndef MD_LOCK_H
#define MD_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "libprof/base/err.h"

struct md_lock {
	int fd;		   /* -1: not locked */
	pid_t unclean_pid; /* a daemon that ended without releasing the lock; 0: none */
};

/*
 * md_lock_take - lock @db.lock, exclusively or @shared. Return: 0; -EBUSY: another process has
 * it (the message names the process if known); -errno.
 */
int md_lock_take(const char *db, bool shared, struct md_lock *out, struct mp_err *err);

/* Releases the lock and records a proper end. */
void md_lock_release(struct md_lock *lock);

#endif
