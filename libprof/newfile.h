// SPDX-License-Identifier: Apache-2.0
/*
 * newfile - opens a file for writing under a name that a user gave, and that may lie in somebody
 * else's directory. A symbolic link that another user made is not followed, wherever in the name it
 * stands: its owner would choose which file root overwrites. Called by whoever writes files.
 */
#ifndef MP_NEWFILE_H
#define MP_NEWFILE_H

#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

#include "libprof/err.h"

struct mp_place {
	int dir;
	char name[NAME_MAX + 1]; /* in @dir; no symbolic link when mp_place_find() looked */
};

/*
 * mp_place_find - where @path leads. Links of ours and of root are followed, also to a file that is
 * not there. Return: 0; -EPERM: a link of another user; -errno. Ownership: close(place->dir).
 */
int mp_place_find(const char *path, struct mp_place *place, struct mp_err *err);
/*
 * mp_newfile_open - an empty file at @path, open for writing. A file that is there is replaced and not
 * written to: it may have another name elsewhere. A pipe or a device is written to.
 * Return: a descriptor, or -errno with a message.
 */
int mp_newfile_open(const char *path, mode_t mode, struct mp_err *err);

#endif
