// SPDX-License-Identifier: Apache-2.0
/*
 * take_back - takes versions out of running processes, for the commands that put files back. Their mappings tell where
 * versions are, whatever became of the worker and its files. Called by undo and off.
 */
#ifndef MD_TAKE_BACK_H
#define MD_TAKE_BACK_H

#include <stddef.h>

#include "libprof/base/err.h"

/*
 * md_take_back - @file: as for md_version_is_of(); other versions in the same processes stay. Processes that this user may
 * not read are passed over.
 * Return: 0: none is in use any more; the status of `morph live undo', which has said why; -errno with a message. *@nr: the
 * processes from which all were taken.
 */
int md_take_back(const char *file, size_t *nr, struct mp_err *err);

#endif
