// SPDX-License-Identifier: Apache-2.0
/*
 * tree_sizes - how large the trees of calling contexts in a database are, and how long they take to write
 * and to read. Called by contexts_store.
 */
#ifndef TREE_SIZES_H
#define TREE_SIZES_H

/*
 * Prints for each tree: samples; nodes; bytes in the plain form, as zlib makes of these, and packed; then
 * milliseconds of CPU time, the least of some turns: to pack and to read the packed tree, to fold the tree to
 * half of its nodes, and to make and to read the plain form with zlib. Exits with a message if @db cannot be
 * read.
 */
void tree_sizes_print(const char *db);

#endif
