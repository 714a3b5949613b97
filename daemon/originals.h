// SPDX-License-Identifier: Apache-2.0
/*
 * originals - where a profiled file is when its path no longer holds it, and what names its code.
 *
 * Looks in the directory of backups (libprof/backup_dir.h), in the trees of build-ids below /usr/lib
 * and /usr/lib/debug, and asks debuginfod where DEBUGINFOD_URLS is set and libdebuginfod is
 * installed. Decides by identity whether a file is the original. Called by stats_code, stats_heat.
 */
#ifndef MD_ORIGINALS_H
#define MD_ORIGINALS_H

#include <stdbool.h>

#include "libprof/elf.h"
#include "libprof/id.h"

/* The time that all questions to debuginfod together may take in one run. */
#define MD_DEBUGINFOD_SECONDS 10

/* Look for backups in @dir and nowhere else. @dir must stay. */
void md_originals_set_backup_dir(const char *dir);

/*
 * md_original_find - the path of a file whose identity is @id.
 * Return: 0, -ENOENT none was found, -EACCES none was found but a directory of backups is closed to
 * us (then *@path names that directory), -ENOMEM. Ownership: free(*@path).
 */
int md_original_find(const struct mp_id *id, char **path);

/*
 * md_original_symbols - the debug file with @id's build-id and a symbol table.
 * Return: NULL where there is none. Ownership: mp_elf_close().
 */
struct mp_elf *md_original_symbols(const struct mp_id *id);

/* True where @path is an output of morph-optimize, made from @original. */
bool md_original_is_of(const char *path, struct mp_id *original);

#endif
