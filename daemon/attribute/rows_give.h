// SPDX-License-Identifier: Apache-2.0
/*
 * rows_give - hands the unwind rows of files to a source that walks stacks itself. Called by
 * pipeline, when a file was found.
 */
#ifndef MD_ROWS_GIVE_H
#define MD_ROWS_GIVE_H

#include "daemon/module/modcache.h"
#include "daemon/source/source.h"

/* Counts the rows that one source got. */
struct md_rows_give {
	uint8_t session;    /* 1, 2, ...: a new source knows nothing yet */
	bool was_full;	    /* the source had no room; said once */
	uint64_t nr, bytes; /* given */
};

/*
 * md_rows_give_start - a new source begins: nothing was given to it yet. Gives it the vDSO's rows.
 * @vdso: NULL: none.
 */
void md_rows_give_start(struct md_rows_give *give, struct md_source *source,
			const struct mp_rows *vdso);
/*
 * md_rows_give_file - gives the rows of @file, once, by the identity of @mmap, which the source or
 * /proc wrote. Return: a message for the user, or NULL.
 */
const char *md_rows_give_file(struct md_rows_give *give, struct md_source *source,
			      const struct md_modcache *mc, struct md_file *file,
			      const struct morph_mmap *mmap);

#endif
