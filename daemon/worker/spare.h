// SPDX-License-Identifier: Apache-2.0
/*
 * spare - while versions take turns at a path, the one that was replaced last stays beside it, under the name that
 * mp_kept_name() gives. To put it back is a matter of names: nothing is read, copied or flushed, however large it is. Called
 * by live.
 *
 *	PATH  .morph-kept.HASH
 *	A     B			B was in place before, and takes its turn again
 *	A     			B becomes .morph-new.HASH
 *	A     A			A gets a second name
 *	B     A			B gets the path, by one rename
 *
 * Who is killed in between leaves a version at the path. The next worker removes .morph-kept.HASH, the next swap
 * .morph-new.HASH, and `morph off' and the restoring of the original both. Each version was flushed when it was written, and nothing depends on the order in which names reach the disk.
 *
 * The bytes of both files are compared by hash once. From then on each is known by device, inode, size and times. What changes
 * a file changes its times, and nobody can set back the time of change. If one is not as it was, the swap is morph-optimize's, which
 * compares hashes, and writes the version anew. What one of the two would not show: somebody writes to it between the worker's
 * calls of a swap, and sets back its time of modification as well. And a file that another program puts at the path
 * between the last look at it and the rename, microseconds later, is lost, as it is in morph-optimize's swap.
 */
#ifndef MD_SPARE_H
#define MD_SPARE_H

#include <stdbool.h>

#include "daemon/worker/live.h"

/* Gives the file at the path a second name, its only other one, before a version replaces it. Return: it has it. */
bool md_spare_keep(struct md_live *live);
/* Now it is replaced: it is the spare one, if its bytes are those of the version that was there. */
void md_spare_take(struct md_task *task, struct md_live *live);
/*
 * md_spare_swap - puts the spare version at the path, if it is @variant, and if both files are as they were. What was there is the
 * spare one then. Return: it is in place.
 */
bool md_spare_swap(struct md_task *task, struct md_live *live, enum md_variant variant);
/* Forgets the spare version, and removes it. */
void md_spare_drop(struct md_live *live);
/* Removes what a worker left beside @path that was killed. */
void md_spare_remove(const char *path);

#endif
