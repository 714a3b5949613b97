// SPDX-License-Identifier: Apache-2.0
/*
 * flame - samples as a tree: all, modules, functions, blocks. There are no call stacks in the
 * store, so a level is what holds the one below it, not what called it.
 */
#ifndef MD_FLAME_H
#define MD_FLAME_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/ksyms.h"
#include "daemon/stats_code.h"
#include "libprof/store.h"

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
	uint64_t vaddr;	     /* function, block */
	uint32_t nr_insns;   /* block; 0: not known */
	char id[9];	     /* module: how its build-id begins */
	uint64_t nr_merged;  /* more than one thing, which were too small to be shown: how many */
	unsigned int tenths; /* of a percent of all; those of its children add up to it */
	struct md_flame *children; /* most samples first, what was merged last */
	size_t nr, max;
};

/*
 * md_flame_add_module - a child of @root for @module with its counts: functions and blocks of
 * @code, of a kernel those of @ksyms, or none below it where both are NULL.
 * Return: 0, -ENOMEM.
 */
int md_flame_add_module(struct md_flame *root, const struct mp_module *module,
			const struct md_code *code, const struct md_ksyms *ksyms,
			const struct mp_ip_count *counts, size_t nr);
/* Modules with one file name get the beginning of their build-ids as well: "prog 72a44fc3". */
int md_flame_tell_apart(struct md_flame *root);
/* Sort the children at every level. */
void md_flame_sort(struct md_flame *root);
/*
 * md_flame_merge - make one of all children, at every level, with less than @least samples, if
 * there is more than one; drop what is below a node that has less than @least_above.
 */
void md_flame_merge(struct md_flame *root, double least, double least_above);
/* Set @tenths of everything below @root, whose own is set: by the largest remainder. */
int md_flame_round(struct md_flame *root);
/* What it holds, not @root itself. */
void md_flame_fini(struct md_flame *root);

#endif
