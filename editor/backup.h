// SPDX-License-Identifier: Apache-2.0
/*
 * backup - keeps the exact bytes of every file that was replaced, and finds them again.
 *
 *	DIR/BUILD-ID/XXH3		the original's bytes, mode 0400 (BUILD-ID: text-HASH, if none)
 *	DIR/BUILD-ID/XXH3.json		what and where it was, and what replaced it (backup_record)
 *
 * Two files with one build-id (one of them stripped) are two originals; two copies of one file are
 * one. Nothing is ever removed. Who can write here decides what --restore puts back, so a directory
 * that others may write is refused. Called by inplace.
 */
#ifndef ME_BACKUP_H
#define ME_BACKUP_H

#include <stdbool.h>
#include <time.h>

#include "editor/attributes.h"
#include "editor/backup_record.h"
#include "editor/digest.h"
#include "libprof/err.h"
#include "libprof/id.h"

struct me_backup {
	char *path;
	int fd; /* -1: there is no such directory, and none was made */
};

/*
 * me_backup_open - the directory @dir; NULL: /var/lib/morph-backup for root, else morph/backup below
 * $XDG_STATE_HOME or ~/.local/state. With @make it is made, 0700 (of a @dir the last part only).
 * Return: 0, -EPERM refused: others may write there, else -errno. me_backup_close() always.
 */
int me_backup_open(struct me_backup *backup, const char *dir, bool make, struct mp_err *err);
void me_backup_close(struct me_backup *backup);

/* What is kept of one file. */
struct me_original {
	struct mp_id id;
	struct me_digest digest;
	char *path;	       /* of the bytes */
	int fd;		       /* open for reading, digest checked */
	struct timespec mtime; /* of the file that was at the place */
};

/* The debug file that goes with an output, complete; what of it is in the output's record. */
struct me_backup_debug_source {
	int fd;
	const char *like; /* whose owner and mode it gets */
};

/*
 * me_backup_put - keep the file @fd, which is at @path, before @output takes its place. Its bytes
 * must have @digest, else they changed since. On disk when this returns 0, and so is its debug file, if
 * @output has one (@debug may be NULL else).
 * Return: 0, -EBUSY changed, else -errno. @kept gets the path of the bytes; Ownership: free().
 */
int me_backup_put(struct me_backup *backup, int fd, const char *path, const struct mp_id *id,
		  const struct me_digest *digest, const struct me_attributes *attributes,
		  const struct me_backup_output *output, const struct me_backup_debug_source *debug,
		  char **kept, struct mp_err *err);
/*
 * me_backup_find - the original @id of which @output, now at @path, was made by Morph.
 * Return: 0, -EPERM there is none, it is damaged, or it is not certain which, else -errno.
 * Ownership: me_original_fini(@out), after an error too.
 */
int me_backup_find(struct me_backup *backup, const struct mp_id *id, const char *path,
		   const struct me_backup_output *output, struct me_original *out,
		   struct mp_err *err);
/* Another @output of the same original is about to be put at @path. */
int me_backup_add_output(struct me_backup *backup, const struct me_original *original,
			 const char *path, const struct me_backup_output *output,
			 const struct me_backup_debug_source *debug, struct mp_err *err);
/*
 * me_backup_drop_debug - remove the debug files of outputs that were put at @path, but for that of the
 * output @keep (NULL: all), and those that the same output at another path still needs. @digest: of the original.
 * Return: 0 or -errno, which is no reason not to go on: what could not be removed stays in the record.
 */
int me_backup_drop_debug(struct me_backup *backup, const struct mp_id *id,
			 const struct me_digest *digest, const char *path, const struct mp_id *keep,
			 struct mp_err *err);
void me_original_fini(struct me_original *original);

#endif
