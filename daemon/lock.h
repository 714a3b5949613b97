// SPDX-License-Identifier: Apache-2.0
/*
 * lock - who may write to a database: one daemon, or any number of `morphd run`.
 *
 * A daemon wants it for itself, since another would count the same samples again. The lock is
 * the kernel's and goes with its process, however that ends; the file beside the database only
 * says who has it, and afterwards whether a daemon ended as it should.
 */
#ifndef MD_LOCK_H
#define MD_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "libprof/err.h"

struct md_lock {
	int fd;	     /* -1: none */
	pid_t found; /* a daemon that had it and did not give it back; 0: none */
};

/*
 * md_lock_take - @db.lock, alone or @shared. Return: 0; -EBUSY where another has it, with its
 * process id if that is known; -errno.
 */
int md_lock_take(const char *db, bool shared, struct md_lock *out, struct mp_err *err);

/* In order: nobody will say that we were killed. */
void md_lock_release(struct md_lock *lock);

#endif
