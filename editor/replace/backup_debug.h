// SPDX-License-Identifier: Apache-2.0
/*
 * backup_debug - chooses the place of an output's debug file, and writes or removes the
 * file. A write happens completely or not at all. The file is named by the output's
 * build-id, so it replaces neither the original's debug file nor another output's.
 * Called by backup and inplace.
 */
#ifndef ME_BACKUP_DEBUG_H
#define ME_BACKUP_DEBUG_H

#include "editor/replace/backup_record.h"
#include "libprof/base/err.h"
#include "libprof/elf/id.h"

/*
 * me_backup_debug_place - where debuggers look for the debug file of the output @id at
 * @path. If @debug, the original's debug file, lies in a tree of build-ids
 * (.../.build-id/12/34.debug): in the same tree. Else .debug beside @path, named in
 * .gnu_debuglink. Also says whether the directory must be made.
 * Return: 0 or -errno. Ownership: free(@out->path).
 */
int me_backup_debug_place(const char *path, const char *debug, const struct mp_id *id,
			  struct me_backup_debug *out);
/*
 * me_backup_debug_put - write the bytes of @fd to @debug->path by rename, and sync.
 * Owner and mode are @like's, without execute bits. Makes the directory, but not its
 * parent. The caller holds the lock of the original's directory.
 * Return: 0 or -errno, never -EPERM; after an error nothing is left behind.
 */
int me_backup_debug_put(const struct me_backup_debug *debug, int fd, const char *like,
			struct mp_err *err);
/*
 * me_backup_debug_remove - remove the file if it still has the digest of @debug, and
 * the directory if it was made for the file and is empty. Return: 0 (even if there is
 * no file), else -errno.
 */
int me_backup_debug_remove(const struct me_backup_debug *debug, struct mp_err *err);

#endif
