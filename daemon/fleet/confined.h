// SPDX-License-Identifier: Apache-2.0
/*
 * confined - runs work on bytes of unknown authors in a process of its own, which can only compute, read one
 * open file and write another. Called by the reading of packages and by the applying of deltas.
 */
#ifndef MD_FLEET_CONFINED_H
#define MD_FLEET_CONFINED_H

#include <stdbool.h>
#include <stddef.h>

#include "libprof/base/err.h"

/* Descriptors of the work; all others are closed. */
#define MD_CONFINED_IN	3
#define MD_CONFINED_OUT 4

struct md_confined {
	int in_fd, out_fd; /* -1: none */
	/* It may read by pread() only. Return: 0 to 100. */
	int (*work)(const void *arg);
	const void *arg;
	size_t memory;	      /* most bytes of its own */
	unsigned int seconds; /* most of CPU time */
	/* Asked every few seconds; true ends the work. NULL: nobody asks. */
	bool (*look)(void *arg);
	void *look_arg;
};

/*
 * Return: what @work returned; -EBADMSG: a signal ended the work, because it did what it may not, or needed too
 * much; -ECANCELED: @look said so; -EPERM: it cannot be confined here; -errno.
 */
int md_confined_run(const struct md_confined *confined, struct mp_err *err);
/* A file without a name on the disk of @dir, for an answer. Return: a descriptor, -errno. */
int md_confined_file(const char *dir, struct mp_err *err);

#endif
