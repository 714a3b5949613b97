// SPDX-License-Identifier: Apache-2.0
/*
 * scratch - directories of intermediate files, which are gone when a program ends: removed by the
 * code that made them, or by a signal handler. Called by train, compilations and the audit's slot.
 */
#ifndef ME_SCRATCH_H
#define ME_SCRATCH_H

#include "libprof/base/err.h"

/*
 * me_scratch_make - makes a directory; @template ends in XXXXXX, as for mkdtemp(), and becomes its
 * path. Return: 0; -errno with a message, and @template is "".
 */
int me_scratch_make(char *template, struct mp_err *err);
/* Removes the directory with its files, and the files of directories in it; @path becomes "". */
void me_scratch_remove(char *path);
/*
 * Removes all directories that this process made and has not removed. For a signal handler that
 * ends the process: it calls only what POSIX allows there.
 */
void me_scratch_remove_all(void);

#endif
