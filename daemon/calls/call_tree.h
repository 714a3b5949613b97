// SPDX-License-Identifier: Apache-2.0
/*
 * call_tree - the calling contexts of the store by function: programs, below them the functions that
 * call one another. Called by the commands query, export and flame.
 *
 * A node's children are the functions that it called, most samples first. Its own samples are those
 * that hit the function itself.
 */
#ifndef MD_CALL_TREE_H
#define MD_CALL_TREE_H

#include "daemon/calls/call_names.h"
#include "daemon/code/stats_filter.h"
#include "libprof/context/context_tree.h"
#include "libprof/store/store.h"

/* The number of a node's samples whose activation had begun after the thread's last sample. */
struct md_calls_entries {
	double estimate, most;
};

struct md_calls {
	struct mp_context_tree tree;	  /* the root's children are programs */
	struct md_calls_entries *entries; /* of each node */
	struct md_call_names *names;
	struct mp_module *modules;
	size_t nr_modules;
	size_t nr_programs;
};

/*
 * md_calls_read - @filter selects programs. @note: gets messages about files that cannot be read.
 * Without contexts, *@out has no programs. Return: 0, -errno. Ownership: md_calls_fini(@out).
 */
int md_calls_read(struct mp_store *store, const struct md_stats_filter *filter, int64_t since_s,
		  void (*note)(void *arg, const char *message), void *arg, struct md_calls *out,
		  struct mp_err *err);
void md_calls_fini(struct md_calls *calls);

/* Return: the node's name: a program's file name, else the function's; NULL: no memory. */
const char *md_calls_name(const struct md_calls *calls, uint32_t node);
/* Return: the module of the node's function or program; NULL: none. */
const struct mp_module *md_calls_module(const struct md_calls *calls, uint32_t node);
/* Return: true for the children of the root. */
static inline bool md_calls_is_program(const struct md_calls *calls, uint32_t node)
{
	return node && !calls->tree.nodes[node].parent;
}

/*
 * md_calls_next - walks the tree, each node before its children. @path: nodes from the program on, with
 * room for all nodes; *@nr: its length, 0 at first. @down: go to the children of the last node, if it has
 * any; else they are left out. Return: false after the last node.
 */
bool md_calls_next(const struct md_calls *calls, uint32_t *path, size_t *nr, bool down);
/*
 * Calls @fn for each path with samples of its own. @path: nodes from the program to the function.
 * Stops at the first @fn that returns other than 0. Return: that, or -ENOMEM.
 */
int md_calls_each_path(const struct md_calls *calls,
		       int (*fn)(void *arg, const uint32_t *path, size_t nr), void *arg);

#endif
