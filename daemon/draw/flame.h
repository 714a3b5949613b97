// SPDX-License-Identifier: Apache-2.0
/*
 * flame - a tree of samples: all, modules, functions, blocks. A child is a part of its parent, and not a
 * function that it calls; flame_calls makes trees of callers. Called by "morph-stats flame".
 */
#ifndef MD_FLAME_H
#define MD_FLAME_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/code/ksyms.h"
#include "daemon/code/stats_code.h"
#include "libprof/store/store.h"

enum md_flame_level {
	MD_FLAME_ALL,
	MD_FLAME_MODULE,
	MD_FLAME_FUNCTION,
	MD_FLAME_BLOCK,
	MD_FLAME_NR_LEVELS
};

struct md_flame {
	char *name;
	uint64_t samples;
	uint64_t vaddr;	   /* of a function or block */
	uint32_t nr_insns; /* of a block; 0: not known */
	uint32_t colour;   /* of calling contexts: below 8 */
	char id[9];	   /* of a module: the first digits of its build-id */
	/* number of nodes, too small to show, that this node stands for; 0: an ordinary node */
	uint64_t nr_merged;
	/* tenths of a percent of all samples; those of the children add up to it */
	unsigned int tenths;
	struct md_flame *children; /* most samples first, merged nodes last */
	size_t nr, max;
};

/*
 * md_flame_add_module - add @module with its counts as a child of @root. Its functions and
 * blocks come from @code, those of a kernel from @ksyms. If both are NULL, it has no children.
 * Return: 0, -ENOMEM.
 */
int md_flame_add_module(struct md_flame *root, const struct mp_module *module,
			const struct md_code *code, const struct md_ksyms *ksyms,
			const struct mp_ip_count *counts, size_t nr);
/* Appends the first digits of the build-id to modules that share a file name: "prog 72a44fc3". */
int md_flame_add_build_ids(struct md_flame *root);
/* Sorts the children at every level. */
void md_flame_sort(struct md_flame *root);
/*
 * md_flame_merge - merge all children with fewer than @least samples into one, at every level,
 * if there are several. Remove the children of a node with fewer than @least_above samples.
 */
void md_flame_merge(struct md_flame *root, double least, double least_above);
/*
 * Sets @tenths of all nodes below @root by the largest-remainder method. @root->tenths must be
 * set.
 */
int md_flame_round(struct md_flame *root);
/* Frees what @root holds, but not @root. */
void md_flame_fini(struct md_flame *root);

#endif
