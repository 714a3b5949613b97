// SPDX-License-Identifier: Apache-2.0
/*
 * audit_slot - one place in the file system that holds now one program, now the other.
 *
 * Both programs are run from the same path, so that name, argv[0], path length and whatever
 * follows from them are equal. Each run gets a fresh copy: which physical pages a file's cache
 * has changes its speed, and must not be a property of A or of B. Called by audit.
 */
#ifndef ME_AUDIT_SLOT_H
#define ME_AUDIT_SLOT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libprof/err.h"

struct me_program {
	const char *path;
	int fd;
	struct stat st; /* as it was when it was opened */
};

struct me_slot {
	char dir[PATH_MAX]; /* ours, private */
	char copy[PATH_MAX + 256], fresh[PATH_MAX + 256];
	const char *at; /* NULL: programs run from @copy */
	bool mounted;
};

/* me_program_open - a regular file that may be executed. Return: 0 or -errno, @err set. */
int me_program_open(struct me_program *program, const char *path, struct mp_err *err);
void me_program_close(struct me_program *program);
/* me_program_hash - of the whole contents. Return: 0 or -errno, @err set. */
int me_program_hash(const struct me_program *program, uint64_t *hash, struct mp_err *err);

/*
 * me_slot_open - a private directory below @parent in which both programs are called @name.
 * With @at both appear at that existing path instead, which nobody else sees: the calling
 * process moves into a mount namespace of its own.
 */
int me_slot_open(struct me_slot *slot, const char *parent, const char *name, const char *at,
		 struct mp_err *err);
/* me_slot_put - a fresh copy of @program is what is in the slot from now on. */
int me_slot_put(struct me_slot *slot, const struct me_program *program, struct mp_err *err);
const char *me_slot_path(const struct me_slot *slot);
/* me_slot_close - removes everything. The mount namespace, if any, stays. */
void me_slot_close(struct me_slot *slot);

#endif
