// SPDX-License-Identifier: Apache-2.0
/*
 * debuginfod - asks the servers of DEBUGINFOD_URLS for a file by its build-id.
 *
 * libdebuginfod.so.1 is loaded at run time, so nothing depends on the library. Without the variable
 * or the library nothing is asked. All questions together take at most MD_DEBUGINFOD_SECONDS.
 */
#ifndef MD_DEBUGINFOD_H
#define MD_DEBUGINFOD_H

#include "libprof/id.h"

enum md_debuginfod_what {
	MD_DEBUGINFOD_EXECUTABLE,
	MD_DEBUGINFOD_DEBUG
};

/* Call once at the start of main(): what reads debug information takes the variable away. */
void md_debuginfod_init(void);

/* Return: the path of a copy in the library's cache, or NULL. Ownership: free(). */
char *md_debuginfod_find(const struct mp_id *id, enum md_debuginfod_what what);

#endif
