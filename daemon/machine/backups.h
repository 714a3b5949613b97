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

enum md_backup_holds {
	MD_BACKUP_OTHER,      /* the original, or a file that replaced the output */
	MD_BACKUP_OUTPUT,     /* an output */
	MD_BACKUP_MISSING,    /* there is no such file: removed, moved, or not mounted */
	MD_BACKUP_UNREADABLE, /* the file, or the record of its original */
};

/* A place where an output of Morph once lay, and the original that belongs there. */
struct md_backup_place {
	char *path; /* of the record itself, if that cannot be read */
	char digest[MP_BACKUP_DIGEST_LEN +
		    1];		    /* of the original's bytes, in hex digits; "": not known */
	enum md_backup_holds holds; /* set by md_backups_list() */
};

/*
 * md_backups_list - each place once that holds an output now, or of which that is not known: all but MD_BACKUP_OTHER.
 * @dir: NULL: the default. Return: 0 (also if there is no such directory), -errno. Ownership: md_backups_free_places().
 */
int md_backups_list(const char *dir, struct md_backup_place **out, size_t *nr, struct mp_err *err);
/*
 * md_backups_places - all places of all records, whatever lies there now: one for each original. Return: as
 * above. Ownership: md_backups_free_places().
 */
int md_backups_places(const char *dir, struct md_backup_place **out, size_t *nr,
		      struct mp_err *err);
void md_backups_free_places(struct md_backup_place *places, size_t nr);

#endif
