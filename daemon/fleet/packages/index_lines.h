// SPDX-License-Identifier: Apache-2.0
/*
 * index_lines - gives the lines of a file of a Debian archive, plain or compressed, one by one. For a confined process.
 * Called by package_index and package_contents.
 */
#ifndef MD_FLEET_INDEX_LINES_H
#define MD_FLEET_INDEX_LINES_H

#include <stddef.h>

#include "daemon/fleet/packages/package_files.h"

enum md_index_outcome {
	MD_INDEX_DONE,
	MD_INDEX_DAMAGED,
	MD_INDEX_TOO_LARGE /* for the memory, or for the disk */
};

/* @line: a string without its end, and without spaces there. It may be changed. */
typedef enum md_index_outcome md_index_see(void *arg, char *line, size_t size);

/* Calls @see for each line of the file that a confined process may read, until it does not return MD_INDEX_DONE. */
enum md_index_outcome md_index_lines(md_index_see *see, void *arg);

/*
 * md_index_run - runs @work, which calls md_index_lines(), in a confined process that reads the file at @path and
 * writes its answer to @out_fd. Return: 0; -EBADMSG: damaged; -ENOSPC; -ECANCELED; -errno.
 */
int md_index_run(const char *path, int (*work)(const void *arg), const void *arg, int out_fd,
		 const struct md_package_look *look, struct mp_err *err);

#endif
