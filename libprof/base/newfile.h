// SPDX-License-Identifier: Apache-2.0
/*
 * newfile - opens a file for writing under a name that a user gave. The name may lie in a
 * directory of another user. A symbolic link that another user made is not followed, in any
 * part of the name: its owner would choose the file that root overwrites. Called by
 * all code that writes such files.
 */
#ifndef MP_NEWFILE_H
#define MP_NEWFILE_H

#include <limits.h>
#include <stdio.h>
#include <sys/types.h>

#include "libprof/base/err.h"

struct mp_place {
	int dir;
	char name[NAME_MAX + 1]; /* name in @dir; it was no symbolic link during mp_place_find() */
};

/*
 * mp_place_find - the directory and name that @path leads to. Links of this user and of
 * root are followed, also to a missing file. Return: 0; -EPERM: a link of another user;
 * -errno. Ownership: close(place->dir).
 */
int mp_place_find(const char *path, struct mp_place *place, struct mp_err *err);
/*
 * mp_directory_open - the directory in which @path lies, for openat() and the like. For root, as mp_place_find(); others
 * follow any link, since they name what they may write to. Return: a descriptor, or -errno with a message.
 */
int mp_directory_open(const char *path, struct mp_err *err);
/* Return: 0: its directory can be opened so; -errno with a message. */
int mp_directory_check(const char *path, struct mp_err *err);
/*
 * mp_newfile_open - opens an empty file at @path for writing. An existing file is replaced
 * and not written to, since it may have another name elsewhere. A pipe or a device is
 * written to.
 * Return: a descriptor, or -errno with a message.
 */
int mp_newfile_open(const char *path, mode_t mode, struct mp_err *err);

#define MP_NEW_NAME_MAX 40
/*
 * mp_new_name - the name that a new file has, beside the file @base that it is going to replace, until it is renamed.
 * Always the same for one @base, so that what a killed process left is found again. @out holds MP_NEW_NAME_MAX bytes.
 */
void mp_new_name(const char *base, char *out);
/* mp_kept_name - likewise, of the version of @base that was in its place before (daemon/worker/spare.c). */
void mp_kept_name(const char *base, char *out);

#endif
