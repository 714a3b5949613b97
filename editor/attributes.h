// SPDX-License-Identifier: Apache-2.0
/*
 * attributes - what a file has besides its bytes and its name: owner, group, mode, times, and every
 * extended attribute (access control lists, capabilities, security labels are some of them).
 *
 * Inode flags (chattr) and quota projects are not among them: they are the directory's or the
 * administrator's to set, and not every file system has them. Called by replace and backup.
 */
#ifndef ME_ATTRIBUTES_H
#define ME_ATTRIBUTES_H

#include <stdint.h>
#include <sys/stat.h>

#include "libprof/err.h"

struct me_xattr {
	char *name;
	uint8_t *value;
	size_t size;
};

struct me_attributes {
	mode_t mode; /* permission and set-id bits */
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
	struct me_xattr *xattrs;
	uint32_t nr_xattrs;
};

/* Ownership: me_attributes_fini(@out), after an error too. Return: 0 or -errno. */
int me_attributes_read(int fd, const char *path, struct me_attributes *out, struct mp_err *err);
const struct me_xattr *me_attributes_find(const struct me_attributes *attributes, const char *name);
/*
 * me_attributes_apply - give @fd, a file of ours that has no name or none that anybody runs, these
 * attributes and no extended one besides. Times are left as they are. Nothing is done by halves:
 * what cannot be kept is an error that names it. Return: 0 or -errno, never -EPERM.
 */
int me_attributes_apply(const struct me_attributes *attributes, int fd, const char *path,
			struct mp_err *err);
void me_attributes_fini(struct me_attributes *attributes);

#endif
