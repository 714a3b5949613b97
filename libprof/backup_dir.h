// SPDX-License-Identifier: Apache-2.0
/*
 * backup_dir - where the originals of replaced files are kept: the directory, and the name of the
 * folder of one original. morph-optimize writes there, morph-stats looks there for code and names.
 *
 *	DIR/BUILD-ID/XXH3	the original's bytes (BUILD-ID: text-HASH for a file without one)
 */
#ifndef MP_BACKUP_DIR_H
#define MP_BACKUP_DIR_H

#include <stddef.h>

#include "libprof/err.h"
#include "libprof/id.h"

#define MP_BACKUP_DIR_ROOT "/var/lib/morph-backup"

/* How long the name of the bytes is: an XXH3-128 in hex. */
#define MP_BACKUP_DIGEST_LEN 32

/*
 * The directory where none is named: MP_BACKUP_DIR_ROOT for root, else morph/backup below
 * $XDG_STATE_HOME or ~/.local/state. Return: NULL with a message. Ownership: free().
 */
char *mp_backup_default_dir(struct mp_err *err);

/* BUILD-ID, or text-HASH. @buf holds MP_BACKUP_FOLDER_MAX. */
#define MP_BACKUP_FOLDER_MAX (2 * MP_BUILD_ID_MAX + 8)
const char *mp_backup_folder(const struct mp_id *id, char *buf);

#endif
