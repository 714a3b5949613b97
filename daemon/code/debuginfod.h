// SPDX-License-Identifier: Apache-2.0
/*
 * debuginfod - asks the servers of DEBUGINFOD_URLS for a file with a given build-id.
 *
 * Loads libdebuginfod.so.1 at run time, so that nothing depends on the library. Asks nothing if
 * the variable or the library is missing. All requests together take at most
 * MD_DEBUGINFOD_SECONDS.
 */
#ifndef MD_DEBUGINFOD_H
#define MD_DEBUGINFOD_H

#include "libprof/elf/id.h"

enum md_debuginfod_what {
	MD_DEBUGINFOD_EXECUTABLE,
	MD_DEBUGINFOD_DEBUG
};

/* Call at the start of main(), because md_debuginfo_open() removes the variable. */
void md_debuginfod_init(void);

/* Return: path of a copy in the library's cache, or NULL. Ownership: free(). */
char *md_debuginfod_find(const struct mp_id *id, enum md_debuginfod_what what);

#endif
