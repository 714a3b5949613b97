// SPDX-License-Identifier: Apache-2.0
/*
 * old_backups - removes kept originals that are no longer needed: none of the places of such an
 * original holds an output of Morph. The directory is that of `morph-optimize --in-place'
 * (editor/replace/backup.h). Called by the worker at its start.
 */
#ifndef MD_OLD_BACKUPS_H
#define MD_OLD_BACKUPS_H

#include <stdint.h>

#include "libprof/base/err.h"

/*
 * md_old_backups_drop - removes originals in @dir (NULL: the default) that are not needed since @keep_s
 * seconds. When an original was first seen to be unneeded is kept in the file @notes. An original whose
 * record was changed since then, or whose output has a debug file, stays. Looks once an hour at most. @say: is
 * called for each that is removed. Return: 0 (also if there is no such directory), -errno.
 */
int md_old_backups_drop(const char *dir, const char *notes, double keep_s, int64_t now_s,
			void (*say)(const char *path, const char *text), struct mp_err *err);

#endif
