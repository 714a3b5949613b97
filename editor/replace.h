// SPDX-License-Identifier: Apache-2.0
/*
 * replace - puts another file in a file's place: a new inode and one rename, never a write into
 * the file that is there, which may be running. Whoever opens the path gets the old file or the new
 * one, whole, with the same owner, mode and extended attributes. Decides what may be replaced at
 * all; knows nothing of what is in the files. Called by inplace.
 */
#ifndef ME_REPLACE_H
#define ME_REPLACE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "editor/attributes.h"
#include "libprof/err.h"

struct me_replace {
	char *path; /* of the file that is replaced: symbolic links are followed, and stay */
	int old_fd; /* it, for reading; locked, so that nobody else of us works on it */
	int new_fd; /* the file to come, empty at first: write it whole */
	struct me_attributes attributes; /* of the old file */
	bool through_link;		 /* the path that was given is a symbolic link */

	/* private */
	const char *base; /* last part of @path */
	int dir_fd;
	struct stat old;
	char temporary[40];
	bool has_name; /* @temporary is in the directory */
	sigset_t old_mask;
};

/*
 * me_replace_begin - open, lock and look at what @path names, and make the new file beside it.
 *
 * The new file has no name before me_replace_commit(), so nothing can be left of it. Where the file
 * system has no files without a name it is ".morph-new.HASH", mode 0600; one that a kill left behind
 * is removed by the next run on the same path.
 *
 * Refuses (-EPERM): what is no regular file, set-user-ID and set-group-ID programs (a mistake in
 * one is a hole in the system), immutable and append-only files, and files with other names (hard
 * links), which would keep the old bytes, unless @break_links.
 * Return: 0, -EPERM refused, else -errno. me_replace_end() always.
 */
int me_replace_begin(struct me_replace *replace, const char *path, bool break_links,
		     struct mp_err *err);
/*
 * me_replace_commit - attributes, fsync, rename, fsync of the directory. @mtime: of the new file,
 * NULL: now. Nothing is replaced if the file at the path is not the one that was opened, or
 * was written since (size, times): looked at last of all, but a file that somebody else renames there
 * in the microseconds between that look and our rename is lost. Return: 0 or -errno, -EBUSY changed meanwhile.
 */
int me_replace_commit(struct me_replace *replace, const struct timespec *mtime, struct mp_err *err);
void me_replace_end(struct me_replace *replace);

#endif
