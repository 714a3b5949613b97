// SPDX-License-Identifier: Apache-2.0
/*
 * attributes - a file's metadata: owner, group, mode, times and every extended
 * attribute (these include access control lists, capabilities and security labels).
 *
 * Inode flags (chattr) and quota projects are left out: the directory or the
 * administrator sets them, and not every file system has them. Called by replace,
 * backup and selfcheck.
 */
#ifndef ME_ATTRIBUTES_H
#define ME_ATTRIBUTES_H

#include <stdint.h>
#include <sys/stat.h>

#include "libprof/base/err.h"

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

/*
 * me_attributes_read - Return: 0 or -errno, never -EPERM. Ownership:
 * me_attributes_fini(@out), after an error too.
 */
int me_attributes_read(int fd, const char *path, struct me_attributes *out, struct mp_err *err);
/* Return: the extended attribute @name; NULL if there is none. */
const struct me_xattr *me_attributes_find(const struct me_attributes *attributes, const char *name);
/*
 * me_attributes_apply - give @fd these attributes, and remove any other extended
 * attribute. @fd is our own file, which nobody runs yet. Times are not changed. An
 * attribute that cannot be kept is an error that names it. Return: 0 or -errno, never -EPERM.
 */
int me_attributes_apply(const struct me_attributes *attributes, int fd, const char *path,
			struct mp_err *err);
void me_attributes_fini(struct me_attributes *attributes);

#endif
