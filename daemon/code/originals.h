// SPDX-License-Identifier: Apache-2.0
/*
 * originals - finds a profiled file that is no longer at its path, and the debug file with its
 * names.
 *
 * Searches the directory of an output, the directory of backups (libprof/elf/backup_dir.h) and the trees of build-ids below
 * /usr/lib and /usr/lib/debug. Asks debuginfod if DEBUGINFOD_URLS is set. Decides by identity
 * whether a file is the original. Called by stats_code and stats_heat.
 */
#ifndef MD_ORIGINALS_H
#define MD_ORIGINALS_H

#include <stdbool.h>

#include "libprof/elf/elf.h"
#include "libprof/elf/id.h"

/* Seconds that all requests to debuginfod may take together in one run. */
#define MD_DEBUGINFOD_SECONDS 10

/* Searches for backups only in @dir. @dir must stay valid. */
void md_originals_set_backup_dir(const char *dir);
/* Return: the directory that was set; NULL: none. */
const char *md_originals_backup_dir(void);

/*
 * md_original_find - find a file whose identity is @id; @beside: a path where its output lies, or NULL: the
 * same directory is searched, too. Return: 0; -ENOENT: not found; -EACCES: not found, but a directory of
 * backups cannot be read (*@path names it); -errno: a failure of the machine. Ownership: free(*@path).
 */
int md_original_find(const struct mp_id *id, const char *beside, char **path);

/*
 * md_original_symbols - open the debug file with @id's build-id and a symbol table. *@out NULL:
 * there is none. Return: 0, -errno: a failure of the machine. Ownership: mp_elf_close().
 */
int md_original_symbols(const struct mp_id *id, struct mp_elf **out);

/*
 * md_original_id - the identity by which samples of the file at @path are stored: its own; of an output, that
 * of its original. Return: 0, -errno.
 */
int md_original_id(const char *path, struct mp_id *id, struct mp_err *err);

#endif
