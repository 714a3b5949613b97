// SPDX-License-Identifier: Apache-2.0
/*
 * backups - lists the places where outputs of Morph have replaced files, from the records in the
 * directory of backups (editor/replace/). `morph undo --all' must find all such places, also those
 * that are in no database.
 */
#ifndef MD_BACKUPS_H
#define MD_BACKUPS_H

#include <stddef.h>

#include "libprof/base/err.h"

/*
 * md_backups_list - places that hold an output now. @dir: NULL: the default. Return: 0 (also if there
 * is no such directory), -errno. Ownership: md_backups_free().
 */
int md_backups_list(const char *dir, char ***out, size_t *nr, struct mp_err *err);
void md_backups_free(char **places, size_t nr);

#endif
