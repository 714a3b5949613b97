// SPDX-License-Identifier: Apache-2.0
/*
 * backup_dir - names the directory that keeps the originals of replaced files, and the
 * folder of one original in it. morph-optimize writes there; morph-stats reads code and
 * names there.
 *
 * 	DIR/BUILD-ID/XXH3	the original's bytes (BUILD-ID: text-HASH for a file without one)
 */
#ifndef MP_BACKUP_DIR_H
#define MP_BACKUP_DIR_H

#include <stddef.h>

#include "libprof/base/err.h"
#include "libprof/elf/id.h"

#define MP_BACKUP_DIR_ROOT "/var/lib/morph-backup"

/* Length of the file name: an XXH3-128 in hex digits. */
#define MP_BACKUP_DIGEST_LEN 32

/*
 * The directory that is used when the user names none: MP_BACKUP_DIR_ROOT for root, else
 * morph/backup below $XDG_STATE_HOME or ~/.local/state. Return: NULL with a message.
 * Ownership: free().
 */
char *mp_backup_default_dir(struct mp_err *err);

/* Name of the folder of @id: BUILD-ID, or text-HASH. @buf holds MP_BACKUP_FOLDER_MAX bytes. */
#define MP_BACKUP_FOLDER_MAX (2 * MP_BUILD_ID_MAX + 8)
const char *mp_backup_folder(const struct mp_id *id, char *buf);

#endif
