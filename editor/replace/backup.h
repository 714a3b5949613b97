// SPDX-License-Identifier: Apache-2.0
/*
 * backup - keeps the exact bytes of every replaced file, and finds them again.
 *
 *	DIR/BUILD-ID/XXH3	the original's bytes, mode 0400 (without BUILD-ID: text-HASH)
 *	DIR/BUILD-ID/XXH3.json	the original's id, places and outputs (backup_record)
 *
 * Two different files with one build-id (one may be stripped) are two originals; two
 * copies of one file are one. Originals are never removed. A user who can write here
 * decides what --restore puts back, so a directory that others may write is refused.
 * Called by inplace.
 */
#ifndef ME_BACKUP_H
#define ME_BACKUP_H

#include <stdbool.h>
#include <time.h>

#include "editor/base/attributes.h"
#include "editor/replace/backup_record.h"
#include "editor/base/digest.h"
#include "libprof/base/err.h"
#include "libprof/elf/id.h"

struct me_backup {
	char *path;
	int fd; /* -1: the directory does not exist and was not made */
};

/*
 * me_backup_open - open the directory @dir. NULL: /var/lib/morph-backup for root, else
 * morph/backup below $XDG_STATE_HOME or ~/.local/state. With @make it is created, mode
 * 0700 (of @dir only the last part).
 * Return: 0, -EPERM refused: others may write there, else -errno. Ownership:
 * me_backup_close(), after an error too.
 */
int me_backup_open(struct me_backup *backup, const char *dir, bool make, struct mp_err *err);
void me_backup_close(struct me_backup *backup);

/* One kept original. */
struct me_original {
	struct mp_id id;
	struct me_digest digest;
	char *path;	       /* of the kept bytes */
	int fd;		       /* open for reading, digest checked */
	struct timespec mtime; /* modification time of the file that was replaced */
};

/* The complete debug file of an output. The output's record says where it goes. */
struct me_backup_debug_source {
	int fd;
	const char *like; /* file whose owner and mode it gets */
};

/*
 * me_backup_put - keep the file @fd, which is at @path, before @output takes its place.
 * The file must still have @digest. On success the bytes are on disk, and so is the
 * debug file of @output if it has one (else @debug may be NULL).
 * Return: 0, -EBUSY the file was changed, else -errno. @kept gets the path of the
 * bytes; Ownership: free().
 */
int me_backup_put(struct me_backup *backup, int fd, const char *path, const struct mp_id *id,
		  const struct me_digest *digest, const struct me_attributes *attributes,
		  const struct me_backup_output *output, const struct me_backup_debug_source *debug,
		  char **kept, struct mp_err *err);
/*
 * me_backup_find - find the original @id from which Morph made @output, which is now at @path.
 * Return: 0, -EPERM there is none, it is damaged, or several fit, else -errno.
 * Ownership: me_original_fini(@out), after an error too.
 */
int me_backup_find(struct me_backup *backup, const struct mp_id *id, const char *path,
		   const struct me_backup_output *output, struct me_original *out,
		   struct mp_err *err);
/*
 * me_backup_add_output - record that another @output of the same original will be put
 * at @path. Return: 0 or -errno.
 */
int me_backup_add_output(struct me_backup *backup, const struct me_original *original,
			 const char *path, const struct me_backup_output *output,
			 const struct me_backup_debug_source *debug, struct mp_err *err);
/*
 * me_backup_drop_debug - remove the debug files of outputs that were put at @path. Kept
 * are that of the output @keep (NULL: none), and those that the same output at another
 * path still needs. @digest: of the original.
 * Return: 0 or -errno. The caller may go on after an error: files that could not be
 * removed stay in the record.
 */
int me_backup_drop_debug(struct me_backup *backup, const struct mp_id *id,
			 const struct me_digest *digest, const char *path, const struct mp_id *keep,
			 struct mp_err *err);
void me_original_fini(struct me_original *original);

#endif
