// SPDX-License-Identifier: Apache-2.0
/*
 * remove_tree - removes a directory and what is in it. Another user may change the directory meanwhile: no symbolic
 * link is followed, in place of the directory or inside. Root takes each directory from its owner before it is emptied.
 */
#ifndef MP_REMOVE_TREE_H
#define MP_REMOVE_TREE_H

/*
 * mp_remove_tree - @depth: how many directories deep; what lies deeper stays, and so do other file systems, and what is left
 * behind a million entries. Calls only what POSIX allows in a signal handler.
 * mp_remove_some - the same, but no more than @nr_entries.
 */
void mp_remove_tree(const char *path, int depth);
void mp_remove_some(const char *path, int depth, long nr_entries);

#endif
