// SPDX-License-Identifier: Apache-2.0
/*
 * count_dir - the directory into which the processes of one version count: Everybody may make
 * files there, as in /tmp. Each user's processes share one file, whose name is the user's number; the program
 * does not use a file that belongs to somebody else (editor/runtime/attach.c), and neither does this reader. A user
 * can thus write false numbers, and nothing else.
 */
#ifndef MD_COUNT_DIR_H
#define MD_COUNT_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/err.h"

/*
 * Makes @path, empty. @keep: what is there stays: a running process whose version an earlier worker has put there has its
 * file mapped for as long as a thread is in the copies. Return: 0, -errno.
 */
int md_count_dir_make(const char *path, bool keep, struct mp_err *err);
/*
 * md_count_dir_read - the sums over all users. @counters: @nr of them. @table_hash: of the version's table of counters
 * (mp_counts_file_add). Files that are no such counts are left out. Return: 0: also if there is no directory or no file;
 * -ENOMEM, -errno.
 */
int md_count_dir_read(const char *path, uint64_t table_hash, uint64_t *counters, uint32_t nr,
		      struct mp_err *err);
/* Afterwards nobody finds the directory; what its users made too deep to be removed stays under another name. */
void md_count_dir_remove(const char *path);

#endif
