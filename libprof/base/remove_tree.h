// SPDX-License-Identifier: Apache-2.0
/*
 * remove_tree - removes a directory and what is in it. Another user may change the directory meanwhile: no symbolic
 * link is followed, in place of the directory or inside.
 */
#ifndef MP_REMOVE_TREE_H
#define MP_REMOVE_TREE_H

/*
 * mp_remove_tree - @depth: how many directories deep; what lies deeper stays. Calls only what POSIX allows in a
 * signal handler.
 */
void mp_remove_tree(const char *path, int depth);

#endif
