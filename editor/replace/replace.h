// SPDX-License-Identifier: Apache-2.0
/*
 * replace - replaces a file by a new inode and one rename; it never writes into the old file,
 * which may be running. A process that opens the path gets the whole old file or the whole new
 * one, with the same owner, mode and extended attributes. Decides which files may be replaced;
 * ignores their contents. Called by inplace.
 */
#ifndef ME_REPLACE_H
#define ME_REPLACE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "editor/base/attributes.h"
#include "libprof/base/err.h"
#include "libprof/base/newfile.h"

struct me_replace {
	char *path; /* of the replaced file; symbolic links are followed, and stay */
	int old_fd; /* the old file, for reading; locked against other runs of this user */
	int new_fd; /* the new file, empty at first; the caller writes it */
	struct me_attributes attributes; /* of the old file */
	bool through_link;		 /* the path that was given is a symbolic link */

	/* private */
	unsigned int flags;
	const char *base; /* last part of @path */
	int dir_fd, lock_fd;
	struct stat old;
	char temporary[MP_NEW_NAME_MAX];
	bool has_name; /* @temporary is in the directory */
	sigset_t old_mask;
};

enum me_replace_flag {
	ME_REPLACE_BREAK_LINKS = 1, /* of several hard links, replace this one alone */
	/*
	 * Refuse a path that leads through a symbolic link. Who may change a directory of the path could
	 * otherwise put a link there, and so choose which file somebody else replaces.
	 */
	ME_REPLACE_NO_SYMLINKS = 2,
};

/*
 * me_replace_begin - opens, locks and checks the file at @path, and makes the new file beside
 * it.
 *
 * The new file has no name before me_replace_commit(), so a killed run leaves nothing. On a
 * file system without nameless files it is ".morph-new.HASH", mode 0600; the next run on the
 * same path removes one that a killed run left.
 *
 * Refuses (-EPERM): anything but a regular file; set-user-ID and set-group-ID programs (an
 * error in one opens the system); immutable and append-only files; and, unless @flags has
 * ME_REPLACE_BREAK_LINKS, files with another name (hard link) in the same directory.
 * Return: 0, -EPERM refused, else -errno. me_replace_end() always.
 */
int me_replace_begin(struct me_replace *replace, const char *path, unsigned int flags,
		     struct mp_err *err);
/*
 * me_replace_commit - attributes, fsync, rename, fsync of the directory. @mtime: of the new
 * file, NULL: now. Nothing is replaced if the file at the path is not the one that was opened,
 * or was written since (size, times). This is checked last; a file that another program renames
 * to the path in the microseconds after the check is lost.
 * Return: 0 or -errno, -EBUSY changed meanwhile.
 */
int me_replace_commit(struct me_replace *replace, const struct timespec *mtime, struct mp_err *err);
void me_replace_end(struct me_replace *replace);

#endif
