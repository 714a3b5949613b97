// SPDX-License-Identifier: Apache-2.0
/*
 * audit_slot - one path in the file system at which first one program lies, then the other.
 *
 * Both programs run from the same path, so name, argv[0] and path length are equal.
 * Each run gets a fresh copy: the physical pages of a file's cache change its speed,
 * and that must not favour A or B. Called by audit_stage, audit_both, refine and compilations.
 */
#ifndef ME_AUDIT_SLOT_H
#define ME_AUDIT_SLOT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libprof/base/err.h"

struct me_program {
	const char *path;
	int fd;
	struct stat st; /* when it was opened */
};

struct me_slot {
	char dir[PATH_MAX]; /* private directory of this slot */
	char copy[PATH_MAX + 256], fresh[PATH_MAX + 256];
	char beside[2][PATH_MAX + 256]; /* copies for two runs at the same time */
	const char *at;			/* NULL: programs run from @copy */
	bool mounted;
};

/* me_program_open - open a regular file. Return: 0 or -errno, @err set. */
int me_program_open(struct me_program *program, const char *path, struct mp_err *err);
void me_program_close(struct me_program *program);
/* me_program_hash - hash of the whole file. Return: 0 or -errno, @err set. */
int me_program_hash(const struct me_program *program, uint64_t *hash, struct mp_err *err);

/*
 * me_slot_open - make a private directory below @parent, in which both programs are
 * called @name. With @at, both appear at that existing path instead. No other process
 * sees that: the calling process moves into its own mount namespace. Return: 0 or
 * -errno, @err set. Ownership: me_slot_close().
 */
int me_slot_open(struct me_slot *slot, const char *parent, const char *name, const char *at,
		 struct mp_err *err);
/* me_slot_put - put a fresh copy of @program into the slot. Return: 0 or -errno, @err set. */
int me_slot_put(struct me_slot *slot, const struct me_program *program, struct mp_err *err);
/* me_slot_put_beside - put a fresh copy of @program into the slot as copy @nr, 0 or 1, of two.
 * Return: 0 or -errno, @err set. */
int me_slot_put_beside(const struct me_slot *slot, const struct me_program *program, int nr,
		       struct mp_err *err);
/*
 * me_slot_enter - move the calling process into a mount namespace of its own, in which copy @nr lies
 * at the slot's path. Some program must lie there already. Return: 0 or -errno, @err set.
 */
int me_slot_enter(const struct me_slot *slot, int nr, struct mp_err *err);
/* me_slot_path - the path from which both programs run. Ownership: of @slot. */
const char *me_slot_path(const struct me_slot *slot);
/* me_slot_close - remove all files. The mount namespace, if any, stays. */
void me_slot_close(struct me_slot *slot);

#endif
