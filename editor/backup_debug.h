// SPDX-License-Identifier: Apache-2.0
/*
 * backup_debug - debug files of outputs that are in place: where each lies, whole or not at all, and
 * how it goes again. Its name is the output's build-id, so it takes nobody's place: neither the
 * original's, which stays, nor another output's. Called by backup and inplace.
 */
#ifndef ME_BACKUP_DEBUG_H
#define ME_BACKUP_DEBUG_H

#include "editor/backup_record.h"
#include "libprof/err.h"
#include "libprof/id.h"

/*
 * me_backup_debug_place - where debuggers look for the debug file of the output @id at @path: where the
 * original's, @debug, lies by its build-id in the same tree (.../.build-id/12/34.debug), else by
 * .gnu_debuglink in .debug beside @path. And whether the directory has to be made.
 * Return: 0 or -errno. Ownership: free(@out->path).
 */
int me_backup_debug_place(const char *path, const char *debug, const struct mp_id *id,
			  struct me_backup_debug *out);
/*
 * me_backup_debug_put - the bytes of @fd, a file of @like's owner and mode (but never executable), as
 * @debug->path; its directory is made, its parent is not. By rename, synced. Nobody else of us does the same
 * meanwhile: under a lock of the caller's.
 * Return: 0 or -errno, never -EPERM; then nothing was left.
 */
int me_backup_debug_put(const struct me_backup_debug *debug, int fd, const char *like,
			struct mp_err *err);
/*
 * me_backup_debug_remove - remove it, if it is still the file that was put there, and the directory that
 * was made for it, if empty. Return: 0, also where there is none, else -errno.
 */
int me_backup_debug_remove(const struct me_backup_debug *debug, struct mp_err *err);

#endif
