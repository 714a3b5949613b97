// SPDX-License-Identifier: Apache-2.0
/*
 * backups - lists the places where outputs of Morph have replaced files, from the records in the
 * directory of backups (editor/replace/). `morph undo --all' and `morph off' must find all such places,
 * also those that are in no database.
 */
#ifndef MD_BACKUPS_H
#define MD_BACKUPS_H

#include <stddef.h>

#include "libprof/base/err.h"
#include "libprof/elf/backup_dir.h"

/*
 * md_backups_list - places that hold an output now. @dir: NULL: the default. Return: 0 (also if there
 * is no such directory), -errno. Ownership: md_backups_free().
 */
int md_backups_list(const char *dir, char ***out, size_t *nr, struct mp_err *err);
void md_backups_free(char **places, size_t nr);

/* A place where an output of Morph once lay, and the original that belongs there. */
struct md_backup_place {
	char *path;
	char digest[MP_BACKUP_DIGEST_LEN + 1]; /* of the original's bytes, in hex digits */
};
/*
 * md_backups_places - all places of all records, whatever lies there now: one for each original. Return: as
 * above. Ownership: md_backups_free_places().
 */
int md_backups_places(const char *dir, struct md_backup_place **out, size_t *nr,
		      struct mp_err *err);
void md_backups_free_places(struct md_backup_place *places, size_t nr);

#endif
